//! A whole run of a pipeline over one body, with memory of its own.

use tidegate_pipeline::{Format, Outcome, Pipeline, Progress, Run};

/// What became of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The new body; `None` if it did not change, empty if nothing is left.
    pub body: Option<Vec<u8>>,
    /// What each step did.
    pub steps: Vec<StepTotals>,
}

/// What a step did with a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepTotals {
    /// Items that it dropped, sampling included.
    pub dropped: u64,
    /// Failures, by statement or condition.
    pub failures: Vec<u64>,
}

impl Applied {
    /// All items that were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.steps.iter().map(|step| step.dropped).sum()
    }
}

/// Applies all passes of `pipeline` to `body`, at `now_ns` nanoseconds since the Unix epoch.
#[must_use]
pub fn apply(pipeline: &Pipeline, format: Format, body: &[u8], now_ns: i64) -> Applied {
    let mut workspace = pipeline.workspace();
    let mut current: Option<Vec<u8>> = None;
    for pass in 0..pipeline.passes(format) {
        let input = current.as_deref().unwrap_or(body);
        let mut scratch = vec![0; Pipeline::scratch_bytes(input.len())];
        let mut run = Run::new(pipeline, pass, &mut workspace, format, input, &mut scratch, now_ns);
        let outcome = loop {
            if let Progress::Done(outcome) = run.advance() {
                break outcome;
            }
        };
        match outcome {
            Outcome::Unchanged => {}
            Outcome::Empty => {
                current = Some(Vec::new());
                break;
            }
            Outcome::Changed { len, .. } => {
                let mut out = vec![0; len];
                run.write(&mut out);
                current = Some(out);
            }
        }
    }
    let mut steps = Vec::with_capacity(pipeline.steps());
    workspace.take_counts(|_, counts| {
        let dropped = counts.filtered + counts.sampled_out;
        steps.push(StepTotals { dropped, failures: counts.failures.clone() });
    });
    Applied { body: current, steps }
}
