//! Logs the statements of a pipeline that failed, at a bounded rate.

use crate::meters::{FailedStatement, FailedStatements, PipelineMeters};
use std::time::Duration;
use tokio::time::Instant;

/// How often failures of statements are logged; all of them are counted.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The source or sink that a pipeline belongs to.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'a> {
    /// The source of this name.
    Source(&'a str),
    /// The sink of this name.
    Sink(&'a str),
}

/// What was logged of a pipeline's failures, and when.
#[derive(Debug)]
pub struct FailureLog {
    logged: Option<Instant>,
    /// The failures of each statement when they were logged last.
    failures: Vec<u64>,
}

impl FailureLog {
    /// Logs what fails from now on.
    #[must_use]
    pub fn new(meters: &PipelineMeters) -> FailureLog {
        FailureLog { logged: None, failures: meters.failures() }
    }

    /// Logs some of the statements that failed since the last time, by their numbers: their texts may hold secrets. At most
    /// once in ten seconds; the steps of `silent` are left out.
    pub fn log(&mut self, owner: Owner<'_>, meters: &PipelineMeters, silent: &[usize]) {
        if self.logged.is_some_and(|logged| logged.elapsed() < LOG_EVERY) {
            return;
        }
        self.logged = Some(Instant::now());
        let (source, sink) = match owner {
            Owner::Source(name) => (Some(name), None),
            Owner::Sink(name) => (None, Some(name)),
        };
        let FailedStatements { first, more } = meters.failed_since(&mut self.failures, silent);
        for FailedStatement { step, statement, failures } in first {
            let Some(step) = meters.steps().get(step) else { continue };
            tracing::warn!(
                source,
                sink,
                pipeline = step.pipeline,
                step = step.step,
                statement,
                failures,
                "a statement of the pipeline failed on items"
            );
        }
        if more > 0 {
            tracing::warn!(source, sink, "{more} more statements of the pipeline failed on items");
        }
    }
}
