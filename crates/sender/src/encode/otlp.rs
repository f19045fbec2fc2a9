//! OTLP as protobuf, field by field as `opentelemetry/proto/*/v1/*.proto` (1.x) numbers them.
//!
//! An event is stored with the tag and length that it has inside its `ScopeSpans`, `ScopeLogs` or
//! `ScopeMetrics`: field 2 in all three. So the body of a request is a few headers, and then the events as
//! they lie in the ring.

mod envelope;
mod log;
mod metric;
mod proto;
mod span;
mod value;

pub(crate) use envelope::{request_head, resource, scope, scope_head};
pub(crate) use log::LogRecord;
pub(crate) use metric::MetricPoints;
pub(crate) use span::EndedSpan;

use crate::ring::{Counted, EventOutput};
use proto::{bytes_field_len, message_head};

/// A message as field 2 of its scope, its length counted once.
struct Framed {
    body: usize,
}

impl Framed {
    fn count(write: impl FnOnce(&mut Counted)) -> Framed {
        let mut counted = Counted::default();
        write(&mut counted);
        Framed { body: counted.0 }
    }

    fn len(&self) -> usize {
        bytes_field_len(2, self.body)
    }

    fn head<O: EventOutput>(&self, out: &mut O) {
        message_head(out, 2, self.body);
    }
}
