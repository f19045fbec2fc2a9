//! Writes a message with its changes: what did not change is ranges of the body.

use super::{Message, Slot, read_field};
use crate::any_value::Sink;
use crate::memory::{Memory, Slice};
use crate::run::rope::{Full, Rope};
use crate::value::Failure;
use std::ops::Range;
use tidegate_wire::proto::WireType;
use tidegate_wire::proto::write::Varint;

impl Message {
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
        let (mut start, mut at) = (range.start, range.start);
        while let Some(field) = read_field(memory.body, at..range.end) {
            let before = std::mem::replace(&mut at, field.end);
            let is_attribute = field.number == attributes;
            if is_attribute || field.number < 32 && cut & 1 << field.number != 0 {
                rope.body(start..before)?;
                start = at;
                if is_attribute && !std::mem::replace(is_table_written, true) {
                    self.write_table(memory, rope)?;
                }
            }
        }
        rope.body(start..range.end)
    }

    fn write_table(&self, memory: &Memory<'_>, rope: &mut Rope<'_>) -> Result<(), Full> {
        let mut sink = RopeSink { memory, rope, gathered: [0; GATHERED], len: 0 };
        let written = self.table.write(self.shape.attributes(), &mut sink);
        written.and_then(|()| sink.flush()).map_err(|_| Full)
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
        WireType::Length if slot.is_whole_fields() => return rope.slice(memory, slot.bytes),
        WireType::Length => {
            put(tag(2).as_bytes());
            put(Varint::new(u64::from(slot.bytes.len)).as_bytes());
        }
    }
    rope.bytes(field.get(..len).unwrap_or_default())?;
    if slot.wire == WireType::Length { rope.slice(memory, slot.bytes) } else { Ok(()) }
}

/// Writes a table to the output: short parts are gathered first.
struct RopeSink<'r, 'm, 'b, 'o> {
    memory: &'m Memory<'b>,
    rope: &'r mut Rope<'o>,
    gathered: [u8; GATHERED],
    len: usize,
}

/// The most bytes that are gathered before they are put on the rope.
const GATHERED: usize = 128;

impl RopeSink<'_, '_, '_, '_> {
    #[inline]
    fn flush(&mut self) -> Result<(), Failure> {
        let len = std::mem::take(&mut self.len);
        let gathered = self.gathered.get(..len).unwrap_or_default();
        if gathered.is_empty() {
            return Ok(());
        }
        self.rope.bytes(gathered).map_err(|Full| Failure::TooLarge)
    }
}

impl Sink for RopeSink<'_, '_, '_, '_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.len + bytes.len() > GATHERED {
            self.flush()?;
        }
        match self.gathered.get_mut(self.len..self.len + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.len += bytes.len();
                Ok(())
            }
            None => self.rope.bytes(bytes).map_err(|Full| Failure::TooLarge),
        }
    }

    #[inline]
    fn put_slice(&mut self, slice: Slice) -> Result<(), Failure> {
        if slice.len < 32 {
            return self.put(self.memory.get(slice));
        }
        self.flush()?;
        self.rope.slice(self.memory, slice).map_err(|Full| Failure::TooLarge)
    }
    fn put_fields(
        &mut self,
        fields: Slice,
        tag: u8,
        starts: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), Failure> {
        self.flush()?;
        self.rope.fields(self.memory.get(fields), tag, starts).map_err(|Full| Failure::TooLarge)
    }
}
