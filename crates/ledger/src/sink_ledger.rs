use crate::reason::Dropped;

/// Reasons that a book on disk has room for.
pub(crate) const REASONS: usize = 16;

const VERSION: u64 = 3;
/// Without items that are handed off.
const VERSION_2: u64 = 2;

/// A sink's columns since it was attached to the journal, over all restarts. The journal keeps the bytes
/// beside the sink's cursor and replaces both together, so they always tell of the same moment.
///
/// Layout, little-endian u64s: version, attached_at, replayed, delivered, passed, handed_off, then 16 counts of dropped items
/// in the order of their reasons' numbers. Version 2 had no handed_off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkLedger {
    /// Items that the journal had taken, ever, when the sink was attached: those that it will never get.
    pub attached_at: u64,
    /// Items that were sent again to this sink alone, and left the queue: delivered, passed over, handed off or dropped as any others.
    pub replayed: u64,
    /// Items that the sink's peer took.
    pub delivered: u64,
    /// Items that are not for the sink: of signals that it is not configured to take, or sent again to another one.
    pub passed: u64,
    /// Items that left the journal's queue and wait on disk for a member of the sink's ring.
    pub handed_off: u64,
    /// Items dropped, by the reason's number. Also those of reasons that only a later version knows.
    dropped: [u64; REASONS],
}

impl SinkLedger {
    /// How many bytes a book takes.
    pub const LEN: usize = 8 * (6 + REASONS);

    /// An empty book of a sink that gets what comes after the first `attached_at` items.
    pub fn new(attached_at: u64) -> Self {
        Self { attached_at, replayed: 0, delivered: 0, passed: 0, handed_off: 0, dropped: [0; REASONS] }
    }

    /// Items dropped for this reason.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.dropped[reason as usize]
    }

    /// Items dropped, whatever the reason.
    pub fn dropped_in_all(&self) -> u64 {
        self.dropped.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// Sets the items dropped for `reason` to `items` if the book has fewer. For what the journal's cursor
    /// counts itself (records that the quota took, or that cannot be read): a crash may have come between
    /// the cursor and the book.
    pub fn restore(&mut self, reason: Dropped, items: u64) {
        let count = &mut self.dropped[reason as usize];
        *count = (*count).max(items);
    }

    pub(crate) fn add_dropped(&mut self, reason: Dropped, items: u64) {
        self.dropped[reason as usize] += items;
    }

    /// So many of the items that were handed off were delivered, and so many dropped.
    pub(crate) fn settle_handed_off(&mut self, delivered: u64, dropped: &[(Dropped, u64)]) {
        let delivered = delivered.min(self.handed_off);
        self.handed_off -= delivered;
        self.delivered += delivered;
        for (reason, items) in dropped {
            // A record that was handed off twice, around a crash, is settled once.
            let items = (*items).min(self.handed_off);
            self.handed_off -= items;
            self.add_dropped(*reason, items);
        }
    }

    /// The book as the journal keeps it.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let head = [VERSION, self.attached_at, self.replayed, self.delivered, self.passed, self.handed_off];
        for (to, number) in bytes.chunks_exact_mut(8).zip(head.iter().chain(&self.dropped)) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The book that these bytes hold.
    ///
    /// # Errors
    /// When they were not written by [`to_bytes`](Self::to_bytes) of this version or of the one before.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self, UnknownVersion> {
        let (numbers, _none) = bytes.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
        let mut next = || numbers.next().unwrap_or(0);
        let version = next();
        if version != VERSION && version != VERSION_2 {
            return Err(UnknownVersion { version });
        }
        let (attached_at, replayed, delivered, passed) = (next(), next(), next(), next());
        let handed_off = if version == VERSION_2 { 0 } else { next() };
        let dropped = std::array::from_fn(|_| next());
        Ok(Self { attached_at, replayed, delivered, passed, handed_off, dropped })
    }
}

/// A sink's book could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "reading a sink's book: it has version {version}, and this program reads version {VERSION}; \
     start the version that wrote it, or remove the sink's cursor to attach it anew"
)]
pub struct UnknownVersion {
    /// The version that the bytes claim.
    pub version: u64,
}
