//! Elastic APM intake v2: one JSON object to a line, as apm-data's `input/elasticapm/docs/spec/v2` has them.
//!
//! Properties that OTLP has and intake has not are sent under `otel`, which the server understands: span kind and
//! attributes. A root span, or one that answers a request or message, is a transaction.

mod error;
mod json;
mod log;
mod metadata;
mod metric;
mod span;

pub(crate) use error::ErrorLine;
pub(crate) use log::LogLine;
pub(crate) use metadata::metadata;
pub(crate) use metric::MetricLine;
pub(crate) use span::SpanLine;

use crate::record::{Span, SpanKind};
use crate::ring::Counted;

/// Spans that begin something: the server groups the others under them.
pub(crate) fn is_transaction(span: &Span<'_>) -> bool {
    span.parent.is_none()
        || span.parent_is_remote
        || matches!(span.kind, SpanKind::Server | SpanKind::Consumer)
}

fn counted(write: impl FnOnce(&mut Counted)) -> usize {
    let mut counted = Counted::default();
    write(&mut counted);
    counted.0
}

/// A line is written twice: to learn its length, and into the ring.
macro_rules! line {
    ($name:ident, $write:ident) => {
        impl crate::ring::Payload for $name<'_> {
            fn len(&self) -> usize {
                self.len
            }

            fn write<O: crate::ring::EventOutput>(&self, out: &mut O) {
                $write(out, self);
            }
        }
    };
}
use line;
