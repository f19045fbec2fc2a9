//! Steps of tests.

use crate::ErrorMode;
use crate::machine::Machine;
use crate::memory::{Slice, Space};
use crate::ottl::field::{Context, Field};
use crate::ottl::program::{Argument, Call, Comparison, Condition, Expression, Key, Path, Statement};
use crate::ottl::signature::{Parameter, Signature, Type, complete_nothing, prepare_nothing};
use crate::step::{Step, Work};
use crate::value::{Failure, Value};
use proptest::prelude::*;
use tidegate_wire::otlp::Signal;

/// A step, which the model knows too.
#[derive(Debug, Clone)]
pub(super) enum Action {
    DropLogsBelow(i64),
    KeepLogsOfText(String),
    DropResourcesWith(String, String),
    DropScopesNamed(String),
    /// Conditions of all levels in one step.
    DropLogsOrScopes(i64, String),
    SetLog(String, String),
    DeleteLog(String),
    SetLogText(String),
    SetLogBody(i64),
    SetLogNumbers(i64),
    SetResource(String, String),
    SetScope(String, String),
    SetSchemas(String),
    /// The resource's attribute `t` becomes the text of each of its records, in turn.
    SetResourceFromLog,
    SetLogFromResource,
    SetSpan(String),
    SetSpanStatus(i64, String),
    DropSpansNamed(String),
    DropEventsNamed(String),
    SetEvent(String, String),
    /// The span gets the name of its last event.
    SetSpanFromEvent,
    SetMetric(String),
    SetMetadata(String, String),
    DropMetricsNamed(String),
    SetTemporality(i64, bool),
    DropPointsWith(String),
    SetPoint(String, String),
    SetPointTimes(i64),
    SetPointValue(f64),
    SetCounts(i64),
    /// The metric's unit becomes the attribute `a` of each of its points.
    SetMetricFromPoint,
}

static SET: Signature = Signature {
    name: "set",
    parameters: &[
        Parameter { name: "target", accepts: Type::Target, optional: false },
        Parameter { name: "value", accepts: Type::Any, optional: false },
    ],
    returns: Type::Nothing,
    prepare: prepare_nothing,
    effects: &[],
    complete: complete_nothing,
    run: set,
};

static DELETE: Signature = Signature { name: "delete_key", run: delete, ..SET };

fn set(machine: &mut Machine<'_>, arguments: &[Argument]) -> Result<Value, Failure> {
    let [Argument::Target(path), Argument::Value(value)] = arguments else { panic!("{arguments:?}") };
    let value = machine.value(value)?;
    machine.set(path, value)?;
    Ok(Value::Nil)
}

fn delete(machine: &mut Machine<'_>, arguments: &[Argument]) -> Result<Value, Failure> {
    let [Argument::Target(path), Argument::Value(Expression::Literal(Value::Text(key)))] = arguments else {
        panic!("{arguments:?}")
    };
    let table = machine.record.table(&mut machine.memory, path.context, path.field)?;
    table.remove(&machine.memory, *key);
    Ok(Value::Nil)
}

/// Literals of programs under construction.
#[derive(Default)]
pub(super) struct Built {
    pub(super) constants: Vec<u8>,
}

impl Built {
    fn literal(&mut self, text: &str) -> Slice {
        let start = self.constants.len() as u32;
        self.constants.extend_from_slice(text.as_bytes());
        Slice { start, len: text.len() as u32, space: Space::Constants }
    }

    fn text(&mut self, text: &str) -> Expression {
        Expression::Literal(Value::Text(self.literal(text)))
    }

    fn path(&mut self, context: Context, field: Field, key: Option<&str>) -> Path {
        Path { context, field, keys: key.map(|key| Key::Name(self.literal(key))).into_iter().collect() }
    }

    fn set(&mut self, context: Context, field: Field, key: Option<&str>, value: Expression) -> Statement {
        let target = Argument::Target(self.path(context, field, key));
        statement(&SET, [target, Argument::Value(value)])
    }

    fn compare(
        &mut self,
        context: Context,
        field: Field,
        key: Option<&str>,
        comparison: Comparison,
        value: Expression,
    ) -> (Context, Condition) {
        let path = Expression::Path(self.path(context, field, key));
        (context, Condition::Compare(comparison, path, value))
    }

    pub(super) fn is(
        &mut self,
        context: Context,
        field: Field,
        key: Option<&str>,
        text: &str,
    ) -> (Context, Condition) {
        let value = self.text(text);
        self.compare(context, field, key, Comparison::Equal, value)
    }

    fn below(&mut self, severity: i64) -> (Context, Condition) {
        let value = Expression::Literal(Value::Int(severity));
        self.compare(Context::Log, Field::SeverityNumber, None, Comparison::Less, value)
    }

    pub(super) fn step(&mut self, action: &Action) -> Step {
        use Context::{DataPoint, Log, Metric, Resource, Scope, Span, SpanEvent};
        let int = |number: i64| Expression::Literal(Value::Int(number));
        let drop = |conditions: Vec<_>| Work::Filter { conditions, keeps: false };
        let edit = |context, statements: Vec<_>| {
            Work::Edit(statements.into_iter().map(|statement| (context, statement)).collect())
        };
        let work = match action {
            Action::DropLogsBelow(severity) => drop(vec![self.below(*severity)]),
            Action::KeepLogsOfText(text) => {
                Work::Filter { conditions: vec![self.is(Log, Field::SeverityText, None, text)], keeps: true }
            }
            Action::DropResourcesWith(key, text) => {
                drop(vec![self.is(Resource, Field::Attributes, Some(key), text)])
            }
            Action::DropScopesNamed(name) => drop(vec![self.is(Scope, Field::Name, None, name)]),
            Action::DropLogsOrScopes(severity, name) => {
                drop(vec![self.below(*severity), self.is(Scope, Field::Name, None, name)])
            }
            Action::SetLog(key, value) => {
                let value = self.text(value);
                edit(Log, vec![self.set(Log, Field::Attributes, Some(key), value)])
            }
            Action::DeleteLog(key) => {
                let target = Argument::Target(self.path(Log, Field::Attributes, None));
                let key = Argument::Value(self.text(key));
                edit(Log, vec![statement(&DELETE, [target, key])])
            }
            Action::SetLogText(text) => {
                let text = self.text(text);
                edit(Log, vec![self.set(Log, Field::SeverityText, None, text)])
            }
            Action::SetLogBody(number) => edit(Log, vec![self.set(Log, Field::Body, None, int(*number))]),
            Action::SetLogNumbers(number) => edit(
                Log,
                [
                    Field::TimeUnixNano,
                    Field::ObservedTimeUnixNano,
                    Field::Flags,
                    Field::DroppedAttributesCount,
                ]
                .map(|field| self.set(Log, field, None, int(*number)))
                .into(),
            ),
            Action::SetResource(key, value) => {
                let value = self.text(value);
                edit(Resource, vec![self.set(Resource, Field::Attributes, Some(key), value)])
            }
            Action::SetScope(name, version) => {
                let (name, version) = (self.text(name), self.text(version));
                let name = self.set(Scope, Field::Name, None, name);
                edit(Scope, vec![name, self.set(Scope, Field::Version, None, version)])
            }
            Action::SetSchemas(url) => {
                let (one, other) = (self.text(url), self.text(url));
                let resource = self.set(Resource, Field::SchemaUrl, None, one);
                edit(Scope, vec![resource, self.set(Scope, Field::SchemaUrl, None, other)])
            }
            Action::SetResourceFromLog => {
                let text = Expression::Path(self.path(Log, Field::SeverityText, None));
                edit(Log, vec![self.set(Resource, Field::Attributes, Some("t"), text)])
            }
            Action::SetLogFromResource => {
                let text = Expression::Path(self.path(Resource, Field::Attributes, Some("t")));
                edit(Log, vec![self.set(Log, Field::Attributes, Some("r"), text)])
            }
            Action::SetSpan(name) => {
                let text = self.text(name);
                let name = self.set(Span, Field::Name, None, text);
                edit(Span, vec![name, self.set(Span, Field::Kind, None, int(3))])
            }
            Action::SetSpanStatus(code, message) => {
                let message = self.text(message);
                let code = self.set(Span, Field::StatusCode, None, int(*code));
                edit(Span, vec![code, self.set(Span, Field::StatusMessage, None, message)])
            }
            Action::DropSpansNamed(name) => drop(vec![self.is(Span, Field::Name, None, name)]),
            Action::DropEventsNamed(name) => drop(vec![self.is(SpanEvent, Field::Name, None, name)]),
            Action::SetEvent(key, value) => {
                let value = self.text(value);
                edit(SpanEvent, vec![self.set(SpanEvent, Field::Attributes, Some(key), value)])
            }
            Action::SetSpanFromEvent => {
                let name = Expression::Path(self.path(SpanEvent, Field::Name, None));
                edit(SpanEvent, vec![self.set(Span, Field::Name, None, name)])
            }
            Action::SetMetric(name) => {
                let text = self.text(name);
                edit(Metric, vec![self.set(Metric, Field::Name, None, text)])
            }
            Action::SetMetadata(key, value) => {
                let value = self.text(value);
                edit(Metric, vec![self.set(Metric, Field::Metadata, Some(key), value)])
            }
            Action::DropMetricsNamed(name) => drop(vec![self.is(Metric, Field::Name, None, name)]),
            Action::SetTemporality(temporality, monotonic) => {
                let monotonic = Expression::Literal(Value::Bool(*monotonic));
                let set = self.set(Metric, Field::AggregationTemporality, None, int(*temporality));
                edit(Metric, vec![set, self.set(Metric, Field::IsMonotonic, None, monotonic)])
            }
            Action::DropPointsWith(value) => {
                drop(vec![self.is(DataPoint, Field::Attributes, Some("a"), value)])
            }
            Action::SetPoint(key, value) => {
                let value = self.text(value);
                edit(DataPoint, vec![self.set(DataPoint, Field::Attributes, Some(key), value)])
            }
            Action::SetPointTimes(time) => {
                let start = self.set(DataPoint, Field::StartTimeUnixNano, None, int(*time));
                let flags = self.set(DataPoint, Field::Flags, None, int(1));
                edit(DataPoint, vec![start, flags])
            }
            Action::SetPointValue(value) => {
                let value = Expression::Literal(Value::Double(*value));
                let mut set = self.set(DataPoint, Field::ValueDouble, None, value);
                set.condition = Some(self.is_type(2));
                edit(DataPoint, vec![set])
            }
            Action::SetCounts(number) => {
                let mut list = vec![0x0a, 0x02, 0x18, (*number & 0x7f) as u8];
                list.extend_from_within(..);
                let start = self.constants.len() as u32;
                self.constants.extend(&list);
                let list = Value::List(Slice { start, len: list.len() as u32, space: Space::Constants });
                let mut counts = self.set(DataPoint, Field::BucketCounts, None, Expression::Literal(list));
                counts.condition = Some(self.is_type(3));
                let mut side =
                    self.set(DataPoint, Field::PositiveBucketCounts, None, Expression::Literal(list));
                side.condition = Some(self.is_type(4));
                let mut offset = self.set(DataPoint, Field::NegativeOffset, None, int(-*number));
                offset.condition = Some(self.is_type(4));
                edit(DataPoint, vec![counts, side, offset])
            }
            Action::SetMetricFromPoint => {
                let path = |built: &mut Built| built.path(DataPoint, Field::Attributes, Some("a"));
                let value = Expression::Path(path(self));
                let mut set = self.set(Metric, Field::Unit, None, value);
                let is_text = Comparison::GreaterOrEqual;
                let empty = self.text("");
                let path = Expression::Path(path(self));
                set.condition = Some(Condition::Compare(is_text, path, empty));
                edit(DataPoint, vec![set])
            }
        };
        Step { work, when: None, on_error: ErrorMode::Ignore, is_one: false }
    }

    fn is_type(&mut self, number: i64) -> Condition {
        let path = Expression::Path(self.path(Context::Metric, Field::MetricType, None));
        Condition::Compare(Comparison::Equal, path, Expression::Literal(Value::Int(number)))
    }
}

fn statement(function: &'static Signature, arguments: [Argument; 2]) -> Statement {
    Statement { call: Call { function, arguments: Box::new(arguments) }, condition: None }
}

impl Action {
    pub(super) fn is_in(&self, signal: Signal) -> bool {
        let step = Built::default().step(self);
        step.contexts(signal).next().is_some()
    }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-c]{1,2}", 2 => "[a-c]{0,1}", 1 => "[a-z]{100,400}"]
}

fn shared_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        (word(), word()).prop_map(|(key, text)| Action::DropResourcesWith(key, text)),
        word().prop_map(Action::DropScopesNamed),
        (word(), word()).prop_map(|(key, value)| Action::SetResource(key, value)),
        (word(), word()).prop_map(|(name, version)| Action::SetScope(name, version)),
        word().prop_map(Action::SetSchemas),
    ]
}

pub(super) fn log_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => shared_action(),
        1 => (-3i64..30).prop_map(Action::DropLogsBelow),
        1 => word().prop_map(Action::KeepLogsOfText),
        1 => (-3i64..20, word()).prop_map(|(severity, name)| Action::DropLogsOrScopes(severity, name)),
        2 => (word(), word()).prop_map(|(key, value)| Action::SetLog(key, value)),
        1 => word().prop_map(Action::DeleteLog),
        1 => word().prop_map(Action::SetLogText),
        1 => any::<i64>().prop_map(Action::SetLogBody),
        1 => any::<i64>().prop_map(Action::SetLogNumbers),
        1 => Just(Action::SetResourceFromLog),
        1 => Just(Action::SetLogFromResource),
    ]
}

pub(super) fn trace_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => shared_action(),
        1 => word().prop_map(Action::SetSpan),
        1 => (0i64..3, word()).prop_map(|(code, message)| Action::SetSpanStatus(code, message)),
        1 => word().prop_map(Action::DropSpansNamed),
        1 => word().prop_map(Action::DropEventsNamed),
        1 => (word(), word()).prop_map(|(key, value)| Action::SetEvent(key, value)),
        1 => Just(Action::SetSpanFromEvent),
    ]
}

pub(super) fn metric_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => shared_action(),
        1 => word().prop_map(Action::SetMetric),
        1 => (word(), word()).prop_map(|(key, value)| Action::SetMetadata(key, value)),
        1 => word().prop_map(Action::DropMetricsNamed),
        1 => (0i64..3, any::<bool>()).prop_map(|(kind, monotonic)| Action::SetTemporality(kind, monotonic)),
        1 => word().prop_map(Action::DropPointsWith),
        1 => (word(), word()).prop_map(|(key, value)| Action::SetPoint(key, value)),
        1 => any::<i64>().prop_map(Action::SetPointTimes),
        1 => any::<f64>().prop_map(Action::SetPointValue),
        1 => (0i64..100).prop_map(Action::SetCounts),
        1 => Just(Action::SetMetricFromPoint),
    ]
}

pub(super) fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![log_action(), trace_action(), metric_action()]
}
