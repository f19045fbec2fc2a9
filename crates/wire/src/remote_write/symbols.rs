//! The symbol table of a 2.0 request, for access by number.

use super::fault::{Excerpt, Fault, Reason, Subject};
use crate::proto::{Key, Reader, Wire};

/// Field number of the symbols in the request.
pub(crate) const SYMBOLS: u32 = 4;

/// Scratch for symbol tables, to be kept and reused: 4 bytes per symbol of the largest body it has seen.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Where each symbol's length begins in the body.
    offsets: Vec<u32>,
}

/// A symbol table over its body.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    raw: &'a [u8],
    offsets: &'a [u32],
}

impl Symbols {
    /// Empty scratch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes of scratch the table of `raw` takes, to be paid for before [`check`](super::check)
    /// and [`view`](super::view): 4 per symbol. A walk over the top level of the body.
    #[must_use]
    pub fn bytes_for(raw: &[u8]) -> usize {
        Self::count(raw) * size_of::<u32>()
    }

    /// How many symbols the top level of `raw` has.
    #[must_use]
    pub fn count(raw: &[u8]) -> usize {
        count(raw).unwrap_or(0)
    }

    /// How many bytes of scratch are held now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.offsets.capacity() * size_of::<u32>()
    }

    /// Gives the scratch back if it holds more than `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        if self.bytes() > bytes {
            self.offsets = Vec::new();
        }
    }

    /// Finds the symbols of `raw`, at most `limit`.
    pub(super) fn index<'a>(&'a mut self, raw: &'a [u8], limit: usize) -> Result<Table<'a>, Fault> {
        self.offsets.clear();
        index_into(raw, &mut self.offsets, limit)?;
        Ok(Table { raw, offsets: &self.offsets })
    }
}

/// Appends where the symbols of `raw` are to `offsets`, which may then have `limit` entries at most.
pub(super) fn index_into(raw: &[u8], offsets: &mut Vec<u32>, limit: usize) -> Result<(), Fault> {
    if u32::try_from(raw.len()).is_err() {
        return Err(Fault::new(0, Reason::TooLong(raw.len())));
    }
    let symbols = count(raw)?;
    let given = offsets.len().saturating_add(symbols);
    if given > limit {
        return Err(Fault::new(0, Reason::Limit { subject: Subject::Symbols, given, limit }));
    }
    offsets.reserve_exact(symbols);
    let mut reader = Reader::new(raw);
    while let Some(key) = reader.key()? {
        if is_symbol(key) {
            offsets.push(u32::try_from(reader.offset()).unwrap_or(u32::MAX));
        }
        reader.skip(key)?;
    }
    Ok(())
}

impl<'a> Table<'a> {
    pub(super) fn new(raw: &'a [u8], offsets: &'a [u32]) -> Self {
        Self { raw, offsets }
    }

    /// How many symbols there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The symbol with this number.
    #[inline]
    #[must_use]
    pub fn get(&self, reference: u64) -> Option<&'a [u8]> {
        self.get_with_tail(reference).map(|(symbol, _)| symbol)
    }

    /// The symbol with this number, and the rest of the body from its first byte on.
    #[inline(always)]
    pub(super) fn get_with_tail(&self, reference: u64) -> Option<(&'a [u8], &'a [u8])> {
        let &offset = self.offsets.get(usize::try_from(reference).ok()?)?;
        let mut reader = Reader::new(self.raw.get(usize::try_from(offset).ok()?..)?);
        let len = usize::try_from(reader.raw_varint(SYMBOLS).ok()?).ok()?;
        Some((reader.rest().get(..len)?, reader.rest()))
    }

    /// That the table is there and begins with the empty string, as the specification demands.
    pub(super) fn check_first(&self) -> Result<(), Fault> {
        match self.get(0) {
            Some([]) => Ok(()),
            Some(symbol) => Err(Fault::new(0, Reason::FirstSymbol(Excerpt::new(symbol)))),
            None => Err(Fault::new(0, Reason::NoSymbols)),
        }
    }
}

pub(super) fn is_symbol(key: Key) -> bool {
    key.field == SYMBOLS && key.wire == Wire::Length
}

pub(super) fn count(raw: &[u8]) -> Result<usize, Fault> {
    let mut reader = Reader::new(raw);
    let mut symbols = 0;
    while let Some(key) = reader.key()? {
        symbols += usize::from(is_symbol(key));
        reader.skip(key)?;
    }
    Ok(symbols)
}
