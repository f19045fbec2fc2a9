//! Maps and lists of texts, written by appending while their texts are read.
//!
//! What is made of values is written by [`any_value`](crate::any_value).

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

/// Appends an element that is a text to a list.
pub(super) fn put_text_item(room: &mut Room<'_>, text: &[u8]) -> Result<(), Failure> {
    write::length(room, ELEMENT, write::bytes_len(text.len() as u64))?;
    Ok(write::bytes(room, STRING, text)?)
}

/// Appends an entry whose value is a text to a map.
pub(super) fn put_text_entry(room: &mut Room<'_>, key: &[u8], text: &[u8]) -> Result<(), Failure> {
    let value_len = write::bytes_len(text.len() as u64);
    write::length(room, ELEMENT, write::bytes_len(key.len() as u64) + write::bytes_len(value_len))?;
    write::bytes(room, KEY, key)?;
    write::length(room, VALUE, value_len)?;
    Ok(write::bytes(room, STRING, text)?)
}

/// Where a message of unknown length begins in `room`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening(usize);

/// Begins a message whose length is not known: `field`, below 16, and room for a length below 128.
pub(super) fn open(room: &mut Room<'_>, field: u32) -> Result<Opening, Failure> {
    let [tag, ..] = (field << 3 | 2).to_le_bytes();
    room.put(&[tag, 0])?;
    Ok(Opening(room.len()))
}

/// Ends the message: writes its length, and moves the message when the length takes more than a byte.
pub(super) fn close(room: &mut Room<'_>, Opening(start): Opening) -> Result<(), Failure> {
    let len = room.len() - start;
    let length = write::Varint::new(len as u64);
    let (length, more) = (length.as_bytes(), length.as_bytes().len() - 1);
    room.put(length.get(1..).unwrap_or_default())?;
    let written = room.written();
    if more > 0 {
        written.copy_within(start..start + len, start + more);
    }
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
