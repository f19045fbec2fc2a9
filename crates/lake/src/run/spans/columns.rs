//! Spans as columns.

use super::{EventRow, LinkRow, SpanBuffer, SpanRow, Text, split};
use crate::run::columns::{ids, optional_ids};
use crate::run::origins::{Resource, Scope};
use crate::table::{SpanColumn, event_fields, link_fields, span_dropped_fields, timestamp};
use arrow::array::{ArrayRef, Int32Array, Int64Array, ListArray, StructArray, TimestampMicrosecondArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Fields};
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;

const NO_ROW: SpanRow = SpanRow {
    start: 0,
    duration: 0,
    trace_id: [0; 16],
    span_id: [0; 8],
    parent_span_id: None,
    name: Text::EMPTY,
    attributes: Text::EMPTY,
    scope: u32::MAX,
    batch: u32::MAX,
    flags: 0,
    kind: 0,
    status: 0,
};

impl SpanBuffer {
    fn of(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = &SpanRow> {
        rows.map(|at| self.rows.get(at).unwrap_or(&NO_ROW))
    }

    pub(super) fn own_column(&self, column: SpanColumn, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        use SpanColumn as C;
        let of = || self.of(rows.clone());
        let texts = |text: &dyn Fn(&SpanRow) -> Text| self.texts.view(of().map(text));
        Ok(match column {
            C::ServiceName => self.resource(rows, Text::EMPTY, |resource| resource.service)?,
            C::Resource => self.resource(rows, Text::EMPTY, |resource| resource.json)?,
            C::ResourceSchemaUrl => self.resource(rows, Text::NONE, |resource| resource.schema_url)?,
            C::ScopeName => self.scope(rows, |scope| scope.name)?,
            C::ScopeVersion => self.scope(rows, |scope| scope.version)?,
            C::ScopeAttributes => self.scope(rows, |scope| scope.attributes)?,
            C::ScopeSchemaUrl => self.scope(rows, |scope| scope.schema_url)?,
            C::StartTime => times(of().map(|row| row.start)),
            C::StartNs => rest(of().map(|row| row.start)),
            C::DurationNs => Arc::new(Int64Array::from_iter_values(of().map(|row| row.duration))),
            C::TraceId => ids(of().map(|row| row.trace_id))?,
            C::SpanId => ids(of().map(|row| row.span_id))?,
            C::ParentSpanId => optional_ids(of().map(|row| row.parent_span_id))?,
            C::Name => texts(&|row| row.name)?,
            C::Attributes => texts(&|row| row.attributes)?,
            C::Kind => Arc::new(Int32Array::from_iter_values(of().map(|row| row.kind))),
            C::StatusCode => Arc::new(Int32Array::from_iter_values(of().map(|row| row.status))),
            C::Flags => Arc::new(Int32Array::from_iter_values(of().map(|row| row.flags.cast_signed()))),
            C::StatusMessage => self.status_messages.texts(&self.texts, rows)?,
            C::TraceState => self.trace_states.texts(&self.texts, rows)?,
            C::BatchId => {
                ids(of().map(|row| self.batches.get(row.batch as usize).copied().unwrap_or_default()))?
            }
            C::Events => self.events(rows)?,
            C::Links => self.links(rows)?,
            C::Dropped => self.dropped(rows)?,
            C::Promoted(place) => match (self.texts_of.get(place), self.numbers_of.get(place)) {
                (_, Some(numbers)) if C::is_number(place) => numbers.numbers(rows),
                (Some(texts), _) => texts.texts(&self.texts, rows)?,
                _ => return Err(ArrowError::SchemaError("there is no such attribute".to_owned())),
            },
        })
    }

    fn resource(
        &self,
        rows: Range<usize>,
        none: Text,
        text: impl Fn(&Resource) -> Text,
    ) -> Result<ArrayRef, ArrowError> {
        self.texts.view(self.of(rows).map(|row| self.origins.resource_of(row.scope).map_or(none, &text)))
    }

    fn scope(&self, rows: Range<usize>, text: impl Fn(&Scope) -> Text) -> Result<ArrayRef, ArrowError> {
        self.texts.view(self.of(rows).map(|row| self.origins.scope_at(row.scope).map_or(Text::NONE, &text)))
    }

    fn events(&self, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        let all: Vec<&EventRow> = self.events.all_of(rows.clone()).map(|(_, event)| event).collect();
        let columns: Vec<ArrayRef> = vec![
            times(all.iter().map(|event| event.time)),
            rest(all.iter().map(|event| event.time)),
            self.texts.view(all.iter().map(|event| event.name))?,
            self.texts.view(all.iter().map(|event| event.attributes))?,
            Arc::new(Int64Array::from_iter_values(all.iter().map(|event| i64::from(event.dropped)))),
        ];
        list(SpanColumn::Events, event_fields(), columns, self.events.lengths(rows))
    }

    fn links(&self, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        let all: Vec<&LinkRow> = self.links.all_of(rows.clone()).map(|(_, link)| link).collect();
        let columns: Vec<ArrayRef> = vec![
            ids(all.iter().map(|link| link.trace_id))?,
            ids(all.iter().map(|link| link.span_id))?,
            self.texts.view(all.iter().map(|link| link.trace_state))?,
            self.texts.view(all.iter().map(|link| link.attributes))?,
            Arc::new(Int32Array::from_iter_values(all.iter().map(|link| link.flags.cast_signed()))),
            Arc::new(Int64Array::from_iter_values(all.iter().map(|link| i64::from(link.dropped)))),
        ];
        list(SpanColumn::Links, link_fields(), columns, self.links.lengths(rows))
    }

    fn dropped(&self, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        let all: Vec<_> = self.dropped.of(rows).collect();
        let nulls = NullBuffer::from_iter(all.iter().map(Option::is_some));
        let column = |place: usize| -> ArrayRef {
            let count = |row: &Option<[u32; 3]>| row.and_then(|row| row.get(place).copied()).unwrap_or(0);
            Arc::new(Int64Array::from_iter_values(all.iter().map(|row| i64::from(count(row)))))
        };
        let columns = vec![column(0), column(1), column(2)];
        Ok(Arc::new(StructArray::try_new(span_dropped_fields(), columns, Some(nulls))?))
    }
}

/// The microseconds of times in nanoseconds.
pub(crate) fn times(times: impl Iterator<Item = u64>) -> ArrayRef {
    let micros = TimestampMicrosecondArray::from_iter_values(times.map(|time| split(time).0));
    Arc::new(micros.with_data_type(timestamp()))
}

/// The nanoseconds beyond.
pub(crate) fn rest(times: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(times.map(|time| split(time).1)))
}

fn list(
    column: SpanColumn,
    fields: Fields,
    columns: Vec<ArrayRef>,
    lengths: Vec<usize>,
) -> Result<ArrayRef, ArrowError> {
    let DataType::List(element) = column.field().data_type().clone() else {
        return Err(ArrowError::SchemaError("this column is a list".to_owned()));
    };
    let nulls = NullBuffer::from_iter(lengths.iter().map(|&length| length > 0));
    let structs = StructArray::try_new(fields, columns, None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(element, offsets, Arc::new(structs), Some(nulls))?))
}
