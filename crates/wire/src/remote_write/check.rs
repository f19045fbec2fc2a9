//! The walk that decides whether a body is accepted, and counts what is in it.

mod histogram;
mod labels;
mod sample;
mod v1;
mod v2;

pub(super) use v1::check as v1;
pub(super) use v2::check as v2;

/// What a body holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Series, those without samples included.
    pub series: u64,
    /// Float samples, stale markers included.
    pub samples: u64,
    /// Native histograms.
    pub histograms: u64,
    /// Exemplars.
    pub exemplars: u64,
    /// Metadata: entries in 1.0, series that have it in 2.0.
    pub metadata: u64,
    /// Symbols of a 2.0 body.
    pub symbols: u64,
}

/// What a body may hold at most, and what a series must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Labels of one series.
    pub labels: usize,
    /// Bytes of a label's name.
    pub name_bytes: usize,
    /// Bytes of a label's value.
    pub value_bytes: usize,
    /// Symbols of a 2.0 request, each of which takes 4 bytes of scratch.
    pub symbols: usize,
    /// Whether every series must have a `__name__`.
    pub require_metric_name: bool,
}

impl Default for Limits {
    /// Far beyond what real senders need: 1,024 labels, names of 4 KiB, values of 64 KiB, 4 Mi symbols.
    fn default() -> Self {
        Self {
            labels: 1024,
            name_bytes: 4 << 10,
            value_bytes: 64 << 10,
            symbols: 4 << 20,
            require_metric_name: true,
        }
    }
}
