//! Translates one version to the other, directly from the view to the output.
//!
//! Fields that the target cannot hold are left out and counted in [`Dropped`]; fields unknown to both schemas are
//! left out too. Values are copied as bits.

mod encode;
mod family;
mod to_v1;
mod to_v2;

pub use to_v1::{series_to_v1, to_v1};
pub use to_v2::{Scratch, range_to_v2, to_v2};

/// The parts that a translation left out, because the target cannot hold them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Start timestamps of samples and histograms: 1.0 has none.
    pub start_timestamps: u64,
    /// Series with neither samples nor histograms nor exemplars: 2.0 forbids them.
    pub series: u64,
    /// Metadata entries of families without a series: 2.0 attaches metadata to series.
    pub metadata: u64,
}
