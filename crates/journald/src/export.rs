//! The journal export format.
//!
//! An entry is a sequence of fields, and ends with an empty line. A field is `NAME=text` and a newline, or the name and a
//! newline, the length of the value in eight bytes, the least significant first, the value, and a newline.
//!
//! Source: <https://systemd.io/JOURNAL_EXPORT_FORMATS/>.

use crate::fields::Fields;
use crate::record;
use memchr::{memchr, memchr2};
use std::ops::Range;

/// journald has names of at most 64 bytes.
const LONGEST_NAME: usize = 64;
/// journald itself takes no field beyond 768 MiB.
const LONGEST_VALUE: u64 = 1 << 30;

/// The bounds of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryLimits {
    /// Of `MESSAGE`, in bytes.
    pub message_bytes: usize,
    /// Of any other field, in bytes.
    pub field_bytes: usize,
    /// Of all other fields with their names, in bytes. Those that come last are left out.
    pub fields_bytes: usize,
    /// The number of fields.
    pub fields: usize,
}

impl EntryLimits {
    /// The memory of a decoder with these limits, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.message_bytes + self.fields_bytes + self.fields * size_of::<FieldRange>() + 2 * LONGEST_NAME
    }
}

/// The bytes are not in the export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the journal's export format has a field of {0} bytes, which cannot be")]
pub struct Malformed(u64);

/// How far [`Decoder::feed`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes were used up.
    pub consumed: usize,
    /// Whether an entry is complete, to be taken from [`Decoder::entry`] before more is fed.
    pub is_complete: bool,
}

/// An entry of the journal.
#[derive(Debug, Default)]
pub struct Entry {
    bytes: Vec<u8>,
    fields: Vec<FieldRange>,
    /// How many fields were left out, since there were too many or too much.
    pub left_out: u64,
}

#[derive(Debug, Clone)]
struct FieldRange {
    name: Range<u32>,
    value: Range<u32>,
    is_cut: bool,
}

/// A field of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value; any bytes.
    pub value: &'a [u8],
    /// Whether more of it was there.
    pub is_cut: bool,
}

/// Reads entries from chunks.
#[derive(Debug)]
pub struct Decoder {
    limits: EntryLimits,
    wanted: Fields,
    state: State,
    entry: Entry,
    /// Bytes of `MESSAGE`, which do not count as those of others.
    message_len: usize,
    /// The current field: where its name begins and its value, and how long the value may become.
    name_start: usize,
    value_start: usize,
    value_limit: usize,
    is_cut: bool,
    is_done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Name,
    Text { is_kept: bool },
    Length { bytes: [u8; 8], have: u8, is_kept: bool },
    Binary { left: u64, is_kept: bool },
    AfterBinary,
}

impl Entry {
    /// The fields, in the order of the journal.
    pub fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().map(|field| self.field(field))
    }

    /// The value of the first field with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.fields().find(|field| field.name == name).map(|field| field.value)
    }

    fn field(&self, field: &FieldRange) -> Field<'_> {
        let part = |range: &Range<u32>| self.bytes.get(range.start as usize..range.end as usize);
        let name = str::from_utf8(part(&field.name).unwrap_or_default()).unwrap_or_default();
        Field { name, value: part(&field.value).unwrap_or_default(), is_cut: field.is_cut }
    }
}

impl Decoder {
    /// A decoder that keeps the fields that the mapping needs, and those that are `wanted`.
    #[must_use]
    pub fn new(limits: EntryLimits, wanted: Fields) -> Decoder {
        Decoder {
            limits,
            wanted,
            state: State::Name,
            entry: Entry::default(),
            message_len: 0,
            name_start: 0,
            value_start: 0,
            value_limit: 0,
            is_cut: false,
            is_done: false,
        }
    }

    /// The entry that is complete.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Reads from a chunk up to the end of an entry, or to its own.
    ///
    /// # Errors
    /// [`Malformed`]; the decoder is of no use then.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Progress, Malformed> {
        if self.is_done {
            self.begin_entry();
        }
        let mut rest = chunk;
        while !rest.is_empty() && !self.is_done {
            rest = self.step(rest)?;
        }
        Ok(Progress { consumed: chunk.len() - rest.len(), is_complete: self.is_done })
    }

    /// Reads as much as belongs to the current state, at least a byte.
    fn step<'c>(&mut self, rest: &'c [u8]) -> Result<&'c [u8], Malformed> {
        match self.state {
            State::Name => {
                let len = memchr2(b'=', b'\n', rest).unwrap_or(rest.len());
                let (name, stop) = split(rest, len);
                self.push_name(name);
                let Some((&stop, after)) = stop.split_first() else { return Ok(stop) };
                let name_len = self.entry.bytes.len() - self.name_start;
                if stop == b'\n' && name_len == 0 {
                    // Entries are separated by empty lines, of which there may be several.
                    self.is_done = !self.entry.fields.is_empty();
                    return Ok(after);
                }
                let is_kept = self.begin_value();
                self.state = match stop {
                    b'=' => State::Text { is_kept },
                    _ => State::Length { bytes: [0; 8], have: 0, is_kept },
                };
                Ok(after)
            }
            State::Text { is_kept } => {
                let len = memchr(b'\n', rest).unwrap_or(rest.len());
                let (text, stop) = split(rest, len);
                self.push_value(text, is_kept);
                let Some((_, after)) = stop.split_first() else { return Ok(stop) };
                self.end_value(is_kept);
                Ok(after)
            }
            State::Length { mut bytes, have, is_kept } => {
                let Some((&byte, after)) = rest.split_first() else { return Ok(rest) };
                if let Some(place) = bytes.get_mut(usize::from(have)) {
                    *place = byte;
                }
                self.state = State::Length { bytes, have: have + 1, is_kept };
                if have == 7 {
                    let left = u64::from_le_bytes(bytes);
                    if left > LONGEST_VALUE {
                        return Err(Malformed(left));
                    }
                    self.state = State::Binary { left, is_kept };
                    if left == 0 {
                        self.end_value(is_kept);
                        self.state = State::AfterBinary;
                    }
                }
                Ok(after)
            }
            State::Binary { left, is_kept } => {
                let len = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                let (value, after) = split(rest, len);
                self.push_value(value, is_kept);
                let left = left - len as u64;
                self.state = State::Binary { left, is_kept };
                if left == 0 {
                    self.end_value(is_kept);
                    self.state = State::AfterBinary;
                }
                Ok(after)
            }
            State::AfterBinary => {
                self.state = State::Name;
                Ok(rest.strip_prefix(b"\n").unwrap_or(rest))
            }
        }
    }

    fn begin_entry(&mut self) {
        self.is_done = false;
        self.entry.bytes.clear();
        self.entry.fields.clear();
        self.entry.left_out = 0;
        (self.message_len, self.name_start) = (0, 0);
    }

    /// A name is kept up to one byte more than it may have, which shows that it is none.
    fn push_name(&mut self, name: &[u8]) {
        let have = self.entry.bytes.len() - self.name_start;
        let len = name.len().min((LONGEST_NAME + 1).saturating_sub(have));
        self.entry.bytes.extend_from_slice(split(name, len).0);
    }

    /// Whether the value of the field whose name is complete is to be kept, and how much of it.
    fn begin_value(&mut self) -> bool {
        self.value_start = self.entry.bytes.len();
        self.is_cut = false;
        let name = self.entry.bytes.get(self.name_start..).unwrap_or_default();
        let is_name = name.len() <= LONGEST_NAME
            && name.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
        let name = str::from_utf8(name).unwrap_or_default();
        if !is_name || !(record::is_mapped(name) || self.wanted.is_kept(name)) {
            return false;
        }
        let others = self.value_start - self.message_len;
        let left = self.limits.fields_bytes.checked_sub(others);
        self.value_limit = match left {
            _ if name == record::MESSAGE => self.limits.message_bytes.saturating_sub(self.message_len),
            Some(left) => left.min(self.limits.field_bytes),
            None => 0,
        };
        let fits =
            (left.is_some() || name == record::MESSAGE) && self.entry.fields.len() < self.limits.fields;
        self.entry.left_out += u64::from(!fits);
        fits
    }

    fn push_value(&mut self, value: &[u8], is_kept: bool) {
        if !is_kept {
            return;
        }
        let have = self.entry.bytes.len() - self.value_start;
        let len = value.len().min(self.value_limit.saturating_sub(have));
        self.is_cut |= len < value.len();
        self.entry.bytes.extend_from_slice(split(value, len).0);
    }

    fn end_value(&mut self, is_kept: bool) {
        self.state = State::Name;
        if !is_kept {
            self.entry.bytes.truncate(self.name_start);
            return;
        }
        let end = self.entry.bytes.len();
        let range = |start: usize, end: usize| Range {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            end: u32::try_from(end).unwrap_or(u32::MAX),
        };
        let name = range(self.name_start, self.value_start);
        if self.entry.bytes.get(self.name_start..self.value_start) == Some(record::MESSAGE.as_bytes()) {
            self.message_len += end - self.value_start;
        }
        self.entry.fields.push(FieldRange { name, value: range(self.value_start, end), is_cut: self.is_cut });
        self.name_start = end;
    }
}

fn split(bytes: &[u8], len: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(len).unwrap_or((bytes, &[]))
}

#[cfg(test)]
mod tests;
