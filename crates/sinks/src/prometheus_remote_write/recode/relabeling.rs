//! Relabels the series that OTLP was translated to. Relabeling has labels to work on only then.

use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::pipeline_stage::{PassInput, PassedBody, SinkPipeline, run_passes};
use tidegate_arena::Window;
use tidegate_pipeline::{Format, Limits, StepCounts, Workspace};
use tidegate_wire::remote_write::Version;

/// The relabeling steps of a sink's pipeline.
pub(crate) struct Relabeling {
    pipeline: SinkPipeline,
    workspace: Workspace,
    /// Counts of the steps for the last piece. They become final once it is settled, since a piece may be made again.
    pending: Vec<StepCounts>,
}

impl Relabeling {
    /// Those of `pipeline`, if it has some.
    pub(crate) fn new(pipeline: &SinkPipeline) -> Option<Relabeling> {
        let versions = [Version::V1, Version::V2];
        let applies =
            versions.iter().any(|version| pipeline.pipeline.passes(Format::RemoteWrite(*version)) > 0);
        applies.then(|| Relabeling {
            workspace: pipeline.pipeline.workspace(),
            pending: vec![StepCounts::default(); pipeline.pipeline.steps()],
            pipeline: pipeline.clone(),
        })
    }

    /// Forgets what the steps did to a piece that could not be made after that.
    pub(super) fn forget(&mut self) {
        self.pending.iter_mut().for_each(StepCounts::clear);
    }

    /// Relabels `body`, which has `entries` samples, histograms and exemplars. Returns how many are left.
    pub(crate) async fn apply(
        &mut self,
        body: Charged<Window>,
        version: Version,
        entries: u64,
        room: &EgressBudget,
    ) -> Result<(Charged<Window>, u64), BudgetError> {
        let Relabeling { pipeline, workspace, pending } = self;
        // Of a piece that cannot be cut this much is planned for.
        let most = body.len().saturating_mul(2).saturating_add(SinkPipeline::GROWTH);
        let limits = Limits { body: most, ..Limits::NONE };
        let from = PassInput {
            format: Format::RemoteWrite(version),
            now_ns: 0,
            limits,
            traces: None,
            measurements: None,
            is_watched_only: false,
        };
        let PassedBody { mut body, items, is_changed } = Box::pin(run_passes(
            (&pipeline.pipeline, &pipeline.meters),
            workspace,
            from,
            (body, entries),
            room,
        ))
        .await?;
        // Metadata is an item of a body of remote write, but none of the entries.
        let mut filtered = 0_u64;
        workspace.take_counts(|step, counts| {
            filtered = filtered.saturating_add(counts.filtered);
            if let Some(pending) = pending.get_mut(step) {
                pending.clone_from(counts);
            }
        });
        if items == 0 && is_changed {
            body.clear();
        }
        Ok((body, entries.saturating_sub(filtered)))
    }

    /// Enters what the steps did to the last piece in the meters.
    pub(crate) fn keep(&mut self) {
        for (step, counts) in self.pending.iter_mut().enumerate() {
            self.pipeline.meters.add(step, counts);
            counts.clear();
        }
    }
}

/// The share of `items` that `some` of `all` are; all of them where there are none.
pub(crate) fn share_of(items: u64, some: u128, all: u128) -> u64 {
    let share = (u128::from(items) * some).checked_div(all).and_then(|share| u64::try_from(share).ok());
    share.unwrap_or(items)
}
