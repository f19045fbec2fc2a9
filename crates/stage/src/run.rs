//! A run of a pipeline, a bounded step at a time.

use crate::meters::PipelineMeters;
use tidegate_pipeline::{Outcome, Progress, Run};
use tokio::time::Instant;

/// Runs to the end, and gives others their turn between the steps. The time that it takes is entered in `meters`.
pub async fn run(run: &mut Run<'_>, meters: &PipelineMeters) -> Outcome {
    loop {
        let begun = Instant::now();
        let progress = run.advance();
        meters.took(begun.elapsed());
        match progress {
            Progress::Done(outcome) => return outcome,
            Progress::More => tokio::task::yield_now().await,
        }
    }
}

/// Writes what came out of a run to `out`, which is as long as that, and gives others their turn between the parts.
pub async fn write(run: &mut Run<'_>, out: &mut [u8]) {
    while !run.write_part(out) {
        tokio::task::yield_now().await;
    }
}
