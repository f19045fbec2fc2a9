//! The walk: enters messages, runs steps on what it meets, and puts what is left on the rope.

use super::Walk;
use super::open::{Container, Member, Open, Own, Phase};
use super::outgrown::Rest;
use super::rope::{Full, Rope};
use crate::machine::Machine;
use crate::memory::Mark;
use crate::record::SpanCounts;
use crate::record::message::{FieldRanges, body};
use crate::record::shape::Shape;
use crate::step::Verdict;
use std::ops::Range;
use tidegate_wire::otlp::Signal;
use tidegate_wire::proto::{Key, Reader};

/// Cost of looking at a field, beside its bytes.
pub(super) const FIELD: usize = 32;

impl<'a> Open<'a> {
    /// A whole body.
    pub(super) fn request(raw: &'a [u8], mark: Mark) -> Open<'a> {
        let reader = Reader::new(raw);
        Open {
            kind: Container::Request,
            field: 0,
            whole: 0..raw.len(),
            start: reader,
            reader,
            phase: Phase::Walk,
            gap: None,
            own: Own::NONE,
            defers: false,
            ahead: 0,
            front: None,
            is_front_changed: false,
            is_dirty: false,
            has_lost: false,
            members: 0,
            items: 0,
            events: 0,
            counts: SpanCounts::default(),
            dropped: None,
            mark,
            changes_above: 0,
            grown: 0,
        }
    }

    pub(super) fn content(&self) -> Range<usize> {
        self.start.offset()..self.whole.end
    }
}

impl<'a> Walk<'a> {
    /// Looks at the next field, or closes a message. Returns the cost; `None` at the end of the body.
    pub(super) fn step(&mut self) -> Result<Option<usize>, Full> {
        let has_events = self.has_events();
        let Some(top) = self.stack.get_mut(self.depth) else { return Ok(None) };
        if top.phase != Phase::Walk {
            return self.scan().map(Some);
        }
        let before = top.reader.offset();
        let Ok(Some(key)) = top.reader.key() else { return self.close() };
        let kind = top.kind;
        let member = kind.member(key, self.signal, has_events);
        if member == Member::Own {
            if top.reader.skip(key).is_err() {
                return self.close();
            }
            let field = before..top.reader.offset();
            let is_written = top.defers || top.dropped.is_some();
            let ahead = field.len().min(top.ahead);
            top.ahead -= ahead;
            self.rope.passed_ahead(ahead);
            self.rope.pass(field.end);
            if !is_written {
                self.rope.body(field)?;
            }
            return Ok(Some(FIELD));
        }
        let Ok(message) = top.reader.message(key) else { return self.close() };
        let whole = before..top.reader.offset();
        match member {
            Member::Container(kind) => self.enter(kind, key, whole, message),
            _ => self.leaf(key, whole, message.offset()),
        }
    }

    /// Whether the walk looks at the events of spans.
    fn has_events(&self) -> bool {
        let [.., inner] = &self.pass.levels;
        !inner.is_empty()
    }

    /// Whether the own fields of a message have to be found before its members.
    fn scans(&self, kind: Container) -> bool {
        let access = &self.pass.access;
        match kind {
            Container::Request | Container::Data => false,
            // Points are read by the kind of their metric.
            Container::Metric => self.has_events() || access.touches_level(2) || access.reads_data,
            _ => kind.level().is_some_and(|level| access.touches_level(level)),
        }
    }

    /// Begins a message.
    fn enter(
        &mut self,
        kind: Container,
        key: Key,
        whole: Range<usize>,
        message: Reader<'a>,
    ) -> Result<Option<usize>, Full> {
        let around = self.stack.get(self.depth);
        let (dropped, grown) = around.map_or((None, 0), |around| (around.dropped, around.grown));
        let is_span = kind == Container::Span;
        self.items += u64::from(is_span);
        if let Some((step, verdict)) = dropped {
            self.count_drop(step, verdict, u64::from(is_span));
        }
        let scans = dropped.is_none() && self.scans(kind);
        let mut open = Open::request(self.body, self.memory.mark());
        open.kind = kind;
        open.field = key.field;
        open.whole = whole;
        open.start = message;
        open.reader = message;
        open.phase = if scans { Phase::Scan } else { Phase::Walk };
        open.dropped = dropped;
        open.defers = self.defers(kind, message.offset());
        open.changes_above = self.tools.record.changes_above(kind.level().unwrap_or(3));
        open.grown = grown;
        self.depth += 1;
        if let Some(place) = self.stack.get_mut(self.depth) {
            *place = open;
        }
        if !scans && dropped.is_none() {
            self.entered()?;
        }
        Ok(Some(2 * FIELD))
    }

    /// Runs the steps of a message's level, and begins to write it.
    pub(super) fn entered(&mut self) -> Result<(), Full> {
        let Some(top) = self.stack.get(self.depth) else { return Ok(()) };
        let kind = top.kind;
        if let Some((step, verdict)) = kind.level().and_then(|level| self.apply(level)) {
            self.count_drop(step, verdict, u64::from(kind == Container::Span));
            if let Some(top) = self.stack.get_mut(self.depth) {
                top.dropped = Some((step, verdict));
            }
            return Ok(());
        }
        let gap = self.rope.open()?;
        if let Some(top) = self.stack.get_mut(self.depth) {
            top.gap = Some(gap);
        }
        self.write_front()
    }

    /// A message without members of interest.
    fn leaf(&mut self, key: Key, whole: Range<usize>, start: usize) -> Result<Option<usize>, Full> {
        let Some(around) = self.stack.get_mut(self.depth) else { return Ok(None) };
        let kind = around.kind;
        let is_item = kind != Container::Span;
        self.items += u64::from(is_item);
        if let Some((step, verdict)) = around.dropped {
            self.count_drop(step, verdict, u64::from(is_item));
            return Ok(Some(FIELD));
        }
        let level = if matches!(kind, Container::Span | Container::Data) { 3 } else { 2 };
        let texts = self.texts.get(level).copied().unwrap_or(1);
        let cost = whole.len().saturating_mul(texts.max(1));
        let has_steps = self.pass.levels.get(level).is_some_and(|steps| !steps.is_empty());
        let fields = FieldRanges::all(start..whole.end, 0);
        self.rope.pass(whole.end);
        if !has_steps && !self.pass.access.multiplies {
            self.keep(whole, is_item)?;
            return Ok(Some(FIELD));
        }
        let events = around.events;
        around.events += 1;
        let mark = self.memory.mark();
        let above = self.tools.record.changes_above(level);
        let record = &mut *self.tools.record;
        match kind {
            Container::Span => {
                record.inner.begin(Shape::Event, fields);
                record.event_index = events;
            }
            Container::Data => {
                let kind = around.field;
                if let Some(step) = self.begin_point(kind, fields) {
                    self.memory.release(mark);
                    self.drop_member(step, Verdict::Drop, 1);
                    return Ok(Some(FIELD + cost));
                }
            }
            _ if self.signal == Signal::Traces => {
                record.begin_span(fields, body(&(start..whole.end)), None);
            }
            _ => record.item.begin(Shape::Log, fields),
        }
        let verdict = self.apply(level);
        let mark = Some(mark).filter(|_| self.tools.record.changes_above(level) == above);
        match verdict {
            Some((step, verdict)) => self.drop_member(step, verdict, u64::from(is_item)),
            None => self.write_leaf(key.field, level, whole, is_item, mark)?,
        }
        if let Some(mark) = mark {
            self.memory.release(mark);
        }
        Ok(Some(FIELD + cost))
    }

    /// Puts a record on the rope that steps were run on. `mark` is where its values begin in the temporary space, if they can go.
    fn write_leaf(
        &mut self,
        field: u32,
        level: usize,
        whole: Range<usize>,
        is_item: bool,
        mark: Option<Mark>,
    ) -> Result<(), Full> {
        let record = &*self.tools.record;
        let message = if level == 3 { &record.inner } else { &record.item };
        if !message.is_changed() {
            return self.keep(whole, is_item);
        }
        if self.write_changed(field, level, &whole) {
            self.kept(is_item);
            return Ok(());
        }
        let factors = self.factors().filter(|_| level == 3);
        let Some(too_large) = self.count_too_large(|access| access.writes_level(level)) else {
            return self.keep(whole, is_item);
        };
        match (too_large.dropping, factors) {
            (None, None) => return self.keep(whole, is_item),
            (None, Some(factors)) if self.write_multiplied(factors, field, &whole, mark) => {
                self.kept(is_item);
            }
            _ => self.drop_member(too_large.step(), Verdict::Drop, u64::from(is_item)),
        }
        Ok(())
    }

    /// Puts a record on the rope with its changes, or nothing when it is too long. Returns whether it is there.
    pub(super) fn write_changed(&mut self, field: u32, level: usize, whole: &Range<usize>) -> bool {
        let record = &*self.tools.record;
        let message = if level == 3 { &record.inner } else { &record.item };
        let (before, len) = (self.rope.checkpoint(), self.rope.len());
        let grown = self.stack.get(self.depth).map_or(0, |around| around.grown);
        let most = whole.len().saturating_add(self.growth.saturating_sub(grown));
        let written = self.rope.open().and_then(|gap| {
            message.write(&self.memory, &mut self.rope)?;
            self.rope.close(&gap, field)?;
            self.rope.check_room()?;
            if self.rope.len() - len > most { Err(Full) } else { Ok(()) }
        });
        match written {
            Ok(()) => {
                if let Some(around) = self.stack.get_mut(self.depth) {
                    around.is_dirty = true;
                }
            }
            Err(Full) => self.rope.restore(before),
        }
        written.is_ok()
    }

    /// Puts a range of the body on the rope.
    fn keep(&mut self, whole: Range<usize>, is_item: bool) -> Result<(), Full> {
        self.kept(is_item);
        self.rope.body(whole)
    }

    fn kept(&mut self, is_item: bool) {
        self.items_left += u64::from(is_item);
        if let Some(around) = self.stack.get_mut(self.depth) {
            around.members += 1;
            around.items += u64::from(is_item);
        }
    }

    /// Notes that a member of the current message is gone.
    fn drop_member(&mut self, step: usize, verdict: Verdict, items: u64) {
        self.count_drop(step, verdict, items);
        if let Some(around) = self.stack.get_mut(self.depth) {
            around.is_dirty = true;
            around.has_lost = true;
        }
    }

    pub(super) fn count_drop(&mut self, step: usize, verdict: Verdict, items: u64) {
        if let Some(drops) = self.tools.drops.get_mut(step) {
            match verdict {
                Verdict::LeaveOut => drops.sampled_out += items,
                _ => drops.filtered += items,
            }
        }
    }

    /// Runs the steps of a level. Returns the one that drops, if any.
    fn apply(&mut self, level: usize) -> Option<(usize, Verdict)> {
        for &number in self.pass.levels.get(level)? {
            let step = self.steps.get(number)?;
            if self.pass.access.cache {
                self.tools.record.clear_cache();
            }
            let mut machine = Machine {
                memory: self.memory.lend(),
                record: &mut *self.tools.record,
                regexes: &mut *self.tools.regexes,
                spare: &mut *self.tools.spare,
                now_ns: self.tools.now_ns,
                traces: match &mut self.tools.traces {
                    Some(traces) => Some(&mut **traces),
                    None => None,
                },
                measurements: match &mut self.tools.measurements {
                    Some(measurements) => Some(&mut **measurements),
                    None => None,
                },
            };
            let verdict = step.run(&mut machine, level, self.signal, self.tools.counts.get_mut(number)?);
            let mark = machine.memory.mark();
            self.memory.resume(mark);
            if verdict != Verdict::Keep {
                return Some((number, verdict));
            }
        }
        None
    }

    /// Ends a message. `None` at the end of the body.
    fn close(&mut self) -> Result<Option<usize>, Full> {
        let Some(top) = self.stack.get(self.depth) else { return Ok(None) };
        if top.kind == Container::Request {
            return Ok(None);
        }
        let (whole, kind, has_lost, members, items) =
            (top.whole.clone(), top.kind, top.has_lost, top.members, top.items);
        let (gap, mark, field, dropped) = (top.gap, top.mark, top.field, top.dropped);
        let changes_above = top.changes_above;
        self.rope.passed_ahead(top.ahead);
        self.rope.pass(whole.end);
        let is_gone = dropped.is_some() || has_lost && members == 0 && kind != Container::Span;
        let mut is_same = !is_gone && !top.is_dirty && !self.is_own_changed();
        let mut is_gone = is_gone;
        let mut left_items = items;
        match gap {
            Some(gap) if is_gone || is_same => self.rope.restore(Rope::before(&gap)),
            Some(gap) => match self.write_rest(kind, &whole, &gap)? {
                Rest::Written => self.rope.close(&gap, self.field_now(kind, field))?,
                Rest::AsItWas => {
                    self.rope.restore(Rope::before(&gap));
                    is_same = true;
                }
                Rest::Dropped(step) => {
                    self.rope.restore(Rope::before(&gap));
                    let all = items + u64::from(kind == Container::Span);
                    self.items_left -= items;
                    self.count_drop(step, Verdict::Drop, all);
                    is_gone = true;
                    left_items = 0;
                }
            },
            None => {}
        }
        if is_same {
            self.rope.body(whole)?;
        }
        let is_span = kind == Container::Span && !is_gone;
        self.items_left += u64::from(is_span);
        let is_released = self.tools.record.changes_above(kind.level().unwrap_or(3)) == changes_above;
        self.depth -= 1;
        if let Some(around) = self.stack.get_mut(self.depth) {
            around.is_dirty |= !is_same;
            around.has_lost |= is_gone;
            around.members += u64::from(!is_gone);
            around.items += left_items + u64::from(is_span);
        }
        if is_released {
            self.memory.release(mark);
        }
        Ok(Some(FIELD))
    }
}
