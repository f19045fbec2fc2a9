//! A run of a pipeline, a bounded step at a time.

use crate::meters::PipelineMeters;
use tidegate_pipeline::{Format, Outcome, Pipeline, Progress, Run};
use tokio::time::Instant;

/// Whether a pass may change `body`, as [`Pipeline::may_change`] says it. Gives others their turn between parts of a long body.
pub async fn may_change(pipeline: &Pipeline, pass: usize, format: Format, body: &[u8]) -> bool {
    let mut search = pipeline.literal_search(pass, format, body);
    loop {
        match search.advance() {
            Some(answer) => return answer,
            None => tokio::task::yield_now().await,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};
    use tidegate_pipeline::{Definition, ErrorMode, Signal, StepDefinition, StepKind};

    /// Others have their turn while a long body is searched.
    #[test]
    fn a_search_for_literals_gives_way() {
        let kind = StepKind::Drop(vec![r#"log.severity_text == "nothing""#.to_owned()]);
        let steps = vec![StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }];
        let (pipeline, _) = Pipeline::compile(&Definition { steps }).unwrap();
        let body = vec![b'n'; 1 << 20];
        let mut search = std::pin::pin!(may_change(&pipeline, 0, Format::Otlp(Signal::Logs), &body));
        let context = &mut Context::from_waker(Waker::noop());
        let waits = std::iter::from_fn(|| search.as_mut().poll(context).is_pending().then_some(())).count();
        assert_eq!(waits, 3);
    }
}
