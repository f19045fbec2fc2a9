//! The source `loki`.

use super::SourceKind;
use tidegate_journal::{Protocol, Signal};
use tidegate_sources::Loki;

pub(super) const KIND: SourceKind = SourceKind {
    name: "loki",
    max_body_setting: "sources.loki.max_body",
    max_body: |sources| sources.loki.max_body.get(),
    // Snappy may add a sixth.
    max_received: |sources| sources.loki.max_body.get() / 6 * 7,
    records: &[(Protocol::Otlp, Signal::Logs)],
    thread_bytes: 0,
    allowance: |limits| &limits.loki,
    shown: |config| ("Loki push", format!("http://{}{}", config.listen.http, Loki::PATHS[0])),
    runs: None,
    start: |http, parts| {
        let (books, arena, pool) = (parts.books.clone(), parts.arena.clone(), parts.pool.clone());
        Ok(http.with(Loki::new(books, arena, pool, parts.announced.max_body())))
    },
};
