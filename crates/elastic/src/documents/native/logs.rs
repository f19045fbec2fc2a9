//! Log records.

use super::super::document_buffer::DocumentOutput;
use super::super::document_writer::{DocumentWriter, ScopeOrigin, StreamKind};
use crate::json;
use tidegate_wire::otlp::{AnyValue, LogRecord};
use tidegate_wire::output::Full;

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// A log record's document.
    pub(in super::super) fn native_log(
        &mut self,
        origin: &mut ScopeOrigin<'a>,
        record: &LogRecord<'a>,
    ) -> Result<(), Full> {
        let own = self.own(origin, record.attributes());
        let time = if record.time > 0 { record.time } else { record.observed_time };
        self.opened(StreamKind::Logs, time, own.wishes, |_| Ok(()))?;
        if record.observed_time > 0 {
            self.out.put(br#","observed_timestamp":"#)?;
            json::rfc3339(record.observed_time, self.out)?;
        }
        self.text(r#","severity_text":"#, record.severity_text)?;
        self.number(r#","severity_number":"#, record.severity.into())?;
        self.text(r#","event_name":"#, record.event_name)?;
        self.id(r#","trace_id":"#, record.trace_id)?;
        self.id(r#","span_id":"#, record.span_id)?;
        self.number(r#","flags":"#, record.flags.into())?;
        self.number(r#","dropped_attributes_count":"#, record.dropped_attributes.into())?;
        self.attributes(&own)?;
        self.body(record.body)?;
        self.origin(origin)?;
        self.end(1)
    }

    /// `body`. Fields of arrays hold objects or scalars, not both, so an array of other than objects is wrapped.
    fn body(&mut self, body: AnyValue<'a>) -> Result<(), Full> {
        match body {
            AnyValue::Empty => return Ok(()),
            AnyValue::Map(_) => {
                self.out.put(br#","body":{"structured":"#)?;
                self.objects.structured(body, self.out)?;
            }
            AnyValue::Array(array) if array.values().all(|value| matches!(value, AnyValue::Map(_))) => {
                self.out.put(br#","body":{"structured":"#)?;
                self.objects.structured(body, self.out)?;
            }
            AnyValue::Array(_) => {
                self.out.put(br#","body":{"structured":{"value":"#)?;
                self.objects.structured(body, self.out)?;
                self.out.put(b"}")?;
            }
            scalar => {
                self.out.put(br#","body":{"text":"#)?;
                self.objects.quoted(scalar, self.out)?;
            }
        }
        self.out.put(b"}")
    }
}
