//! Counts what the steps of a pipeline do, for `/status` and `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_pipeline::{FailureReason, StepCounts};

/// The meters of a source's or sink's pipeline since that was configured with it. Clones share them; the source or sink writes,
/// the pages read.
#[derive(Debug, Clone)]
pub struct PipelineMeters(Arc<State>);

#[derive(Debug)]
struct State {
    steps: Vec<StepMeters>,
    nanoseconds: AtomicU64,
}

/// The meters of a step.
#[derive(Debug)]
pub struct StepMeters {
    /// The pipeline that it is in; empty for a setting of the sink itself.
    pub pipeline: String,
    /// Its name in the pipeline, or the setting of the sink.
    pub step: String,
    statements: Vec<StatementMeters>,
    items: AtomicU64,
    filtered: AtomicU64,
    sampled_out: AtomicU64,
}

/// The meters of a statement or condition.
#[derive(Debug)]
struct StatementMeters {
    text: String,
    failures: AtomicU64,
    /// Why the first of the failures happened that are not logged yet. Failures are added and taken out under its lock, so a reason belongs
    /// to those that it is logged with.
    reason: Mutex<Option<FailureReason>>,
}

/// The numbers of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepTotals {
    /// Items that reached the step.
    pub items: u64,
    /// Items that it dropped.
    pub filtered: u64,
    /// Items that it left out of the sample.
    pub sampled_out: u64,
    /// Statements and conditions that failed on an item.
    pub failures: u64,
}

/// Statements and conditions that failed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FailedStatements {
    /// The first of them.
    pub(crate) first: Vec<FailedStatement>,
    /// How many others there are.
    pub(crate) more: usize,
}

/// A statement or condition that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FailedStatement {
    /// Its step.
    pub(crate) step: usize,
    /// Its position in the step, as metrics have it.
    pub(crate) statement: usize,
    /// The items that it failed on.
    pub(crate) failures: u64,
    /// Why it failed on the first of them.
    pub(crate) reason: Option<FailureReason>,
}

impl PipelineMeters {
    /// How many failed statements are told of one by one.
    const FIRST: usize = 5;

    /// Meters of these steps.
    pub fn new(steps: Vec<StepMeters>) -> PipelineMeters {
        PipelineMeters(Arc::new(State { steps, nanoseconds: AtomicU64::new(0) }))
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[StepMeters] {
        &self.0.steps
    }

    /// How long the steps took.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.0.nanoseconds.load(Relaxed))
    }

    /// The failures of each statement of all steps until now. Reasons that are known are forgotten.
    pub(crate) fn failures(&self) -> Vec<u64> {
        let statements = self.steps().iter().flat_map(|step| &step.statements);
        statements.map(|statement| statement.take().0).collect()
    }

    /// The statements that failed since the failures were those of `before`, which becomes those of now. Steps of `silent` are
    /// left out.
    pub(crate) fn failed_since(&self, before: &mut [u64], silent: &[usize]) -> FailedStatements {
        let mut failed = FailedStatements::default();
        let mut before = before.iter_mut();
        for (position, step) in self.steps().iter().enumerate() {
            for ((statement, meters), before) in step.statements.iter().enumerate().zip(&mut before) {
                let (now, reason) = meters.take();
                let failures = now.saturating_sub(std::mem::replace(before, now));
                if failures == 0 || silent.contains(&position) {
                    continue;
                }
                if failed.first.len() < Self::FIRST {
                    let statement = statement + 1;
                    failed.first.push(FailedStatement { step: position, statement, failures, reason });
                } else {
                    failed.more += 1;
                }
            }
        }
        failed
    }

    /// Adds to the time that the steps took.
    pub fn took(&self, time: Duration) {
        self.0.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Adds what the step did to one body.
    pub fn add(&self, step: usize, counts: &StepCounts) {
        let Some(step) = self.0.steps.get(step) else { return };
        step.items.fetch_add(counts.items, Relaxed);
        step.filtered.fetch_add(counts.filtered, Relaxed);
        step.sampled_out.fetch_add(counts.sampled_out, Relaxed);
        let reasons = counts.reasons.iter().copied().chain(std::iter::repeat(None));
        for ((statement, failures), reason) in step.statements.iter().zip(&counts.failures).zip(reasons) {
            if *failures > 0 {
                statement.add(*failures, reason);
            }
        }
    }
}

impl StatementMeters {
    fn new(text: String) -> StatementMeters {
        StatementMeters { text, failures: AtomicU64::new(0), reason: Mutex::new(None) }
    }

    /// Adds failures; the first of them has this reason.
    fn add(&self, failures: u64, reason: Option<FailureReason>) {
        let mut first = self.reason();
        *first = first.or(reason);
        self.failures.fetch_add(failures, Relaxed);
    }

    /// All failures, and the reason of the first one since the last call.
    fn take(&self) -> (u64, Option<FailureReason>) {
        let mut first = self.reason();
        (self.failures.load(Relaxed), first.take())
    }

    fn reason(&self) -> MutexGuard<'_, Option<FailureReason>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StepMeters {
    /// Meters of a step with these statements or conditions.
    pub fn new(pipeline: String, step: String, statements: Vec<String>) -> StepMeters {
        StepMeters {
            pipeline,
            step,
            statements: statements.into_iter().map(StatementMeters::new).collect(),
            items: AtomicU64::new(0),
            filtered: AtomicU64::new(0),
            sampled_out: AtomicU64::new(0),
        }
    }

    /// The numbers now.
    pub fn totals(&self) -> StepTotals {
        StepTotals {
            items: self.items.load(Relaxed),
            filtered: self.filtered.load(Relaxed),
            sampled_out: self.sampled_out.load(Relaxed),
            failures: self.failures().map(|(_, failures)| failures).sum(),
        }
    }

    /// The text of each statement and condition, and how many items it failed on.
    pub fn failures(&self) -> impl Iterator<Item = (&str, u64)> {
        self.statements.iter().map(|statement| (&*statement.text, statement.failures.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each failure is told of once, and at most five statements one by one.
    #[test]
    fn tells_of_new_failures_only() {
        let step = |name: &str, statements: usize| {
            StepMeters::new(String::new(), name.to_owned(), vec!["\"secret\"".to_owned(); statements])
        };
        let meters = PipelineMeters::new(vec![step("1", 2), step("silent", 1), step("3", 7)]);
        let mut before = meters.failures();
        assert_eq!(meters.failed_since(&mut before, &[1]), FailedStatements::default());
        let failures = |failures: Vec<u64>| StepCounts { failures, ..StepCounts::default() };
        meters.add(0, &failures(vec![0, 3]));
        meters.add(1, &failures(vec![9]));
        let one = FailedStatement { step: 0, statement: 2, failures: 3, reason: None };
        assert_eq!(meters.failed_since(&mut before, &[1]), FailedStatements { first: vec![one], more: 0 });
        assert_eq!(meters.failed_since(&mut before, &[1]), FailedStatements::default());
        meters.add(2, &failures(vec![1; 7]));
        let failed = meters.failed_since(&mut before, &[1]);
        let statements: Vec<_> = failed.first.iter().map(|it| (it.step, it.statement, it.failures)).collect();
        assert_eq!(statements, [(2, 1, 1), (2, 2, 1), (2, 3, 1), (2, 4, 1), (2, 5, 1)]);
        assert_eq!(failed.more, 2);
    }
}
