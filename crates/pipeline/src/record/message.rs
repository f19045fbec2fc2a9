//! One message: where its fields are, which of them statements set, and how it is written again.

use super::attributes::{self, Attribute};
use super::shape::Shape;
use crate::any_value::{Entry, Sink};
use crate::memory::{Memory, Slice, Space};
use crate::run::rope::{Full, Rope};
use crate::table::MapTable;
use crate::value::Failure;
use std::ops::Range;
use tidegate_wire::proto::write::Varint;
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
    pub(crate) fields: Fields,
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
pub(crate) struct Fields {
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

impl Fields {
    pub(crate) const NONE: Fields = Fields { ranges: [(0, 0); STRETCHES], count: 0, members: 0 };

    /// All fields in this range of the body, without those whose bits `members` has.
    pub(crate) fn all(range: Range<usize>, members: u32) -> Fields {
        let mut fields = Fields { members, ..Fields::NONE };
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
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        self.ranges.into_iter().take(self.count).map(|(start, end)| start as usize..end as usize)
    }
}

impl Message {
    /// A message without a place for attributes, unless `with_table`.
    pub(super) fn new(shape: Shape, with_table: bool) -> Message {
        let slot = Slot { bits: 0, bytes: Slice::EMPTY, wire: WireType::Varint };
        Message {
            shape,
            fields: Fields::NONE,
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
    pub(crate) fn begin(&mut self, shape: Shape, fields: Fields) {
        self.shape = shape;
        self.fields = fields;
        self.is_read = false;
        self.seen = 0;
        self.set = 0;
        self.sets = 0;
        self.is_loaded = false;
        self.is_unloadable = false;
    }

    /// Whether a statement changed it.
    pub(crate) fn is_changed(&self) -> bool {
        self.set != 0 || self.is_table_changed()
    }

    /// How often statements changed it.
    pub(crate) fn changes(&self) -> u64 {
        let table = if self.is_loaded { self.table.changes() } else { 0 };
        u64::from(self.sets) + u64::from(table)
    }

    fn is_table_changed(&self) -> bool {
        self.is_loaded && self.table.is_changed()
    }

    /// What the field holds; `None` when it is not there.
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

    /// Whether a statement set the field.
    pub(super) fn was_set(&self, number: u32) -> bool {
        self.set & 1 << number != 0
    }

    /// The table of attributes.
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
        let mut is_one = true;
        for range in self.fields.ranges() {
            let mut fields = attributes::Attributes::new(memory.body, range, number);
            while let Some((raw, attribute)) = fields.next() {
                match attribute {
                    Attribute::Read(key, value) => {
                        self.table.push(Entry { key, value, raw: body(&raw) })?;
                    }
                    Attribute::Message(message) => self.table.add(memory, body(&raw), message)?,
                }
                match &mut self.stretch {
                    None => self.stretch = Some(raw),
                    Some(stretch) if stretch.end == raw.start => stretch.end = raw.end,
                    Some(_) => is_one = false,
                }
            }
        }
        self.stretch = self.stretch.take().filter(|_| is_one);
        Ok(())
    }

    /// Finds out where the fields are.
    fn read(&mut self, memory: &Memory<'_>) {
        if self.is_read {
            return;
        }
        self.is_read = true;
        for range in self.fields.ranges() {
            let mut reader = Reader::new(memory.body.get(range.clone()).unwrap_or_default());
            while let Ok(Some(key)) = reader.key() {
                let number = key.field;
                let (bits, len) = match key.wire {
                    WireType::Varint => (reader.varint(key), 0),
                    WireType::Fixed64 => (reader.fixed64(key), 0),
                    WireType::Fixed32 => (reader.fixed32(key).map(u64::from), 0),
                    WireType::Length => match reader.bytes(key) {
                        Ok(bytes) => (Ok(0), bytes.len()),
                        Err(error) => (Err(error), 0),
                    },
                };
                let Ok(bits) = bits else { break };
                let Some(slot) = self.slots.get_mut(number as usize) else { continue };
                let end = range.start + reader.offset();
                *slot = Slot { bits, bytes: body(&(end - len..end)), wire: key.wire };
                self.seen = self.seen & !self.alternative(number) | 1 << number;
            }
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

    /// Writes the fields with their changes.
    ///
    /// # Errors
    /// [`Full`] when the output has no room for the changes. It holds a part then.
    pub(crate) fn write(&self, memory: &Memory<'_>, rope: &mut Rope<'_>) -> Result<(), Full> {
        let mut cut = self.set | self.fields.members;
        for number in [4, 6] {
            if self.set & 1 << number != 0 {
                cut |= self.alternative(number);
            }
        }
        let attributes = if self.is_table_changed() { self.shape.attributes() } else { 0 };
        let mut is_table_written = attributes == 0;
        for range in self.fields.ranges() {
            self.write_range(range, cut, attributes, &mut is_table_written, memory, rope)?;
        }
        if !is_table_written {
            self.write_table(memory, rope)?;
        }
        self.write_set(memory, rope)
    }

    /// Writes the fields without their changes.
    ///
    /// # Errors
    /// [`Full`] when the output has no room.
    pub(crate) fn write_as_it_was(&self, memory: &Memory<'_>, rope: &mut Rope<'_>) -> Result<(), Full> {
        let mut ranges = self.fields.ranges();
        ranges.try_for_each(|range| self.write_range(range, self.fields.members, 0, &mut true, memory, rope))
    }

    /// Writes a range without the fields whose bits `cut` has, and the table in place of the first of the `attributes`.
    fn write_range(
        &self,
        range: Range<usize>,
        cut: u32,
        attributes: u32,
        is_table_written: &mut bool,
        memory: &Memory<'_>,
        rope: &mut Rope<'_>,
    ) -> Result<(), Full> {
        if cut == 0 && attributes == 0 {
            return rope.body(range);
        }
        if let Some(stretch) = &self.stretch
            && cut == 0
            && range.start <= stretch.start
            && stretch.end <= range.end
        {
            rope.body(range.start..stretch.start)?;
            *is_table_written = true;
            self.write_table(memory, rope)?;
            return rope.body(stretch.end..range.end);
        }
        let mut reader = Reader::new(memory.body.get(range.clone()).unwrap_or_default());
        let mut start = 0;
        loop {
            let before = reader.offset();
            let Ok(Some(key)) = reader.key() else { break };
            if reader.skip(key).is_err() {
                break;
            }
            let is_attribute = key.field == attributes;
            if is_attribute || key.field < 32 && cut & 1 << key.field != 0 {
                rope.body(range.start + start..range.start + before)?;
                start = reader.offset();
                if is_attribute && !std::mem::replace(is_table_written, true) {
                    self.write_table(memory, rope)?;
                }
            }
        }
        rope.body(range.start + start..range.end)
    }

    fn write_table(&self, memory: &Memory<'_>, rope: &mut Rope<'_>) -> Result<(), Full> {
        self.table.write(self.shape.attributes(), &mut RopeSink { memory, rope }).map_err(|_| Full)
    }

    fn write_set(&self, memory: &Memory<'_>, rope: &mut Rope<'_>) -> Result<(), Full> {
        let mut rest = self.set;
        while rest != 0 {
            let number = rest.trailing_zeros();
            rest &= rest - 1;
            if let Some(slot) = self.slots.get(number as usize) {
                write_slot(number, slot, memory, rope)?;
            }
        }
        Ok(())
    }
}

fn write_slot(number: u32, slot: &Slot, memory: &Memory<'_>, rope: &mut Rope<'_>) -> Result<(), Full> {
    let tag = |wire: u32| Varint::new(u64::from(number << 3 | wire));
    let mut field = [0; 24];
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        if let Some(to) = field.get_mut(len..len + bytes.len()) {
            to.copy_from_slice(bytes);
            len += bytes.len();
        }
    };
    match slot.wire {
        WireType::Varint => {
            put(tag(0).as_bytes());
            put(Varint::new(slot.bits).as_bytes());
        }
        WireType::Fixed64 => {
            put(tag(1).as_bytes());
            put(&slot.bits.to_le_bytes());
        }
        WireType::Fixed32 => {
            put(tag(5).as_bytes());
            put(&(slot.bits as u32).to_le_bytes());
        }
        WireType::Length if slot.bytes.len == 0 => return Ok(()),
        WireType::Length => {
            put(tag(2).as_bytes());
            put(Varint::new(u64::from(slot.bytes.len)).as_bytes());
        }
    }
    rope.bytes(field.get(..len).unwrap_or_default())?;
    if slot.wire == WireType::Length { rope.slice(memory, slot.bytes) } else { Ok(()) }
}

/// Writes a table to the output.
struct RopeSink<'r, 'm, 'b, 'o> {
    memory: &'m Memory<'b>,
    rope: &'r mut Rope<'o>,
}

impl Sink for RopeSink<'_, '_, '_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.rope.bytes(bytes).map_err(|Full| Failure::TooLarge)
    }

    fn put_slice(&mut self, slice: Slice) -> Result<(), Failure> {
        self.rope.slice(self.memory, slice).map_err(|Full| Failure::TooLarge)
    }
}

/// A range of the body as a slice.
pub(crate) fn body(range: &Range<usize>) -> Slice {
    Slice { start: range.start as u32, len: range.len() as u32, space: Space::Body }
}
