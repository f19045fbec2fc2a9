//! The pipelines of sources, in numbers.

use super::PipelineStep;
use serde::Serialize;

/// The pipeline that a source's items pass before the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourcePipeline {
    /// The source's name.
    pub source: String,
    /// The steps, in order.
    pub steps: Vec<PipelineStep>,
}
