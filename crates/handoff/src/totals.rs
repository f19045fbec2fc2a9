//! Records, items and bytes, counted together.

/// How much: of a backlog, of a loss, or of everything before a place in a member's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Records. Before a place in a log this is also the sequence of the record there.
    pub records: u64,
    /// Items in them.
    pub items: u64,
    /// Their bytes on disk, with headers and padding.
    pub bytes: u64,
}

impl Totals {
    /// Nothing.
    pub const ZERO: Totals = Totals { records: 0, items: 0, bytes: 0 };

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Totals) -> Totals {
        Totals {
            records: self.records.saturating_add(other.records),
            items: self.items.saturating_add(other.items),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// The distance from `earlier` to here; zero where that is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Totals) -> Totals {
        Totals {
            records: self.records.saturating_sub(earlier.records),
            items: self.items.saturating_sub(earlier.items),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }

    /// One more record.
    pub(crate) const fn and_record(self, items: u32, bytes: u64) -> Totals {
        self.plus(Totals { records: 1, items: items as u64, bytes })
    }
}

/// The length of totals on disk, in bytes.
pub(crate) const TOTALS: usize = 24;

impl Totals {
    pub(crate) fn encode(self) -> [u8; TOTALS] {
        let mut bytes = [0; TOTALS];
        for (place, value) in bytes.chunks_exact_mut(8).zip([self.records, self.items, self.bytes]) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// `None` where `bytes` is too short.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Totals> {
        Some(Totals { records: u64_at(bytes, 0)?, items: u64_at(bytes, 8)?, bytes: u64_at(bytes, 16)? })
    }
}

/// A place in a member's log, and everything before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    /// The number of the segment.
    pub(crate) segment: u64,
    /// Where in it, in bytes.
    pub(crate) offset: u64,
    pub(crate) before: Totals,
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
