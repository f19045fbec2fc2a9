//! Log records out of rows of `logs`.

use super::Protocol;
use super::columns::{ColumnTypeError, Columns, Ids, Ints, Longs, Texts, Times};
use super::items::{RowError, RowReader};
use super::message::Message;
use super::origin::{Origin, OriginColumns};
use super::request::Item;
use super::values::{ValueError, write_attributes, write_text_attribute, write_value};
use crate::Table;
use arrow::array::RecordBatch;

/// Reads log records.
#[derive(Default)]
pub(super) struct LogReader {
    columns: Option<LogColumns>,
    origin: Origin,
}

struct LogColumns {
    origin: OriginColumns,
    time: Times,
    observed_time: Times,
    severity_number: Ints,
    severity_text: Texts,
    body: Texts,
    body_type: Ints,
    event_name: Texts,
    trace_id: Ids,
    span_id: Ids,
    flags: Ints,
    attributes: Texts,
    dropped_attributes: Longs,
    promoted: Vec<Texts>,
}

impl LogColumns {
    fn of(batch: &impl Columns) -> Result<LogColumns, ColumnTypeError> {
        let promoted = Table::Logs.promoted().iter().map(|name| Texts::of(batch, name));
        Ok(LogColumns {
            origin: OriginColumns::of(batch)?,
            time: Times::of(batch, "time", "time_ns")?,
            observed_time: Times::of(batch, "observed_time", "observed_ns")?,
            severity_number: Ints::of(batch, "severity_number")?,
            severity_text: Texts::of(batch, "severity_text")?,
            body: Texts::of(batch, "body")?,
            body_type: Ints::of(batch, "body_type")?,
            event_name: Texts::of(batch, "event_name")?,
            trace_id: Ids::of(batch, "trace_id")?,
            span_id: Ids::of(batch, "span_id")?,
            flags: Ints::of(batch, "flags")?,
            attributes: Texts::of(batch, "attributes")?,
            dropped_attributes: Longs::of(batch, "dropped_attributes")?,
            promoted: promoted.collect::<Result<_, _>>()?,
        })
    }
}

impl RowReader for LogReader {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), RowError> {
        self.columns = Some(LogColumns::of(batch)?);
        Ok(())
    }

    fn read(&mut self, row: usize, item: &mut Item) -> Result<(), RowError> {
        let Some(columns) = &self.columns else { return Ok(()) };
        self.origin.update(&columns.origin, row, Table::Logs.promoted())?;
        let out = item.begin(Protocol::Otlp);
        let record = out.begin(2);
        write_record(columns, &self.origin, row, out)?;
        out.end(record);
        item.enclose(self.origin.levels.iter());
        Ok(())
    }
}

fn write_record(
    columns: &LogColumns,
    origin: &Origin,
    row: usize,
    out: &mut Message,
) -> Result<(), ValueError> {
    out.fixed64_unless_0(1, columns.time.at(row).unwrap_or_default());
    out.int32_unless_0(2, columns.severity_number.at(row).unwrap_or_default());
    out.text(3, columns.severity_text.at(row));
    if let Some(body) = columns.body.at(row) {
        let value = out.begin(5);
        match columns.body_type.at(row) {
            Some(STRING) => out.bytes(1, body.as_bytes()),
            _ => write_value(body, out)?,
        }
        out.end(value);
    }
    for (place, (column, name)) in columns.promoted.iter().zip(Table::Logs.promoted()).enumerate() {
        if let Some(text) = column.at(row).filter(|_| !origin.has(place)) {
            write_text_attribute(6, name, text, out);
        }
    }
    write_attributes(columns.attributes.at(row).unwrap_or("{}"), 6, out, |_| ())?;
    out.varint_unless_0(7, columns.dropped_attributes.count_at(row));
    out.fixed32_unless_0(8, columns.flags.at(row).unwrap_or_default().cast_unsigned());
    out.bytes_unless_empty(9, columns.trace_id.at(row));
    out.bytes_unless_empty(10, columns.span_id.at(row));
    out.fixed64_unless_0(11, columns.observed_time.at(row).unwrap_or_default());
    out.text(12, columns.event_name.at(row));
    Ok(())
}

/// The body's type, as OpenTelemetry numbers it.
const STRING: i32 = 1;
