//! The series of the pipelines of sources.

use super::{MOST_STEPS, StatusView};
use std::sync::Arc;
use tidegate_ledger::MAX_SOURCES;
use tidegate_meters::{Kind, Name, Value};
use tidegate_sinks::{StepMeters, StepTotals};

const STEP_ITEMS: Name =
    Name::plain("source_pipeline_items", "Items that reached a step of a source's pipeline");
const STEP_FILTERED: Name =
    Name::plain("source_pipeline_items_filtered", "Items that a step of a source's pipeline dropped");
const STEP_SAMPLED_OUT: Name = Name::plain(
    "source_pipeline_items_sampled_out",
    "Items that a step of a source's pipeline left out of the sample",
);
const STEP_FAILURES: Name = Name::plain(
    "source_pipeline_failures",
    "Statements and conditions of a source's pipeline that failed on an item",
);
const PIPELINE_TIME: Name = Name::seconds("source_pipeline_run", "Time that a source's pipeline took");

/// Publishes what the steps of the pipelines of sources do.
pub(super) fn publish(view: &Arc<StatusView>) {
    of_steps(view, STEP_ITEMS, |step| step.items);
    of_steps(view, STEP_FILTERED, |step| step.filtered);
    of_steps(view, STEP_SAMPLED_OUT, |step| step.sampled_out);
    let parts = Arc::downgrade(view);
    let labels = ["source", "pipeline", "step", "statement"];
    view.registry.computed(STEP_FAILURES, Kind::Counter, labels, MOST_STEPS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        let mut left = MOST_STEPS;
        each_step(&view, |source, step| {
            for (position, (_, failures)) in step.failures().enumerate().take(left) {
                left -= 1;
                let statement = (position + 1).to_string();
                emit([source, &step.pipeline, &step.step, &statement], Value::Counter(failures));
            }
        });
    });
    let parts = Arc::downgrade(view);
    view.registry.computed(PIPELINE_TIME, Kind::Counter, ["source"], MAX_SOURCES, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for pipeline in view.gate.rules().pipelines.all().iter() {
            let time = u64::try_from(pipeline.meters().time().as_nanos()).unwrap_or(u64::MAX);
            emit([pipeline.source()], Value::Counter(time));
        }
    });
}

fn of_steps(view: &Arc<StatusView>, name: Name, read: fn(StepTotals) -> u64) {
    let parts = Arc::downgrade(view);
    let labels = ["source", "pipeline", "step"];
    view.registry.computed(name, Kind::Counter, labels, MOST_STEPS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        let mut left = MOST_STEPS;
        each_step(&view, |source, step| {
            if left > 0 {
                left -= 1;
                emit([source, &step.pipeline, &step.step], Value::Counter(read(step.totals())));
            }
        });
    });
}

fn each_step(view: &StatusView, mut visit: impl FnMut(&str, &StepMeters)) {
    for pipeline in view.gate.rules().pipelines.all().iter() {
        pipeline.meters().steps().iter().for_each(|step| visit(pipeline.source(), step));
    }
}
