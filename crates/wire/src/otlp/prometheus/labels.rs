//! The labels of one series: made of attributes, sorted, each name once.

use super::Naming;
use super::name;
use super::nesting;
use super::text::{BufferFull, Text, TextRange};
use crate::otlp::attribute::AnyValue;
use crate::remote_write::Label;

/// The origin of a label. Of two labels with one name, the first in this order applies. Attributes of one origin that
/// become one name are joined, in the order of their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// The translation's own: `job`, `instance`, the scope's name and version.
    Own,
    /// An attribute of the scope.
    Scope,
    /// An attribute of the point.
    Attribute,
    /// An attribute of the resource that is promoted.
    Promoted,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    name: TextRange,
    value: TextRange,
    /// As it was before it became a name.
    key: TextRange,
    origin: Origin,
}

/// Labels, in room that is taken once: those of the resource and the scope below, those of the point above.
#[derive(Debug)]
pub(super) struct Labels {
    text: Text,
    base: Vec<Entry>,
    /// How much of the text belongs to `base`.
    base_text: usize,
    entries: Vec<Entry>,
    limit: usize,
}

/// How far the base was, to go back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark(usize, usize);

impl Labels {
    /// Room for `limit` labels of `bytes` bytes together.
    pub(super) fn new(limit: usize, bytes: usize) -> Self {
        let entries = || Vec::with_capacity(limit);
        Self { text: Text::new(bytes), base: entries(), base_text: 0, entries: entries(), limit }
    }

    pub(super) fn bytes_for(limit: usize, bytes: usize) -> usize {
        2 * limit * size_of::<Entry>() + bytes + nesting::BYTES
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.base.len(), self.base_text)
    }

    /// Forgets what was added to the base since.
    pub(super) fn rewind(&mut self, Mark(entries, text): Mark) {
        self.base.truncate(entries);
        self.text.truncate(text);
        self.base_text = text;
        self.entries.clear();
    }

    pub(super) fn clear(&mut self) {
        self.rewind(Mark(0, 0));
    }

    /// Makes what was added since [`begin`](Self::begin) or [`clear`](Self::clear) part of the base.
    pub(super) fn set_base(&mut self) -> Result<(), BufferFull> {
        if self.base.len() + self.entries.len() > self.limit {
            return Err(BufferFull);
        }
        self.base.append(&mut self.entries);
        self.base_text = self.text.len();
        Ok(())
    }

    /// Begins the labels of a point: the base.
    pub(super) fn begin(&mut self) {
        self.text.truncate(self.base_text);
        self.entries.clear();
        self.entries.extend_from_slice(&self.base);
    }

    /// Adds an attribute; false when it has no name. One without a value is
    /// left out, since to Prometheus that is the same as none.
    pub(super) fn attribute(
        &mut self,
        naming: Naming,
        origin: Origin,
        key: &[u8],
        value: AnyValue<'_>,
    ) -> Result<bool, BufferFull> {
        self.put(naming, origin, b"", key, |text| text.value(value))
    }

    /// Adds a label whose name is `prefix` and what becomes of `key`.
    pub(super) fn put(
        &mut self,
        naming: Naming,
        origin: Origin,
        prefix: &[u8],
        key: &[u8],
        value: impl FnOnce(&mut Text) -> Result<(), BufferFull>,
    ) -> Result<bool, BufferFull> {
        if self.entries.len() >= self.limit {
            return Err(BufferFull);
        }
        if key.is_empty() {
            return Ok(false);
        }
        let text = &mut self.text;
        let start = text.len();
        text.put(key)?;
        let key_part = text.since(start);
        let mut name = key_part;
        if !prefix.is_empty() || !name::is_plain_label(naming, key) {
            let start = text.len();
            name::label(text, naming, prefix, key)?;
            name = text.since(start);
        }
        let value_start = text.len();
        value(text)?;
        let value = text.since(value_start);
        if text.get(value).is_empty() {
            text.truncate(start);
            return Ok(true);
        }
        self.entries.push(Entry { name, value, key: key_part, origin });
        Ok(true)
    }

    /// Sorts what was added since [`begin`](Self::begin), and leaves each name once.
    pub(super) fn finish(&mut self) -> Result<(), BufferFull> {
        self.finish_from(0)
    }

    /// Sorts the entries from `first` on, and leaves each name once among them.
    pub(super) fn finish_from(&mut self, first: usize) -> Result<(), BufferFull> {
        let Self { text, entries, .. } = self;
        let added = entries.get_mut(first..).unwrap_or_default();
        added.sort_unstable_by(|one, two| {
            let by_name = text.get(one.name).cmp(text.get(two.name));
            let by_key = || text.get(one.key).cmp(text.get(two.key));
            by_name.then(one.origin.cmp(&two.origin)).then_with(by_key).then(one.value.cmp(&two.value))
        });
        let mut kept: Option<Entry> = None;
        let mut len = first;
        for index in first..entries.len() {
            let Some(entry) = entries.get(index).copied() else { break };
            match &mut kept {
                Some(kept) if text.get(kept.name) == text.get(entry.name) => {
                    if entry.origin == kept.origin && entry.origin != Origin::Own {
                        kept.value = joined(text, kept.value, entry.value)?;
                    }
                }
                _ => {
                    len += 1;
                    kept = Some(entry);
                }
            }
            if let (Some(kept), Some(place)) = (kept, entries.get_mut(len - 1)) {
                *place = kept;
            }
        }
        entries.truncate(len);
        Ok(())
    }

    /// Forgets the entries from `len` on, but not their text.
    pub(super) fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The labels from one number to another.
    pub(super) fn range(&self, from: usize, to: usize) -> impl Iterator<Item = Label<'_>> + Clone {
        let entries = self.entries.get(from..to).unwrap_or_default();
        entries
            .iter()
            .map(|entry| Label { name: self.text.get(entry.name), value: self.text.get(entry.value) })
    }

    /// All labels with `__name__`, and with one more if there is one, in order. These come instead of
    /// labels of the same names.
    pub(super) fn with<'s>(
        &'s self,
        metric: &'s [u8],
        more: Option<Label<'s>>,
    ) -> impl Iterator<Item = Label<'s>> + Clone {
        // `__name__` sorts before the names that `more` can have.
        let extras = [Some(Label { name: b"__name__", value: metric }), more];
        let mut extras = extras.into_iter().flatten().peekable();
        let mut labels = self.range(0, self.entries.len()).peekable();
        std::iter::from_fn(move || {
            let (Some(label), Some(extra)) = (labels.peek(), extras.peek()) else {
                return labels.next().or_else(|| extras.next());
            };
            match label.name.cmp(extra.name) {
                std::cmp::Ordering::Less => labels.next(),
                std::cmp::Ordering::Equal => {
                    labels.next();
                    extras.next()
                }
                std::cmp::Ordering::Greater => extras.next(),
            }
        })
    }
}

fn joined(text: &mut Text, one: TextRange, two: TextRange) -> Result<TextRange, BufferFull> {
    let start = text.len();
    text.repeat(one)?;
    text.put(b";")?;
    text.repeat(two)?;
    Ok(text.since(start))
}
