//! The current record, and the resource and scope around it: fields that statements read and set.
//!
//! Everything is read when it is first asked for. Getters and setters follow `pkg/ottl/contexts` of the Collector: a setter
//! takes the exact type of its field and no `nil`; a field that the record's kind does not have is `nil`.

mod access;
mod attributes;
mod counts;
pub(crate) mod data;
pub(crate) mod message;
mod nested;
pub(crate) mod point_attributes;
mod scale;
pub(crate) mod shape;

use crate::machine;
use crate::memory::{Memory, Slice};
use crate::ottl::field::{Context, Field};
use crate::table::MapTable;
use crate::value::{Failure, Kind, Value};
pub(crate) use counts::SpanCounts;
use data::Data;
use message::{FieldRanges, Message};
use point_attributes::PointAttributes;
use shape::Shape;

/// Which parts of records a program uses: what it does not use costs no memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    /// Attributes, or a metric's metadata, by level: resource, scope, item, and what is in the item.
    pub(crate) attributes: [bool; 4],
    pub(crate) cache: bool,
    /// The most keys of points' attributes that a pass asks metrics for.
    pub(crate) point_keys: usize,
}

/// The record that statements work on, and what is around it.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) resource: Owner,
    pub(crate) scope: Owner,
    /// The log record, span or metric.
    pub(crate) item: Message,
    /// The data of the metric.
    pub(crate) data: Data,
    /// The span event or data point.
    pub(crate) inner: Message,
    /// The number of the event in its span.
    pub(crate) event_index: i64,
    /// All of the span, in the body.
    span: Slice,
    /// Its content, as soon as that is known.
    span_counts: Option<SpanCounts>,
    cache: MapTable,
}

/// A resource or scope, with the schema that the message around it names.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) message: Message,
    pub(crate) schema_url: Slice,
    pub(crate) schema_changes: u32,
}

impl Owner {
    /// Whether a statement changed it.
    pub(crate) fn is_changed(&self) -> bool {
        self.schema_changes != 0 || self.message.is_changed()
    }

    /// How often statements changed it.
    fn changes(&self) -> u64 {
        self.message.changes() + u64::from(self.schema_changes)
    }

    /// Begins another one.
    pub(crate) fn begin(&mut self, shape: Shape, fields: FieldRanges, schema_url: Slice) {
        self.message.begin(shape, fields);
        self.schema_url = schema_url;
        self.schema_changes = 0;
    }
}

impl Record {
    /// A record with room for what is used.
    pub(crate) fn new(uses: &Uses) -> Record {
        let [resource, scope, item, inner] = uses.attributes;
        let owner = |shape, table| Owner {
            message: Message::new(shape, table),
            schema_url: Slice::EMPTY,
            schema_changes: 0,
        };
        Record {
            resource: owner(Shape::Resource, resource),
            scope: owner(Shape::Scope, scope),
            item: Message::new(Shape::Log, item),
            data: Data::new(uses.point_keys),
            inner: Message::new(Shape::Number, inner),
            event_index: 0,
            span: Slice::EMPTY,
            span_counts: None,
            cache: if uses.cache { MapTable::new() } else { MapTable::default() },
        }
    }

    /// The bytes that a record takes beside its own size.
    pub(crate) fn table_bytes(uses: &Uses) -> usize {
        let tables = uses.attributes.iter().chain([&uses.cache]).filter(|used| **used);
        tables.count() * MapTable::BYTES + uses.point_keys * PointAttributes::BYTES
    }

    /// How often statements changed what is above a level: values made for that live longer than what is on the level.
    pub(crate) fn changes_above(&self, level: usize) -> u64 {
        let mut changes = 0;
        if level > 0 {
            changes += self.resource.changes();
        }
        if level > 1 {
            changes += self.scope.changes();
        }
        if level > 2 {
            changes += self.item.changes() + self.data.changes();
        }
        changes
    }

    /// Empties the cache: each step begins with an empty one on each record.
    pub(crate) fn clear_cache(&mut self) {
        self.cache.begin(0);
    }

    /// The message of a context's own fields.
    #[inline]
    fn message(&mut self, context: Context) -> &mut Message {
        match context {
            Context::Resource => &mut self.resource.message,
            Context::Scope => &mut self.scope.message,
            Context::Span | Context::Log | Context::Metric => &mut self.item,
            Context::SpanEvent | Context::DataPoint => &mut self.inner,
        }
    }

    /// Begins another span: `content` is all of it, in the body. Its events and links are counted when a statement asks, unless
    /// `counts` has them.
    pub(crate) fn begin_span(&mut self, fields: FieldRanges, content: Slice, counts: Option<SpanCounts>) {
        self.item.begin(Shape::Span, fields);
        self.span = content;
        self.span_counts = counts;
    }

    /// The content of the span.
    fn span_counts(&mut self, memory: &Memory<'_>) -> SpanCounts {
        let span = self.span;
        *self.span_counts.get_or_insert_with(|| SpanCounts::of(memory.get(span)))
    }

    fn owner(&mut self, context: Context) -> Option<&mut Owner> {
        match context {
            Context::Resource => Some(&mut self.resource),
            Context::Scope => Some(&mut self.scope),
            _ => None,
        }
    }
}

impl machine::Fields for Record {
    fn get(&mut self, memory: &mut Memory<'_>, context: Context, field: Field) -> Result<Value, Failure> {
        match field {
            Field::SchemaUrl => {
                Ok(Value::Text(self.owner(context).map_or(Slice::EMPTY, |owner| owner.schema_url)))
            }
            Field::EventIndex => Ok(Value::Int(self.event_index)),
            // Statements compare these with nil, and count them: see `count`.
            Field::DataPoints if self.data.kind() == 0 => Ok(Value::Nil),
            Field::Events | Field::Links | Field::DataPoints => Ok(Value::List(Slice::EMPTY)),
            Field::MetricType => Ok(Value::Int(self.data.metric_type())),
            Field::IsMonotonic | Field::AggregationTemporality if !self.data.has(field) => Ok(Value::Nil),
            Field::IsMonotonic | Field::AggregationTemporality => self.data.message.get(memory, field),
            _ => self.message(context).get(memory, field),
        }
    }

    fn set(
        &mut self,
        memory: &mut Memory<'_>,
        context: Context,
        field: Field,
        value: Value,
    ) -> Result<(), Failure> {
        match field {
            Field::SchemaUrl => {
                let Value::Text(url) = value else {
                    return Err(Failure::Type { wanted: Kind::Text, found: value.kind() });
                };
                if let Some(owner) = self.owner(context)
                    && memory.get(owner.schema_url) != memory.get(url)
                {
                    owner.schema_url = url;
                    owner.schema_changes = owner.schema_changes.saturating_add(1);
                }
                Ok(())
            }
            // As in the Collector: nothing happens.
            Field::MetricType => Ok(()),
            Field::EventIndex => Err(Failure::Invalid("event_index cannot be set")),
            Field::IsMonotonic | Field::AggregationTemporality => {
                let wanted = if field == Field::IsMonotonic { Kind::Bool } else { Kind::Int };
                if value.kind() != wanted {
                    return Err(Failure::Type { wanted, found: value.kind() });
                }
                if self.data.has(field) { self.data.message.set_field(memory, field, value) } else { Ok(()) }
            }
            _ => self.message(context).set_field(memory, field, value),
        }
    }

    fn table(
        &mut self,
        memory: &mut Memory<'_>,
        context: Context,
        field: Field,
    ) -> Result<&mut MapTable, Failure> {
        match field {
            Field::Cache => Ok(&mut self.cache),
            _ => self.message(context).attributes(memory),
        }
    }

    fn count(&mut self, memory: &Memory<'_>, context: Context, field: Field) -> Option<usize> {
        match field {
            Field::Events => Some(self.span_counts(memory).events),
            Field::Links => Some(self.span_counts(memory).links),
            Field::DataPoints => (self.data.kind() != 0).then_some(self.data.points),
            _ => self.message(context).count(memory, field),
        }
    }

    fn data(&mut self) -> Option<&mut Data> {
        Some(&mut self.data)
    }
}
