//! Steps that run together over one body.

use crate::ErrorMode;
use crate::access::Access;
use crate::machine::Machine;
use crate::ottl::field::Context;
use crate::ottl::program::{Condition, Statement};
use crate::required::Required;
use crate::sample_step::SampleStep;
use tidegate_wire::otlp::Signal;

/// How many levels contexts have: resource, scope, item, and what is in an item.
pub(crate) const LEVELS: usize = 4;

/// A compiled step.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) work: Work,
    pub(crate) when: Option<Condition>,
    pub(crate) on_error: ErrorMode,
    /// Whether failures of all its statements are counted as one thing's.
    pub(crate) is_one: bool,
}

/// What a step does with items.
#[derive(Debug)]
pub(crate) enum Work {
    /// Drops what meets a condition, or keeps only that.
    Filter { conditions: Vec<(Context, Condition)>, keeps: bool },
    /// Runs statements, each on the things of its context.
    Edit(Vec<(Context, Statement)>),
    /// Keeps a part of the things of these contexts: spans, log records.
    Sample(Box<SampleStep>, Vec<Context>),
    /// So many rules over the series of remote write, and nothing that OTLP bodies need.
    Relabel { rules: usize },
}

/// Steps that one walk over a body runs.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// The steps that work on each level, in order.
    pub(crate) levels: [Vec<usize>; LEVELS],
    /// All of its steps, in order.
    pub(crate) steps: Vec<usize>,
    pub(crate) access: Access,
    /// Whether a level's own fields are changed from a level below.
    pub(crate) late: [bool; LEVELS],
    /// What bodies have that it changes, where that is known.
    pub(crate) required: Option<Required>,
}

/// What becomes of the thing that a step worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Drop,
    LeaveOut,
}

impl Context {
    /// Its level.
    pub(crate) const fn level(self) -> usize {
        match self {
            Context::Resource => 0,
            Context::Scope => 1,
            Context::Span | Context::Log | Context::Metric => 2,
            Context::SpanEvent | Context::DataPoint => 3,
        }
    }

    /// Whether each `other` is in one of these, or is one.
    pub(crate) const fn encloses(self, other: Context) -> bool {
        match self {
            Context::Resource => true,
            Context::Scope => !matches!(other, Context::Resource),
            Context::Span => matches!(other, Context::Span | Context::SpanEvent),
            Context::Metric => matches!(other, Context::Metric | Context::DataPoint),
            Context::Log => matches!(other, Context::Log),
            Context::SpanEvent => matches!(other, Context::SpanEvent),
            Context::DataPoint => matches!(other, Context::DataPoint),
        }
    }

    /// Whether bodies of a signal have it.
    pub(crate) const fn is_in(self, signal: Signal) -> bool {
        match self {
            Context::Resource | Context::Scope => !matches!(signal, Signal::Profiles),
            Context::Span | Context::SpanEvent => matches!(signal, Signal::Traces),
            Context::Metric | Context::DataPoint => matches!(signal, Signal::Metrics),
            Context::Log => matches!(signal, Signal::Logs),
        }
    }
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
            Work::Sample(..) => 1,
            Work::Relabel { rules } => *rules,
        }
    }

    /// The contexts that it works on.
    pub(crate) fn contexts(&self, signal: Signal) -> impl Iterator<Item = Context> {
        let (conditions, statements, sampled) = match &self.work {
            Work::Filter { conditions, .. } => (conditions.as_slice(), [].as_slice(), [].as_slice()),
            Work::Edit(statements) => ([].as_slice(), statements.as_slice(), [].as_slice()),
            Work::Sample(_, contexts) => ([].as_slice(), [].as_slice(), contexts.as_slice()),
            Work::Relabel { .. } => ([].as_slice(), [].as_slice(), [].as_slice()),
        };
        let conditions = conditions.iter().map(|(context, _)| *context);
        let statements = statements.iter().map(|(context, _)| *context);
        let all = conditions.chain(statements).chain(sampled.iter().copied());
        all.filter(move |context| context.is_in(signal))
    }

    /// What it reads and changes in bodies of a signal.
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
            Work::Relabel { .. } => {}
        }
        if let Some(when) = &self.when {
            access.condition(when);
        }
        access
    }

    /// Runs the step on the current thing of a level.
    pub(crate) fn run(
        &self,
        machine: &mut Machine<'_>,
        level: usize,
        signal: Signal,
        failures: &mut [u64],
    ) -> Verdict {
        if let Some(when) = &self.when {
            match machine.holds(when) {
                Ok(true) => {}
                Ok(false) => return Verdict::Keep,
                Err(_) => return self.failed(failures, self.texts()),
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
                        Err(_) => match self.failed(failures, number) {
                            // What cannot be decided stays.
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
                    if machine.run(statement).is_err() {
                        let verdict = self.failed(failures, self.part(number));
                        if verdict != Verdict::Keep {
                            return verdict;
                        }
                    }
                }
                Verdict::Keep
            }
            Work::Sample(sample, _) => {
                let context = if signal == Signal::Traces { Context::Span } else { Context::Log };
                sample.run(machine, context).unwrap_or_else(|_| self.failed(failures, 0))
            }
            Work::Relabel { .. } => Verdict::Keep,
        }
    }

    /// Counts a failure of the statement or condition with this number.
    fn failed(&self, failures: &mut [u64], number: usize) -> Verdict {
        if let Some(count) = failures.get_mut(number) {
            *count += 1;
        }
        match self.on_error {
            ErrorMode::Drop => Verdict::Drop,
            ErrorMode::Ignore | ErrorMode::Silent => Verdict::Keep,
        }
    }
}

/// The passes of the steps over bodies of a signal: as few as give the same result as one step after the other.
pub(crate) fn passes(steps: &[Step], signal: Signal) -> Vec<Pass> {
    let mut passes: Vec<Pass> = Vec::new();
    // The lowest level of the last pass.
    let mut lowest = 0;
    for (number, step) in steps.iter().enumerate() {
        let levels = step.contexts(signal).map(Context::level);
        let Some((first, last)) = levels.fold(None, |range: Option<(usize, usize)>, level| {
            Some(range.map_or((level, level), |(first, last)| (first.min(level), last.max(level))))
        }) else {
            continue;
        };
        let access = step.access(signal);
        let late = std::array::from_fn(|level| level < last && access.writes_level(level));
        match passes.last_mut() {
            Some(pass) if lowest <= first && can_join(pass, &access, &late) => {
                pass.add(number, step, signal, access, late)
            }
            _ => {
                let mut pass = Pass::default();
                pass.add(number, step, signal, access, late);
                passes.push(pass);
                lowest = 0;
            }
        }
        lowest = lowest.max(last);
    }
    passes
}

/// Whether a step may run in one walk with the steps before: no level that one of them changes from below is of interest
/// to the other.
fn can_join(pass: &Pass, access: &Access, late: &[bool; LEVELS]) -> bool {
    let clashes = |level: usize| {
        late[level] && pass.access.touches_level(level) || pass.late[level] && access.touches_level(level)
    };
    !(0..LEVELS).any(clashes)
}

impl Pass {
    fn add(&mut self, number: usize, step: &Step, signal: Signal, access: Access, late: [bool; LEVELS]) {
        for context in step.contexts(signal) {
            if let Some(steps) = self.levels.get_mut(context.level())
                && steps.last() != Some(&number)
            {
                steps.push(number);
            }
        }
        self.steps.push(number);
        self.access.add(&access);
        for (all, one) in self.late.iter_mut().zip(late) {
            *all |= one;
        }
    }
}
