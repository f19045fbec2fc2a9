//! The small things that both versions have in common.

/// The bits of the NaN by which a series is marked as gone.
pub const STALE_NAN: u64 = 0x7ff0_0000_0000_0002;

/// One label, as bytes of the body. A checked body has UTF-8 here, and readers that need `str` check again
/// what they keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label<'a> {
    /// The name; `__name__` is the metric's.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// One float sample. Its value is kept as bits: equality is of bits, and a NaN's payload survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// The value's bits.
    pub bits: u64,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// When the counter began, in milliseconds since the Unix epoch; 0 when unknown, always so in 1.0.
    pub start_timestamp: i64,
}

impl Sample {
    /// The value.
    #[must_use]
    pub fn value(&self) -> f64 {
        f64::from_bits(self.bits)
    }

    /// Whether this is the marker that the series is gone.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.bits == STALE_NAN
    }
}

/// One exemplar; `L` iterates over its labels.
#[derive(Debug, Clone)]
pub struct Exemplar<L> {
    /// Its labels, in the sender's order.
    pub labels: L,
    /// The value's bits.
    pub bits: u64,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
}

impl<L> Exemplar<L> {
    /// The value.
    #[must_use]
    pub fn value(&self) -> f64 {
        f64::from_bits(self.bits)
    }
}

/// The metadata of a metric family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Metadata<'a> {
    /// 0 unknown, 1 counter, 2 gauge, 3 histogram, 4 gauge histogram, 5 summary, 6 info, 7 state set: the
    /// same numbers in both versions.
    pub kind: u32,
    /// The family's name: as sent in 1.0; the series' metric name in 2.0.
    pub family: &'a [u8],
    /// The help text.
    pub help: &'a [u8],
    /// The unit.
    pub unit: &'a [u8],
}

impl Metadata<'_> {
    /// Whether it says nothing about the family.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kind == 0 && self.help.is_empty() && self.unit.is_empty()
    }
}
