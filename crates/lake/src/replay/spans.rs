//! Spans out of rows of `spans`.

use super::Protocol;
use super::columns::{ColumnTypeError, Columns, Ids, Ints, Lists, Longs, Texts, Times, structs};
use super::items::{RowError, RowReader};
use super::message::Message;
use super::origin::{NO_ATTRIBUTES, Origin, OriginColumns};
use super::request::Item;
use super::values::{ValueError, write_attributes, write_int_attribute, write_text_attribute};
use crate::Table;
use crate::table::SpanColumn;
use arrow::array::{Array as _, RecordBatch, StructArray};

/// Reads spans.
#[derive(Default)]
pub(super) struct SpanReader {
    columns: Option<SpanColumns>,
    origin: Origin,
}

struct SpanColumns {
    origin: OriginColumns,
    start: Times,
    duration: Longs,
    trace_id: Ids,
    span_id: Ids,
    parent_span_id: Ids,
    name: Texts,
    kind: Ints,
    status_code: Ints,
    status_message: Texts,
    trace_state: Texts,
    flags: Ints,
    attributes: Texts,
    promoted: Vec<Promoted>,
    /// Attributes, events and links that the sender left out.
    dropped: Option<DroppedColumns>,
    events: Option<EventColumns>,
    links: Option<LinkColumns>,
}

struct DroppedColumns {
    /// Where it is NULL, its parts have values all the same.
    of: StructArray,
    counts: [Longs; 3],
}

/// An attribute that has a column.
enum Promoted {
    Text(Texts),
    Number(Longs),
}

struct EventColumns {
    lists: Lists,
    time: Times,
    name: Texts,
    attributes: Texts,
    dropped: Longs,
}

struct LinkColumns {
    lists: Lists,
    trace_id: Ids,
    span_id: Ids,
    trace_state: Texts,
    attributes: Texts,
    flags: Ints,
    dropped: Longs,
}

impl SpanColumns {
    fn of(batch: &impl Columns) -> Result<SpanColumns, ColumnTypeError> {
        let promoted = Table::Spans.promoted().iter().enumerate().map(|(place, name)| {
            Ok(match SpanColumn::is_number(place) {
                true => Promoted::Number(Longs::of(batch, name)?),
                false => Promoted::Text(Texts::of(batch, name)?),
            })
        });
        let dropped = match structs(batch, "dropped")? {
            Some(of) => {
                let counts =
                    [Longs::of(&of, "attributes")?, Longs::of(&of, "events")?, Longs::of(&of, "links")?];
                Some(DroppedColumns { of, counts })
            }
            None => None,
        };
        Ok(SpanColumns {
            origin: OriginColumns::of(batch)?,
            start: Times::of(batch, "start_time", "start_ns")?,
            duration: Longs::of(batch, "duration_ns")?,
            trace_id: Ids::of(batch, "trace_id")?,
            span_id: Ids::of(batch, "span_id")?,
            parent_span_id: Ids::of(batch, "parent_span_id")?,
            name: Texts::of(batch, "span_name")?,
            kind: Ints::of(batch, "kind")?,
            status_code: Ints::of(batch, "status_code")?,
            status_message: Texts::of(batch, "status_message")?,
            trace_state: Texts::of(batch, "trace_state")?,
            flags: Ints::of(batch, "flags")?,
            attributes: Texts::of(batch, "attributes")?,
            promoted: promoted.collect::<Result<_, ColumnTypeError>>()?,
            dropped,
            events: EventColumns::of(batch)?,
            links: LinkColumns::of(batch)?,
        })
    }
}

impl DroppedColumns {
    fn has(&self, row: usize) -> bool {
        row < self.of.len() && self.of.is_valid(row)
    }
}

impl EventColumns {
    fn of(batch: &impl Columns) -> Result<Option<EventColumns>, ColumnTypeError> {
        let lists = Lists::of(batch, "events")?;
        let Some(of) = lists.structs()?.cloned() else { return Ok(None) };
        Ok(Some(EventColumns {
            time: Times::of(&of, "time", "time_ns")?,
            name: Texts::of(&of, "name")?,
            attributes: Texts::of(&of, "attributes")?,
            dropped: Longs::of(&of, "dropped_attributes")?,
            lists,
        }))
    }

    fn write(&self, row: usize, out: &mut Message) -> Result<(), ValueError> {
        for at in self.lists.rows_of(row).unwrap_or_default() {
            let event = out.begin(11);
            out.fixed64_unless_0(1, self.time.at(at).unwrap_or_default());
            out.text(2, self.name.at(at));
            write_attributes(self.attributes.at(at).unwrap_or(NO_ATTRIBUTES), 3, out, |_| ())?;
            out.varint_unless_0(4, self.dropped.count_at(at));
            out.end(event);
        }
        Ok(())
    }
}

impl LinkColumns {
    fn of(batch: &impl Columns) -> Result<Option<LinkColumns>, ColumnTypeError> {
        let lists = Lists::of(batch, "links")?;
        let Some(of) = lists.structs()?.cloned() else { return Ok(None) };
        Ok(Some(LinkColumns {
            trace_id: Ids::of(&of, "trace_id")?,
            span_id: Ids::of(&of, "span_id")?,
            trace_state: Texts::of(&of, "trace_state")?,
            attributes: Texts::of(&of, "attributes")?,
            flags: Ints::of(&of, "flags")?,
            dropped: Longs::of(&of, "dropped_attributes")?,
            lists,
        }))
    }

    fn write(&self, row: usize, out: &mut Message) -> Result<(), ValueError> {
        for at in self.lists.rows_of(row).unwrap_or_default() {
            let link = out.begin(13);
            out.bytes_unless_empty(1, self.trace_id.at(at));
            out.bytes_unless_empty(2, self.span_id.at(at));
            out.text(3, self.trace_state.at(at));
            write_attributes(self.attributes.at(at).unwrap_or(NO_ATTRIBUTES), 4, out, |_| ())?;
            out.varint_unless_0(5, self.dropped.count_at(at));
            out.fixed32_unless_0(6, self.flags.at(at).unwrap_or_default().cast_unsigned());
            out.end(link);
        }
        Ok(())
    }
}

impl RowReader for SpanReader {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), RowError> {
        self.columns = Some(SpanColumns::of(batch)?);
        Ok(())
    }

    fn read(&mut self, row: usize, item: &mut Item) -> Result<(), RowError> {
        let Some(columns) = &self.columns else { return Ok(()) };
        // Columns of spans are the span's alone.
        self.origin.update(&columns.origin, row, &[])?;
        let out = item.begin(Protocol::Otlp);
        let span = out.begin(2);
        write_span(columns, row, out)?;
        out.end(span);
        item.enclose(self.origin.levels.iter());
        Ok(())
    }
}

fn write_span(columns: &SpanColumns, row: usize, out: &mut Message) -> Result<(), ValueError> {
    out.bytes_unless_empty(1, columns.trace_id.at(row));
    out.bytes_unless_empty(2, columns.span_id.at(row));
    out.text(3, columns.trace_state.at(row));
    out.bytes_unless_empty(4, columns.parent_span_id.at(row));
    out.text(5, columns.name.at(row));
    out.int32_unless_0(6, columns.kind.at(row).unwrap_or_default());
    let start = columns.start.at(row).unwrap_or_default();
    let duration = columns.duration.at(row).unwrap_or_default().cast_unsigned();
    out.fixed64_unless_0(7, start);
    out.fixed64_unless_0(8, start.wrapping_add(duration));
    for (column, name) in columns.promoted.iter().zip(Table::Spans.promoted()) {
        match column {
            Promoted::Text(texts) => {
                if let Some(text) = texts.at(row) {
                    write_text_attribute(9, name, text, out);
                }
            }
            Promoted::Number(numbers) => {
                if let Some(number) = numbers.at(row) {
                    write_int_attribute(9, name, number, out);
                }
            }
        }
    }
    write_attributes(columns.attributes.at(row).unwrap_or(NO_ATTRIBUTES), 9, out, |_| ())?;
    if let Some(events) = &columns.events {
        events.write(row, out)?;
    }
    if let Some(links) = &columns.links {
        links.write(row, out)?;
    }
    if let Some(dropped) = columns.dropped.as_ref().filter(|dropped| dropped.has(row)) {
        for (field, count) in [10, 12, 14].into_iter().zip(&dropped.counts) {
            out.varint_unless_0(field, count.count_at(row));
        }
    }
    let mut status = Message::default();
    status.text(2, columns.status_message.at(row));
    status.int32_unless_0(3, columns.status_code.at(row).unwrap_or_default());
    out.bytes_unless_empty(15, status.as_bytes());
    out.fixed32_unless_0(16, columns.flags.at(row).unwrap_or_default().cast_unsigned());
    Ok(())
}
