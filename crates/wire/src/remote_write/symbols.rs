//! The symbol table of a 2.0 request, for access by number.

use super::error::{ErrorSubject, RemoteWriteError, RemoteWriteErrorKind};
use crate::proto::{Key, Reader, WireType};

/// Field number of the symbols in the request.
pub(crate) const SYMBOLS: u32 = 4;

/// Scratch for symbol tables, to be kept and reused: 4 bytes per symbol of the largest body it has seen, or as much as
/// was [allowed](super::view_within).
#[derive(Debug, Default)]
pub struct Symbols {
    /// Where each symbol's length begins in the body.
    offsets: Vec<u32>,
    /// In place of those, where some fields of the body begin.
    marks: Vec<Mark>,
}

/// A symbol table over its body.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    raw: &'a [u8],
    offsets: &'a [u32],
    marks: &'a [Mark],
    len: usize,
}

/// A place in a body between two fields.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// How many symbols there are before it.
    before: u32,
    offset: u32,
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
        self.offsets.capacity() * size_of::<u32>() + self.marks.capacity() * size_of::<Mark>()
    }

    /// Gives the scratch back if it holds more than `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        if self.bytes() > bytes {
            *self = Self::default();
        }
    }

    /// Finds the symbols of `raw`, at most `limit`.
    pub(super) fn index<'a>(
        &'a mut self,
        raw: &'a [u8],
        limit: usize,
    ) -> Result<Table<'a>, RemoteWriteError> {
        self.offsets.clear();
        index_into(raw, &mut self.offsets, limit)?;
        Ok(Table::new(raw, &self.offsets))
    }

    /// The same in at most `bytes` of scratch. Where each symbol's place does not fit, that of every so many fields is
    /// kept, and a symbol is looked for from there: slower, but never longer than that.
    pub(super) fn index_within<'a>(
        &'a mut self,
        raw: &'a [u8],
        bytes: usize,
    ) -> Result<Table<'a>, RemoteWriteError> {
        if Self::bytes_for(raw) <= bytes {
            return self.index(raw, usize::MAX);
        }
        if u32::try_from(raw.len()).is_err() {
            return Err(RemoteWriteError::new(0, RemoteWriteErrorKind::TooLong(raw.len())));
        }
        *self = Self::default();
        let most = (bytes / size_of::<Mark>()).max(1);
        let (mut fields, mut symbols) = (0usize, 0u32);
        let mut reader = Reader::new(raw);
        while let Some(key) = reader.key()? {
            fields += 1;
            reader.skip(key)?;
        }
        let every = fields.div_ceil(most).max(1);
        self.marks.reserve_exact(fields.div_ceil(every));
        let mut reader = Reader::new(raw);
        for field in 0..fields {
            if field % every == 0 {
                let offset = u32::try_from(reader.offset()).unwrap_or(u32::MAX);
                self.marks.push(Mark { before: symbols, offset });
            }
            let Some(key) = reader.key()? else { break };
            symbols += u32::from(is_symbol(key));
            reader.skip(key)?;
        }
        let len = usize::try_from(symbols).unwrap_or(usize::MAX);
        Ok(Table { raw, offsets: &[], marks: &self.marks, len })
    }
}

/// Appends where the symbols of `raw` are to `offsets`, which may then have `limit` entries at most.
pub(super) fn index_into(raw: &[u8], offsets: &mut Vec<u32>, limit: usize) -> Result<(), RemoteWriteError> {
    if u32::try_from(raw.len()).is_err() {
        return Err(RemoteWriteError::new(0, RemoteWriteErrorKind::TooLong(raw.len())));
    }
    let symbols = count(raw)?;
    let given = offsets.len().saturating_add(symbols);
    if given > limit {
        return Err(RemoteWriteError::new(
            0,
            RemoteWriteErrorKind::Limit { subject: ErrorSubject::Symbols, given, limit },
        ));
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
        Self { raw, offsets, marks: &[], len: offsets.len() }
    }

    /// How many symbols there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
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
        let Some(&offset) = self.offsets.get(usize::try_from(reference).ok()?) else {
            return self.look_for(reference);
        };
        let mut reader = Reader::new(self.raw.get(usize::try_from(offset).ok()?..)?);
        let len = usize::try_from(reader.raw_varint(SYMBOLS).ok()?).ok()?;
        Some((reader.rest().get(..len)?, reader.rest()))
    }

    /// The same where not every symbol's place is known.
    #[cold]
    fn look_for(&self, reference: u64) -> Option<(&'a [u8], &'a [u8])> {
        let reference = u32::try_from(reference).ok()?;
        let behind = self.marks.partition_point(|mark| mark.before <= reference);
        let mark = self.marks.get(behind.checked_sub(1)?)?;
        let mut before = mark.before;
        let mut reader = Reader::new(self.raw.get(usize::try_from(mark.offset).ok()?..)?);
        while let Some(key) = reader.key().ok()? {
            if is_symbol(key) {
                if before == reference {
                    let len = usize::try_from(reader.raw_varint(SYMBOLS).ok()?).ok()?;
                    return Some((reader.rest().get(..len)?, reader.rest()));
                }
                before += 1;
            }
            reader.skip(key).ok()?;
        }
        None
    }
}

pub(super) fn is_symbol(key: Key) -> bool {
    key.field == SYMBOLS && key.wire == WireType::Length
}

pub(super) fn count(raw: &[u8]) -> Result<usize, RemoteWriteError> {
    let mut reader = Reader::new(raw);
    let mut symbols = 0;
    while let Some(key) = reader.key()? {
        symbols += usize::from(is_symbol(key));
        reader.skip(key)?;
    }
    Ok(symbols)
}
