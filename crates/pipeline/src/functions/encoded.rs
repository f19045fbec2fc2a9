//! Maps and lists of texts, written by appending while their texts are read.
//!
//! Encoded values are written by [`any_value`](crate::any_value).

use crate::memory::Room;
use crate::value::Failure;
use tidegate_wire::output::Output;
use tidegate_wire::proto::write;

/// The fields of `AnyValue` that functions write themselves.
pub(super) const STRING: u32 = 1;
pub(super) const ARRAY: u32 = 5;
pub(super) const MAP: u32 = 6;

/// The field of elements in `ArrayValue` and of entries in `KeyValueList`.
pub(super) const ELEMENT: u32 = 1;
pub(super) const KEY: u32 = 1;
pub(super) const VALUE: u32 = 2;

/// A text to be copied, with what is behind it in its source: then a short one is copied in a step of constant size.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    source: &'a [u8],
    len: usize,
}

impl<'a> From<&'a [u8]> for Text<'a> {
    fn from(source: &'a [u8]) -> Text<'a> {
        Text { source, len: source.len() }
    }
}

impl<'a> Text<'a> {
    /// The first `len` bytes of `source`.
    #[inline(always)]
    pub(super) fn first(source: &'a [u8], len: usize) -> Text<'a> {
        Text { source, len: len.min(source.len()) }
    }

    #[inline(always)]
    pub(super) fn len(self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) fn bytes(self) -> &'a [u8] {
        self.source.get(..self.len).unwrap_or_default()
    }

    /// Copies the text to the start of `to`; what is behind it there may change, too. Returns the rest of `to`.
    #[inline(always)]
    fn copy(self, to: &mut [u8]) -> Option<&mut [u8]> {
        let (rest, is_copied) = (self.len, self.copy_step::<32>(to) || self.copy_step::<64>(to));
        if !is_copied {
            to.get_mut(..self.len)?.copy_from_slice(self.bytes());
        }
        to.get_mut(rest..)
    }

    /// Copies a text of at most `STEP` bytes where there are as many on both sides.
    #[inline(always)]
    fn copy_step<const STEP: usize>(self, to: &mut [u8]) -> bool {
        if self.len <= STEP
            && let Some(from) = self.source.first_chunk::<STEP>()
            && let Some(to) = to.first_chunk_mut::<STEP>()
        {
            *to = *from;
            return true;
        }
        false
    }
}

/// Appends an element that is a text to a list.
#[inline]
pub(super) fn put_text_item(room: &mut Room<'_>, text: Text<'_>) -> Result<(), Failure> {
    if let Some(len) = short(2 + text.len) {
        put(room, [0x0a, len, 0x0a, len - 2], |to| text.copy(to).map(drop), text.len)
    } else {
        write::length(room, ELEMENT, write::bytes_len(text.len as u64))?;
        Ok(write::bytes(room, STRING, text.bytes())?)
    }
}

/// Appends an element that is this `AnyValue` to a list.
#[inline]
pub(super) fn put_item<const LEN: usize>(room: &mut Room<'_>, value: [u8; LEN]) -> Result<(), Failure> {
    // A number, the longest, has nine bytes.
    put(room, [0x0a, LEN as u8], |to| copy_array(to, value), LEN)
}

/// Appends an entry whose value is a text to a map.
#[inline(always)]
pub(super) fn put_text_entry(room: &mut Room<'_>, key: Text<'_>, text: Text<'_>) -> Result<(), Failure> {
    if let (Some(len), Some(text_len)) = (short(6 + key.len + text.len), short(2 + text.len)) {
        let fill = |to: &mut [u8]| {
            let to = key.copy(to)?;
            let (head, to) = to.split_first_chunk_mut()?;
            *head = [0x12, text_len, 0x0a, text_len - 2];
            text.copy(to).map(drop)
        };
        return put(room, [0x0a, len, 0x0a, key.len as u8], fill, key.len + 4 + text.len);
    }
    put_long_text_entry(room, key.bytes(), text.bytes())
}

fn put_long_text_entry(room: &mut Room<'_>, key: &[u8], text: &[u8]) -> Result<(), Failure> {
    let value_len = write::bytes_len(text.len() as u64);
    write::length(room, ELEMENT, write::bytes_len(key.len() as u64) + write::bytes_len(value_len))?;
    write::bytes(room, KEY, key)?;
    write::length(room, VALUE, value_len)?;
    Ok(write::bytes(room, STRING, text)?)
}

/// Appends an entry whose value is this `AnyValue` to a map.
#[inline(always)]
pub(super) fn put_entry<const LEN: usize>(
    room: &mut Room<'_>,
    key: Text<'_>,
    value: [u8; LEN],
) -> Result<(), Failure> {
    if let Some(len) = short(4 + key.len + LEN) {
        let fill = |to: &mut [u8]| {
            let to = key.copy(to)?;
            let (head, to) = to.split_first_chunk_mut()?;
            *head = [0x12, LEN as u8];
            copy_array(to, value)
        };
        return put(room, [0x0a, len, 0x0a, key.len as u8], fill, key.len + 2 + LEN);
    }
    write::length(room, ELEMENT, write::bytes_len(key.len as u64) + write::bytes_len(LEN as u64))?;
    write::bytes(room, KEY, key.bytes())?;
    Ok(write::bytes(room, VALUE, &value)?)
}

/// A length that takes one byte.
#[inline(always)]
fn short(len: usize) -> Option<u8> {
    u8::try_from(len).ok().filter(|len| *len < 0x80)
}

#[inline(always)]
fn copy_array<const LEN: usize>(to: &mut [u8], from: [u8; LEN]) -> Option<()> {
    *to.first_chunk_mut()? = from;
    Some(())
}

/// Appends `head`, and `len` bytes that `fill` writes.
#[inline(always)]
fn put<const HEAD: usize>(
    room: &mut Room<'_>,
    head: [u8; HEAD],
    fill: impl FnOnce(&mut [u8]) -> Option<()>,
    len: usize,
) -> Result<(), Failure> {
    let (place, rest) = room.free().split_first_chunk_mut().ok_or(Failure::TooLarge)?;
    *place = head;
    fill(rest).ok_or(Failure::TooLarge)?;
    room.claim(HEAD + len);
    Ok(())
}

/// Where a message of unknown length begins in `room`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening(usize);

/// Begins a message whose length is not known: `field`, below 16, and room for a length below 128.
#[inline]
pub(super) fn open(room: &mut Room<'_>, field: u32) -> Result<Opening, Failure> {
    let [tag, ..] = (field << 3 | 2).to_le_bytes();
    room.put(&[tag, 0])?;
    Ok(Opening(room.len()))
}

/// Ends the message: writes its length, and moves the message when the length takes more than a byte.
#[inline]
pub(super) fn close(room: &mut Room<'_>, Opening(start): Opening) -> Result<(), Failure> {
    match (short(room.len() - start), room.written().get_mut(start - 1)) {
        (Some(len), Some(place)) => *place = len,
        _ => return close_long(room, start),
    }
    Ok(())
}

fn close_long(room: &mut Room<'_>, start: usize) -> Result<(), Failure> {
    let len = room.len() - start;
    let length = write::Varint::new(len as u64);
    let (length, more) = (length.as_bytes(), length.as_bytes().len() - 1);
    room.put(length.get(1..).unwrap_or_default())?;
    let written = room.written();
    written.copy_within(start..start + len, start + more);
    if let Some(place) = written.get_mut(start - 1..start + more) {
        place.copy_from_slice(length);
    }
    Ok(())
}

impl Opening {
    /// A message that begins at `start` of the room, right behind a length of one byte.
    pub(super) fn at(start: usize) -> Opening {
        Opening(start)
    }
}
