//! Writes what a message says about all of its members: a resource, a scope, a span without its events, a metric.
//!
//! It stands before the members where it can. Where a record below may still change it, it is written before them as it
//! is in the body, and again behind them if it was changed.

use super::Walk;
use super::open::{Container, Own};
use super::rope::{Full, Rope};
use crate::memory::Memory;
use crate::record::Owner;
use crate::step::Verdict;
use tidegate_wire::proto::Reader;
use tidegate_wire::proto::write::Varint;

impl Walk<'_> {
    /// Whether the own fields of a message, whose content begins at `start`, are written apart from its members, because
    /// statements may change them.
    pub(super) fn defers(&self, kind: Container, start: usize) -> bool {
        match kind {
            Container::Request => false,
            // Of several, as no encoder writes them, the last counts.
            Container::Data => {
                let metric = self.stack.get(self.depth).and_then(|around| around.own.message);
                self.pass.access.writes_data && metric.is_some_and(|(_, first, _)| first == start)
            }
            _ => kind.level().is_some_and(|level| self.pass.access.writes_level(level)),
        }
    }

    /// Whether a statement changed the own fields of the current message.
    pub(super) fn is_own_changed(&self) -> bool {
        let record = &*self.tools.record;
        let Some(top) = self.stack.get(self.depth) else { return false };
        top.defers
            && match top.kind {
                Container::Request => false,
                Container::Resource => record.resource.is_changed(),
                Container::Scope => record.scope.is_changed(),
                Container::Span | Container::Metric => record.item.is_changed(),
                Container::Data => record.data.is_changed(),
            }
    }

    /// The field number of the current message as it was written: statements may give a metric another kind of data.
    pub(super) fn field_now(&self, kind: Container, field: u32) -> u32 {
        let is_changed = self.stack.get(self.depth).is_some_and(|top| top.is_front_changed);
        if kind == Container::Data && is_changed { self.tools.record.data.kind() } else { field }
    }

    /// Writes the own fields before the members.
    pub(super) fn write_front(&mut self) -> Result<(), Full> {
        let Some(top) = self.stack.get(self.depth) else { return Ok(()) };
        let (kind, own) = (top.kind, top.own);
        if !top.defers {
            return Ok(());
        }
        let around = self.depth.checked_sub(1).and_then(|depth| self.stack.get(depth));
        let bytes = match kind {
            Container::Data => around.map_or(0, |metric| metric.own.data_bytes),
            _ => own.bytes,
        };
        let is_changed = self.is_own_changed() && !self.is_late(kind);
        let (before, len, above) = (self.rope.checkpoint(), self.rope.len(), top.grown);
        self.rope.wrote_ahead(bytes);
        let mut part = self.rope.begin_part()?;
        let written = self.write_own(kind, &own, is_changed).and_then(|()| self.rope.end_part(&mut part));
        let mut grown = above.saturating_add((self.rope.len() - len).saturating_sub(bytes));
        let written = if grown > above && grown > self.growth { Err(Full) } else { written };
        if is_changed && written.and_then(|()| self.rope.check_room()).is_err() {
            self.rope.restore(before);
            if kind == Container::Metric {
                // Its unit stays, and so do the values.
                self.tools.record.data.forget_factors();
            }
            if let Some(step) = self.too_large(kind) {
                self.rope.passed_ahead(bytes);
                return self.give_up(step);
            }
            part = self.rope.begin_part()?;
            self.write_own(kind, &own, false)?;
            self.rope.end_part(&mut part)?;
            grown = above;
        } else {
            written?;
        }
        if let Some(top) = self.stack.get_mut(self.depth) {
            top.ahead = bytes;
            top.front = Some(part);
            top.is_front_changed = is_changed;
            top.grown = grown;
        }
        Ok(())
    }

    /// Writes the own fields behind the members where members changed them: then they do not stand before them. Returns a
    /// step that drops the message instead.
    pub(super) fn write_back(&mut self) -> Result<Option<usize>, Full> {
        let Some(top) = self.stack.get(self.depth) else { return Ok(None) };
        let (kind, own, front, was_changed) = (top.kind, top.own, top.front, top.is_front_changed);
        let Some(front) = front.filter(|_| was_changed != self.is_own_changed()) else { return Ok(None) };
        let (before, len) = (self.rope.checkpoint(), self.rope.len());
        let written = self.write_own(kind, &own, true).and_then(|()| self.rope.check_room());
        let around = self.depth.checked_sub(1).and_then(|depth| self.stack.get(depth));
        let bytes = match kind {
            Container::Data => around.map_or(0, |metric| metric.own.data_bytes),
            _ => own.bytes,
        };
        // A span is an item, which is measured as a whole.
        let is_long =
            kind != Container::Span && self.rope.len() - len > bytes.saturating_add(self.late_growth);
        if written.is_err() || is_long {
            self.rope.restore(before);
            return Ok(self.too_large(kind));
        }
        self.rope.take_out(&front);
        if let Some(top) = self.stack.get_mut(self.depth) {
            top.is_front_changed = true;
        }
        Ok(None)
    }

    /// Whether a level below may change the own fields.
    fn is_late(&self, kind: Container) -> bool {
        match kind {
            Container::Data => self.pass.levels.last().is_some_and(|inner| !inner.is_empty()),
            _ => kind.level().and_then(|level| self.pass.late.get(level)) == Some(&true),
        }
    }

    /// Drops the current message whole, before any of its members.
    fn give_up(&mut self, step: usize) -> Result<(), Full> {
        let Some(top) = self.stack.get_mut(self.depth) else { return Ok(()) };
        top.dropped = Some((step, Verdict::Drop));
        let is_span = top.kind == Container::Span;
        if let Some(gap) = top.gap.take() {
            self.rope.restore(Rope::before(&gap));
        }
        self.count_drop(step, Verdict::Drop, u64::from(is_span));
        Ok(())
    }

    /// Writes the own fields, as they are now or as they were.
    fn write_own(&mut self, kind: Container, own: &Own, is_changed: bool) -> Result<(), Full> {
        let (record, memory, rope) = (&*self.tools.record, &self.memory, &mut self.rope);
        match kind {
            Container::Request => Ok(()),
            Container::Resource => write_owner(&record.resource, own, is_changed, memory, rope),
            Container::Scope => write_owner(&record.scope, own, is_changed, memory, rope),
            Container::Span | Container::Metric if is_changed => record.item.write(memory, rope),
            Container::Span | Container::Metric => record.item.write_as_it_was(memory, rope),
            Container::Data if is_changed => record.data.message.write(memory, rope),
            Container::Data => record.data.message.write_as_it_was(memory, rope),
        }
    }
}

/// Writes a resource or scope, its schema, and what else is beside its members.
fn write_owner(
    owner: &Owner,
    own: &Own,
    is_changed: bool,
    memory: &Memory<'_>,
    rope: &mut Rope<'_>,
) -> Result<(), Full> {
    let is_message_changed = is_changed && owner.message.is_changed();
    let is_schema_changed = is_changed && owner.schema_changes != 0;
    for range in own.fields.ranges() {
        let bytes = memory.body.get(range.clone()).unwrap_or_default();
        let mut reader = Reader::new(bytes);
        let mut start = 0;
        loop {
            let before = reader.offset();
            let Ok(Some(key)) = reader.key() else { break };
            if reader.skip(key).is_err() {
                break;
            }
            let is_cut = match key.field {
                1 => is_message_changed,
                2 => true,
                3 => is_schema_changed,
                _ => false,
            };
            if is_cut {
                rope.body(range.start + start..range.start + before)?;
                start = reader.offset();
            }
        }
        rope.body(range.start + start..range.end)?;
    }
    if is_message_changed {
        let gap = rope.open()?;
        owner.message.write(memory, rope)?;
        rope.close(&gap, 1)?;
    }
    if is_schema_changed {
        rope.bytes(&[3 << 3 | 2])?;
        rope.bytes(Varint::new(u64::from(owner.schema_url.len)).as_bytes())?;
        rope.slice(memory, owner.schema_url)?;
    }
    Ok(())
}
