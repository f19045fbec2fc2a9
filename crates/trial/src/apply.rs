//! A whole run of a pipeline over one body, with memory of its own.

use tidegate_pipeline::{Format, Outcome, Pipeline, Progress, Run};

/// Outcome for a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The new body; `None` if it did not change, empty if nothing is left.
    pub body: Option<Vec<u8>>,
    /// Counts of each step.
    pub steps: Vec<StepTotals>,
}

/// Counts of a step for a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepTotals {
    /// Items that it dropped, sampling included.
    pub dropped: u64,
    /// Failures, by statement or condition.
    pub failures: Vec<u64>,
}

impl StepTotals {
    /// Adds what the same step did with another body.
    pub fn add(&mut self, other: &StepTotals) {
        self.dropped += other.dropped;
        self.failures.resize(other.failures.len(), 0);
        self.failures.iter_mut().zip(&other.failures).for_each(|(total, count)| *total += count);
    }
}

impl Applied {
    /// All items that were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.steps.iter().map(|step| step.dropped).sum()
    }
}

/// The output of a pipeline is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the steps make more than {most} bytes of these items")]
pub struct TooLong {
    /// The most bytes.
    pub most: usize,
}

/// Applies all passes of `pipeline` to `body`, at `now_ns` nanoseconds since the Unix epoch.
#[must_use]
pub fn apply(pipeline: &Pipeline, format: Format, body: &[u8], now_ns: i64) -> Applied {
    let applied = apply_within(pipeline, format, body, now_ns, usize::MAX);
    applied.unwrap_or(Applied { body: None, steps: Vec::new() })
}

/// As [`apply`], where no body may become longer than `most` bytes: each pass may multiply the length.
///
/// # Errors
/// [`TooLong`].
pub fn apply_within(
    pipeline: &Pipeline,
    format: Format,
    body: &[u8],
    now_ns: i64,
    most: usize,
) -> Result<Applied, TooLong> {
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
            Outcome::Changed { len, .. } if len > most => return Err(TooLong { most }),
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
    Ok(Applied { body: current, steps })
}
