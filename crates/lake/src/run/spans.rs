//! Rows of `spans`, in the order in which they came: what one process sends together is alike, and stays
//! together.

pub(super) mod columns;

use super::columns::SparseColumn;
use super::origins::{Origins, keep_utf8, optional, write_attributes};
use super::texts::{Text, Texts};
use super::{RowBuffer, RowRejection, STRETCH};
use crate::json::Stack;
use crate::pool::{Chunks, Pool};
use crate::table::{Column, SpanColumn, Table};
use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use std::ops::Range;
use tidegate_wire::otlp::{AnyValue, KeyValue, Span};

#[derive(Debug, Clone, Copy)]
struct SpanRow {
    /// Nanoseconds since the Unix epoch.
    start: u64,
    duration: i64,
    trace_id: [u8; 16],
    span_id: [u8; 8],
    parent_span_id: Option<[u8; 8]>,
    name: Text,
    attributes: Text,
    scope: u32,
    batch: u32,
    flags: u32,
    kind: i32,
    status: i32,
}

#[derive(Debug, Clone, Copy)]
struct EventRow {
    time: u64,
    name: Text,
    attributes: Text,
    dropped: u32,
}

#[derive(Debug, Clone, Copy)]
struct LinkRow {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    trace_state: Text,
    attributes: Text,
    flags: u32,
    dropped: u32,
}

/// How many attributes, events and links the sender left out.
type DroppedRow = [u32; 3];

const PROMOTED: usize = 14;

/// Spans on their way into one row group.
pub(crate) struct SpanBuffer {
    pub(crate) origins: Origins,
    pub(crate) texts: Texts,
    rows: Chunks<SpanRow>,
    batches: Chunks<[u8; 16]>,
    status_messages: SparseColumn<Text>,
    trace_states: SparseColumn<Text>,
    dropped: SparseColumn<DroppedRow>,
    events: SparseColumn<EventRow>,
    links: SparseColumn<LinkRow>,
    texts_of: [SparseColumn<Text>; PROMOTED],
    numbers_of: [SparseColumn<i64>; PROMOTED],
}

/// Events and links of one span.
const MOST: usize = 8192;
/// Events and links of one stretch, unless one span has more.
const PARTS: usize = 2048;

impl SpanBuffer {
    pub(crate) fn new(pool: &Pool) -> Self {
        SpanBuffer {
            origins: Origins::new(pool, &[]),
            texts: Texts::new(pool),
            rows: Chunks::new(pool, 0),
            batches: Chunks::sparse(pool),
            status_messages: SparseColumn::new(pool),
            trace_states: SparseColumn::new(pool),
            dropped: SparseColumn::new(pool),
            events: SparseColumn::new(pool),
            links: SparseColumn::new(pool),
            texts_of: std::array::from_fn(|_| SparseColumn::new(pool)),
            numbers_of: std::array::from_fn(|_| SparseColumn::new(pool)),
        }
    }

    /// The place of a batch's id.
    pub(crate) fn batch(&mut self, id: [u8; 16]) -> Result<u32, RowRejection> {
        batch(&mut self.batches, id)
    }

    /// Adds a span.
    pub(crate) fn add<'a>(
        &mut self,
        span: &Span<'a>,
        scope: u32,
        batch: u32,
        stack: &mut Stack<'a>,
    ) -> Result<(), RowRejection> {
        let row = u32::try_from(self.rows.len()).map_err(|_| RowRejection::Full)?;
        let mark = self.texts.mark();
        let added = self.try_add(row, span, scope, batch, stack);
        if added.is_err() {
            stack.clear();
            self.texts.truncate(mark);
            for texts in self.texts_of.iter_mut().chain([&mut self.status_messages, &mut self.trace_states]) {
                texts.truncate(row);
            }
            self.numbers_of.iter_mut().for_each(|numbers| numbers.truncate(row));
            self.dropped.truncate(row);
            self.events.truncate(row);
            self.links.truncate(row);
        }
        added
    }

    fn try_add<'a>(
        &mut self,
        row: u32,
        span: &Span<'a>,
        scope: u32,
        batch: u32,
        stack: &mut Stack<'a>,
    ) -> Result<(), RowRejection> {
        let mut own: [Option<KeyValue<'a>>; PROMOTED] = [None; PROMOTED];
        let rest = |attribute: &KeyValue<'a>| {
            let Some(place) = SpanColumn::promoted(attribute.key) else { return true };
            let typed = match attribute.value {
                AnyValue::Text(_) => !SpanColumn::is_number(place),
                AnyValue::Int(_) => SpanColumn::is_number(place),
                _ => false,
            };
            match own.get_mut(place).filter(|_| typed) {
                // Of several, the first has the column.
                Some(own) => !std::ptr::eq(own.get_or_insert(*attribute).key, attribute.key),
                None => true,
            }
        };
        let attributes = write_attributes(&mut self.texts, span.attributes(), rest, stack)?;
        for (place, attribute) in own.into_iter().enumerate() {
            match attribute.map(|attribute| attribute.value) {
                Some(AnyValue::Text(text)) => {
                    let text = keep_utf8(&mut self.texts, text)?;
                    self.texts_of.get_mut(place).map_or(Ok(()), |texts| texts.push(row, text))?;
                }
                Some(AnyValue::Int(number)) => {
                    self.numbers_of.get_mut(place).map_or(Ok(()), |numbers| numbers.push(row, number))?;
                }
                _ => {}
            }
        }
        self.add_events(row, span, stack)?;
        self.add_links(row, span, stack)?;
        if !span.status.message.is_empty() {
            self.status_messages.push(row, keep_utf8(&mut self.texts, span.status.message)?)?;
        }
        if !span.trace_state.is_empty() {
            self.trace_states.push(row, keep_utf8(&mut self.texts, span.trace_state)?)?;
        }
        let dropped = [span.dropped_attributes, span.dropped_events, span.dropped_links];
        if dropped != [0; 3] {
            self.dropped.push(row, dropped)?;
        }
        self.rows.push(SpanRow {
            start: span.start_time,
            // In 64 bits there and back, whatever the two were.
            duration: span.end_time.wrapping_sub(span.start_time).cast_signed(),
            trace_id: id(span.trace_id)?.unwrap_or_default(),
            span_id: id(span.span_id)?.unwrap_or_default(),
            parent_span_id: id(span.parent_span_id)?,
            name: keep_utf8(&mut self.texts, span.name)?,
            attributes,
            scope,
            batch,
            flags: span.flags,
            kind: span.kind,
            status: span.status.code,
        })
    }

    fn add_events<'a>(
        &mut self,
        row: u32,
        span: &Span<'a>,
        stack: &mut Stack<'a>,
    ) -> Result<(), RowRejection> {
        for (place, event) in span.events().enumerate() {
            if place == MOST {
                return Err(RowRejection::TooMany);
            }
            let added = EventRow {
                time: event.time,
                name: keep_utf8(&mut self.texts, event.name)?,
                attributes: write_attributes(&mut self.texts, event.attributes(), |_| true, stack)?,
                dropped: event.dropped_attributes,
            };
            self.events.push(row, added)?;
        }
        Ok(())
    }

    fn add_links<'a>(
        &mut self,
        row: u32,
        span: &Span<'a>,
        stack: &mut Stack<'a>,
    ) -> Result<(), RowRejection> {
        for (place, link) in span.links().enumerate() {
            if place == MOST {
                return Err(RowRejection::TooMany);
            }
            let added = LinkRow {
                trace_id: id(link.trace_id)?.unwrap_or_default(),
                span_id: id(link.span_id)?.unwrap_or_default(),
                trace_state: optional(&mut self.texts, link.trace_state)?,
                attributes: write_attributes(&mut self.texts, link.attributes(), |_| true, stack)?,
                flags: link.flags,
                dropped: link.dropped_attributes,
            };
            self.links.push(row, added)?;
        }
        Ok(())
    }
}

/// The place of a batch's id; it is mostly the last one.
pub(super) fn batch(batches: &mut Chunks<[u8; 16]>, id: [u8; 16]) -> Result<u32, RowRejection> {
    let last = batches.len().checked_sub(1).filter(|&last| batches.get(last) == Some(&id));
    let place = match last {
        Some(last) => last,
        None => {
            batches.push(id)?;
            batches.len() - 1
        }
    };
    u32::try_from(place).map_err(|_| RowRejection::Full)
}

/// An id of `N` bytes, if there is one.
pub(crate) fn id<const N: usize>(bytes: &[u8]) -> Result<Option<[u8; N]>, RowRejection> {
    if bytes.is_empty() { Ok(None) } else { bytes.try_into().map(Some).map_err(|_| RowRejection::Malformed) }
}

/// Microseconds since the Unix epoch, and the nanoseconds beyond.
pub(super) fn split(nanoseconds: u64) -> (i64, i32) {
    let micros = i64::try_from(nanoseconds / 1000).unwrap_or(i64::MAX);
    (micros, i32::try_from(nanoseconds % 1000).unwrap_or(0))
}

impl RowBuffer for SpanBuffer {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn held(&self) -> usize {
        let texts = self.texts_of.iter().chain([&self.status_messages, &self.trace_states]);
        let sparse: usize = texts.map(SparseColumn::held).sum::<usize>()
            + self.numbers_of.iter().map(SparseColumn::held).sum::<usize>()
            + self.dropped.held()
            + self.events.held()
            + self.links.held();
        self.texts.held() + self.origins.held() + self.rows.held() + self.batches.held() + sparse
    }

    fn times(&self) -> Option<(i64, i64)> {
        let times = || self.rows.iter().map(|row| split(row.start).0);
        times().min().zip(times().max())
    }

    fn sort(&mut self) {
        self.texts.freeze();
    }

    fn stretches(&self) -> Vec<Range<usize>> {
        let mut stretches = Vec::new();
        let mut start = 0;
        while start < self.rows.len() {
            let mut end = self.rows.len().min(start + STRETCH);
            // Events and links are built with their rows, so they end a stretch as well.
            for place in [self.events.row_of_nth(start, PARTS), self.links.row_of_nth(start, PARTS)] {
                end = place.map_or(end, |row| end.min((row as usize).max(start + 1)));
            }
            stretches.push(start..end);
            start = end;
        }
        stretches
    }

    fn column(&self, column: Column, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        match column {
            Column::Span(column) => self.own_column(column, rows),
            other => Err(ArrowError::SchemaError(format!("{} has no {other:?}", Table::Spans))),
        }
    }

    fn recycle(&self, column: ArrayRef) {
        self.texts.recycle(column);
    }

    fn clear(&mut self) {
        self.origins.clear();
        self.texts.clear();
        self.rows.clear();
        self.batches.clear();
        for texts in self.texts_of.iter_mut().chain([&mut self.status_messages, &mut self.trace_states]) {
            texts.clear();
        }
        self.numbers_of.iter_mut().for_each(SparseColumn::clear);
        self.dropped.clear();
        self.events.clear();
        self.links.clear();
    }
}
