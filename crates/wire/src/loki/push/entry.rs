//! Writes a log record as an entry: its time, its line and its structured metadata.

use super::stream_labels::{StreamLabels, others, write_name};
use super::value;
use crate::json::write as json;
use crate::otlp::{AnyValue, LogRecord, ResourceGroup, ScopeGroup};
use crate::output::{Counter, Full, Output, SliceOutput};
use crate::proto::write::{self, Encode};

/// A record with what encloses it.
pub(super) struct Entry<'a, 'l> {
    pub(super) resource: &'l ResourceGroup<'a, LogRecord<'a>>,
    pub(super) scope: &'l ScopeGroup<'a, LogRecord<'a>>,
    pub(super) record: LogRecord<'a>,
    pub(super) labels: &'l StreamLabels<'a>,
    /// The time of records that have none.
    pub(super) now_ns: u64,
}

impl Encode for Entry<'_, '_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let record = &self.record;
        let times = [record.time, record.observed_time, self.now_ns];
        let time_ns = times.into_iter().find(|time| *time > 0).unwrap_or(0);
        write::message(out, 1, &Timestamp(time_ns))?;
        let mut len = Counter::default();
        value::text(record.body, &mut len)?;
        write::length(out, 2, len.bytes())?;
        value::text(record.body, out)?;
        let is_stream = self.labels.is_stream();
        let attribute = |out: &mut _, key, value| match is_stream {
            true => write::message(out, 3, &Pair(Name::Verbatim(key), value)),
            false => write::message(out, 3, &Pair(Name::Normal(key), value)),
        };
        for (key, value) in others(self.resource.resource.attributes(), self.labels) {
            attribute(out, key, value)?;
        }
        if !is_stream {
            self.scope_fields(out)?;
        }
        for member in record.attributes() {
            attribute(out, member.key, member.value)?;
        }
        if is_stream { Ok(()) } else { self.fields(out) }
    }
}

impl Entry<'_, '_> {
    fn scope_fields(&self, out: &mut impl Output) -> Result<(), Full> {
        let scope = &self.scope.scope;
        for member in scope.attributes() {
            write::message(out, 3, &Pair(Name::Normal(member.key), member.value))?;
        }
        text(out, "scope_name", scope.name)?;
        text(out, "scope_version", scope.version)
    }

    fn fields(&self, out: &mut impl Output) -> Result<(), Full> {
        let record = &self.record;
        number(out, "observed_timestamp", record.observed_time)?;
        number(out, "severity_number", u64::try_from(record.severity).unwrap_or(0))?;
        text(out, "severity_text", record.severity_text)?;
        text(out, "event_name", record.event_name)?;
        number(out, "flags", record.flags.into())?;
        id(out, "trace_id", record.trace_id)?;
        id(out, "span_id", record.span_id)
    }
}

fn text(out: &mut impl Output, name: &str, value: &[u8]) -> Result<(), Full> {
    if value.is_empty() {
        return Ok(());
    }
    write::message(out, 3, &Pair(Name::Verbatim(name.as_bytes()), AnyValue::Text(value)))
}

fn number(out: &mut impl Output, name: &str, value: u64) -> Result<(), Full> {
    if value == 0 {
        return Ok(());
    }
    let mut space = [0; 20];
    let mut digits = SliceOutput::new(&mut space);
    json::unsigned(value, &mut digits)?;
    text(out, name, digits.written())
}

fn id(out: &mut impl Output, name: &str, id: &[u8]) -> Result<(), Full> {
    if id.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    let mut space = [0; 32];
    let mut digits = SliceOutput::new(&mut space);
    json::hex(id, &mut digits)?;
    text(out, name, digits.written())
}

/// A `google.protobuf.Timestamp`.
struct Timestamp(u64);

impl Encode for Timestamp {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let (seconds, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if seconds > 0 {
            write::varint(out, 1, seconds)?;
        }
        if nanos > 0 {
            write::varint(out, 2, nanos)?;
        }
        Ok(())
    }
}

/// The name of structured metadata.
enum Name<'a> {
    Verbatim(&'a [u8]),
    /// An attribute's, to be made a name that Prometheus can have.
    Normal(&'a [u8]),
}

impl Name<'_> {
    fn write(&self, out: &mut impl Output) -> Result<(), Full> {
        match self {
            Name::Verbatim(name) => out.put(name),
            Name::Normal([]) => out.put(b"_"),
            Name::Normal(name) => write_name(name, |piece| out.put(piece)),
        }
    }
}

/// A `LabelPairAdapter`.
struct Pair<'a>(Name<'a>, AnyValue<'a>);

impl Encode for Pair<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let (mut name, mut text) = (Counter::default(), Counter::default());
        self.0.write(&mut name)?;
        value::text(self.1, &mut text)?;
        write::length(out, 1, name.bytes())?;
        self.0.write(out)?;
        write::length(out, 2, text.bytes())?;
        value::text(self.1, out)
    }
}
