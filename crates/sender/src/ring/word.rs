//! A block's owner, its kind of events, and its age, in 64 bits.

use crate::class::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) held: Held,
    /// Slot that an open block is parked in.
    pub(super) slot: u8,
    pub(super) kind: Kind,
    /// Grows with each block opened; never used twice, so a word that was seen is not another's.
    pub(super) age: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
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

impl Word {
    pub(super) const FREE: Word = Word { held: Held::Free, slot: 0, kind: Kind::Metric, age: 0 };
    pub(super) const LOST: Word = Word { held: Held::Lost, slot: 0, kind: Kind::Metric, age: 0 };

    pub(super) const fn taken(kind: Kind, age: u64) -> Word {
        Word { held: Held::Taken, slot: 0, kind, age }
    }

    pub(super) const fn open(slot: u8, kind: Kind, age: u64) -> Word {
        Word { held: Held::Open, slot, kind, age }
    }

    pub(super) const fn sealed(kind: Kind, age: u64) -> Word {
        Word { held: Held::Sealed, slot: 0, kind, age }
    }

    pub(super) const fn is_in_use(self) -> bool {
        !matches!(self.held, Held::Free | Held::Lost)
    }

    pub(super) const fn pack(self) -> u64 {
        self.age << 16 | (self.slot as u64) << 8 | (self.kind as u64) << 4 | self.held as u64
    }

    pub(super) const fn unpack(bits: u64) -> Word {
        let held = match bits & 0xf {
            0 => Held::Free,
            1 => Held::Taken,
            2 => Held::Open,
            3 => Held::Sealed,
            _ => Held::Lost,
        };
        let kind = match bits >> 4 & 0xf {
            0 => Kind::Metric,
            1 => Kind::Span,
            2 => Kind::Log,
            3 => Kind::Transaction,
            4 => Kind::ErrorSpan,
            _ => Kind::ErrorLog,
        };
        Word { held, slot: (bits >> 8) as u8, kind, age: bits >> 16 }
    }
}
