//! The source `prometheus_remote_write`.

use super::SourceKind;
use std::sync::Arc;
use tidegate_config::RemoteWriteSource;
use tidegate_journal::{Protocol, Signal};
use tidegate_sources::RemoteWrite;
use tidegate_wire::remote_write::Limits;

pub(super) const KIND: SourceKind = SourceKind {
    name: "prometheus_remote_write",
    max_body_setting: "sources.prometheus_remote_write.max_body",
    max_body: |sources| sources.prometheus_remote_write.max_body.get(),
    // Snappy may add a sixth.
    max_received: |sources| sources.prometheus_remote_write.max_body.get() / 6 * 7,
    records: &[(Protocol::RemoteWrite1, Signal::Metrics), (Protocol::RemoteWrite2, Signal::Metrics)],
    thread_bytes: RemoteWrite::WORKER_BYTES,
    allowance: |limits| &limits.prometheus_remote_write,
    shown: |config| ("remote write", format!("http://{}{}", config.listen.http, RemoteWrite::PATHS[0])),
    runs: None,
    start: |http, parts| {
        let (books, max_body) = (parts.books.clone(), parts.announced.max_body());
        let source = RemoteWrite::new(books, parts.arena.clone(), parts.pool.clone(), max_body)
            .with_limits(limits(&parts.config.sources.prometheus_remote_write));
        Ok(http.with(Arc::new(source)))
    },
};

/// The limits of a request's series.
fn limits(source: &RemoteWriteSource) -> Limits {
    Limits {
        labels: usize::try_from(source.max_labels).unwrap_or(usize::MAX),
        name_bytes: source.max_label_name.as_usize(),
        value_bytes: source.max_label_value.as_usize(),
        ..Limits::default()
    }
}
