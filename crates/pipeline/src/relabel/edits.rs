//! The edits of a body: what is kept, what is left out, what is put in, in order.
//!
//! They are written to the front of a space that the caller paid for. New symbols grow from its end. Each edit is
//! `keep, leave out, put in` as numbers of bytes in base 128, followed by the bytes to put in; what is behind the last is kept.

use crate::value::Failure;
use tidegate_wire::proto::write::{Varint, varint_len};

/// The most bytes of the three numbers.
const HEAD: usize = 15;

/// Edits and new symbols.
#[derive(Debug)]
pub(super) struct Edits<'a> {
    space: &'a mut [u8],
    state: State,
}

/// How far the edits are. Restoring an earlier state forgets what came after it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    /// The end of the closed edits.
    front: usize,
    /// The begin of the symbols.
    back: usize,
    /// The open edit.
    keep: usize,
    leave: usize,
    put: usize,
    /// In all.
    left: usize,
    added: usize,
    symbols: u32,
}

impl<'a> Edits<'a> {
    /// No edits yet, in `space`.
    pub(super) fn new(space: &'a mut [u8]) -> Edits<'a> {
        let state = State { back: space.len(), ..State::default() };
        Edits { space, state }
    }

    /// A state to come back to.
    pub(super) fn state(&mut self) -> State {
        if self.state.put > 0 {
            self.close();
        }
        self.state
    }

    /// Forgets what came after `state` was taken.
    pub(super) fn restore(&mut self, state: State) {
        self.state = state;
    }

    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.state.left == 0 && self.state.added == 0
    }

    /// The bytes that are put in, symbols included, and those that are left out.
    pub(super) fn balance(&self) -> (usize, usize) {
        (self.state.added, self.state.left)
    }

    /// How many symbols were added.
    pub(super) fn symbols(&self) -> u32 {
        self.state.symbols
    }

    /// Keeps the next `len` bytes of the body.
    #[inline]
    pub(super) fn keep(&mut self, len: usize) {
        if len > 0 && (self.state.leave > 0 || self.state.put > 0) {
            self.close();
        }
        self.state.keep += len;
    }

    /// Leaves out the next `len` bytes of the body.
    pub(super) fn leave(&mut self, len: usize) -> Result<(), Failure> {
        self.room(0)?;
        self.state.leave += len;
        self.state.left += len;
        Ok(())
    }

    /// Puts in `bytes`.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let start = self.room(bytes.len())?;
        let end = start + bytes.len();
        self.space.get_mut(start..end).ok_or(Failure::TooLarge)?.copy_from_slice(bytes);
        self.state.put += bytes.len();
        self.state.added += bytes.len();
        Ok(())
    }

    /// Puts in a number in base 128.
    pub(super) fn put_number(&mut self, number: u64) -> Result<(), Failure> {
        self.put(Varint::new(number).as_bytes())
    }

    /// Adds a symbol. Returns its place in the space.
    pub(super) fn add_symbol(&mut self, text: &[u8]) -> Result<usize, Failure> {
        let len = u32::try_from(text.len()).map_err(|_| Failure::TooLarge)?;
        let start = self.state.back.checked_sub(text.len() + size_of::<u32>()).ok_or(Failure::TooLarge)?;
        if start < self.state.front + HEAD + self.state.put {
            return Err(Failure::TooLarge);
        }
        let place = self.space.get_mut(start..self.state.back).ok_or(Failure::TooLarge)?;
        let (bytes, number) = place.split_at_mut(text.len());
        bytes.copy_from_slice(text);
        number.copy_from_slice(&len.to_le_bytes());
        self.state.back = start;
        self.state.symbols += 1;
        self.state.added += 1 + varint_len(u64::from(len)) as usize + text.len();
        Ok(start)
    }

    /// A text in the space.
    pub(super) fn text(&self, start: usize, len: usize) -> &[u8] {
        self.space.get(start..start + len).unwrap_or_default()
    }

    /// Where the next `len` bytes can be put.
    fn room(&self, len: usize) -> Result<usize, Failure> {
        let start = self.state.front + HEAD + self.state.put;
        if start + len > self.state.back { Err(Failure::TooLarge) } else { Ok(start) }
    }

    /// Closes the open edit. Its head has room, since what is put in leaves that much before it.
    fn close(&mut self) {
        let State { front, keep, leave, put, .. } = self.state;
        let mut at = front;
        for number in [keep, leave, put] {
            let number = Varint::new(number as u64);
            let number = number.as_bytes();
            if let Some(place) = self.space.get_mut(at..at + number.len()) {
                place.copy_from_slice(number);
            }
            at += number.len();
        }
        let start = front + HEAD;
        if start + put <= self.space.len() {
            self.space.copy_within(start..start + put, at);
        }
        self.state = State { front: at + put, keep: 0, leave: 0, put: 0, ..self.state };
    }

    /// Gives the edited `body` to `write`, piece by piece, with the new symbols as fields with this `tag` at byte
    /// `symbols_at` of the body.
    pub(super) fn replay(&mut self, body: &[u8], tag: u8, symbols_at: usize, mut write: impl FnMut(&[u8])) {
        if self.state.leave > 0 || self.state.put > 0 {
            self.close();
        }
        let mut pending = self.state.symbols > 0;
        let mut at = 0;
        let mut keep = |from: usize, to: usize, write: &mut dyn FnMut(&[u8])| {
            let part = |from: usize, to: usize| body.get(from..to).unwrap_or_default();
            if pending && (from..=to).contains(&symbols_at) {
                pending = false;
                write(part(from, symbols_at));
                self.replay_symbols(tag, write);
                write(part(symbols_at, to));
            } else {
                write(part(from, to));
            }
        };
        let mut edits = self.space.get(..self.state.front).unwrap_or_default();
        while !edits.is_empty() {
            let [kept, left, put] = [number(&mut edits), number(&mut edits), number(&mut edits)];
            keep(at, at + kept, &mut write);
            at += kept + left;
            let (bytes, rest) = edits.split_at_checked(put).unwrap_or((edits, &[]));
            write(bytes);
            edits = rest;
        }
        keep(at, body.len(), &mut write);
    }

    fn replay_symbols(&self, tag: u8, write: &mut dyn FnMut(&[u8])) {
        let mut end = self.space.len();
        for _ in 0..self.state.symbols {
            let Some((rest, len)) = self.space.get(..end).and_then(<[u8]>::split_last_chunk) else { return };
            let len = u32::from_le_bytes(*len);
            let start = rest.len().saturating_sub(len as usize);
            write(&[tag]);
            write(Varint::new(u64::from(len)).as_bytes());
            write(rest.get(start..).unwrap_or_default());
            end = start;
        }
    }
}

/// Reads a number in base 128.
fn number(bytes: &mut &[u8]) -> usize {
    let (mut value, mut shift) = (0usize, 0u32);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= usize::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(edits: &mut Edits<'_>, body: &[u8], symbols_at: usize) -> String {
        let mut out = Vec::new();
        edits.replay(body, b'#', symbols_at, |bytes| out.extend_from_slice(bytes));
        let (added, left) = edits.balance();
        assert_eq!(out.len(), body.len() + added - left);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn edits_and_symbols_are_replayed_in_order() {
        let mut space = [0; 200];
        let mut edits = Edits::new(&mut space);
        edits.keep(2);
        edits.put(b"XY").unwrap();
        edits.leave(1).unwrap();
        edits.keep(1);
        let state = edits.state();
        edits.leave(2).unwrap();
        edits.put(b"forgotten").unwrap();
        edits.keep(1);
        edits.add_symbol(b"never").unwrap();
        edits.restore(state);
        edits.add_symbol(b"a").unwrap();
        let place = edits.add_symbol(b"bc").unwrap();
        assert_eq!(edits.text(place, 2), b"bc");
        edits.keep(1);
        edits.leave(1).unwrap();
        assert_eq!(replayed(&mut edits, b"abcdefgh", 1), "a#\u{1}a#\u{2}bcbXYdegh");
        assert_eq!(replayed(&mut edits, b"abcdefgh", 8), "abXYdegh#\u{1}a#\u{2}bc");
    }

    #[test]
    fn a_full_space_refuses_edits_and_symbols() {
        let mut space = [0; 36];
        let mut edits = Edits::new(&mut space);
        edits.put(&[b'x'; 20]).unwrap();
        let state = edits.state();
        assert_eq!(edits.put(b"more"), Err(Failure::TooLarge));
        assert_eq!(edits.add_symbol(b"more"), Err(Failure::TooLarge));
        assert_eq!(edits.leave(1), Err(Failure::TooLarge));
        edits.restore(state);
        assert_eq!(replayed(&mut edits, b"ab", 0), format!("{}ab", "x".repeat(20)));
    }
}
