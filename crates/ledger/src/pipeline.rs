//! Items that passed a source's pipeline on their way to the journal.

/// Counts of a source's pipeline for one request. The items that are left are in the request's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipelineItems {
    /// Items that reached the pipeline.
    pub received: u32,
    /// Items that its steps dropped.
    pub filtered: u32,
    /// Items that its steps left out of a sample.
    pub sampled_out: u32,
}

impl PipelineItems {
    /// Those that the pipeline took out.
    pub(crate) fn dropped(self) -> u64 {
        u64::from(self.filtered) + u64::from(self.sampled_out)
    }
}

/// The columns of a source's pipeline, since the process started. The items that are left are counted where they are
/// entered as accepted, the others by the pipeline itself: so the equation compares two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipelineBook {
    pub(crate) received: u64,
    pub(crate) accepted: u64,
    pub(crate) filtered: u64,
    pub(crate) sampled_out: u64,
}

impl PipelineBook {
    /// Enters an accepted request with `accepted` items left.
    pub(crate) fn enter(&mut self, items: PipelineItems, accepted: u64) {
        self.received += u64::from(items.received);
        self.accepted += accepted;
        self.filtered += u64::from(items.filtered);
        self.sampled_out += u64::from(items.sampled_out);
    }

    /// Items that it took out.
    pub(crate) const fn dropped(&self) -> u64 {
        self.filtered + self.sampled_out
    }
}
