//! The pipelines of sources, one after the other.

use super::sinks::pipeline_step;
use super::{Block, Section};
use crate::status::SourcePipeline;

/// Nothing where there are none.
pub(super) fn section(pipelines: &[SourcePipeline]) -> Option<Section> {
    if pipelines.is_empty() {
        return None;
    }
    let of = |pipeline: &SourcePipeline| {
        let steps = pipeline.steps.iter().map(|step| ("pipeline step", pipeline_step(step)));
        [Block::About(pipeline.source.clone()), Block::Facts(steps.collect())]
    };
    Some(Section { title: "Sources", blocks: pipelines.iter().flat_map(of).collect() })
}
