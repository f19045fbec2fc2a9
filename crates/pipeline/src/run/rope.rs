//! The output of a run before it is written: ranges of the body, and bytes that the run made.
//!
//! The bytes grow from the front of the scratch space, the list of pieces from its back. Costs, which keep both within it:
//! - A range of the body of at least [`SHORTEST`] bytes is one piece; a shorter one is copied, so that it joins its
//!   neighbours. A message of at most [`COMPACT`] bytes is copied whole when it is closed. So what stays as it is costs at
//!   most [`reserve`](room) bytes, whatever its lengths are.
//! - Bytes that the run made cost their length, and a piece or two.
//!
//! New bytes are refused ([`Full`]) unless that reserve remains for the rest of the body, so the rest can always pass as it is.
//! A changed message may take from the reserve while it is written, since stretches of it that stay are not new; whoever
//! wrote it asks [`Rope::check_room`] then, and puts it back as it was where the reserve is not whole.
//!
//! A value copied from the body costs one piece however long it is. So the output's length is bounded on its own: by the lengths of
//! the body and of the space, and room for the rest of the body is kept there, too.

mod pieces;
mod room;
mod write;

use crate::memory::{Memory, Slice, Space};
use pieces::{PIECE, Piece};
pub(crate) use room::space_bytes;
use std::ops::Range;
pub(crate) use write::Position;

/// Ranges of the body shorter than this are copied.
const SHORTEST: usize = 32;
/// Messages up to this length are copied whole.
const COMPACT: usize = 256;
/// The longest header of a message: a tag below 16 and a length of 32 bits.
const HEADER: usize = 6;

/// There is no room for new bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

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
    /// The most bytes of output, beside what stays as it is.
    most: usize,
}

/// A state to return to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint {
    made: usize,
    stored: usize,
    last: Piece,
    len: usize,
}

/// A message that is open: its header is written when it is closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    before: Checkpoint,
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

impl<'a> Rope<'a> {
    /// An empty output of changes to `body`.
    pub(crate) fn new(body: &'a [u8], space: &'a mut [u8]) -> Rope<'a> {
        let most = body.len() + space.len();
        Rope { body, space, made: 0, stored: 0, last: Piece::NONE, len: 0, passed: 0, ahead: 0, most }
    }

    /// Refuses new bytes that would make the output longer than this.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = self.most.min(most);
    }

    /// The bytes of output so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes of a message that is open.
    pub(crate) fn len_of(&self, gap: &Gap) -> usize {
        self.len - gap.len
    }

    /// The state, for [`restore`](Self::restore).
    #[inline]
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { made: self.made, stored: self.stored, last: self.last, len: self.len }
    }

    /// Takes out what came after `checkpoint`.
    #[inline]
    pub(crate) fn restore(&mut self, checkpoint: Checkpoint) {
        Checkpoint { made: self.made, stored: self.stored, last: self.last, len: self.len } = checkpoint;
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

    /// Appends new bytes that are fields, each with a tag of one byte, at `starts`: with `tag` in its place.
    ///
    /// # Errors
    /// [`Full`] when less than the reserve would remain.
    pub(crate) fn fields(
        &mut self,
        fields: &[u8],
        tag: u8,
        starts: impl Iterator<Item = usize>,
    ) -> Result<(), Full> {
        self.make_room(fields.len(), fields.len())?;
        self.append(fields.len(), |space| {
            space.copy_from_slice(fields);
            for start in starts {
                if let Some(place) = space.get_mut(start) {
                    *place = tag;
                }
            }
        })
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
        let before = self.checkpoint();
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
    pub(crate) fn before(gap: &Gap) -> Checkpoint {
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
