//! The source `http`.

use super::SourceKind;
use tidegate_journal::{Protocol, Signal};
use tidegate_sources::HttpLogs;

pub(super) const KIND: SourceKind = SourceKind {
    name: "http",
    max_body_setting: "sources.http.max_body",
    max_body: |sources| sources.http.max_body.get(),
    max_received: |sources| sources.http.max_body.get(),
    records: &[(Protocol::Otlp, Signal::Logs)],
    thread_bytes: 0,
    allowance: |limits| &limits.http,
    shown: |config| {
        ("log lines", format!("http://{}{}", config.listen.http, path(&config.sources.http.path)))
    },
    runs: None,
    start: |http, parts| {
        let (path, max_body) = (path(&parts.config.sources.http.path), parts.announced.max_body());
        let (books, arena, pool) = (parts.books.clone(), parts.arena.clone(), parts.pool.clone());
        Ok(http.with(HttpLogs::new(books, arena, pool, path, max_body)))
    },
};

/// A path with one slash at its beginning and none at its end, but for the root.
fn path(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}
