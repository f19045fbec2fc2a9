//! The output of a run before it is written: ranges of the body, and bytes that the run made.
//!
//! The bytes grow from the front of the scratch space, the list of pieces from its back. Costs, which keep both within it:
//! - A range of the body of at least [`SHORTEST`] bytes is one piece; a shorter one is copied, so that it joins its
//!   neighbours. A message of at most [`COMPACT`] bytes is copied whole when it is closed. So what stays as it is costs at
//!   most [`reserve`] bytes, whatever its lengths are.
//! - Bytes that the run made cost their length, and a piece or two.
//!
//! New bytes are refused ([`Full`]) unless that reserve remains for the rest of the body, so the rest can always pass as it is.
//! A changed message may take from the reserve while it is written, since stretches of it that stay are not new; whoever
//! wrote it asks [`Rope::check_room`] then, and puts it back as it was where the reserve is not whole.
//!
//! A value copied from the body costs one piece however long it is. So the output's length is bounded on its own: by the lengths of
//! the body and of the space, and room for the rest of the body is kept there, too.

use crate::memory::{Memory, Slice, Space};
use std::ops::Range;

/// Ranges of the body shorter than this are copied.
const SHORTEST: usize = 32;
/// Messages up to this length are copied whole.
const COMPACT: usize = 256;
/// The longest header of a message: a tag below 16 and a length of 32 bits.
const HEADER: usize = 6;
/// More than the headers of the messages that are open.
const HEADERS: usize = 64;
/// The bytes of a piece in the list.
const PIECE: usize = 8;
/// The bit of a piece's length that says where it is.
const MADE: u32 = 1 << 31;

/// There is no room for new bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// The bytes of scratch space to keep for the last `rest` bytes of a body, when they stay as they are: themselves, three
/// eighths for pieces and headers, and a few messages that are open.
const fn reserve(rest: usize) -> usize {
    rest + rest / 8 * 3 + (2 << 10)
}

/// The bytes of scratch space for a body of `body_len` bytes: as long as it is when all of its items become twice as long and are
/// copied whole, and 64 KiB.
pub(crate) const fn space_bytes(body_len: usize) -> usize {
    body_len.saturating_mul(2).saturating_add(64 << 10)
}

/// The output so far.
pub(crate) struct Rope<'a> {
    body: &'a [u8],
    space: &'a mut [u8],
    /// Bytes made, from the front of `space`.
    made: usize,
    /// Pieces stored, from the back of `space`.
    stored: usize,
    /// The last piece, which may become longer.
    last: Piece,
    len: usize,
    /// The first byte of the body that has not been passed.
    passed: usize,
    /// Bytes behind it that were written already.
    ahead: usize,
}

/// A state to return to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    made: usize,
    stored: usize,
    last: Piece,
    len: usize,
}

/// A message that is open: its header is written when it is closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    before: Mark,
    /// The piece of the header.
    piece: usize,
    /// The output's length when it was opened.
    len: usize,
}

/// Some pieces, to be taken out later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    from: usize,
    to: usize,
}

/// A range of the body, or of the bytes made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    start: u32,
    /// The length, and [`MADE`].
    len: u32,
}

impl Piece {
    const NONE: Piece = Piece { start: 0, len: 0 };

    // Bodies and scratch space are shorter than 2 GiB: `Run::new` sees to it.
    #[inline]
    fn body(range: &Range<usize>) -> Piece {
        Piece { start: range.start as u32, len: range.len() as u32 }
    }

    #[inline]
    fn made(start: usize, len: usize) -> Piece {
        Piece { start: start as u32, len: len as u32 | MADE }
    }

    #[inline]
    fn is_made(self) -> bool {
        self.len & MADE != 0
    }

    fn len(self) -> usize {
        (self.len & !MADE) as usize
    }

    #[inline]
    fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.len()
    }
}

impl<'a> Rope<'a> {
    /// An empty output of changes to `body`.
    pub(crate) fn new(body: &'a [u8], space: &'a mut [u8]) -> Rope<'a> {
        Rope { body, space, made: 0, stored: 0, last: Piece::NONE, len: 0, passed: 0, ahead: 0 }
    }

    /// The bytes of output so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Tells that the body up to `offset` needs nothing more.
    #[inline]
    pub(crate) fn pass(&mut self, offset: usize) {
        self.passed = offset;
    }

    /// Tells that so many bytes of what was not passed are written.
    pub(crate) fn wrote_ahead(&mut self, bytes: usize) {
        self.ahead += bytes;
    }

    /// Tells that so many of them are passed now.
    pub(crate) fn passed_ahead(&mut self, bytes: usize) {
        self.ahead = self.ahead.saturating_sub(bytes);
    }

    /// Whether the rest of the body can still pass as it is: a message that was just written may have taken its room.
    ///
    /// # Errors
    /// [`Full`] when it cannot.
    pub(crate) fn check_room(&self) -> Result<(), Full> {
        self.make_room(0, 0)
    }

    /// The state, for [`restore`](Self::restore).
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark { made: self.made, stored: self.stored, last: self.last, len: self.len }
    }

    /// Takes out what came after `mark`.
    #[inline]
    pub(crate) fn restore(&mut self, mark: Mark) {
        Mark { made: self.made, stored: self.stored, last: self.last, len: self.len } = mark;
    }

    /// Appends a range of the body.
    ///
    /// # Errors
    /// [`Full`] only when new bytes took the reserve, which [`bytes`](Self::bytes) does not do.
    pub(crate) fn body(&mut self, range: Range<usize>) -> Result<(), Full> {
        let len = range.len();
        if !self.last.is_made() && self.last.len() > 0 && self.last.range().end == range.start {
            self.last = Piece::body(&(self.last.start as usize..range.end));
            self.len += len;
            return Ok(());
        }
        if len < SHORTEST {
            return self.copy(range);
        }
        self.store_last()?;
        self.last = Piece::body(&range);
        self.len += len;
        Ok(())
    }

    /// Appends new bytes.
    ///
    /// # Errors
    /// [`Full`] when less than the reserve would remain.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.make_room(bytes.len(), bytes.len())?;
        self.append(bytes.len(), |space| space.copy_from_slice(bytes))
    }

    /// Appends the bytes of a slice.
    ///
    /// # Errors
    /// [`Full`] when less than the reserve would remain.
    #[inline]
    pub(crate) fn slice(&mut self, memory: &Memory<'_>, slice: Slice) -> Result<(), Full> {
        match slice.space {
            Space::Body => {
                self.make_room(SHORTEST, slice.len as usize)?;
                self.body(slice.start as usize..slice.start as usize + slice.len as usize)
            }
            _ => self.bytes(memory.get(slice)),
        }
    }

    /// Opens a message.
    ///
    /// # Errors
    /// As [`body`](Self::body).
    #[inline]
    pub(crate) fn open(&mut self) -> Result<Gap, Full> {
        let before = self.mark();
        self.store_last()?;
        let gap = Gap { before, piece: self.stored, len: self.len };
        if self.free() < HEADER + 2 * PIECE {
            self.restore(before);
            return Err(Full);
        }
        self.store(Piece::made(self.made, HEADER));
        self.made += HEADER;
        Ok(gap)
    }

    /// Closes a message, whose tag is that of field `field`.
    ///
    /// # Errors
    /// As [`body`](Self::body).
    pub(crate) fn close(&mut self, gap: &Gap, field: u32) -> Result<(), Full> {
        let len = self.len - gap.len;
        let mut header = [0; HEADER];
        let start = header_of(&mut header, field, len)?;
        let header = header.get(start..).unwrap_or_default();
        if len <= COMPACT && self.can_compact(gap, header.len() + len) {
            let mut content = [0; COMPACT];
            let content = content.get_mut(..len).ok_or(Full)?;
            self.gather(gap.piece + 1, content);
            self.restore(gap.before);
            self.append(header.len() + len, |space| {
                let (to, rest) = space.split_at_mut(header.len());
                to.copy_from_slice(header);
                rest.copy_from_slice(content);
            })?;
            return Ok(());
        }
        let place = self.piece(gap.piece).start as usize + start;
        self.space.get_mut(place..place + header.len()).ok_or(Full)?.copy_from_slice(header);
        self.set(gap.piece, Piece::made(place, header.len()));
        self.len += header.len();
        Ok(())
    }

    /// The output before the message was opened.
    pub(crate) fn before(gap: &Gap) -> Mark {
        gap.before
    }

    /// Begins pieces that [`take_out`](Self::take_out) can take out.
    ///
    /// # Errors
    /// As [`body`](Self::body).
    pub(crate) fn begin_part(&mut self) -> Result<Part, Full> {
        self.store_last()?;
        Ok(Part { from: self.stored, to: self.stored })
    }

    /// Ends them.
    ///
    /// # Errors
    /// As [`body`](Self::body).
    pub(crate) fn end_part(&mut self, part: &mut Part) -> Result<(), Full> {
        self.store_last()?;
        part.to = self.stored;
        Ok(())
    }

    /// Takes the pieces of `part` out.
    pub(crate) fn take_out(&mut self, part: &Part) {
        for number in part.from..part.to {
            self.len -= self.piece(number).len();
            self.set(number, Piece::NONE);
        }
    }

    /// Copies at most `most` bytes of output to `out`, from where `at` stands. Returns whether that was all.
    pub(crate) fn write(&self, at: &mut Position, out: &mut [u8], most: usize) -> bool {
        let mut left = most;
        while at.piece <= self.stored {
            let piece = if at.piece == self.stored { self.last } else { self.piece(at.piece) };
            let range = piece.range();
            let from = range.start + at.within;
            let len = (range.end - from).min(left);
            let source = if piece.is_made() {
                self.space.get(from..from + len)
            } else {
                self.body.get(from..from + len)
            };
            if let (Some(to), Some(source)) = (out.get_mut(at.out..at.out + len), source) {
                to.copy_from_slice(source);
            }
            at.out += len;
            at.within += len;
            left -= len;
            if from + len < range.end {
                return false;
            }
            at.piece += 1;
            at.within = 0;
        }
        true
    }

    #[inline]
    fn copy(&mut self, range: Range<usize>) -> Result<(), Full> {
        let body = self.body;
        let bytes = body.get(range).unwrap_or_default();
        self.append(bytes.len(), |space| space.copy_from_slice(bytes))
    }

    /// Appends `len` bytes that `fill` writes, to the last piece where that ends here.
    #[inline]
    fn append(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<(), Full> {
        if len == 0 {
            return Ok(());
        }
        let joins = self.last.is_made() && self.last.range().end == self.made;
        if !joins {
            self.store_last()?;
        }
        if self.free() < len + PIECE {
            return Err(Full);
        }
        fill(self.space.get_mut(self.made..self.made + len).ok_or(Full)?);
        self.last = match joins {
            true => Piece::made(self.last.start as usize, self.last.len() + len),
            false => Piece::made(self.made, len),
        };
        self.made += len;
        self.len += len;
        Ok(())
    }

    /// Copies the pieces from number `first` on to `to`.
    fn gather(&self, first: usize, to: &mut [u8]) {
        let mut at = Position { piece: first, within: 0, out: 0 };
        let len = to.len();
        self.write(&mut at, to, len);
    }

    /// Whether `len` bytes of new space and `written` bytes of output leave room for the rest of the body.
    #[inline]
    fn make_room(&self, len: usize, written: usize) -> Result<(), Full> {
        let rest = self.rest();
        let most = self.body.len() + self.space.len();
        let is_full = self.free() < len + 4 * PIECE + reserve(rest);
        let is_long = self.len.saturating_add(written).saturating_add(rest + HEADERS) > most;
        if is_full || is_long { Err(Full) } else { Ok(()) }
    }

    /// Whether a message whose copy has `len` bytes may be copied whole: when that takes less than its pieces do, or leaves the
    /// reserve.
    fn can_compact(&self, gap: &Gap, len: usize) -> bool {
        let before = gap.before;
        let joins = before.last.is_made() && before.last.range().end == before.made;
        let pieces = if joins || before.last.len() == 0 { 0 } else { PIECE };
        let used = before.made + before.stored * PIECE + len + pieces;
        let Some(free) = self.space.len().checked_sub(used).filter(|free| *free >= PIECE) else {
            return false;
        };
        free >= self.free() || free >= 4 * PIECE + reserve(self.rest())
    }

    /// The bytes of the body that are still to be written, at most.
    #[inline]
    fn rest(&self) -> usize {
        self.body.len().saturating_sub(self.passed).saturating_sub(self.ahead)
    }

    #[inline]
    fn free(&self) -> usize {
        self.space.len().saturating_sub(self.made + self.stored * PIECE)
    }

    #[inline]
    fn store_last(&mut self) -> Result<(), Full> {
        if self.last.len() == 0 {
            return Ok(());
        }
        if self.free() < PIECE {
            return Err(Full);
        }
        let last = std::mem::replace(&mut self.last, Piece::NONE);
        self.store(last);
        Ok(())
    }

    #[inline]
    fn store(&mut self, piece: Piece) {
        self.stored += 1;
        self.set(self.stored - 1, piece);
    }

    #[inline]
    fn place(&self, number: usize) -> usize {
        self.space.len().saturating_sub((number + 1) * PIECE)
    }

    #[inline]
    fn set(&mut self, number: usize, piece: Piece) {
        let place = self.place(number);
        let bytes = (u64::from(piece.len) << 32 | u64::from(piece.start)).to_le_bytes();
        if let Some(to) = self.space.get_mut(place..place + PIECE) {
            to.copy_from_slice(&bytes);
        }
    }

    #[inline]
    fn piece(&self, number: usize) -> Piece {
        let bytes = self.space.get(self.place(number)..).and_then(|rest| rest.first_chunk());
        let bits = bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Piece { start: bits as u32, len: (bits >> 32) as u32 }
    }
}

/// How far the output was written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    piece: usize,
    within: usize,
    out: usize,
}

/// Puts tag and length at the end of `header`; returns where they begin.
#[inline]
fn header_of(header: &mut [u8; HEADER], field: u32, len: usize) -> Result<usize, Full> {
    let varint = tidegate_wire::proto::write::Varint::new(len as u64);
    let bytes = varint.as_bytes();
    let start = HEADER.checked_sub(1 + bytes.len()).ok_or(Full)?;
    if let Some([tag, rest @ ..]) = header.get_mut(start..) {
        // The fields of messages that are opened have numbers below 16.
        *tag = (field << 3 | 2) as u8;
        rest.copy_from_slice(bytes);
    }
    Ok(start)
}
