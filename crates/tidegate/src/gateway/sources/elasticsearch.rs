//! The source `elasticsearch`.

use super::{Destination, SourceKind};
use tidegate_config::Listener;
use tidegate_journal::{Protocol, Signal};
use tidegate_sources::{Elasticsearch, ElasticsearchSettings};

pub(super) const KIND: SourceKind = SourceKind {
    name: "elasticsearch",
    max_body_setting: "sources.elasticsearch.max_body",
    max_body: |sources| sources.elasticsearch.max_body.get(),
    max_received: |sources| sources.elasticsearch.max_body.get(),
    records: &[(Protocol::Bulk, Signal::Logs)],
    thread_bytes: 0,
    allowance: |limits| &limits.elasticsearch,
    shown: |config| {
        let shared = format!("http://{}{}", config.listen.http, prefix(&config.sources.elasticsearch.prefix));
        let alone = Listener::Elasticsearch.address(&config.listen);
        ("Elasticsearch", alone.map_or(shared, |address| format!("http://{address}")))
    },
    runs: None,
    start: |http, parts| {
        let source = &parts.config.sources.elasticsearch;
        let settings = ElasticsearchSettings {
            prefix: prefix(&source.prefix),
            version: source.version.clone(),
            max_body: parts.announced.max_body(),
            destination: parts.destination.map(Destination::of_source),
        };
        let (books, arena, pool) = (parts.books.clone(), parts.arena.clone(), parts.pool.clone());
        Ok(http.with(Elasticsearch::new(books, arena, pool, settings)))
    },
};

/// A path with one slash at its beginning and none at its end.
fn prefix(path: &str) -> String {
    match path.trim_matches('/') {
        "" => String::new(),
        path => format!("/{path}"),
    }
}
