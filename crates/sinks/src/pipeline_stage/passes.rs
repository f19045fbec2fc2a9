//! Runs the passes of a pipeline over one decoded body.

use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::trace_sampling::SharedSampler;
use tidegate_arena::Window;
use tidegate_pipeline::{Format, Limits, Measurements, Outcome, Pipeline, Run, Workspace};
use tidegate_stage::PipelineMeters;

/// Facts about a body that passes need.
pub(crate) struct PassInput<'m> {
    pub(crate) format: Format,
    /// When it was received, since the Unix epoch.
    pub(crate) now_ns: u64,
    /// How long it may become.
    pub(crate) limits: Limits,
    /// Decides about traces, where steps ask.
    pub(crate) traces: Option<SharedSampler>,
    /// Sums up what steps measure.
    pub(crate) measurements: Option<&'m mut (dyn Measurements + Send)>,
    /// Nobody reads what comes out of the last pass, so it is not written.
    pub(crate) is_watched_only: bool,
}

/// A body behind all passes.
pub(crate) struct PassedBody {
    pub(crate) body: Charged<Window>,
    /// The items that are left.
    pub(crate) items: u64,
    pub(crate) is_changed: bool,
}

/// Runs all passes over `body`, which has `items` items, a bounded step at a time. What steps did is in `workspace` then, if
/// this ends without an error.
///
/// # Errors
/// When there is no memory for it in `room`.
pub(crate) async fn run_passes(
    (pipeline, meters): (&Pipeline, &PipelineMeters),
    workspace: &mut Workspace,
    PassInput { format, now_ns, limits, mut traces, mut measurements, is_watched_only }: PassInput<'_>,
    (body, items): (Charged<Window>, u64),
    room: &EgressBudget,
) -> Result<PassedBody, BudgetError> {
    // A run that was given up has left its counts.
    workspace.take_counts(|_, _| {});
    let now_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
    let mut passed = PassedBody { body, items, is_changed: false };
    let passes = pipeline.passes(format);
    for pass in 0..passes {
        let body = &passed.body;
        if !tidegate_stage::may_change(pipeline, pass, format, body).await {
            continue;
        }
        let scratch_len = Pipeline::scratch_bytes(body.len());
        let mut scratch = room.window(scratch_len).await?;
        let buffer = scratch.spare_mut().get_mut(..scratch_len).unwrap_or_default();
        let mut run = Run::new(pipeline, pass, workspace, format, body, buffer, now_ns).limited(limits);
        if let Some(traces) = &mut traces {
            run = run.with_traces(traces);
        }
        if let Some(measurements) = &mut measurements {
            run = run.with_measurements(&mut **measurements);
        }
        let outcome = tidegate_stage::run(&mut run, meters).await;
        match outcome {
            Outcome::Unchanged => {}
            Outcome::Changed { .. } if is_watched_only && pass + 1 == passes => {}
            Outcome::Empty => {
                (passed.items, passed.is_changed) = (0, true);
                break;
            }
            Outcome::Changed { len, items } => {
                let mut out = room.window(len).await?;
                tidegate_stage::write(&mut run, out.spare_mut().get_mut(..len).unwrap_or_default()).await;
                out.advance(len);
                passed = PassedBody { body: out, items, is_changed: true };
            }
        }
    }
    Ok(passed)
}
