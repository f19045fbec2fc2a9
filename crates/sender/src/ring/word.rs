//! A block's owner, its kind of events, and its age, in 64 bits.

use crate::class::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockWord {
    pub(super) held: BlockOwner,
    /// Slot that an open block is parked in.
    pub(super) slot: u8,
    pub(super) kind: Kind,
    /// Grows with each block opened; never used twice, so a word that was seen is not another's.
    pub(super) age: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockOwner {
    Free,
    /// in the hands of a producer that opens it, or of the sending thread, or behind the head of a chain
    Taken,
    /// parked in a slot, with room for more; or taken out of it for one event
    Open,
    /// waiting for the sending thread
    Sealed,
    /// held by a thread that did not live through a fork
    Lost,
}

impl BlockWord {
    pub(super) const FREE: BlockWord =
        BlockWord { held: BlockOwner::Free, slot: 0, kind: Kind::Metric, age: 0 };
    pub(super) const LOST: BlockWord =
        BlockWord { held: BlockOwner::Lost, slot: 0, kind: Kind::Metric, age: 0 };

    pub(super) const fn taken(kind: Kind, age: u64) -> BlockWord {
        BlockWord { held: BlockOwner::Taken, slot: 0, kind, age }
    }

    pub(super) const fn open(slot: u8, kind: Kind, age: u64) -> BlockWord {
        BlockWord { held: BlockOwner::Open, slot, kind, age }
    }

    pub(super) const fn sealed(kind: Kind, age: u64) -> BlockWord {
        BlockWord { held: BlockOwner::Sealed, slot: 0, kind, age }
    }

    pub(super) const fn is_in_use(self) -> bool {
        !matches!(self.held, BlockOwner::Free | BlockOwner::Lost)
    }

    pub(super) const fn pack(self) -> u64 {
        self.age << 16 | (self.slot as u64) << 8 | (self.kind as u64) << 4 | self.held as u64
    }

    pub(super) const fn unpack(bits: u64) -> BlockWord {
        let held = match bits & 0xf {
            0 => BlockOwner::Free,
            1 => BlockOwner::Taken,
            2 => BlockOwner::Open,
            3 => BlockOwner::Sealed,
            _ => BlockOwner::Lost,
        };
        let kind = match bits >> 4 & 0xf {
            0 => Kind::Metric,
            1 => Kind::Span,
            2 => Kind::Log,
            3 => Kind::Transaction,
            4 => Kind::ErrorSpan,
            _ => Kind::ErrorLog,
        };
        BlockWord { held, slot: (bits >> 8) as u8, kind, age: bits >> 16 }
    }
}
