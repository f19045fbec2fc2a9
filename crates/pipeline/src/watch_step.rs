//! The step that watches spans: runs its tests, and tells the sampler of the run what they found.

use crate::machine::Machine;
use crate::memory::Slice;
use crate::ottl::field::{Context, Field};
use crate::ottl::literals::Literals;
use crate::ottl::program::{Condition, Key};
use crate::regex::{PatternError, Regex};
use crate::traces::{SpanFacts, SpanTest, TraceId};
use crate::value::{Failure, Value};

/// A compiled step. Names and values are literals of the pipeline.
#[derive(Debug, Default)]
pub(crate) struct WatchStep {
    tests: Vec<(u64, Test)>,
    /// Conditions, each with its context: spans or their events.
    pub(crate) conditions: Vec<(u64, Context, Condition)>,
}

/// A compiled test that is no condition.
#[derive(Debug)]
enum Test {
    Text { key: Slice, values: Vec<Slice> },
    Pattern { key: Slice, patterns: Vec<Regex> },
    Number { key: Slice, min: i64, max: i64 },
    Bool { key: Slice, value: bool },
    Status(Vec<i64>),
    TraceState { key: Key, values: Vec<Slice> },
    TraceFlags,
}

impl WatchStep {
    /// Adds a test that is no condition, with the number of its bit.
    ///
    /// # Errors
    /// The number of the pattern that does not compile, and why.
    pub(crate) fn add(
        &mut self,
        number: usize,
        test: &SpanTest,
        literals: &mut Literals,
    ) -> Result<(), (usize, PatternError)> {
        let texts = |values: &[String], literals: &mut Literals| {
            let values = values.iter().filter(|value| !value.is_empty());
            values.map(|value| literals.store(value.as_bytes())).collect()
        };
        let test = match test {
            SpanTest::StringAttribute { key, values, are_patterns: false } => {
                Test::Text { key: literals.store(key.as_bytes()), values: texts(values, literals) }
            }
            SpanTest::StringAttribute { key, values, are_patterns: true } => {
                let compiled = values.iter().enumerate().map(|(number, pattern)| {
                    literals.regexes.compile(pattern).map_err(|error| (number, error))
                });
                let patterns = compiled.collect::<Result<_, _>>()?;
                Test::Pattern { key: literals.store(key.as_bytes()), patterns }
            }
            SpanTest::NumericAttribute { key, min, max } => {
                Test::Number { key: literals.store(key.as_bytes()), min: *min, max: *max }
            }
            SpanTest::BooleanAttribute { key, value } => {
                Test::Bool { key: literals.store(key.as_bytes()), value: *value }
            }
            SpanTest::StatusCode(codes) => Test::Status(codes.clone()),
            SpanTest::TraceState { key, values } => Test::TraceState {
                key: Key::Name(literals.store(key.as_bytes())),
                values: texts(values, literals),
            },
            SpanTest::TraceFlags => Test::TraceFlags,
            SpanTest::Condition { .. } => return Ok(()),
        };
        self.tests.push((bit(number), test));
        Ok(())
    }

    /// Adds a compiled condition of the test with this number.
    pub(crate) fn add_condition(&mut self, number: usize, context: Context, condition: Condition) {
        self.conditions.push((bit(number), context, condition));
    }

    /// Whether a test reads attributes of spans and resources.
    pub(crate) fn needs_attributes(&self) -> bool {
        let reads = |test: &Test| {
            matches!(test, Test::Text { .. } | Test::Pattern { .. } | Test::Number { .. } | Test::Bool { .. })
        };
        self.tests.iter().any(|(_, test)| reads(test))
    }

    /// Watches the current span. The number of each condition that fails goes to `failed`: it counts as not fulfilled.
    ///
    /// # Errors
    /// When the span cannot be read.
    pub(crate) fn span(
        &self,
        machine: &mut Machine<'_>,
        failed: &mut impl FnMut(usize, Failure),
    ) -> Result<(), Failure> {
        let Some(trace_id) = trace_id(machine)? else { return Ok(()) };
        let mut fulfilled = 0;
        for (bit, test) in &self.tests {
            if test.holds(machine)? {
                fulfilled |= bit;
            }
        }
        fulfilled |= self.held(machine, Context::Span, failed);
        let span = SpanFacts {
            trace_id,
            start_ns: number(machine, Field::StartTimeUnixNano)?.cast_unsigned(),
            end_ns: number(machine, Field::EndTimeUnixNano)?.cast_unsigned(),
            is_root: is_root(machine)?,
            fulfilled,
        };
        if let Some(traces) = &mut machine.traces {
            traces.watch(&span);
        }
        Ok(())
    }

    /// Watches the current event of the current span.
    ///
    /// # Errors
    /// When the span cannot be read.
    pub(crate) fn event(
        &self,
        machine: &mut Machine<'_>,
        failed: &mut impl FnMut(usize, Failure),
    ) -> Result<(), Failure> {
        let fulfilled = self.held(machine, Context::SpanEvent, failed);
        if fulfilled != 0
            && let Some(trace_id) = trace_id(machine)?
            && let Some(traces) = &mut machine.traces
        {
            traces.watch_event(&trace_id, fulfilled);
        }
        Ok(())
    }

    /// The bits of conditions that hold in a context.
    fn held(
        &self,
        machine: &mut Machine<'_>,
        context: Context,
        failed: &mut impl FnMut(usize, Failure),
    ) -> u64 {
        let mut held = 0;
        for (number, (bit, own, condition)) in self.conditions.iter().enumerate() {
            if *own == context && held & bit == 0 {
                match machine.holds(condition) {
                    Ok(true) => held |= bit,
                    Ok(false) => {}
                    Err(why) => failed(number, why),
                }
            }
        }
        held
    }
}

const fn bit(number: usize) -> u64 {
    1 << (number % u64::BITS as usize)
}

/// The trace id of the current span; `None` where it has none.
///
/// # Errors
/// When the span cannot be read.
pub(crate) fn trace_id(machine: &mut Machine<'_>) -> Result<Option<TraceId>, Failure> {
    let id = machine.record.get(&mut machine.memory, Context::Span, Field::TraceId)?;
    let Value::Id(id) = id else { return Ok(None) };
    let id = TraceId::try_from(machine.memory.get(id)).ok();
    Ok(id.filter(|id| *id != TraceId::default()))
}

fn number(machine: &mut Machine<'_>, field: Field) -> Result<i64, Failure> {
    let value = machine.record.get(&mut machine.memory, Context::Span, field)?;
    Ok(if let Value::Int(number) = value { number } else { 0 })
}

fn is_root(machine: &mut Machine<'_>) -> Result<bool, Failure> {
    let parent = machine.record.get(&mut machine.memory, Context::Span, Field::ParentSpanId)?;
    let Value::Id(parent) = parent else { return Ok(true) };
    Ok(machine.memory.get(parent).iter().all(|byte| *byte == 0))
}

/// An attribute of the span, and of its resource.
fn attribute(machine: &mut Machine<'_>, context: Context, key: Slice) -> Result<Option<Value>, Failure> {
    let table = machine.record.table(&mut machine.memory, context, Field::Attributes)?;
    Ok(table.get(&machine.memory, key))
}

impl Test {
    fn holds(&self, machine: &mut Machine<'_>) -> Result<bool, Failure> {
        const PLACES: [Context; 2] = [Context::Resource, Context::Span];
        match self {
            Test::Text { key, values } => {
                for place in PLACES {
                    if let Some(Value::Text(text)) = attribute(machine, place, *key)? {
                        let text = machine.memory.get(text);
                        if values.iter().any(|value| machine.memory.get(*value) == text) {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            Test::Pattern { key, patterns } => {
                for place in PLACES {
                    let text = match attribute(machine, place, *key)? {
                        Some(Value::Text(text)) => text,
                        Some(_) => Slice::EMPTY,
                        None => continue,
                    };
                    // As in the Collector, which skips empty values of spans.
                    let text = machine.memory.get(text);
                    let is_asked = place == Context::Resource || !text.is_empty();
                    if is_asked && patterns.iter().any(|one| one.is_match(machine.regexes, text)) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Number { key, min, max } => {
                for place in PLACES {
                    let number = match attribute(machine, place, *key)? {
                        Some(Value::Int(number)) => number,
                        Some(_) => 0,
                        None => continue,
                    };
                    if (*min..=*max).contains(&number) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Bool { key, value } => {
                for place in PLACES {
                    if let Some(found) = attribute(machine, place, *key)?
                        && (found == Value::Bool(true)) == *value
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Status(codes) => {
                let code = number(machine, Field::StatusCode)?;
                Ok(codes.contains(&code))
            }
            Test::TraceState { key, values } => {
                let state = machine.record.get(&mut machine.memory, Context::Span, Field::TraceState)?;
                let Value::Text(found) = machine.trace_state_get(state, key)? else { return Ok(false) };
                let found = machine.memory.get(found);
                Ok(values.iter().any(|value| machine.memory.get(*value) == found))
            }
            Test::TraceFlags => {
                const SAMPLED: i64 = 1;
                Ok(number(machine, Field::Flags)? & SAMPLED != 0)
            }
        }
    }
}
