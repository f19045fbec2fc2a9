//! How long a record and its items may become in a pipeline, for the sink to be sure to deliver them.
//!
//! The plan accepts a record of `raw` bytes with a largest item of `item` bytes only if the sink can deliver one of `2 raw + GROWTH`
//! bytes whose largest item has `2 item + GROWTH` bytes: with `most` bytes of memory beside its fixed buffers, and
//! `factor` copies of an item,
//!
//! ```text
//! (2 raw + GROWTH) + factor × (2 item + GROWTH) ≤ most
//! ```
//!
//! The pipeline knows `raw` but not `item`. So it lets a body become `body` bytes long, at least `2 raw + GROWTH`, and the largest
//! item as long as there is memory for beside that: `(most − body) / factor`, which is at least `2 item + GROWTH`.
//! Most records are far smaller than the largest that is accepted, so both are usually much longer than that.

use super::SinkPipeline;
use tidegate_pipeline::{Limits, Pipeline};

/// The memory of a sink for records of one protocol and signal that come out of its pipeline, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkCapacity {
    /// For a record in its pipeline, beside [`SinkPipeline::WORKING`].
    pub staging: usize,
    /// For a record behind it, beside the sink's fixed buffers.
    pub most: usize,
    /// The copies of an item that the sink makes.
    pub factor: usize,
    /// The longest item with what encloses it, however short its record is.
    pub item: usize,
}

impl SinkCapacity {
    /// Of a sink that can hold anything.
    pub const UNLIMITED: SinkCapacity =
        SinkCapacity { staging: usize::MAX, most: usize::MAX, factor: 0, item: usize::MAX };

    /// The limits of each of `passes` passes over a record of `kept` bytes as it is in the journal, and `raw` bytes decoded.
    #[must_use]
    pub fn limits(&self, kept: usize, raw: usize, passes: usize) -> Limits {
        let twice = |len: usize| len.saturating_mul(2).saturating_add(SinkPipeline::GROWTH);
        let half = self.most / 2;
        let in_pipeline = kept.saturating_add(raw).saturating_add(Pipeline::scratch_bytes(raw));
        // A record that becomes much longer in the first pass would need much more memory in the second.
        let is_small = passes == 1 && twice(raw).saturating_mul(self.factor) <= half;
        let body = match is_small {
            true => twice(raw).max(half.min(self.staging.saturating_sub(in_pipeline))),
            false => twice(raw),
        };
        let beside = self.most.saturating_sub(body).checked_div(self.factor).unwrap_or(usize::MAX);
        let item = beside.min(self.item);
        // The largest item that the record may have had.
        let before = raw.min(item.saturating_sub(SinkPipeline::GROWTH) / 2);
        Limits { body, growth: (item - before) / passes.max(1) }
    }
}
