//! The attributes of one record, resource or scope while statements read and change them.

use crate::any_value::{self, Entry, RepeatedField, Sink};
use crate::memory::{Memory, Slice, Space};
use crate::value::{Failure, Value};
use std::ops::Range;

/// The tag of a pair of a map.
const PAIR_TAG: u8 = 1 << 3 | 2;

#[cfg(test)]
mod tests;

/// A map of constant capacity, in the order of the wire. The first of several pairs with one key is the one that counts.
///
/// Invariant: an entry with a `raw` range is unchanged since it was read from that: in the temporary space a field of a map,
/// whose number is 1, elsewhere a field with the number `number`.
#[derive(Debug, Default)]
pub(crate) struct MapTable {
    entries: Vec<Entry>,
    number: u32,
    /// How often it was changed since it was loaded.
    changes: u32,
}

impl MapTable {
    /// The most entries of a table.
    pub(crate) const CAPACITY: usize = 4096;

    /// The bytes that a table takes.
    pub(crate) const BYTES: usize = size_of::<MapTable>() + Self::CAPACITY * size_of::<Entry>();

    pub(crate) fn new() -> MapTable {
        MapTable { entries: Vec::with_capacity(Self::CAPACITY), number: 0, changes: 0 }
    }

    /// Empties the table, to be filled by [`add`](Self::add) with fields of this number.
    #[inline]
    pub(crate) fn begin(&mut self, number: u32) {
        self.entries.clear();
        self.number = number;
        self.changes = 0;
    }

    /// Adds the `KeyValue` message of a field.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the table is full.
    pub(crate) fn add(&mut self, memory: &Memory<'_>, raw: Slice, message: Slice) -> Result<(), Failure> {
        let (key, value) = any_value::read_pair(memory, message);
        self.push(Entry { key, value, raw })
    }

    /// Fills the table with the fields `number` of `message`. A map's content has the number 1.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when there are too many; the table holds some of them then.
    pub(crate) fn load(&mut self, memory: &Memory<'_>, message: Slice, number: u32) -> Result<(), Failure> {
        self.begin(number);
        let mut fields = RepeatedField::new(message, number);
        while let Some((raw, payload)) = fields.next(memory) {
            self.add(memory, raw, payload)?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether a statement changed it since it was loaded.
    #[inline]
    pub(crate) fn is_changed(&self) -> bool {
        self.changes != 0
    }

    /// How often a statement changed it since it was loaded.
    #[inline]
    pub(crate) fn changes(&self) -> u32 {
        self.changes
    }

    #[inline]
    fn note(&mut self, is_change: bool) {
        self.changes = self.changes.saturating_add(u32::from(is_change));
    }

    /// The place of the first entry with this key.
    #[inline]
    pub(crate) fn find(&self, memory: &Memory<'_>, key: Slice) -> Option<usize> {
        let name = memory.get(key);
        self.entries.iter().position(|entry| entry.key.len == key.len && memory.get(entry.key) == name)
    }

    /// The value of a key; `None` when it is missing.
    #[inline]
    pub(crate) fn get(&self, memory: &Memory<'_>, key: Slice) -> Option<Value> {
        self.find(memory, key).and_then(|at| self.entries.get(at)).map(|entry| entry.value)
    }

    /// Sets the value of a key, in its place or at the end. An equal value is no change.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the table is full.
    pub(crate) fn set(&mut self, memory: &Memory<'_>, key: Slice, value: Value) -> Result<(), Failure> {
        match self.find(memory, key) {
            Some(at) => self.set_at(memory, at, value),
            None => self.add_new(key, value)?,
        }
        Ok(())
    }

    /// Adds a key that is not there, at the end.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the table is full.
    #[inline]
    pub(crate) fn add_new(&mut self, key: Slice, value: Value) -> Result<(), Failure> {
        self.push(Entry { key, value, raw: Slice::EMPTY })?;
        self.note(true);
        Ok(())
    }

    /// As [`add_new`](Self::add_new) with a pair of a map, whose bytes are written as they are.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the table is full.
    #[inline]
    pub(crate) fn add_pair(&mut self, memory: &Memory<'_>, pair: Entry) -> Result<(), Failure> {
        let is_short = pair.raw.space == Space::Temporary && memory.get(pair.raw).first() == Some(&PAIR_TAG);
        self.push(Entry { raw: if is_short { pair.raw } else { Slice::EMPTY }, ..pair })?;
        self.note(true);
        Ok(())
    }

    /// Sets the value of the entry at `at`. An equal value is no change.
    #[inline]
    pub(crate) fn set_at(&mut self, memory: &Memory<'_>, at: usize, value: Value) {
        if let Some(entry) = self.entries.get_mut(at)
            && !is_identical(memory, entry.value, value)
        {
            entry.value = value;
            entry.raw = Slice::EMPTY;
            self.note(true);
        }
    }

    /// Removes the first entry with this key.
    pub(crate) fn remove(&mut self, memory: &Memory<'_>, key: Slice) {
        if let Some(at) = self.find(memory, key) {
            self.entries.remove(at);
            self.note(true);
        }
    }

    /// Keeps the entries for which `keep` is true.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        let before = self.entries.len();
        self.entries.retain(keep);
        self.note(self.entries.len() != before);
    }

    /// Replaces the entries by the pairs of a map.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the map has too many; the table is as it was then.
    pub(crate) fn assign(&mut self, memory: &Memory<'_>, map: Slice) -> Result<(), Failure> {
        if any_value::count(memory, map) > Self::CAPACITY {
            return Err(Failure::TooLarge);
        }
        let mut pairs = any_value::Pairs::new(map);
        self.replace(memory, std::iter::from_fn(|| pairs.next(memory)))
    }

    /// Replaces the entries by others, which are at most [`CAPACITY`](Self::CAPACITY). Equal ones in the same place are no change.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when there are more.
    pub(crate) fn replace(
        &mut self,
        memory: &Memory<'_>,
        others: impl Iterator<Item = Entry>,
    ) -> Result<(), Failure> {
        let mut len = 0;
        for other in others {
            let other = Entry { raw: Slice::EMPTY, ..other };
            match self.entries.get_mut(len) {
                Some(entry)
                    if memory.get(entry.key) == memory.get(other.key)
                        && is_identical(memory, entry.value, other.value) => {}
                Some(entry) => {
                    *entry = other;
                    self.note(true);
                }
                None => {
                    self.push(other)?;
                    self.note(true);
                }
            }
            len += 1;
        }
        self.note(len != self.entries.len());
        self.entries.truncate(len);
        Ok(())
    }

    /// Adds an entry of the body.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the table is full.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) -> Result<(), Failure> {
        if self.entries.len() >= self.entries.capacity().min(Self::CAPACITY) {
            return Err(Failure::TooLarge);
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the entries as fields `number`; 1 gives the content of a map. Unchanged neighbours are one copy.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when `out` is full.
    pub(crate) fn write(&self, number: u32, out: &mut impl Sink) -> Result<(), Failure> {
        let mut run = Neighbours::default();
        for (at, entry) in self.entries.iter().enumerate() {
            let Some(raw_number) =
                self.raw_number(entry).filter(|raw| *raw == number || entry.raw.space == Space::Temporary)
            else {
                self.write_neighbours(number, &mut run, out)?;
                any_value::write_pair(number, entry.key, entry.value, out)?;
                continue;
            };
            let raw = entry.raw;
            if run.number == raw_number && run.bytes.space == raw.space && run.end() == raw.start {
                run.bytes.len += raw.len;
                run.entries.end = at + 1;
            } else {
                self.write_neighbours(number, &mut run, out)?;
                run = Neighbours { bytes: raw, number: raw_number, entries: at..at + 1 };
            }
        }
        self.write_neighbours(number, &mut run, out)
    }

    /// The number of the field whose bytes an unchanged entry has.
    #[inline]
    fn raw_number(&self, entry: &Entry) -> Option<u32> {
        match entry.raw {
            Slice { len: 0, .. } => None,
            Slice { space: Space::Temporary, .. } => Some(1),
            _ => Some(self.number),
        }
    }

    #[inline]
    fn write_neighbours(
        &self,
        number: u32,
        run: &mut Neighbours,
        out: &mut impl Sink,
    ) -> Result<(), Failure> {
        let Neighbours { bytes, number: raw_number, entries } = std::mem::take(run);
        match u8::try_from(number << 3 | 2) {
            _ if bytes.len == 0 => Ok(()),
            _ if raw_number == number => out.put_slice(bytes),
            Ok(tag) if tag < 0x80 => {
                let entries = self.entries.get(entries).unwrap_or_default();
                out.put_fields(
                    bytes,
                    tag,
                    entries.iter().map(|entry| (entry.raw.start - bytes.start) as usize),
                )
            }
            _ => {
                let entries = self.entries.get(entries).unwrap_or_default();
                entries
                    .iter()
                    .try_for_each(|entry| any_value::write_pair(number, entry.key, entry.value, out))
            }
        }
    }

    /// The entries as a map.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the memory is full.
    pub(crate) fn to_map(&self, memory: &mut Memory<'_>) -> Result<Slice, Failure> {
        memory.build(|memory| self.write(1, memory))
    }
}

/// Unchanged entries that are neighbours in the memory, too.
struct Neighbours {
    bytes: Slice,
    /// The number of their fields.
    number: u32,
    entries: Range<usize>,
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours { bytes: Slice::EMPTY, number: 0, entries: 0..0 }
    }
}

impl Neighbours {
    fn end(&self) -> u32 {
        self.bytes.start + self.bytes.len
    }
}

/// Whether two values are written alike: what `==` says of doubles does not count here.
#[inline]
fn is_identical(memory: &Memory<'_>, one: Value, other: Value) -> bool {
    match (one, other) {
        (Value::Text(one), Value::Text(other))
        | (Value::Bytes(one), Value::Bytes(other))
        | (Value::Map(one), Value::Map(other))
        | (Value::List(one), Value::List(other)) => memory.get(one) == memory.get(other),
        (Value::Double(one), Value::Double(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}
