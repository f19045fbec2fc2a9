//! Log records, and errors among them.

use super::super::document_buffer::DocumentOutput;
use super::super::document_writer::{DocumentWriter, ScopeOrigin, StreamKind};
use super::super::fields::FieldValue;
use super::{ServiceInfo, microseconds};
use tidegate_wire::otlp::{AnyValue, Attributes, LogRecord};
use tidegate_wire::output::Full;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// An exception that attributes tell of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExceptionAttributes<'a> {
    kind: &'a [u8],
    message: &'a [u8],
}

impl<'a> ExceptionAttributes<'a> {
    pub(super) fn of(attributes: Attributes<'a>) -> Option<Self> {
        let mut exception = Self::default();
        for attribute in attributes {
            match (attribute.key, attribute.value) {
                (b"exception.type", AnyValue::Text(text)) => exception.kind = text,
                (b"exception.message", AnyValue::Text(text)) => exception.message = text,
                _ => {}
            }
        }
        (!exception.kind.is_empty() || !exception.message.is_empty()).then_some(exception)
    }

    pub(super) fn message(self) -> &'a [u8] {
        self.message
    }

    /// The grouping key of errors: the type, or the message if there is none.
    fn group(&self) -> u64 {
        let seed = u64::from(self.kind.is_empty());
        let told = if self.kind.is_empty() { self.message } else { self.kind };
        xxh3_64_with_seed(told, seed)
    }
}

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// A log record's document.
    pub(in super::super) fn ecs_log(
        &mut self,
        origin: &ScopeOrigin<'a>,
        service: ServiceInfo<'a>,
        record: &LogRecord<'a>,
    ) -> Result<(), Full> {
        self.fields.begin();
        let wishes = self.ecs_attributes(origin.wishes, record.attributes(), false);
        let time = self.ecs_time(if record.time > 0 { record.time } else { record.observed_time });
        if !matches!(record.body, AnyValue::Empty) {
            self.fields.put(b"message", FieldValue::Quoted(record.body));
        }
        self.fields.text(b"log.level", record.severity_text);
        if record.severity != 0 {
            self.fields.put(b"event.severity", FieldValue::Int(record.severity.into()));
        }
        self.fields.text(b"event.action", record.event_name);
        self.fields.id(b"trace.id", record.trace_id);
        self.fields.id(b"span.id", record.span_id);
        let exception = ExceptionAttributes::of(record.attributes());
        let dataset = self.ecs_logged(exception, record.message(), time);
        self.ecs_document(StreamKind::Logs, dataset, service, wishes, time, |_| Ok(()), |_, _, _| Ok(()))?;
        self.end(1)
    }

    /// The criterion for logs and errors; its dataset.
    pub(super) fn ecs_logged(
        &mut self,
        exception: Option<ExceptionAttributes<'a>>,
        identity: &'a [u8],
        time: u64,
    ) -> &'static str {
        let Some(exception) = exception else {
            self.fields.text(b"processor.event", b"log");
            return "apm.app.";
        };
        self.fields.text(b"processor.event", b"error");
        self.fields.put(b"timestamp.us", microseconds(time));
        self.fields.put(b"error.id", FieldValue::Digits(xxh3_64_with_seed(identity, time)));
        self.fields.put(b"error.grouping_key", FieldValue::Digits(exception.group()));
        self.fields.put(b"error.exception", FieldValue::Exception(exception.kind, exception.message));
        "apm.error"
    }
}
