//! The memory that a record takes while it passes through a pipeline.

use tidegate_arena::GROWTH_STEP;
use tidegate_pipeline::{Format, Pipeline};
use tidegate_wire::zstd;

/// Fixed memory to pass a record through: windows come in whole steps, a decoder has its state, and values of one item
/// take two mebibytes at most.
pub const WORKING: usize =
    4 * GROWTH_STEP + zstd::Decoder::BYTES + (2 << 20) + Pipeline::scratch_bytes(0) + GROWTH;

/// How many bytes beyond twice its length a record or an item has behind the pipeline, to be sure to have the memory for
/// it.
pub const GROWTH: usize = 64 << 10;

/// How many times its decoded length a record of this format takes while it passes through, as long as it does not become
/// more than twice as long: as it came and decoded, the scratch buffer of about twice that length, and what comes out. A
/// second pass begins with twice the length.
#[must_use]
pub fn copies(pipeline: &Pipeline, format: Format) -> usize {
    if pipeline.passes(format) > 1 { 9 } else { 6 }
}
