//! Counts what the steps of a sink's pipeline do, for `/status` and `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_pipeline::StepCounts;

/// The meters of a sink's pipeline since the sink was configured with it. Clones share them; the sink writes, the pages
/// read.
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

impl PipelineMeters {
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

    pub(crate) fn took(&self, time: Duration) {
        self.0.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Adds what the step did to one body.
    pub(crate) fn add(&self, step: usize, counts: &StepCounts) {
        let Some(step) = self.0.steps.get(step) else { return };
        step.items.fetch_add(counts.items, Relaxed);
        step.filtered.fetch_add(counts.filtered, Relaxed);
        step.sampled_out.fetch_add(counts.sampled_out, Relaxed);
        for (statement, failures) in step.statements.iter().zip(&counts.failures) {
            statement.failures.fetch_add(*failures, Relaxed);
        }
    }
}

impl StepMeters {
    /// Meters of a step with these statements or conditions.
    pub fn new(pipeline: String, step: String, statements: Vec<String>) -> StepMeters {
        let statements = statements.into_iter();
        StepMeters {
            pipeline,
            step,
            statements: statements
                .map(|text| StatementMeters { text, failures: AtomicU64::new(0) })
                .collect(),
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
