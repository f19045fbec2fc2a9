//! Series that are like one before: what the rules made of that one is done again.

use super::chunk::{Chunk, Made};
use super::series::LABELS_TAG;
use crate::relabel::edits::Edits;
use crate::relabel::fields::{Field, field, varint};
use crate::relabel::labels::Text;
use crate::relabel::recipes::{End, Key, MOST_LABELS, Part, Recipe, Span, filter};
use crate::relabel::symbols::Index;
use crate::relabel::used::Used;
use crate::value::Failure;
use tidegate_wire::proto::write::{Varint, varint_len};
use tidegate_wire::remote_write::{v1, v2};

/// A series whose labels are encoded as all senders do it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usual {
    whole: Field,
    /// The field of references, in 2.0.
    references: Option<Field>,
    labels_end: usize,
    /// Where the first exemplar or metadata of 2.0 begins, or the series ends.
    more: usize,
    pub(super) items: u64,
}

impl Chunk<'_, '_, '_> {
    /// Finds the labels of a series. `None` when they are encoded in an unusual way, or are more than a recipe may have.
    pub(super) fn scan(&mut self, whole: Field) -> Option<Usual> {
        let body = self.on.memory.body;
        let labels = &mut self.recipes.current;
        labels.clear();
        let mut usual =
            Usual { whole, references: None, labels_end: whole.payload, more: whole.end, items: 0 };
        match &self.cursor.index {
            None => {
                let bytes = body.get(..whole.end)?;
                while let Some(&LABELS_TAG) = bytes.get(usual.labels_end) {
                    let end = match short_label(bytes, usual.labels_end, labels) {
                        Some(end) => end,
                        None => long_label(bytes, usual.labels_end, labels)?,
                    };
                    usual.labels_end = end as usize;
                }
            }
            Some(index) => {
                let references = field(body, whole.payload, whole.end)?;
                if references.number != v2::field::LABELS_REFS || !references.has_length {
                    return None;
                }
                scan_references(body, index, &references, labels)?;
                usual.references = Some(references);
                usual.labels_end = references.end;
            }
        }
        let mut at = usual.labels_end;
        while let Some(field) = field(body, at, whole.end) {
            if matches!(field.number, v2::field::EXEMPLARS | v2::field::METADATA) {
                usual.more = usual.more.min(field.start);
            }
            match field.number {
                // The number is the same in both versions.
                v1::field::LABELS => return None,
                2..=4 => usual.items += 1,
                v2::field::METADATA if self.cursor.index.is_some() => usual.items += 1,
                _ => {}
            }
            at = field.end;
        }
        Some(usual)
    }

    /// Does with a series what the recipe says, if there is one that serves it. Whether that is so.
    pub(super) fn again(&mut self, usual: Usual) -> bool {
        let body = self.on.memory.body;
        let Some((recipe, labels)) = self.recipes.place() else { return false };
        let index = self.cursor.index.as_ref();
        if !recipe.serves(body, labels, index.is_some()) {
            return false;
        }
        let mut dropped = None;
        let rules = self
            .rules
            .steps
            .iter()
            .enumerate()
            .flat_map(|(number, step)| step.rules.iter().map(move |rule| (number, rule)));
        for (&label, (step, rule)) in recipe.filters.iter().zip(rules) {
            let Some((_, pattern, keeps)) = filter(rule) else { return false };
            let value = label.and_then(|label| labels.get(usize::from(label)));
            let value = value.map_or(&[][..], |label| match index {
                None => label.value.bytes(body),
                Some(index) => {
                    index.get(body, label.value.at).map_or(&[][..], |slice| self.on.memory.get(slice))
                }
            });
            let state = &mut *self.on.state;
            if pattern.is_match(value, &mut state.caches, &mut state.memos) != keeps {
                dropped = Some(step);
                break;
            }
        }
        if dropped.is_none() && recipe.end == End::Unknown {
            return false;
        }
        let reached = dropped.unwrap_or(recipe.reached);
        for counts in self.counts.iter_mut().take(reached + 1) {
            counts.items += usual.items;
        }
        let drops = dropped.is_some() || recipe.end == End::Dropped;
        if !drops && recipe.end == End::Unchanged {
            self.cursor.edits.keep(usual.whole.end - usual.whole.start);
            self.items += usual.items;
            if index.is_some() {
                let used = &mut self.cursor.used;
                mark(used, labels);
                used.mark_fields(body, usual.more, usual.whole.end, false);
            }
            return true;
        }
        let before = self.cursor.edits.state();
        let edited = match drops {
            true => self.cursor.edits.leave(usual.whole.end - usual.whole.start),
            false => write(&mut self.cursor.edits, &usual, recipe, labels),
        };
        let made = Made { field: usual.whole, items: usual.items, step: reached, drops, edited, before };
        if self.settle(made) && !drops && self.cursor.index.is_some() {
            self.mark_made(usual);
        }
        true
    }

    /// Marks the symbols of a series of 2.0 that was written by its recipe.
    fn mark_made(&mut self, usual: Usual) {
        let Some((recipe, labels)) = self.recipes.place() else { return };
        let used = &mut self.cursor.used;
        for part in &recipe.parts {
            match *part {
                Part::Keep { from, to } => {
                    mark(used, labels.get(usize::from(from)..usize::from(to)).unwrap_or_default());
                }
                Part::Put { from, to } => {
                    let bytes = recipe.bytes.get(usize::from(from)..usize::from(to));
                    used.mark_all(bytes.unwrap_or_default());
                }
            }
        }
        used.mark_fields(self.on.memory.body, usual.more, usual.whole.end, false);
    }

    /// Makes the recipe for series like the current one, whose labels are as the rules left them, or which a filter dropped.
    pub(super) fn learn(&mut self, end: End, reached: usize) {
        let Chunk { recipes, rules, on, cursor, added, .. } = self;
        let Some((recipe, labels)) = recipes.place() else { return };
        let Some(reads) = &rules.traits.reads else { return };
        let memory = &on.memory;
        let text = |key: Key| match &cursor.index {
            None => key.bytes(memory.body),
            Some(index) => index.get(memory.body, key.at).map_or(&[][..], |slice| memory.get(slice)),
        };
        recipe.clear();
        for label in labels {
            let name = text(label.name);
            let read = reads.iter().any(|read| memory.get(*read) == name);
            recipe.labels.push(Span { read, ..*label });
        }
        let all = rules.steps.iter().flat_map(|step| &step.rules).map_while(filter);
        for (name, ..) in all.take(rules.traits.filters) {
            let name = memory.get(name);
            let place = labels.iter().position(|label| text(label.name) == name);
            // At most `MOST_LABELS`.
            recipe.filters.push(place.map(|place| place as u16));
        }
        (recipe.end, recipe.reached) = (end, reached);
        if end != End::Changed {
            return;
        }
        let count = cursor.index.as_ref().map(|index| index.count);
        let mut next = 0;
        for label in on.state.labels.sorted(memory) {
            let own = |span: &Span| match count {
                None => span.name.at == label.name.slice.start,
                Some(_) => span.name.at == label.name.symbol,
            };
            let place = labels.get(next..).and_then(|rest| rest.iter().position(own));
            if let (true, Some(place)) = (label.came(), place) {
                next += place + 1;
                recipe.keep((next - 1) as u16);
                continue;
            }
            let put = match count {
                None => put_label(recipe, memory.get(label.name.slice), memory.get(label.value.slice)),
                Some(count) => [label.name, label.value].into_iter().all(|text| {
                    let reference = match text.symbol {
                        Text::NO_SYMBOL => {
                            added.reference(&mut cursor.edits, count, memory.get(text.slice)).ok()
                        }
                        symbol => Some(symbol),
                    };
                    reference
                        .is_some_and(|reference| recipe.put(Varint::new(u64::from(reference)).as_bytes()))
                }),
            };
            if !put || label.came() {
                recipe.clear();
                return;
            }
        }
    }
}

/// Adds the label at byte `at` of a 1.0 body, if it is shorter than 128 bytes. Returns its end.
#[inline(always)]
fn short_label(body: &[u8], at: usize, labels: &mut Vec<Span>) -> Option<u32> {
    let (&[_, len @ 0..0x80, 0x0a, name @ 0..0x80], rest) = body.get(at..)?.split_first_chunk()? else {
        return None;
    };
    let (&[0x12, value @ 1..0x80], rest) = rest.get(usize::from(name)..)?.split_first_chunk()? else {
        return None;
    };
    let fits = usize::from(len) == 4 + usize::from(name) + usize::from(value)
        && usize::from(value) <= rest.len()
        && labels.len() < MOST_LABELS;
    if !fits {
        return None;
    }
    // Bodies are smaller than 4 GiB.
    let (start, name, value) = (at as u32, u32::from(name), u32::from(value));
    let name = Key { at: start + 4, len: name };
    let value = Key { at: name.at + name.len + 2, len: value };
    let end = value.at + value.len;
    labels.push(Span { start, end, name, value, read: false });
    Some(end)
}

/// Adds the label at byte `at` of a 1.0 body. Returns its end; `None` when a recipe cannot have it.
fn long_label(body: &[u8], at: usize, labels: &mut Vec<Span>) -> Option<u32> {
    let label = field(body, at, body.len())?;
    let name = field(body, label.payload, label.end)?;
    let value = field(body, name.end, label.end)?;
    let is = |field: &Field, number: u32| field.number == number && field.has_length;
    if !is(&label, v1::field::LABELS) || !is(&name, 1) || !is(&value, 2) || value.end != label.end {
        return None;
    }
    if value.payload == value.end || labels.len() >= MOST_LABELS {
        return None;
    }
    // Bodies are smaller than 4 GiB.
    let key = |field: &Field| Key { at: field.payload as u32, len: (field.end - field.payload) as u32 };
    let (start, end) = (label.start as u32, label.end as u32);
    labels.push(Span { start, end, name: key(&name), value: key(&value), read: false });
    Some(end)
}

/// Marks the symbols of `labels` of a 2.0 series.
fn mark(used: &mut Used<'_>, labels: &[Span]) {
    for label in labels {
        used.mark(label.name.at);
        used.mark(label.value.at);
    }
}

/// Finds the labels that packed references are about. `None` when one has no value.
fn scan_references(body: &[u8], index: &Index<'_>, field: &Field, labels: &mut Vec<Span>) -> Option<()> {
    // A label with an empty value is none.
    let is_empty = |symbol: u32| {
        symbol == 0 || (index.has_more_empty && index.get(body, symbol).is_none_or(|text| text.len == 0))
    };
    let mut at = field.payload;
    let mut next = || {
        let rest = body.get(at..field.end)?;
        let (number, len) = match rest {
            [number @ 0..0x80, ..] => (u64::from(*number), 1),
            [low, high @ 1..0x80, ..] => (u64::from(low & 0x7f) | u64::from(*high) << 7, 2),
            _ => varint(rest).filter(|(number, len)| varint_len(*number) as usize == *len)?,
        };
        at += len;
        let number = u32::try_from(number).ok().filter(|number| (*number as usize) < index.count)?;
        Some((number, at))
    };
    let mut start = field.payload;
    while start < field.end {
        let ((name, _), (value, end)) = (next()?, next()?);
        if is_empty(value) || labels.len() >= MOST_LABELS {
            return None;
        }
        let key = |symbol| Key { at: symbol, len: 0 };
        let (name, value) = (key(name), key(value));
        labels.push(Span { start: start as u32, end: end as u32, name, value, read: false });
        start = end;
    }
    Some(())
}

/// Adds a label of a 1.0 series to what is put in.
fn put_label(recipe: &mut Recipe, name: &[u8], value: &[u8]) -> bool {
    let bytes = |text: &[u8]| 1 + varint_len(text.len() as u64) as usize + text.len();
    let len = Varint::new((bytes(name) + bytes(value)) as u64);
    let (name_len, value_len) = (Varint::new(name.len() as u64), Varint::new(value.len() as u64));
    [&[0x0a], len.as_bytes(), &[0x0a], name_len.as_bytes(), name, &[0x12], value_len.as_bytes(), value]
        .into_iter()
        .all(|bytes| recipe.put(bytes))
}

/// Notes the edits of a series as its `recipe` says.
fn write(edits: &mut Edits<'_>, usual: &Usual, recipe: &Recipe, labels: &[Span]) -> Result<(), Failure> {
    let range = |from: u16, to: u16| {
        let start = labels.get(usize::from(from)).map_or(0, |label| label.start as usize);
        let end = usize::from(to).checked_sub(1).and_then(|last| labels.get(last));
        start..end.map_or(start, |label| label.end as usize)
    };
    let kept = recipe.parts.iter().map(|part| match *part {
        Part::Keep { from, to } => range(from, to).len(),
        Part::Put { .. } => 0,
    });
    let new = recipe.bytes.len() + kept.sum::<usize>();
    let whole = &usual.whole;
    let rest = whole.end - usual.labels_end;
    // Where the labels begin, and the bytes of the field around them.
    let (begin, new_field) = match &usual.references {
        None => (whole.payload, new),
        Some(references) => {
            let tag = references.length - references.start;
            (references.payload, tag + varint_len(new as u64) as usize + new)
        }
    };
    let length = |edits: &mut Edits<'_>, field: &Field, len: usize| {
        edits.keep(field.length - field.start);
        if len == field.end - field.payload {
            edits.keep(field.payload - field.length);
            return Ok(());
        }
        edits.replace(field.payload - field.length, Varint::new(len as u64).as_bytes())
    };
    length(edits, whole, new_field + rest)?;
    if let Some(references) = &usual.references {
        length(edits, references, new)?;
    }
    let mut at = begin;
    for part in &recipe.parts {
        match *part {
            Part::Keep { from, to } => {
                let labels = range(from, to);
                if labels.start > at {
                    edits.replace(labels.start - at, &[])?;
                }
                edits.keep(labels.len());
                at = labels.end;
            }
            Part::Put { from, to } => {
                edits.replace(0, recipe.bytes.get(usize::from(from)..usize::from(to)).unwrap_or_default())?;
            }
        }
    }
    if usual.labels_end > at {
        edits.replace(usual.labels_end - at, &[])?;
    }
    edits.keep(rest);
    Ok(())
}
