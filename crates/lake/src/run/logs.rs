//! Rows of `logs`, in the order in which they came.

use super::columns::{SparseColumn, ids, optional_ids};
use super::origins::{Origins, Resource, Scope, keep_utf8, write_attributes, write_utf8};
use super::spans::{columns::rest, columns::times, id, split};
use super::texts::{Text, Texts};
use super::{RowBuffer, RowRejection, stretches_of};
use crate::json::{self, ByteCounter, Stack};
use crate::pool::{Chunks, Pool};
use crate::table::{Column, LogColumn, Table, timestamp};
use arrow::array::{ArrayRef, Int32Array, Int64Array, TimestampMicrosecondArray};
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;
use tidegate_wire::otlp::{AnyValue, KeyValue, LogRecord};

#[derive(Debug, Clone, Copy)]
struct LogRow {
    /// Nanoseconds since the Unix epoch.
    time: u64,
    /// 0 when not known.
    observed: u64,
    trace_id: Option<[u8; 16]>,
    span_id: Option<[u8; 8]>,
    body_type: u8,
    body: Text,
    severity_text: Text,
    attributes: Text,
    scope: u32,
    batch: u32,
    flags: u32,
    severity: i32,
}

const PROMOTED: usize = 6;

/// Log records on their way into one row group.
pub(crate) struct LogBuffer {
    pub(crate) origins: Origins,
    pub(crate) texts: Texts,
    rows: Chunks<LogRow>,
    batches: Chunks<[u8; 16]>,
    event_names: SparseColumn<Text>,
    dropped: SparseColumn<i64>,
    promoted: [SparseColumn<Text>; PROMOTED],
}

impl LogBuffer {
    pub(crate) fn new(pool: &Pool) -> Self {
        LogBuffer {
            origins: Origins::new(pool, Table::Logs.promoted()),
            texts: Texts::new(pool),
            rows: Chunks::new(pool, 0),
            batches: Chunks::sparse(pool),
            event_names: SparseColumn::new(pool),
            dropped: SparseColumn::new(pool),
            promoted: std::array::from_fn(|_| SparseColumn::new(pool)),
        }
    }

    /// The place of a batch's id.
    pub(crate) fn batch(&mut self, id: [u8; 16]) -> Result<u32, RowRejection> {
        super::spans::batch(&mut self.batches, id)
    }

    /// Adds a record that was received at `received`, which is its time if it has none.
    pub(crate) fn add<'a>(
        &mut self,
        record: &LogRecord<'a>,
        received: u64,
        scope: u32,
        batch: u32,
        stack: &mut Stack<'a>,
    ) -> Result<(), RowRejection> {
        let row = u32::try_from(self.rows.len()).map_err(|_| RowRejection::Full)?;
        let mark = self.texts.mark();
        let added = self.try_add(row, record, received, scope, batch, stack);
        if added.is_err() {
            stack.clear();
            self.texts.truncate(mark);
            self.promoted.iter_mut().for_each(|texts| texts.truncate(row));
            self.event_names.truncate(row);
            self.dropped.truncate(row);
        }
        added
    }

    fn try_add<'a>(
        &mut self,
        row: u32,
        record: &LogRecord<'a>,
        received: u64,
        scope: u32,
        batch: u32,
        stack: &mut Stack<'a>,
    ) -> Result<(), RowRejection> {
        let (from_resource, has) = match self.origins.resource_of(scope) {
            Some(&Resource { promoted, has, .. }) => (promoted, has),
            None => ([Text::NONE; PROMOTED], 0),
        };
        let mut own: [Option<&'a [u8]>; PROMOTED] = [None; PROMOTED];
        let rest = |attribute: &KeyValue<'a>| {
            let place = Table::Logs.promoted().iter().position(|name| name.as_bytes() == attribute.key);
            match (place, attribute.value) {
                (Some(place), AnyValue::Text(text)) => match own.get_mut(place) {
                    // An attribute that the resource has, too, stays in the JSON: otherwise its owner would be
                    // ambiguous.
                    Some(own) => !std::ptr::eq(*own.get_or_insert(text), text) || has & 1 << place != 0,
                    None => true,
                },
                _ => true,
            }
        };
        let attributes = write_attributes(&mut self.texts, record.attributes(), rest, stack)?;
        for ((own, resource), texts) in own.into_iter().zip(from_resource).zip(&mut self.promoted) {
            let text = own.map_or(Ok(resource), |own| keep_utf8(&mut self.texts, own))?;
            if text.is_some() {
                texts.push(row, text)?;
            }
        }
        if !record.event_name.is_empty() {
            self.event_names.push(row, keep_utf8(&mut self.texts, record.event_name)?)?;
        }
        if record.dropped_attributes > 0 {
            self.dropped.push(row, i64::from(record.dropped_attributes))?;
        }
        let time = [record.time, record.observed_time].into_iter().find(|&time| time > 0);
        let log = LogRow {
            time: time.unwrap_or(received),
            observed: record.observed_time,
            trace_id: id(record.trace_id)?,
            span_id: id(record.span_id)?,
            body_type: json::type_number(record.body),
            body: self.body(record.body, stack)?,
            severity_text: super::origins::optional(&mut self.texts, record.severity_text)?,
            attributes,
            scope,
            batch,
            flags: record.flags,
            severity: record.severity,
        };
        self.rows.push(log)
    }

    /// A string as it is, everything else as JSON.
    fn body<'a>(&mut self, body: AnyValue<'a>, stack: &mut Stack<'a>) -> Result<Text, RowRejection> {
        match body {
            AnyValue::Empty => Ok(Text::NONE),
            AnyValue::Text(text) if text.len() <= RECURRING => keep_utf8(&mut self.texts, text),
            AnyValue::Text(text) => {
                write_utf8(&mut self.texts, text.len(), |out| out.extend_from_slice(text))
            }
            other => {
                let mut counter = ByteCounter::default();
                json::write_value(other, &mut counter, stack);
                write_utf8(&mut self.texts, counter.0, |out| json::write_value(other, out, stack))
            }
        }
    }

    fn of(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = &LogRow> {
        rows.map(|at| self.rows.get(at).unwrap_or(&NO_ROW))
    }

    fn own_column(&self, column: LogColumn, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        use LogColumn as C;
        let of = || self.of(rows.clone());
        let texts = |text: &dyn Fn(&LogRow) -> Text| self.texts.view(of().map(text));
        Ok(match column {
            C::ServiceName => self.resource(rows, Text::EMPTY, |resource| resource.service)?,
            C::Resource => self.resource(rows, Text::EMPTY, |resource| resource.json)?,
            C::ResourceSchemaUrl => self.resource(rows, Text::NONE, |resource| resource.schema_url)?,
            C::ScopeName => self.scope(rows, |scope| scope.name)?,
            C::ScopeVersion => self.scope(rows, |scope| scope.version)?,
            C::ScopeAttributes => self.scope(rows, |scope| scope.attributes)?,
            C::ScopeSchemaUrl => self.scope(rows, |scope| scope.schema_url)?,
            C::Time => times(of().map(|row| row.time)),
            C::TimeNs => rest(of().map(|row| row.time)),
            C::ObservedTime => {
                let observed = of().map(|row| (row.observed > 0).then(|| split(row.observed).0));
                Arc::new(TimestampMicrosecondArray::from_iter(observed).with_data_type(timestamp()))
            }
            C::ObservedNs => Arc::new(Int32Array::from_iter(
                of().map(|row| (row.observed > 0).then(|| split(row.observed).1)),
            )),
            C::SeverityNumber => Arc::new(Int32Array::from_iter_values(of().map(|row| row.severity))),
            C::SeverityText => texts(&|row| row.severity_text)?,
            C::Body => texts(&|row| row.body)?,
            C::BodyType => Arc::new(Int32Array::from_iter_values(of().map(|row| i32::from(row.body_type)))),
            C::EventName => self.event_names.texts(&self.texts, rows)?,
            C::TraceId => optional_ids(of().map(|row| row.trace_id))?,
            C::SpanId => optional_ids(of().map(|row| row.span_id))?,
            C::Flags => Arc::new(Int32Array::from_iter_values(of().map(|row| row.flags.cast_signed()))),
            C::Attributes => texts(&|row| row.attributes)?,
            C::DroppedAttributes => {
                Arc::new(Int64Array::from_iter_values(self.dropped.of(rows).map(Option::unwrap_or_default)))
            }
            C::BatchId => {
                ids(of().map(|row| self.batches.get(row.batch as usize).copied().unwrap_or_default()))?
            }
            C::Promoted(place) => match self.promoted.get(place) {
                Some(promoted) => promoted.texts(&self.texts, rows)?,
                None => return Err(ArrowError::SchemaError("there is no such attribute".to_owned())),
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
}

/// Bodies up to this length are looked for among the last texts: the short ones recur.
const RECURRING: usize = 128;

const NO_ROW: LogRow = LogRow {
    time: 0,
    observed: 0,
    trace_id: None,
    span_id: None,
    body_type: 0,
    body: Text::NONE,
    severity_text: Text::NONE,
    attributes: Text::EMPTY,
    scope: u32::MAX,
    batch: u32::MAX,
    flags: 0,
    severity: 0,
};

impl RowBuffer for LogBuffer {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn held(&self) -> usize {
        let sparse: usize = self.promoted.iter().chain([&self.event_names]).map(SparseColumn::held).sum();
        let own = self.rows.held() + self.batches.held() + self.dropped.held();
        self.texts.held() + self.origins.held() + own + sparse
    }

    fn times(&self) -> Option<(i64, i64)> {
        let times = || self.rows.iter().map(|row| split(row.time).0);
        times().min().zip(times().max())
    }

    fn sort(&mut self) {
        self.texts.freeze();
    }

    fn stretches(&self) -> Vec<Range<usize>> {
        stretches_of(self.rows.len())
    }

    fn column(&self, column: Column, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        match column {
            Column::Log(column) => self.own_column(column, rows),
            other => Err(ArrowError::SchemaError(format!("{} has no {other:?}", Table::Logs))),
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
        self.promoted.iter_mut().for_each(SparseColumn::clear);
        self.event_names.clear();
        self.dropped.clear();
    }
}
