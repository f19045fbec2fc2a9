//! A step: what it needs, and its work on the current thing of a level.

use crate::ErrorMode;
use crate::access::Access;
use crate::machine::Machine;
use crate::measure_step::MeasureStep;
use crate::ottl::calls;
use crate::ottl::field::Context;
use crate::ottl::program::{Call, Condition, Statement};
use crate::pipeline::StepCounts;
use crate::sample_step::SampleStep;
use crate::value::Failure;
use crate::watch_step::{self, WatchStep};
use tidegate_wire::otlp::Signal;

/// A compiled step.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) work: Work,
    pub(crate) when: Option<Condition>,
    pub(crate) on_error: ErrorMode,
    /// Whether failures of all its statements are counted as one thing's.
    pub(crate) is_one: bool,
}

/// Action of a step on items.
#[derive(Debug)]
pub(crate) enum Work {
    /// Drops what meets a condition, or keeps only that.
    Filter { conditions: Vec<(Context, Condition)>, keeps: bool },
    /// Runs statements, each on the things of its context.
    Edit(Vec<(Context, Statement)>),
    /// Keeps a part of the things of these contexts: spans, log records.
    Sample(Box<SampleStep>, Vec<Context>),
    /// Tells the sampler of the run about spans.
    WatchTraces(Box<WatchStep>),
    /// Drops spans of traces that the sampler of the run does not keep.
    SampleTraces,
    /// Tells the measurements of the run about items.
    Measure(Box<MeasureStep>),
    /// So many rules over the series of remote write, and nothing that OTLP bodies need.
    Relabel { rules: usize },
}

/// Outcome for the item that a step worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Drop,
    LeaveOut,
}

impl Step {
    /// How many numbers of failures it has: of its statements or conditions, and of `when` behind them.
    pub(crate) fn failures(&self) -> usize {
        self.texts() + usize::from(self.when.is_some())
    }

    /// The number under which failures of the statement `number` are counted.
    pub(crate) const fn part(&self, number: usize) -> usize {
        if self.is_one { 0 } else { number }
    }

    fn texts(&self) -> usize {
        match &self.work {
            _ if self.is_one => 1,
            Work::Filter { conditions, .. } => conditions.len(),
            Work::Edit(statements) => statements.len(),
            Work::Sample(..) | Work::SampleTraces => 1,
            Work::WatchTraces(watch) => watch.conditions.len(),
            Work::Measure(measure) => measure.texts(),
            Work::Relabel { rules } => *rules,
        }
    }

    /// The contexts that it works on.
    pub(crate) fn contexts(&self, signal: Signal) -> impl Iterator<Item = Context> {
        let measured = if let Work::Measure(step) = &self.work { step.contexts() } else { Vec::new() };
        let (conditions, statements, sampled) = match &self.work {
            Work::Filter { conditions, .. } => (conditions.as_slice(), [].as_slice(), [].as_slice()),
            Work::Edit(statements) => ([].as_slice(), statements.as_slice(), [].as_slice()),
            Work::Sample(_, contexts) => ([].as_slice(), [].as_slice(), contexts.as_slice()),
            Work::WatchTraces(watch) => {
                let has_events = watch.conditions.iter().any(|(_, at, _)| *at == Context::SpanEvent);
                let contexts: &[Context] =
                    if has_events { &[Context::Span, Context::SpanEvent] } else { &[Context::Span] };
                ([].as_slice(), [].as_slice(), contexts)
            }
            Work::SampleTraces => ([].as_slice(), [].as_slice(), [Context::Span].as_slice()),
            Work::Measure(_) | Work::Relabel { .. } => ([].as_slice(), [].as_slice(), [].as_slice()),
        };
        let conditions = conditions.iter().map(|(context, _)| *context);
        let statements = statements.iter().map(|(context, _)| *context);
        let all = conditions.chain(statements).chain(sampled.iter().copied());
        // A measure needs the resource of what it measures, and of nothing else.
        let is_measured =
            measured.iter().any(|context| context.is_in(signal) && *context != Context::Resource);
        let measured = measured.into_iter().filter(move |_| is_measured);
        all.chain(measured).filter(move |context| context.is_in(signal))
    }

    /// Visits its calls in bodies of a signal.
    pub(crate) fn for_each_call<'s>(&'s self, signal: Signal, each: &mut dyn FnMut(&'s Call)) {
        match &self.work {
            Work::Filter { conditions, .. } => {
                let conditions = conditions.iter().filter(|(context, _)| context.is_in(signal));
                conditions.for_each(|(_, condition)| calls::of_condition(condition, each));
            }
            Work::Edit(statements) => {
                let statements = statements.iter().filter(|(context, _)| context.is_in(signal));
                statements.for_each(|(_, statement)| calls::of_statement(statement, each));
            }
            Work::WatchTraces(watch) if signal == Signal::Traces => {
                watch.conditions.iter().for_each(|(.., condition)| calls::of_condition(condition, each));
            }
            Work::Measure(step) => step.for_each_call(signal, each),
            Work::WatchTraces(_) | Work::Sample(..) | Work::SampleTraces | Work::Relabel { .. } => {}
        }
        if let Some(when) = &self.when {
            calls::of_condition(when, each);
        }
    }

    /// The fields that it reads and changes in bodies of a signal.
    pub(crate) fn access(&self, signal: Signal) -> Access {
        let mut access = Access::default();
        match &self.work {
            Work::Filter { conditions, .. } => {
                let conditions = conditions.iter().filter(|(context, _)| context.is_in(signal));
                conditions.for_each(|(_, condition)| access.condition(condition));
            }
            Work::Edit(statements) => {
                let statements = statements.iter().filter(|(context, _)| context.is_in(signal));
                statements.for_each(|(_, statement)| access.statement(statement));
            }
            Work::Sample(..) => access.changes_item(),
            Work::WatchTraces(watch) if signal == Signal::Traces => {
                access.reads_item(watch.needs_attributes());
                watch.conditions.iter().for_each(|(.., condition)| access.condition(condition));
            }
            Work::SampleTraces if signal == Signal::Traces => access.reads_item(false),
            Work::Measure(step) => step.access(signal, &mut access),
            Work::WatchTraces(_) | Work::SampleTraces | Work::Relabel { .. } => {}
        }
        if let Some(when) = &self.when {
            access.condition(when);
        }
        access
    }

    /// Whether it may drop things of the contexts that it works on.
    pub(crate) fn drops(&self) -> bool {
        match self.work {
            Work::Filter { .. } | Work::Sample(..) | Work::SampleTraces => true,
            Work::WatchTraces(_) | Work::Measure(_) => false,
            Work::Edit(_) | Work::Relabel { .. } => self.on_error == ErrorMode::Drop,
        }
    }

    /// Runs the step on the current thing of a level.
    pub(crate) fn run(
        &self,
        machine: &mut Machine<'_>,
        level: usize,
        signal: Signal,
        counts: &mut StepCounts,
    ) -> Verdict {
        if let Some(when) = &self.when {
            match machine.holds(when) {
                Ok(true) => {}
                Ok(false) => return Verdict::Keep,
                Err(why) => return self.failed(counts, self.texts(), why),
            }
        }
        match &self.work {
            Work::Filter { conditions, keeps } => {
                let here = conditions.iter().enumerate();
                let here = here.filter(|(_, (context, _))| context.level() == level && context.is_in(signal));
                let mut is_met = false;
                for (number, (_, condition)) in here {
                    match machine.holds(condition) {
                        Ok(false) => continue,
                        Ok(true) => is_met = true,
                        Err(why) => match self.failed(counts, number, why) {
                            // An undecided item stays.
                            Verdict::Keep if *keeps => is_met = true,
                            Verdict::Keep => continue,
                            verdict => return verdict,
                        },
                    }
                    if is_met {
                        break;
                    }
                }
                if is_met == *keeps { Verdict::Keep } else { Verdict::Drop }
            }
            Work::Edit(statements) => {
                let here = statements.iter().enumerate();
                let here = here.filter(|(_, (context, _))| context.level() == level && context.is_in(signal));
                for (number, (_, statement)) in here {
                    if let Err(why) = machine.run(statement) {
                        let verdict = self.failed(counts, self.part(number), why);
                        if verdict != Verdict::Keep {
                            return verdict;
                        }
                    }
                }
                Verdict::Keep
            }
            Work::Sample(sample, _) => {
                let context = if signal == Signal::Traces { Context::Span } else { Context::Log };
                sample.run(machine, context).unwrap_or_else(|why| self.failed(counts, 0, why))
            }
            Work::WatchTraces(watch) => {
                let mut failed = |number, why| counts.fail(number, why);
                // A span that cannot be read says nothing.
                let _unread = match level == Context::Span.level() {
                    true => watch.span(machine, &mut failed),
                    false => watch.event(machine, &mut failed),
                };
                Verdict::Keep
            }
            Work::SampleTraces => {
                // A span that cannot be read stays.
                let trace_id = watch_step::trace_id(machine).ok().flatten();
                let is_kept = match (&mut machine.traces, trace_id) {
                    (Some(traces), Some(trace_id)) => traces.keeps(&trace_id),
                    _ => true,
                };
                if is_kept { Verdict::Keep } else { Verdict::LeaveOut }
            }
            Work::Measure(step) => {
                step.run(machine, level, |context| context.is_in(signal), counts);
                Verdict::Keep
            }
            Work::Relabel { .. } => Verdict::Keep,
        }
    }

    /// Counts a failure of the statement or condition with this number.
    fn failed(&self, counts: &mut StepCounts, number: usize, why: Failure) -> Verdict {
        counts.fail(number, why);
        match self.on_error {
            ErrorMode::Drop => Verdict::Drop,
            ErrorMode::Ignore | ErrorMode::Silent => Verdict::Keep,
        }
    }
}
