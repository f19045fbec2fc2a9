//! The exemplars of points, which both tables of metrics have.

use super::columns::{ColumnTypeError, Columns, Doubles, Ids, Lists, Longs, Texts, Times};
use super::message::Message;
use super::origin::NO_ATTRIBUTES;
use super::remote_write::encode_labels;
use super::values::{ValueError, labels, write_attributes};
use std::fmt::Write as _;

/// The columns of exemplars.
pub(super) struct ExemplarColumns {
    lists: Lists,
    time: Times,
    value: Doubles,
    value_int: Longs,
    trace_id: Ids,
    span_id: Ids,
    attributes: Texts,
}

impl ExemplarColumns {
    pub(super) fn of(batch: &impl Columns) -> Result<Option<ExemplarColumns>, ColumnTypeError> {
        let lists = Lists::of(batch, "exemplars")?;
        let Some(of) = lists.structs()?.cloned() else { return Ok(None) };
        Ok(Some(ExemplarColumns {
            time: Times::of(&of, "time", "time_ns")?,
            value: Doubles::of(&of, "value")?,
            value_int: Longs::of(&of, "value_int")?,
            trace_id: Ids::of(&of, "trace_id")?,
            span_id: Ids::of(&of, "span_id")?,
            attributes: Texts::of(&of, "attributes")?,
            lists,
        }))
    }

    /// Writes a row's exemplars as OTLP's, in this field of their point.
    pub(super) fn write_otlp(&self, row: usize, field: u32, out: &mut Message) -> Result<(), ValueError> {
        for at in self.lists.rows_of(row).unwrap_or_default() {
            let exemplar = out.begin(field);
            out.fixed64_unless_0(2, self.time.at(at).unwrap_or_default());
            match self.value_int.at(at) {
                Some(value) => out.fixed64(6, value.cast_unsigned()),
                None => out.fixed64(3, self.value.bits_at(at).unwrap_or_default()),
            }
            out.bytes_unless_empty(4, self.span_id.at(at));
            out.bytes_unless_empty(5, self.trace_id.at(at));
            write_attributes(self.attributes.at(at).unwrap_or(NO_ATTRIBUTES), 7, out, |_| ())?;
            out.end(exemplar);
        }
        Ok(())
    }

    /// Writes a row's exemplars as fields of their series of remote write.
    pub(super) fn write_remote_write(&self, row: usize, out: &mut Message) -> Result<(), ValueError> {
        for at in self.lists.rows_of(row).unwrap_or_default() {
            let attributes = self.attributes.at(at).unwrap_or(NO_ATTRIBUTES);
            let mut labels = labels(attributes)?.ok_or(ValueError::Tag)?;
            for (name, id) in [("trace_id", &self.trace_id), ("span_id", &self.span_id)] {
                if !id.at(at).is_empty() {
                    labels.push((name.to_owned(), hex(id.at(at))));
                }
            }
            labels.sort_unstable();
            let exemplar = out.begin(3);
            out.put(&encode_labels(&labels));
            out.fixed64_unless_0(2, self.value.bits_at(at).unwrap_or_default());
            out.varint_unless_0(3, self.time.millis_at(at).unwrap_or_default().cast_unsigned());
            out.end(exemplar);
        }
        Ok(())
    }
}

fn hex(id: &[u8]) -> String {
    id.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
