//! Writes one event.

use super::{Encoder, MetadataValues, metadata_values};
use crate::json::write as json;
use crate::otlp::{AnyValue, KeyValue, LogRecord};
use crate::output::{Full, Output};

/// The most pairs of attributes of a resource and of a record that are compared: beyond that, an attribute that both have is
/// written twice, and Splunk keeps both values.
const MOST_COMPARED: usize = 4096;

impl<'a> Encoder<'a> {
    /// Writes the event of `record`.
    pub(super) fn event(&mut self, record: &LogRecord<'a>, out: &mut impl Output) -> Result<(), Full> {
        out.put(b"{")?;
        time(record, out)?;
        let of_record = metadata_values(self.metadata, record.attributes());
        self.metadata_members(of_record, out)?;
        out.put(b"\"event\":")?;
        match record.body {
            AnyValue::Empty | AnyValue::Text([]) | AnyValue::Bytes([]) if record.event_name.is_empty() => {
                out.put(b"{}")?;
            }
            AnyValue::Empty | AnyValue::Text([]) | AnyValue::Bytes([]) => {
                json::string(record.event_name, out)?
            }
            body => self.values.write(body, out)?,
        }
        let mut fields = Fields { encoder: self, out, is_first: true };
        fields.attributes(record)?;
        fields.text(b"otel.scope.name", fields.encoder.scope.name)?;
        fields.text(b"otel.scope.version", fields.encoder.scope.version)?;
        fields.text(b"otel.log.severity.text", record.severity_text)?;
        if record.severity != 0 {
            fields.name(b"otel.log.severity.number")?;
            json::int(record.severity.into(), fields.out)?;
        }
        fields.id(b"trace_id", record.trace_id)?;
        fields.id(b"span_id", record.span_id)?;
        fields.text(b"event.name", record.event_name)?;
        let end: &[u8] = if fields.is_first { b"}\n" } else { b"}}\n" };
        out.put(end)
    }

    fn metadata_members(&self, of_record: MetadataValues<'a>, out: &mut impl Output) -> Result<(), Full> {
        let values = of_record.into_iter().zip(self.of_resource);
        for ((name, field), (own, of_resource)) in self.metadata.fields().into_iter().zip(values) {
            let value = own.or(of_resource).or(field.default.as_deref().map(str::as_bytes));
            if let Some(value) = value {
                out.put(b"\"")?;
                out.put(name.as_bytes())?;
                out.put(b"\":")?;
                json::string(value, out)?;
                out.put(b",")?;
            }
        }
        Ok(())
    }
}

/// The member `fields` of an event, whose brace opens with the first of them.
struct Fields<'e, 'a, 'o, O> {
    encoder: &'e mut Encoder<'a>,
    out: &'o mut O,
    is_first: bool,
}

impl<'a, O: Output> Fields<'_, 'a, '_, O> {
    /// The attributes of the resource and of the record; of a name that both have, the record's.
    fn attributes(&mut self, record: &LogRecord<'a>) -> Result<(), Full> {
        let own = record.attributes();
        let pairs = self.encoder.resource_attributes.saturating_mul(own.clone().count());
        for attribute in self.encoder.resource.attributes() {
            let is_repeated = pairs <= MOST_COMPARED && own.clone().any(|other| other.key == attribute.key);
            if !is_repeated {
                self.attribute(attribute)?;
            }
        }
        own.into_iter().try_for_each(|attribute| self.attribute(attribute))
    }

    fn attribute(&mut self, attribute: KeyValue<'a>) -> Result<(), Full> {
        let is_metadata = || {
            let is_written = matches!(attribute.value, AnyValue::Text(text) if !text.is_empty());
            is_written && self.encoder.metadata.position(attribute.key).is_some()
        };
        if matches!(attribute.value, AnyValue::Empty) || is_metadata() {
            return Ok(());
        }
        self.name(attribute.key)?;
        self.encoder.values.write_field(attribute.value, self.out)
    }

    fn text(&mut self, name: &[u8], value: &[u8]) -> Result<(), Full> {
        if value.is_empty() {
            return Ok(());
        }
        self.name(name)?;
        json::string(value, self.out)
    }

    /// An id, unless it is empty or nothing but zeros.
    fn id(&mut self, name: &[u8], id: &[u8]) -> Result<(), Full> {
        if id.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        self.name(name)?;
        self.out.put(b"\"")?;
        json::hex(id, self.out)?;
        self.out.put(b"\"")
    }

    fn name(&mut self, name: &[u8]) -> Result<(), Full> {
        let before: &[u8] = if self.is_first { b",\"fields\":{" } else { b"," };
        self.is_first = false;
        self.out.put(before)?;
        json::string(name, self.out)?;
        self.out.put(b":")
    }
}

/// The time of the record, else when it was seen, in seconds.
fn time(record: &LogRecord<'_>, out: &mut impl Output) -> Result<(), Full> {
    const SECOND: u64 = 1_000_000_000;
    let time = if record.time == 0 { record.observed_time } else { record.time };
    if time == 0 {
        return Ok(());
    }
    out.put(b"\"time\":")?;
    json::unsigned(time / SECOND, out)?;
    let (mut fraction, mut width) = (time % SECOND, 9);
    if fraction != 0 {
        while fraction % 10 == 0 {
            (fraction, width) = (fraction / 10, width - 1);
        }
        json::formatted(format_args!(".{fraction:0width$}"), out)?;
    }
    out.put(b",")
}
