//! The edits of a body: what is kept, what is left out, what is put in, in order.
//!
//! They are written to the front of a space that the caller paid for. New symbols grow from its end. Each edit is
//! `keep, leave out, put in` as numbers of bytes in base 128, followed by the bytes to put in; what is behind the last is kept.

use super::used::{self, Part, Used};
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

    /// Leaves out the next `leave` bytes of the body, and puts in `bytes`: one edit by itself, which costs less than the two.
    #[inline]
    pub(super) fn replace(&mut self, leave: usize, bytes: &[u8]) -> Result<(), Failure> {
        if self.state.leave > 0 || self.state.put > 0 {
            self.close();
        }
        self.room(bytes.len())?;
        let at = self.head([self.state.keep, leave, bytes.len()]);
        let front = at + bytes.len();
        self.space.get_mut(at..front).ok_or(Failure::TooLarge)?.copy_from_slice(bytes);
        self.state.front = front;
        self.state.keep = 0;
        self.state.left += leave;
        self.state.added += bytes.len();
        Ok(())
    }

    /// Puts in a number in base 128.
    pub(super) fn put_number(&mut self, number: u64) -> Result<(), Failure> {
        match u8::try_from(number) {
            Ok(number @ 0..0x80) => self.put(&[number]),
            _ => self.put(Varint::new(number).as_bytes()),
        }
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
        let at = self.head([keep, leave, put]);
        let start = front + HEAD;
        if start + put <= self.space.len() {
            self.space.copy_within(start..start + put, at);
        }
        self.state = State { front: at + put, keep: 0, leave: 0, put: 0, ..self.state };
    }

    /// Writes the numbers of an edit to the front. Returns the place behind them.
    #[inline]
    fn head(&mut self, numbers: [usize; 3]) -> usize {
        let mut at = self.state.front;
        for number in numbers {
            if let (Ok(byte @ 0..0x80), Some(place)) = (u8::try_from(number), self.space.get_mut(at)) {
                *place = byte;
                at += 1;
                continue;
            }
            let number = Varint::new(number as u64);
            let number = number.as_bytes();
            if let Some(place) = self.space.get_mut(at..at + number.len()) {
                place.copy_from_slice(number);
            }
            at += number.len();
        }
        at
    }

    /// Writes the next part of the edited `body` to its place in `out`: about `most` bytes and all new symbols, as fields with
    /// this `tag` at byte `symbols_at` of the body. Symbols that are not `used` are written empty. Returns whether that was all.
    pub(super) fn write(
        &mut self,
        replay: &mut Replay,
        body: &[u8],
        symbols: (u8, usize),
        used: &mut Used<'_>,
        out: &mut [u8],
        most: usize,
    ) -> bool {
        if self.state.leave > 0 || self.state.put > 0 {
            self.close();
        }
        let stop = replay.out + most;
        while replay.out < stop {
            if replay.keep == 0 && replay.put == 0 {
                if replay.symbols_pending(self.state.symbols) && symbols.1 <= replay.body {
                    self.write_symbols(replay, symbols.0, out);
                }
                if !self.next_edit(replay, body.len()) {
                    return true;
                }
                continue;
            }
            if replay.keep > 0 {
                let (tag, symbols_at) = symbols;
                let mut len = replay.keep.min(stop - replay.out);
                if replay.symbols_pending(self.state.symbols) && symbols_at >= replay.body {
                    len = len.min(symbols_at - replay.body);
                }
                match used.part(body, replay.body) {
                    // A symbol is kept whole.
                    Part::Blank(symbol) => {
                        replay.copy(out, &used::EMPTY);
                        len = symbol.min(replay.keep);
                    }
                    Part::Keep(most) => {
                        len = len.min(most);
                        replay.copy(out, body.get(replay.body..replay.body + len).unwrap_or_default());
                    }
                    Part::Later => return false,
                }
                replay.body += len;
                replay.keep -= len;
                if replay.body == symbols_at && replay.symbols_pending(self.state.symbols) {
                    self.write_symbols(replay, tag, out);
                }
                continue;
            }
            let len = replay.put.min(stop - replay.out);
            replay.copy(out, self.space.get(replay.edit..replay.edit + len).unwrap_or_default());
            replay.edit += len;
            replay.put -= len;
        }
        false
    }

    /// Reads the next edit. False behind the last, and behind the rest of the body.
    fn next_edit(&self, replay: &mut Replay, body_len: usize) -> bool {
        // Bytes that the last edit left out are skipped only now, so that symbols are not put there.
        replay.body += std::mem::take(&mut replay.leave);
        let mut edits = self.space.get(replay.edit..self.state.front).unwrap_or_default();
        if edits.is_empty() {
            replay.keep = body_len.saturating_sub(replay.body);
            return replay.keep > 0;
        }
        let before = edits.len();
        [replay.keep, replay.leave, replay.put] =
            [number(&mut edits), number(&mut edits), number(&mut edits)];
        replay.edit += before - edits.len();
        true
    }

    fn write_symbols(&self, replay: &mut Replay, tag: u8, out: &mut [u8]) {
        replay.symbols_written = true;
        let mut end = self.space.len();
        for _ in 0..self.state.symbols {
            let Some((rest, len)) = self.space.get(..end).and_then(<[u8]>::split_last_chunk) else { return };
            let len = u32::from_le_bytes(*len);
            let start = rest.len().saturating_sub(len as usize);
            replay.copy(out, &[tag]);
            replay.copy(out, Varint::new(u64::from(len)).as_bytes());
            replay.copy(out, rest.get(start..).unwrap_or_default());
            end = start;
        }
    }
}

/// How far the edited body is written.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// The place in the edits, in the body, and in the output.
    edit: usize,
    body: usize,
    out: usize,
    /// The rest of the current edit.
    keep: usize,
    leave: usize,
    put: usize,
    symbols_written: bool,
}

impl Replay {
    fn symbols_pending(&self, symbols: u32) -> bool {
        symbols > 0 && !self.symbols_written
    }

    fn copy(&mut self, out: &mut [u8], bytes: &[u8]) {
        if let Some(place) = out.get_mut(self.out..self.out + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.out += bytes.len();
    }
}

/// Reads a number in base 128.
#[inline]
fn number(bytes: &mut &[u8]) -> usize {
    if let Some((&byte @ 0..0x80, rest)) = bytes.split_first() {
        *bytes = rest;
        return usize::from(byte);
    }
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

    /// The edited body, the same whether it is written at once or byte by byte.
    fn replayed(edits: &mut Edits<'_>, body: &[u8], symbols_at: usize) -> String {
        let write = |edits: &mut Edits<'_>, most: usize| {
            let (added, left) = edits.balance();
            let mut out = vec![0; body.len() + added - left];
            let mut replay = Replay::default();
            while !edits.write(&mut replay, body, (b'#', symbols_at), &mut Used::default(), &mut out, most) {}
            assert_eq!(replay.out, out.len());
            String::from_utf8(out).unwrap()
        };
        let whole = write(edits, 1_000);
        assert_eq!(write(edits, 1), whole);
        whole
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
        edits.replace(1, b"").unwrap();
        assert_eq!(replayed(&mut edits, b"abcdefgh", 1), "a#\u{1}a#\u{2}bcbXYdegh");
        assert_eq!(replayed(&mut edits, b"abcdefgh", 0), "#\u{1}a#\u{2}bcabXYdegh");
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
