//! The source `otlp`.

use super::SourceKind;
use std::sync::Arc;
use tidegate_journal::{Protocol, Signal};
use tidegate_sources::Otlp;

pub(super) const KIND: SourceKind = SourceKind {
    name: "otlp",
    max_body_setting: "sources.otlp.max_body",
    max_body: |sources| sources.otlp.max_body.get(),
    max_received: |sources| sources.otlp.max_body.get(),
    records: &[
        (Protocol::Otlp, Signal::Traces),
        (Protocol::Otlp, Signal::Metrics),
        (Protocol::Otlp, Signal::Logs),
    ],
    thread_bytes: Otlp::WORKER_BYTES,
    allowance: |limits| &limits.otlp,
    shown: |config| {
        let (http, grpc) = (config.listen.http, config.listen.grpc);
        ("OTLP", format!("http://{http}   gRPC http://{grpc}"))
    },
    runs: None,
    start: |http, parts| {
        let (books, max_body) = (parts.books.clone(), parts.announced.max_body());
        Ok(http.with(Arc::new(Otlp::new(books, parts.arena.clone(), parts.pool.clone(), max_body))))
    },
};
