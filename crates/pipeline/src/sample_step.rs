//! Sampling as a step: gives the sampler what it decides by, and writes what it wants to have said.

use crate::definition::Sampling;
use crate::machine::Machine;
use crate::memory::Slice;
use crate::ottl::field::{Context, Field};
use crate::ottl::literals::Literals;
use crate::sampling::{
    LogDecision, LogFacts, PRIORITY_ATTRIBUTE, RANDOMNESS_ATTRIBUTE, Sampler, SpanDecision, SpanFacts,
    THRESHOLD_ATTRIBUTE,
};
use crate::step::Verdict;
use crate::value::{Failure, Value};

/// A compiled `sample` step. The names of attributes are literals of the pipeline.
#[derive(Debug)]
pub(crate) struct SampleStep {
    sampler: Sampler,
    hashed: Option<Slice>,
    span_priority: Slice,
    log_priority: Option<Slice>,
    threshold: Slice,
    randomness: Slice,
}

impl SampleStep {
    /// Compiles a step.
    pub(crate) fn new(sampling: &Sampling, literals: &mut Literals) -> SampleStep {
        let sampler = Sampler::new(sampling);
        let mut literal = |name: &str| literals.store(name.as_bytes());
        SampleStep {
            hashed: sampler.hashed_attribute().map(&mut literal),
            log_priority: sampler.priority_attribute().map(&mut literal),
            span_priority: literal(PRIORITY_ATTRIBUTE),
            threshold: literal(THRESHOLD_ATTRIBUTE),
            randomness: literal(RANDOMNESS_ATTRIBUTE),
            sampler,
        }
    }

    /// Decides on the current span or log record.
    ///
    /// # Errors
    /// When its attributes cannot be read, or the memory is full.
    pub(crate) fn run(&self, machine: &mut Machine<'_>, context: Context) -> Result<Verdict, Failure> {
        if context == Context::Span { self.span(machine) } else { self.log(machine) }
    }

    fn span(&self, machine: &mut Machine<'_>) -> Result<Verdict, Failure> {
        let Value::Id(trace_id) = machine.record.get(&mut machine.memory, Context::Span, Field::TraceId)?
        else {
            return Ok(Verdict::Keep);
        };
        let Value::Text(state) = machine.record.get(&mut machine.memory, Context::Span, Field::TraceState)?
        else {
            return Ok(Verdict::Keep);
        };
        let attribute = self.hashed(machine, Context::Span)?;
        let priority = attribute_of(machine, Context::Span, Some(self.span_priority))?;
        let mark = machine.memory.mark();
        let (contents, mut room) = machine.memory.split();
        let priority = match priority {
            Some(Value::Int(number)) => Some(number as f64),
            Some(Value::Double(number)) => Some(number),
            Some(Value::Text(text)) => {
                std::str::from_utf8(contents.get(text)).ok().and_then(|text| text.parse().ok())
            }
            _ => None,
        };
        let facts = SpanFacts {
            trace_id: contents.get(trace_id),
            trace_state: contents.get(state),
            attribute: attribute.map(|slice| contents.get(slice)),
            priority,
        };
        match self.sampler.span(facts) {
            SpanDecision::Drop => return Ok(Verdict::LeaveOut),
            SpanDecision::Keep => return Ok(Verdict::Keep),
            SpanDecision::KeepWith(state) => {
                state.write(|bytes| tidegate_wire::output::Output::put(&mut room, bytes))?;
            }
        }
        let state = Value::Text(machine.memory.since(mark));
        machine.record.set(&mut machine.memory, Context::Span, Field::TraceState, state)?;
        Ok(Verdict::Keep)
    }

    fn log(&self, machine: &mut Machine<'_>) -> Result<Verdict, Failure> {
        let Value::Id(trace_id) = machine.record.get(&mut machine.memory, Context::Log, Field::TraceId)?
        else {
            return Ok(Verdict::Keep);
        };
        let attribute = self.hashed(machine, Context::Log)?;
        let priority = match attribute_of(machine, Context::Log, self.log_priority)? {
            Some(Value::Int(number)) => Some(number as f64),
            Some(Value::Double(number)) => Some(number),
            _ => None,
        };
        let text = |value| if let Some(Value::Text(text)) = value { text } else { Slice::EMPTY };
        let threshold = text(attribute_of(machine, Context::Log, Some(self.threshold))?);
        let randomness = text(attribute_of(machine, Context::Log, Some(self.randomness))?);
        let memory = &machine.memory;
        let facts = LogFacts {
            trace_id: memory.get(trace_id),
            attribute: attribute.map(|slice| memory.get(slice)),
            threshold: memory.get(threshold),
            randomness: memory.get(randomness),
            priority,
        };
        let (threshold, randomness) = match self.sampler.log(facts) {
            LogDecision::Drop => return Ok(Verdict::LeaveOut),
            LogDecision::Keep => return Ok(Verdict::Keep),
            LogDecision::KeepWith { threshold, randomness } => (threshold, randomness),
        };
        for (key, digits) in [(self.threshold, threshold), (self.randomness, randomness)] {
            if let Some(digits) = digits {
                let value = Value::Text(machine.memory.store(digits.as_bytes())?);
                let table = machine.record.table(&mut machine.memory, Context::Log, Field::Attributes)?;
                table.set(&machine.memory, key, value)?;
            }
        }
        Ok(Verdict::Keep)
    }

    /// The value to hash: bytes as they are, anything else as text.
    fn hashed(&self, machine: &mut Machine<'_>, context: Context) -> Result<Option<Slice>, Failure> {
        match attribute_of(machine, context, self.hashed)? {
            Some(Value::Bytes(bytes)) => Ok(Some(bytes)),
            Some(value) => machine.as_text(value).map(Some),
            None => Ok(None),
        }
    }
}

fn attribute_of(
    machine: &mut Machine<'_>,
    context: Context,
    key: Option<Slice>,
) -> Result<Option<Value>, Failure> {
    let Some(key) = key else { return Ok(None) };
    let table = machine.record.table(&mut machine.memory, context, Field::Attributes)?;
    Ok(table.get(&machine.memory, key))
}
