//! The step that measures items: builds the key of each, evaluates its value, and tells the measurements of the run.

use crate::access::Access;
use crate::any_value::{self, Sink};
use crate::machine::{Machine, Spare};
use crate::measures::{
    AttributeSource, AttributeValue, DERIVED_SCOPE, KeyAttribute, KeyAttributes, Measure, MeasureCount,
    MeasureKey, MeasureValue, Measured, MeasuredSpan, Number, Observation,
};
use crate::memory::{Memory, Slice};
use crate::ottl::calls;
use crate::ottl::field::{Context, Field};
use crate::ottl::literals::Literals;
use crate::ottl::program::{Call, Condition, Expression};
use crate::pipeline::StepCounts;
use crate::sampling::trace_state::TraceState;
use crate::table::MapTable;
use crate::value::{Failure, Kind, Value};
use tidegate_wire::otlp::Signal;

/// A compiled step. Names and defaults are literals of the pipeline.
#[derive(Debug, Default)]
pub(crate) struct MeasureStep {
    pub(crate) measures: Vec<CompiledMeasure>,
}

/// A compiled measure.
#[derive(Debug)]
pub(crate) struct CompiledMeasure {
    pub(crate) context: Context,
    pub(crate) conditions: Vec<Condition>,
    resource: Attributes,
    attributes: Attributes,
    pub(crate) value: CompiledValue,
    pub(crate) count: CompiledCount,
    tells_span: bool,
    /// The number of its first text among those of the step: failures are counted under it and those that follow.
    first_text: usize,
}

/// The value of an item, compiled.
#[derive(Debug)]
pub(crate) enum CompiledValue {
    One,
    Duration,
    Expression(Expression),
}

/// How often it counts, compiled.
#[derive(Debug)]
pub(crate) enum CompiledCount {
    One,
    Adjusted,
    Expression(Expression),
}

#[derive(Debug)]
enum Attributes {
    All,
    Listed(Vec<Attribute>),
}

#[derive(Debug)]
struct Attribute {
    key: Slice,
    from: AttributeSource,
    default: Option<Value>,
    is_optional: bool,
}

/// An attribute that an item needs to be measured has neither value nor default.
struct Missing;

impl Measured {
    /// The context of conditions and expressions on these items.
    pub(crate) const fn context(self) -> Context {
        match self {
            Measured::Spans => Context::Span,
            Measured::SpanEvents => Context::SpanEvent,
            Measured::Logs => Context::Log,
            Measured::Metrics => Context::Metric,
            Measured::DataPoints => Context::DataPoint,
        }
    }
}

impl Measure {
    /// Its texts, in the order in which they are compiled: the conditions, the value, the count.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &String> {
        let value = if let MeasureValue::Expression(text) = &self.value { Some(text) } else { None };
        let count = if let MeasureCount::Expression(text) = &self.count { Some(text) } else { None };
        self.conditions.iter().chain(value).chain(count)
    }
}

impl MeasureStep {
    /// Adds a measure with its compiled conditions and expressions.
    pub(crate) fn add(
        &mut self,
        measure: &Measure,
        conditions: Vec<Condition>,
        (value, count): (CompiledValue, CompiledCount),
        literals: &mut Literals,
    ) {
        let first_text = self.measures.iter().map(CompiledMeasure::texts).sum();
        self.measures.push(CompiledMeasure {
            context: measure.of.context(),
            conditions,
            resource: Attributes::of(&measure.resource, literals),
            attributes: Attributes::of(&measure.attributes, literals),
            value,
            count,
            tells_span: measure.tells_span,
            first_text,
        });
    }

    /// How many numbers of failures it has: of its texts, and behind them of items whose keys cannot be read.
    pub(crate) fn texts(&self) -> usize {
        self.measures.iter().map(CompiledMeasure::texts).sum::<usize>() + 1
    }

    /// The contexts that it works on: those of items, and the resource where a part of a key is of that.
    pub(crate) fn contexts(&self) -> Vec<Context> {
        let has_resource = self.measures.iter().any(CompiledMeasure::has_resource);
        let resource = has_resource.then_some(Context::Resource);
        resource.into_iter().chain(self.measures.iter().map(|measure| measure.context)).collect()
    }

    /// Visits its calls in bodies of a signal.
    pub(crate) fn for_each_call<'s>(&'s self, signal: Signal, each: &mut dyn FnMut(&'s Call)) {
        for measure in self.measures.iter().filter(|measure| measure.context.is_in(signal)) {
            measure.conditions.iter().for_each(|condition| calls::of_condition(condition, each));
            measure.expressions().for_each(|expression| calls::of_expression(expression, each));
        }
    }

    /// Adds the fields that it reads in bodies of a signal.
    pub(crate) fn access(&self, signal: Signal, access: &mut Access) {
        for measure in self.measures.iter().filter(|measure| measure.context.is_in(signal)) {
            measure.conditions.iter().for_each(|condition| access.condition(condition));
            measure.expressions().for_each(|expression| access.expression(expression));
            measure.attributes_read(access);
        }
    }

    /// Measures the current thing of a level: a resource, or an item.
    pub(crate) fn run(
        &self,
        machine: &mut Machine<'_>,
        level: usize,
        is_here: impl Fn(Context) -> bool,
        counts: &mut StepCounts,
    ) {
        let here = self.measures.iter().enumerate().filter(|(_, measure)| is_here(measure.context));
        if level == Context::Resource.level() {
            here.for_each(|(number, measure)| measure.resource(machine, number));
        } else {
            here.filter(|(_, measure)| measure.context.level() == level)
                .for_each(|(number, measure)| measure.item(machine, number, self.texts() - 1, counts));
        }
    }
}

impl CompiledMeasure {
    fn texts(&self) -> usize {
        self.conditions.len() + self.expressions().count()
    }

    /// Whether a part of its key is of the resource alone.
    pub(crate) fn has_resource(&self) -> bool {
        !matches!(&self.resource, Attributes::Listed(listed) if listed.is_empty())
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let value = if let CompiledValue::Expression(value) = &self.value { Some(value) } else { None };
        let count = if let CompiledCount::Expression(count) = &self.count { Some(count) } else { None };
        value.into_iter().chain(count)
    }

    /// Adds the messages that it reads beside what its texts do.
    fn attributes_read(&self, access: &mut Access) {
        if self.has_resource() {
            access.reads_context(Context::Resource, true);
        }
        match self.context {
            Context::SpanEvent => access.reads_context(Context::Span, false),
            // Derived metrics are told by their scope.
            Context::Metric | Context::DataPoint => access.reads_context(Context::Scope, false),
            _ => {}
        }
        access.reads_context(self.context, matches!(self.attributes, Attributes::All));
        let Attributes::Listed(listed) = &self.attributes else { return };
        for place in listed.iter().flat_map(|attribute| places(attribute.from, self.context)) {
            access.reads_context(place, true);
        }
    }

    /// Tells of the current resource.
    fn resource(&self, machine: &mut Machine<'_>, number: usize) {
        let Machine { memory, record, spare, measurements: Some(measurements), .. } = machine else { return };
        let key = measurements.key();
        key.clear();
        let Ok(table) = record.table(memory, Context::Resource, Field::Attributes) else {
            // It has more attributes than any key.
            key.cut();
            return measurements.resource(number);
        };
        match &self.resource {
            Attributes::All => push_all(key, memory, table, spare),
            Attributes::Listed(listed) => {
                for Attribute { key: name, default, .. } in listed {
                    if let Some(value) = table.get(memory, *name).or(*default) {
                        push_pair(key, memory, *name, value);
                    }
                }
            }
        }
        measurements.resource(number);
    }

    /// Measures the current item. Where that fails, it is counted, and the item is not measured. One whose key cannot be read is counted as `unread`.
    fn item(&self, machine: &mut Machine<'_>, number: usize, unread: usize, counts: &mut StepCounts) {
        if machine.measurements.is_none() || self.is_derived(machine) {
            return;
        }
        let mut is_met = self.conditions.is_empty();
        for (at, condition) in self.conditions.iter().enumerate() {
            match machine.holds(condition) {
                Ok(holds) => is_met = holds,
                Err(why) => counts.fail(self.first_text + at, why),
            }
            if is_met {
                break;
            }
        }
        if !is_met {
            return;
        }
        let mut text = self.first_text + self.conditions.len();
        let value = match &self.value {
            CompiledValue::One => Ok(Some(Number::Int(1))),
            CompiledValue::Duration => Ok(None),
            CompiledValue::Expression(expression) => {
                text += 1;
                machine.value(expression).and_then(number_of)
            }
        };
        let count = match &self.count {
            CompiledCount::One => Ok(Some(1)),
            CompiledCount::Adjusted => Ok(None),
            CompiledCount::Expression(count) => machine.value(count).and_then(count_of).map(Some),
        };
        let (value, count) = match (value, count) {
            (Ok(value), Ok(count)) => (value, count),
            (Err(why), _) => return counts.fail(text - 1, why),
            (_, Err(why)) => return counts.fail(text, why),
        };
        if let Err(why) = self.observe(machine, number, value, count) {
            counts.fail(unread, why);
        }
    }

    /// Whether the item was derived itself: it would be counted again and again.
    fn is_derived(&self, machine: &mut Machine<'_>) -> bool {
        if !matches!(self.context, Context::Metric | Context::DataPoint) {
            return false;
        }
        let name = machine.record.get(&mut machine.memory, Context::Scope, Field::Name);
        matches!(name, Ok(Value::Text(name)) if machine.memory.get(name) == DERIVED_SCOPE.as_bytes())
    }

    fn observe(
        &self,
        machine: &mut Machine<'_>,
        number: usize,
        value: Option<Number>,
        count: Option<u64>,
    ) -> Result<(), Failure> {
        let is_of_span = matches!(self.context, Context::Span | Context::SpanEvent);
        let count = match count {
            Some(count) => count,
            None if is_of_span => adjusted_count(machine)?,
            None => 1,
        };
        let value = match value {
            Some(value) => value,
            None if is_of_span => Number::Int(duration_ns(machine)?),
            None => Number::Int(0),
        };
        let span = if is_of_span && self.tells_span { Some(span(machine)?) } else { None };
        if let Some(measurements) = &mut machine.measurements {
            measurements.key().clear();
        }
        match &self.attributes {
            Attributes::All => {
                let Machine { memory, record, spare, measurements: Some(measurements), .. } = machine else {
                    return Ok(());
                };
                let table = record.table(memory, self.context, Field::Attributes)?;
                push_all(measurements.key(), memory, table, spare);
            }
            Attributes::Listed(listed) => {
                for attribute in listed {
                    if attribute.push(machine, self.context)?.is_err() {
                        return Ok(());
                    }
                }
            }
        }
        if let Some(measurements) = &mut machine.measurements {
            measurements.observe(number, &Observation { value, count, span });
        }
        Ok(())
    }
}

impl Attributes {
    fn of(attributes: &KeyAttributes, literals: &mut Literals) -> Attributes {
        match attributes {
            KeyAttributes::All => Attributes::All,
            KeyAttributes::Listed(listed) => Attributes::Listed(
                listed.iter().map(|attribute| Attribute::of(attribute, literals)).collect(),
            ),
        }
    }
}

impl Attribute {
    fn of(attribute: &KeyAttribute, literals: &mut Literals) -> Attribute {
        let KeyAttribute { key, from, default, is_optional } = attribute;
        let default = default.as_ref().map(|default| match default {
            AttributeValue::Text(text) => Value::Text(literals.store(text.as_bytes())),
            AttributeValue::Int(number) => Value::Int(*number),
            AttributeValue::Double(number) => Value::Double(*number),
            AttributeValue::Bool(value) => Value::Bool(*value),
        });
        Attribute { key: literals.store(key.as_bytes()), from: *from, default, is_optional: *is_optional }
    }

    /// Puts the value into the key.
    fn push(&self, machine: &mut Machine<'_>, item: Context) -> Result<Result<(), Missing>, Failure> {
        use AttributeSource as From;
        match self.from {
            From::SpanName => {
                let name = machine.record.get(&mut machine.memory, Context::Span, Field::Name)?;
                push_value(machine, Some(name));
                return Ok(Ok(()));
            }
            From::SpanKind => {
                let kind = field(machine, Field::Kind)?;
                push_constant(machine, kind_text(kind));
                return Ok(Ok(()));
            }
            From::StatusCode => {
                let status = field(machine, Field::StatusCode)?;
                push_constant(machine, status_text(status));
                return Ok(Ok(()));
            }
            From::Item
            | From::ItemOrResource
            | From::ResourceOrItem
            | From::ItemOrScopeOrResource
            | From::SpanOrEventOrResource
            | From::Resource => {}
        }
        let mut value = None;
        for place in places(self.from, item) {
            let table = machine.record.table(&mut machine.memory, place, Field::Attributes)?;
            value = table.get(&machine.memory, self.key);
            if value.is_some() {
                break;
            }
        }
        let value = value.or(self.default);
        if value.is_none() && !self.is_optional {
            return Ok(Err(Missing));
        }
        push_value(machine, value);
        Ok(Ok(()))
    }
}

/// The messages whose attributes a source looks at, in order.
fn places(from: AttributeSource, item: Context) -> impl Iterator<Item = Context> {
    let resource = Some(Context::Resource);
    let [first, second, third] = match from {
        AttributeSource::Item => [Some(item), None, None],
        AttributeSource::ItemOrResource => [Some(item), None, resource],
        AttributeSource::ResourceOrItem => [resource, Some(item), None],
        AttributeSource::ItemOrScopeOrResource => [Some(item), Some(Context::Scope), resource],
        AttributeSource::SpanOrEventOrResource => [Some(Context::Span), Some(item), resource],
        AttributeSource::Resource => [None, None, resource],
        AttributeSource::SpanName | AttributeSource::SpanKind | AttributeSource::StatusCode => [None; 3],
    };
    first.into_iter().chain(second).chain(third)
}

/// Writes values to a key.
struct KeySink<'k, 'm, 'b> {
    key: &'k mut MeasureKey,
    memory: &'m Memory<'b>,
}

impl Sink for KeySink<'_, '_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.key.push(bytes);
        Ok(())
    }

    fn put_slice(&mut self, slice: Slice) -> Result<(), Failure> {
        self.put(self.memory.get(slice))
    }
}

/// Puts all attributes into the key, as pairs in the order of their keys: senders may give the same ones in any order.
fn push_all(key: &mut MeasureKey, memory: &Memory<'_>, table: &MapTable, spare: &mut Spare) {
    spare.with_sorted(
        table.entries(),
        |one| memory.get(one.key),
        |entry| {
            push_pair(key, memory, entry.key, entry.value);
        },
    );
}

fn push_pair(key: &mut MeasureKey, memory: &Memory<'_>, name: Slice, value: Value) {
    // What no attribute can be is not read from one.
    let _never = any_value::write_pair(1, name, value, &mut KeySink { key, memory });
}

/// Puts a value into the key, behind its length and one; zero where there is none.
fn push_value(machine: &mut Machine<'_>, value: Option<Value>) {
    let Machine { memory, measurements: Some(measurements), .. } = machine else { return };
    let key = measurements.key();
    if let Some(Value::Text(text)) = value
        && key.push_text(memory.get(text))
    {
        return;
    }
    match value.and_then(|value| Some((value, any_value::encoded_len(value).ok()?))) {
        None => key.push(&[0]),
        Some((value, len)) => {
            push_length(key, len);
            let _never = any_value::write(value, &mut KeySink { key, memory });
        }
    }
}

/// Puts a short text into the key.
fn push_constant(machine: &mut Machine<'_>, text: &'static str) {
    let Some(measurements) = &mut machine.measurements else { return };
    let _is_short = measurements.key().push_text(text.as_bytes());
}

/// A length and one, as a varint.
fn push_length(key: &mut MeasureKey, len: usize) {
    key.push(tidegate_wire::proto::write::Varint::new(len as u64 + 1).as_bytes());
}

const fn kind_text(kind: i64) -> &'static str {
    match kind {
        1 => "SPAN_KIND_INTERNAL",
        2 => "SPAN_KIND_SERVER",
        3 => "SPAN_KIND_CLIENT",
        4 => "SPAN_KIND_PRODUCER",
        5 => "SPAN_KIND_CONSUMER",
        0 => "SPAN_KIND_UNSPECIFIED",
        _ => "",
    }
}

const fn status_text(status: i64) -> &'static str {
    match status {
        0 => "STATUS_CODE_UNSET",
        1 => "STATUS_CODE_OK",
        2 => "STATUS_CODE_ERROR",
        _ => "",
    }
}

/// A number of the span.
fn field(machine: &mut Machine<'_>, field: Field) -> Result<i64, Failure> {
    let value = machine.record.get(&mut machine.memory, Context::Span, field)?;
    Ok(if let Value::Int(number) = value { number } else { 0 })
}

fn id<const LEN: usize>(machine: &mut Machine<'_>, field: Field) -> Result<[u8; LEN], Failure> {
    let value = machine.record.get(&mut machine.memory, Context::Span, field)?;
    let Value::Id(id) = value else { return Ok([0; LEN]) };
    Ok(machine.memory.get(id).try_into().unwrap_or([0; LEN]))
}

/// How long the span took; zero where it ends before it begins.
fn duration_ns(machine: &mut Machine<'_>) -> Result<i64, Failure> {
    let start = field(machine, Field::StartTimeUnixNano)?.cast_unsigned();
    let end = field(machine, Field::EndTimeUnixNano)?.cast_unsigned();
    Ok(i64::try_from(end.saturating_sub(start)).unwrap_or(i64::MAX))
}

fn span(machine: &mut Machine<'_>) -> Result<MeasuredSpan, Failure> {
    Ok(MeasuredSpan {
        trace_id: id(machine, Field::TraceId)?,
        span_id: id(machine, Field::SpanId)?,
        parent_span_id: id(machine, Field::ParentSpanId)?,
        kind: field(machine, Field::Kind)?,
        status: field(machine, Field::StatusCode)?,
        start_ns: field(machine, Field::StartTimeUnixNano)?.cast_unsigned(),
        end_ns: field(machine, Field::EndTimeUnixNano)?.cast_unsigned(),
    })
}

/// How many spans a sampled one stands for, by the threshold in its `tracestate`: a fraction is rounded up for as many spans as it says, by
/// their ids, so that the same span counts the same each time.
///
/// <https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/>
fn adjusted_count(machine: &mut Machine<'_>) -> Result<u64, Failure> {
    let state = machine.record.get(&mut machine.memory, Context::Span, Field::TraceState)?;
    let Value::Text(state) = state else { return Ok(1) };
    if state.len == 0 {
        return Ok(1);
    }
    let state = TraceState::parse(machine.memory.get(state));
    let Some(threshold) = state.and_then(|state| state.threshold()) else { return Ok(1) };
    Ok(threshold.adjusted_count(u64::from_le_bytes(id(machine, Field::SpanId)?)))
}

fn number_of(value: Value) -> Result<Option<Number>, Failure> {
    match value {
        Value::Int(number) => Ok(Some(Number::Int(number))),
        Value::Double(number) => Ok(Some(Number::Double(number))),
        other => Err(Failure::Type { wanted: Kind::Double, found: other.kind() }),
    }
}

fn count_of(value: Value) -> Result<u64, Failure> {
    match value {
        Value::Int(number) => u64::try_from(number).map_err(|_| Failure::Invalid("the count is negative")),
        Value::Double(number) if number >= 0.0 => Ok(number as u64),
        Value::Double(_) => Err(Failure::Invalid("the count is negative")),
        other => Err(Failure::Type { wanted: Kind::Int, found: other.kind() }),
    }
}
