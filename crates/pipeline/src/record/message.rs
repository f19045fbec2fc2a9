//! One message: where its fields are, which of them statements set, and how it is written again.

mod write;

use super::attributes::{self, Attribute};
use super::shape::Shape;
use crate::any_value::Entry;
use crate::memory::{Memory, Slice, Space};
use crate::table::MapTable;
use crate::value::{Failure, Value};
use std::ops::Range;
use tidegate_wire::proto::{Reader, WireType};

/// The largest field number of a message that statements know, and one.
const FIELDS: usize = 17;
/// Stretches of fields that a message remembers.
const STRETCHES: usize = 4;

/// A message of the body, and its changes.
///
/// Invariant: what `slots` holds of field `n` counts only when `seen` has the bit `n`; then it is the last occurrence of the
/// field, or what a statement set.
#[derive(Debug)]
pub(crate) struct Message {
    pub(super) shape: Shape,
    /// Where its fields are: its content, without the members that a walk goes through on its own.
    pub(crate) fields: FieldRanges,
    is_read: bool,
    seen: u32,
    /// Fields that statements set.
    set: u32,
    /// How often.
    sets: u32,
    slots: [Slot; FIELDS],
    table: MapTable,
    is_loaded: bool,
    /// The table could not be loaded.
    is_unloadable: bool,
    /// Where the attributes are, if they are neighbours. It counts only when the table is loaded.
    stretch: Option<Range<usize>>,
}

/// Ranges of the body that hold fields of a message, and the fields in them that are not of interest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldRanges {
    ranges: [(u32, u32); STRETCHES],
    count: usize,
    /// Numbers of fields to pass over, as bits.
    members: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) bits: u64,
    pub(super) bytes: Slice,
    pub(super) wire: WireType,
}

impl FieldRanges {
    pub(crate) const NONE: FieldRanges = FieldRanges { ranges: [(0, 0); STRETCHES], count: 0, members: 0 };

    /// All fields in this range of the body, without those whose bits `members` has.
    #[inline]
    pub(crate) fn all(range: Range<usize>, members: u32) -> FieldRanges {
        let mut fields = FieldRanges { members, ..FieldRanges::NONE };
        fields.add(range);
        fields
    }

    /// Adds a range. Returns false when there are too many.
    pub(crate) fn add(&mut self, range: Range<usize>) -> bool {
        let (start, end) = (range.start as u32, range.end as u32);
        if let Some(last) = self.count.checked_sub(1).and_then(|last| self.ranges.get_mut(last))
            && last.1 == start
        {
            last.1 = end;
            return true;
        }
        let Some(place) = self.ranges.get_mut(self.count) else { return false };
        *place = (start, end);
        self.count += 1;
        true
    }

    /// The ranges.
    #[inline]
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        self.ranges.into_iter().take(self.count).map(|(start, end)| start as usize..end as usize)
    }
}

/// [`Slot::bits`] of bytes that are whole fields, with their tags and lengths.
const WHOLE_FIELDS: u64 = 1;

impl Slot {
    /// All occurrences of a repeated field, with their tags and lengths.
    pub(super) fn whole_fields(bytes: Slice) -> Slot {
        Slot { bits: WHOLE_FIELDS, bytes, wire: WireType::Length }
    }

    /// Whether the bytes are whole fields.
    fn is_whole_fields(&self) -> bool {
        self.wire == WireType::Length && self.bits == WHOLE_FIELDS
    }
}

impl Message {
    /// A message without a place for attributes, unless `with_table`.
    pub(super) fn new(shape: Shape, with_table: bool) -> Message {
        let slot = Slot { bits: 0, bytes: Slice::EMPTY, wire: WireType::Varint };
        Message {
            shape,
            fields: FieldRanges::NONE,
            is_read: false,
            seen: 0,
            set: 0,
            sets: 0,
            slots: [slot; FIELDS],
            table: if with_table { MapTable::new() } else { MapTable::default() },
            is_loaded: false,
            is_unloadable: false,
            stretch: None,
        }
    }

    /// Begins another message, with these fields.
    #[inline]
    pub(crate) fn begin(&mut self, shape: Shape, fields: FieldRanges) {
        self.shape = shape;
        self.fields = fields;
        self.is_read = false;
        self.seen = 0;
        self.set = 0;
        self.sets = 0;
        self.is_loaded = false;
        self.is_unloadable = false;
    }

    /// Forgets all changes.
    pub(crate) fn begin_again(&mut self) {
        self.begin(self.shape, self.fields);
    }

    /// Whether a statement changed it.
    #[inline]
    pub(crate) fn is_changed(&self) -> bool {
        self.set != 0 || self.is_table_changed()
    }

    /// How often statements changed it.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        let table = if self.is_loaded { self.table.changes() } else { 0 };
        u64::from(self.sets) + u64::from(table)
    }

    #[inline]
    fn is_table_changed(&self) -> bool {
        self.is_loaded && self.table.is_changed()
    }

    /// The value of the field; `None` when it is not there.
    #[inline]
    pub(super) fn slot(&mut self, memory: &Memory<'_>, number: u32) -> Option<Slot> {
        self.read(memory);
        if self.seen & 1 << number == 0 {
            return None;
        }
        self.slots.get(number as usize).copied()
    }

    /// Sets a field; an empty text or message is as good as none. An equal value is no change.
    pub(super) fn set(&mut self, memory: &Memory<'_>, number: u32, slot: Slot) {
        let is_equal = match self.slot(memory, number) {
            Some(old) if slot.wire == WireType::Length => memory.get(old.bytes) == memory.get(slot.bytes),
            Some(old) => old.bits == slot.bits,
            None => slot.wire == WireType::Length && slot.bytes.len == 0,
        };
        if !is_equal {
            self.replace(memory, number, slot);
        }
    }

    /// Sets a field in place of all of its occurrences.
    pub(super) fn replace(&mut self, memory: &Memory<'_>, number: u32, slot: Slot) {
        self.read(memory);
        if let Some(place) = self.slots.get_mut(number as usize) {
            *place = slot;
            self.seen |= 1 << number;
            self.set |= 1 << number;
            self.sets = self.sets.saturating_add(1);
        }
        let other = self.alternative(number);
        self.seen &= !other;
        self.set &= !other;
    }

    /// Removes a field, if it is there.
    pub(super) fn remove(&mut self, memory: &Memory<'_>, number: u32) {
        if self.slot(memory, number).is_some() {
            self.replace(memory, number, Slot { bits: 0, bytes: Slice::EMPTY, wire: WireType::Length });
        }
    }

    /// Whether a statement set the field.
    pub(super) fn was_set(&self, number: u32) -> bool {
        self.set & 1 << number != 0
    }

    /// The table of attributes.
    #[inline]
    pub(super) fn attributes(&mut self, memory: &Memory<'_>) -> Result<&mut MapTable, Failure> {
        if !self.is_loaded {
            let number = self.shape.attributes();
            self.table.begin(number);
            self.is_loaded = true;
            self.is_unloadable = self.load(memory, number).is_err();
        }
        if self.is_unloadable {
            // It was not changed, so it will be written as it was.
            return Err(Failure::TooLarge);
        }
        Ok(&mut self.table)
    }

    fn load(&mut self, memory: &Memory<'_>, number: u32) -> Result<(), Failure> {
        self.stretch = None;
        let mut stretch: Option<Range<usize>> = None;
        let mut is_one = true;
        let mut note = |raw: Range<usize>| match &mut stretch {
            None => stretch = Some(raw),
            Some(stretch) if stretch.end == raw.start => stretch.end = raw.end,
            Some(_) => is_one = false,
        };
        for range in self.fields.ranges() {
            let mut fields = attributes::Attributes::new(memory.body, range, number);
            loop {
                fields.pass_others();
                if let Some(text) = fields.next_text() {
                    let (key, raw) = (text.key(), body(&text.field()));
                    self.table.push(Entry { key, value: Value::Text(text.text()), raw })?;
                    note(text.field());
                    continue;
                }
                let Some((raw, attribute)) = fields.next() else { break };
                match attribute {
                    Attribute::Read(key, value) => {
                        self.table.push(Entry { key, value, raw: body(&raw) })?;
                    }
                    Attribute::Message(message) => self.table.add(memory, body(&raw), message)?,
                }
                note(raw);
            }
        }
        self.stretch = stretch.filter(|_| is_one);
        Ok(())
    }

    /// Finds out where the fields are.
    fn read(&mut self, memory: &Memory<'_>) {
        if self.is_read {
            return;
        }
        self.is_read = true;
        for range in self.fields.ranges() {
            let mut at = range.start;
            while let Some(rest) = memory.body.get(at..range.end) {
                // Apart, so that the usual field stays in registers.
                if let Some(field) = read_short_field(rest, at) {
                    at = field.end;
                    self.note(&field);
                    continue;
                }
                let Some(field) = read_any_field(rest, at) else { break };
                at = field.end;
                self.note(&field);
            }
        }
    }

    /// Keeps what a field holds.
    #[inline(always)]
    fn note(&mut self, field: &ReadField) {
        if let Some(slot) = self.slots.get_mut(field.number as usize) {
            *slot = field.slot;
            self.seen = self.seen & !self.alternative(field.number) | 1 << field.number;
        }
    }

    /// The bit of the field that this one takes the place of: the two kinds of a number's value.
    fn alternative(&self, number: u32) -> u32 {
        match (self.shape, number) {
            (Shape::Number, 4) => 1 << 6,
            (Shape::Number, 6) => 1 << 4,
            _ => 0,
        }
    }
}

/// A field as it was read.
struct ReadField {
    number: u32,
    slot: Slot,
    end: usize,
}

/// The field at the start of a range of the body; `None` at its end.
#[inline]
fn read_field(raw: &[u8], range: Range<usize>) -> Option<ReadField> {
    let rest = raw.get(range.clone())?;
    read_short_field(rest, range.start).or_else(|| read_any_field(rest, range.start))
}

/// The first field of `rest`, which begins at `start`, if its tag, and its length or number, have one byte each: most
/// fields of most records.
#[inline(always)]
fn read_short_field(rest: &[u8], start: usize) -> Option<ReadField> {
    let [tag @ 8..0x80, next, behind @ ..] = rest else { return None };
    let number = u32::from(*tag >> 3);
    let end = start + 2;
    match (tag & 7, next) {
        (0, bits @ 0..0x80) => {
            let slot = Slot { bits: u64::from(*bits), bytes: body(&(end..end)), wire: WireType::Varint };
            Some(ReadField { number, slot, end })
        }
        (1, _) => {
            let bits = u64::from_le_bytes(*rest.get(1..)?.first_chunk()?);
            let end = start + 9;
            let slot = Slot { bits, bytes: body(&(end..end)), wire: WireType::Fixed64 };
            Some(ReadField { number, slot, end })
        }
        (2, len @ 0..0x80) if behind.len() >= usize::from(*len) => {
            let payload = end..end + usize::from(*len);
            let slot = Slot { bits: 0, bytes: body(&payload), wire: WireType::Length };
            Some(ReadField { number, slot, end: payload.end })
        }
        _ => None,
    }
}

/// As [`read_short_field`], however the field is written; `None` at the end.
fn read_any_field(rest: &[u8], start: usize) -> Option<ReadField> {
    let mut reader = Reader::new(rest);
    let key = reader.key().ok()??;
    let (bits, len) = match key.wire {
        WireType::Varint => (reader.varint(key).ok()?, 0),
        WireType::Fixed64 => (reader.fixed64(key).ok()?, 0),
        WireType::Fixed32 => (reader.fixed32(key).ok().map(u64::from)?, 0),
        WireType::Length => (0, reader.bytes(key).ok()?.len()),
    };
    let end = start + reader.offset();
    Some(ReadField {
        number: key.field,
        slot: Slot { bits, bytes: body(&(end - len..end)), wire: key.wire },
        end,
    })
}

/// A range of the body as a slice.
#[inline]
pub(crate) fn body(range: &Range<usize>) -> Slice {
    Slice { start: range.start as u32, len: range.len() as u32, space: Space::Body }
}
