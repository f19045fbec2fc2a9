//! The symbols of a 2.0 body that what is left of it refers to. The others are written empty, so that a label or series that
//! rules took away is gone from the table, too. Numbers of symbols stay as they are.

use super::fields::{Field, field, varint};
use super::symbols::{SYMBOLS, TAG, references};
use tidegate_wire::remote_write::v2;

/// Fields between two looks at the clock of others.
const STEP: usize = 4_096;
/// An empty symbol.
pub(super) const EMPTY: [u8; 2] = [TAG, 0];

/// A bit for each symbol, and the way through those without one.
#[derive(Debug, Default)]
pub(super) struct Used<'a> {
    bits: &'a mut [u8],
    count: usize,
    /// The end of the last symbol.
    end: usize,
    /// The bytes by which the body gets shorter.
    saved: usize,
    measured: bool,
    walk: Walk,
}

/// A place between two fields of the body.
#[derive(Debug, Default)]
struct Walk {
    at: usize,
    /// How many symbols are before it, the one there included if it is found.
    number: usize,
    /// The end of the symbol there, if that is to be written empty.
    blank: Option<usize>,
}

/// Use of the bytes at a place of the body.
pub(super) enum Part {
    /// So many are kept, or more.
    Keep(usize),
    /// So many are a symbol that is written empty.
    Blank(usize),
    /// That is not found yet.
    Later,
}

impl<'a> Used<'a> {
    /// None of `count` symbols, which end at byte `end`, but the first where it is `empty` anyway. `bits` has 1 bit for each; those
    /// that find no room count as used.
    pub(super) fn new(bits: &'a mut [u8], count: usize, end: usize, empty: bool) -> Used<'a> {
        bits.fill(0);
        let mut used = Used { bits, count, end, saved: 0, measured: false, walk: Walk::default() };
        if empty {
            used.mark(0);
        }
        used
    }

    /// The bytes of a bit for each symbol.
    pub(super) fn bytes(count: usize) -> usize {
        count.div_ceil(8)
    }

    /// Marks the symbol with this number.
    #[inline(always)]
    pub(super) fn mark(&mut self, symbol: u32) {
        let number = symbol as usize;
        if number < self.count
            && let Some(bits) = self.bits.get_mut(number / 8)
        {
            *bits |= 1 << (number % 8);
        }
    }

    /// Marks symbols whose numbers are in `bytes`.
    pub(super) fn mark_all(&mut self, bytes: &[u8]) {
        references(bytes, 0, bytes.len()).for_each(|symbol| self.mark(symbol));
    }

    /// Marks what the fields of a series refer to that begin at byte `at`: all, or all besides its `labels`.
    pub(super) fn mark_fields(&mut self, body: &[u8], mut at: usize, end: usize, labels: bool) {
        while let Some(whole) = field(body, at, end) {
            match whole.number {
                v2::field::LABELS_REFS if labels => self.mark_references(body, &whole),
                v2::field::EXEMPLARS => {
                    let mut at = whole.payload;
                    while let Some(part) = field(body, at, whole.end) {
                        if part.number == v2::field::LABELS_REFS {
                            self.mark_references(body, &part);
                        }
                        at = part.end;
                    }
                }
                v2::field::METADATA => {
                    let mut at = whole.payload;
                    while let Some(part) = field(body, at, whole.end) {
                        if matches!(part.number, v2::field::HELP_REF | v2::field::UNIT_REF)
                            && let Some((symbol, _)) = body.get(part.payload..part.end).and_then(varint)
                        {
                            // As everywhere, the rest is cut off.
                            self.mark(symbol as u32);
                        }
                        at = part.end;
                    }
                }
                _ => {}
            }
            at = whole.end;
        }
    }

    fn mark_references(&mut self, body: &[u8], field: &Field) {
        references(body, field.payload, field.end).for_each(|symbol| self.mark(symbol));
    }

    /// Goes on for a bounded number of fields to find how much shorter the body gets. Whether there are more.
    pub(super) fn measure(&mut self, body: &[u8]) -> bool {
        if self.measured {
            return false;
        }
        let marked = || self.bits.iter().map(|bits| bits.count_ones() as usize).sum::<usize>();
        if self.walk.at == 0 && marked() == self.count {
            self.measured = true;
            return false;
        }
        for _ in 0..STEP {
            match self.step(body) {
                Some(symbol) => self.saved += symbol.end - symbol.start - EMPTY.len(),
                None if self.walk.at >= self.end => {
                    (self.measured, self.walk) = (true, Walk::default());
                    return false;
                }
                None => {}
            }
        }
        true
    }

    /// The bytes by which the body gets shorter, once it is measured.
    pub(super) fn saved(&self) -> usize {
        self.saved
    }

    /// The use of the bytes at `at`. Places are asked for in the order of the body.
    pub(super) fn part(&mut self, body: &[u8], at: usize) -> Part {
        if self.saved == 0 {
            return Part::Keep(usize::MAX);
        }
        if at < self.walk.at {
            return Part::Keep(self.walk.at - at);
        }
        for _ in 0..STEP {
            if let Some(end) = self.walk.blank {
                if at < self.walk.at {
                    break;
                }
                (self.walk.blank, self.walk.at) = (None, end);
                return Part::Blank(end.saturating_sub(at));
            }
            if self.walk.at >= self.end {
                return Part::Keep(usize::MAX);
            }
            let before = self.walk.at;
            if let Some(symbol) = self.step(body) {
                self.walk.at = before;
                self.walk.blank = Some(symbol.end);
            }
        }
        match self.walk.at.saturating_sub(at) {
            0 => Part::Later,
            len => Part::Keep(len),
        }
    }

    /// Goes over one field. Returns it if it is a symbol that is to be empty, and is not.
    fn step(&mut self, body: &[u8]) -> Option<Field> {
        let Some(field) = field(body, self.walk.at, body.len()) else {
            self.walk.at = self.end;
            return None;
        };
        self.walk.at = field.end;
        if field.number != SYMBOLS || !field.has_length {
            return None;
        }
        let number = self.walk.number;
        self.walk.number += 1;
        // A symbol without a bit found no room for it.
        let used = self.bits.get(number / 8).is_none_or(|bits| bits & 1 << (number % 8) != 0);
        (!used && field.payload < field.end).then_some(field)
    }
}
