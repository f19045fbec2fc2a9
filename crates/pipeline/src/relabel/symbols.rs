//! Symbols of a 2.0 body: those that it has, and those that rules add.

use super::edits::Edits;
use super::fields::{field, varint};
use super::used::Used;
use crate::memory::{Slice, Space};
use crate::value::Failure;

/// The number of the field of the request.
pub(super) const SYMBOLS: u32 = 4;
/// Its tag.
pub(super) const TAG: u8 = 0x22;
/// Fields between two looks at the clock of others.
const STEP: usize = 4_096;

/// Where the symbols of a body are: every so many, so that the index takes at most half of the scratch.
#[derive(Debug)]
pub(super) struct Index<'a> {
    /// The place of each `stride`-th symbol's field, as 4 bytes.
    places: &'a [u8],
    stride: usize,
    pub(super) count: usize,
    /// The end of the last symbol.
    pub(super) end: usize,
    /// Whether a symbol besides number 0 is empty.
    pub(super) has_more_empty: bool,
}

/// An index that is being built, in two walks over the fields of the body.
#[derive(Debug)]
pub(super) struct Indexing<'a> {
    scratch: &'a mut [u8],
    at: usize,
    count: usize,
    end: usize,
    has_more_empty: bool,
    /// Whether number 0 is empty, as it should be.
    begins_empty: bool,
    /// Known in the second walk.
    stride: Option<usize>,
}

impl<'a> Indexing<'a> {
    pub(super) fn new(scratch: &'a mut [u8]) -> Indexing<'a> {
        Indexing {
            scratch,
            at: 0,
            count: 0,
            end: 0,
            has_more_empty: false,
            begins_empty: false,
            stride: None,
        }
    }

    /// Goes on for a bounded number of fields. Returns the index, a bit for each symbol, and the rest of the scratch when it is built.
    pub(super) fn advance(&mut self, body: &[u8]) -> Option<(Index<'a>, Used<'a>, &'a mut [u8])> {
        for _ in 0..STEP {
            let Some(field) = field(body, self.at, body.len()) else { return self.finish_walk() };
            self.at = field.end;
            if field.number != SYMBOLS || !field.has_length {
                continue;
            }
            if let Some(stride) = self.stride
                && self.count.is_multiple_of(stride)
                && let Some(place) =
                    self.scratch.get_mut(self.count / stride * 4..self.count / stride * 4 + 4)
            {
                // Bodies are smaller than 4 GiB.
                place.copy_from_slice(&(field.start as u32).to_le_bytes());
            }
            let empty = field.payload == field.end;
            match self.count {
                0 => self.begins_empty = empty,
                _ => self.has_more_empty |= empty,
            }
            self.count += 1;
            self.end = field.end;
        }
        None
    }

    fn finish_walk(&mut self) -> Option<(Index<'a>, Used<'a>, &'a mut [u8])> {
        let Some(stride) = self.stride else {
            let most = (self.scratch.len() / 8).max(1);
            self.stride = Some(self.count.div_ceil(most).max(1));
            (self.at, self.count) = (0, 0);
            return None;
        };
        let bytes = (self.count.div_ceil(stride) * 4).min(self.scratch.len());
        let (places, rest) = std::mem::take(&mut self.scratch).split_at_mut(bytes);
        let Indexing { count, end, has_more_empty, begins_empty, .. } = *self;
        // A symbol takes at least two bytes of the body, and half of the scratch is left: the bits always have room in it.
        let (bits, rest) = rest.split_at_mut(Used::bytes(count).min(rest.len()));
        let used = Used::new(bits, count, end, begins_empty);
        Some((Index { places, stride, count, end, has_more_empty }, used, rest))
    }
}

impl Index<'_> {
    /// The symbol with this number.
    #[inline]
    pub(super) fn get(&self, body: &[u8], reference: u32) -> Option<Slice> {
        let number = reference as usize;
        let place = self.places.get(number / self.stride * 4..)?.first_chunk()?;
        let mut at = u32::from_le_bytes(*place) as usize;
        let mut before = number % self.stride;
        loop {
            let field = field(body, at, body.len())?;
            if field.number == SYMBOLS && field.has_length {
                if before == 0 {
                    let (start, len) = (field.payload as u32, (field.end - field.payload) as u32);
                    return (number < self.count).then_some(Slice { start, len, space: Space::Body });
                }
                before -= 1;
            }
            at = field.end;
        }
    }
}

/// The references of a packed or single field.
pub(super) fn references<'a>(body: &'a [u8], payload: usize, end: usize) -> impl Iterator<Item = u32> + 'a {
    let mut rest = body.get(payload..end).unwrap_or_default();
    std::iter::from_fn(move || {
        let (reference, len) = varint(rest)?;
        rest = rest.get(len..).unwrap_or_default();
        // As with every number of 32 bits in protobuf, the rest is cut off.
        Some(reference as u32)
    })
}

/// The symbols that were added last, so that equal ones are added once.
#[derive(Debug)]
pub(super) struct Added(Box<[Option<Entry>]>);

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    len: u32,
    reference: u32,
}

impl Added {
    const ENTRIES: usize = 512;
    /// The bytes that it takes.
    pub(super) const BYTES: usize = Self::ENTRIES * size_of::<Option<Entry>>();

    pub(super) fn new() -> Added {
        Added(vec![None; Self::ENTRIES].into())
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.fill(None);
    }

    /// The number of the symbol `text`, which is added unless it was just now. The body has `count` symbols itself.
    pub(super) fn reference(
        &mut self,
        edits: &mut Edits<'_>,
        count: usize,
        text: &[u8],
    ) -> Result<u32, Failure> {
        let hash = text.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let place = (hash ^ hash >> 32) as usize % Self::ENTRIES;
        let known = self.0.get(place).copied().flatten();
        if let Some(Entry { start, len, reference }) = known
            && edits.text(start as usize, len as usize) == text
        {
            return Ok(reference);
        }
        let reference = u32::try_from(count + edits.symbols() as usize).map_err(|_| Failure::TooLarge)?;
        let start = edits.add_symbol(text)?;
        if let Some(entry) = self.0.get_mut(place) {
            // Scratch is smaller than 4 GiB.
            *entry = Some(Entry { start: start as u32, len: text.len() as u32, reference });
        }
        Ok(reference)
    }
}
