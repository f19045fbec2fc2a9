//! OpenTelemetry's attributes and values as JSON that Elasticsearch takes: no key twice, no key that is no name of a
//! field, no number that is none.
//!
//! Of values with the same key the last counts. Where keys are the same only since one had to be renamed, the one that
//! is written as it came counts, else the greatest.

use super::dedup_keys::MemberNames;
use crate::json;
use std::mem::discriminant;
use tidegate_wire::intake;
use tidegate_wire::otlp::{AnyValue, Array, Attributes, KeyValue, MAX_DEPTH, Values};
use tidegate_wire::output::{Full, Output};

/// Attributes at a time, those of the objects around them included. Elasticsearch takes a thousand fields.
pub(super) const MAX_ATTRIBUTES: usize = 1024;
/// How many are compared with each other; more are sorted.
const LINEAR_SEARCH_MAX: usize = 32;
/// How deep objects nest as objects. What is deeper becomes a text of JSON, since indexes have a limit.
const MAX_OBJECT_DEPTH: usize = 8;

/// Attributes that are being written, and how many values were lost on the way.
#[derive(Debug)]
pub(super) struct ObjectWriter<'a> {
    pairs: Vec<KeyValue<'a>>,
    /// The open containers of a JSON text being written.
    open: Vec<OpenContainer<'a>>,
    /// The state for writing arbitrary JSON.
    names: MemberNames,
    pub(super) lost: u64,
    /// Whether lists may hold values of several kinds: where they are no fields.
    is_free: bool,
}

/// An output whose type is not known, so that JSON within JSON is no type without an end.
struct DynOutput<'o>(&'o mut dyn Output);

impl Output for DynOutput<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.0.put(bytes)
    }
}

/// A list or an object of which a part is written.
#[derive(Debug)]
enum OpenContainer<'a> {
    /// The rest of it, and whether it has begun.
    Array(Values<'a>, bool),
    /// Its attributes are those beyond the first number, of which that at the second is next.
    Map { from: usize, at: usize, is_renaming: bool },
}

impl<'a> ObjectWriter<'a> {
    pub(super) const BYTES: usize = MAX_ATTRIBUTES * size_of::<KeyValue<'_>>()
        + MAX_DEPTH.next_power_of_two() * size_of::<OpenContainer<'_>>()
        + MemberNames::BYTES;

    pub(super) fn new() -> Self {
        Self {
            pairs: Vec::with_capacity(MAX_ATTRIBUTES),
            open: Vec::new(),
            names: MemberNames::new(),
            lost: 0,
            is_free: false,
        }
    }

    /// Puts those of `attributes` on the stack that `wanted` says yes to, each key once with its last value. Returns
    /// where they begin; the caller takes them away again with [`drop_from`](Self::drop_from).
    #[inline]
    pub(super) fn collect(
        &mut self,
        attributes: Attributes<'a>,
        mut wanted: impl FnMut(&KeyValue<'a>) -> bool,
    ) -> usize {
        let from = self.pairs.len();
        let mut seen = [0u64; 4];
        for attribute in attributes {
            if !wanted(&attribute) {
                continue;
            }
            let count = self.pairs.len() - from;
            if count < LINEAR_SEARCH_MAX && was_seen(&mut seen, attribute.key) {
                let known = self.pairs.get_mut(from..).unwrap_or_default();
                if let Some(pair) = known.iter_mut().find(|pair| pair.key == attribute.key) {
                    pair.value = attribute.value;
                    self.lost += 1;
                    continue;
                }
            }
            if self.pairs.len() < MAX_ATTRIBUTES {
                self.pairs.push(attribute);
            } else {
                self.lost += 1;
            }
        }
        if self.pairs.len() - from > LINEAR_SEARCH_MAX {
            self.sort(from);
        }
        from
    }

    /// The attributes beyond `from`.
    pub(super) fn since(&self, from: usize) -> &[KeyValue<'a>] {
        self.pairs.get(from..).unwrap_or_default()
    }

    pub(super) fn drop_from(&mut self, from: usize) {
        self.pairs.truncate(from);
    }

    /// Keeps the last of equal keys. What comes later in the message lies later in memory.
    #[cold]
    fn sort(&mut self, from: usize) {
        let Some(pairs) = self.pairs.get_mut(from..) else { return };
        pairs.sort_unstable_by(|a, b| a.key.cmp(b.key).then_with(|| a.key.as_ptr().cmp(&b.key.as_ptr())));
        let before = self.pairs.len();
        let mut kept = from;
        for at in from..before {
            let Some(&pair) = self.pairs.get(at) else { break };
            if self.pairs.get(at + 1).is_some_and(|next| next.key == pair.key) {
                continue;
            }
            if let Some(place) = self.pairs.get_mut(kept) {
                *place = pair;
                kept += 1;
            }
        }
        self.pairs.truncate(kept);
        self.lost += (before - kept) as u64;
    }

    /// Writes attributes as an object.
    pub(super) fn object(&mut self, attributes: Attributes<'a>, out: &mut impl Output) -> Result<(), Full> {
        let from = self.collect(attributes, |_| true);
        let done = self.collected(from, MAX_OBJECT_DEPTH, out);
        self.drop_from(from);
        done
    }

    /// Writes the attributes beyond `from` as an object.
    #[inline]
    pub(super) fn collected(&mut self, from: usize, depth: usize, out: &mut impl Output) -> Result<(), Full> {
        out.put(b"{")?;
        let (mut at, mut to) = (from, self.pairs.len());
        let mut is_renaming = false;
        while let Some(&KeyValue { key, value }) = self.pairs.get(at).filter(|_| at < to) {
            if !is_renaming && !is_field(key) {
                is_renaming = true;
                self.settle(from, at);
                to = self.pairs.len();
                continue;
            }
            if at > from {
                out.put(b",")?;
            }
            self.key(key, out)?;
            self.value(value, depth, out)?;
            at += 1;
        }
        out.put(b"}")
    }

    /// Sees to it that no two of the attributes beyond `from` are written under one name, of which those before `at`
    /// are written already, under names that are fields'.
    #[cold]
    fn settle(&mut self, from: usize, at: usize) {
        let before = self.pairs.len();
        let Some((done, rest)) =
            self.pairs.get_mut(from..).and_then(|all| all.split_at_mut_checked(at - from))
        else {
            return;
        };
        done.sort_unstable_by(|a, b| a.key.cmp(b.key));
        rest.sort_unstable_by(|a, b| {
            let kept_last = || is_field(a.key).cmp(&is_field(b.key)).then(a.key.cmp(b.key));
            written(a.key).cmp(written(b.key)).then_with(kept_last)
        });
        let mut kept = 0;
        for place in 0..rest.len() {
            let Some(&pair) = rest.get(place) else { break };
            let is_done = || done.binary_search_by(|one| written(one.key).cmp(written(pair.key))).is_ok();
            let is_next = rest.get(place + 1).is_some_and(|next| written(next.key).eq(written(pair.key)));
            if is_next || is_done() {
                continue;
            }
            if let Some(place) = rest.get_mut(kept) {
                *place = pair;
                kept += 1;
            }
        }
        self.pairs.truncate(at + kept);
        self.lost += (before - self.pairs.len()) as u64;
    }

    /// Writes JSON of anybody's making, which is an object or a list: as it stands, but for keys that come twice.
    pub(super) fn free(&mut self, raw: &[u8], out: &mut impl Output) -> Result<(), Full> {
        self.lost += self.names.write(raw, out)?;
        Ok(())
    }

    /// Writes an object of anybody's making as its own member names can be fields: without fields in them.
    pub(super) fn renamed_members(
        &mut self,
        object: intake::Object<'_>,
        out: &mut impl Output,
    ) -> Result<(), Full> {
        self.lost += self.names.write_renamed(object, out)?;
        Ok(())
    }

    /// The same of objects within an object, of which only numbers are kept.
    pub(super) fn renamed_numbers(
        &mut self,
        object: intake::Object<'_>,
        out: &mut impl Output,
    ) -> Result<(), Full> {
        self.lost += self.names.write_numbers(object, out)?;
        Ok(())
    }

    /// Writes the attributes beyond `from` as an object of an item.
    pub(super) fn top(&mut self, from: usize, out: &mut impl Output) -> Result<(), Full> {
        self.collected(from, MAX_OBJECT_DEPTH, out)
    }

    /// Writes the body of a log record that is no scalar.
    pub(super) fn structured(&mut self, value: AnyValue<'a>, out: &mut impl Output) -> Result<(), Full> {
        let was_free = std::mem::replace(&mut self.is_free, true);
        let done = self.value(value, MAX_OBJECT_DEPTH, out);
        self.is_free = was_free;
        done
    }

    /// A key and its colon. What has parts of nothing between its dots is no name of a field: its dots become `_`.
    #[inline]
    pub(super) fn key(&mut self, key: &[u8], out: &mut impl Output) -> Result<(), Full> {
        out.put(b"\"")?;
        self.name(key, out)?;
        out.put(b"\":")
    }

    /// The same without its quotes and the colon.
    #[inline]
    pub(super) fn name(&mut self, key: &[u8], out: &mut impl Output) -> Result<(), Full> {
        if is_field(key) { json::escaped(key, out) } else { self.renamed(key, out) }
    }

    #[cold]
    fn renamed(&mut self, key: &[u8], out: &mut impl Output) -> Result<(), Full> {
        self.lost += 1;
        if key.is_empty() {
            return out.put(b"_");
        }
        for (place, part) in key.split(|byte| *byte == b'.').enumerate() {
            if place > 0 {
                out.put(b"_")?;
            }
            if part.trim_ascii().is_empty() { out.put(b"_")? } else { json::escaped(part, out)? }
        }
        Ok(())
    }

    /// Writes a value; objects and arrays nest as deep as `depth`.
    pub(super) fn value(
        &mut self,
        value: AnyValue<'a>,
        depth: usize,
        out: &mut impl Output,
    ) -> Result<(), Full> {
        match value {
            AnyValue::Empty => out.put(b"null"),
            AnyValue::Text(text) => json::string(text, out),
            AnyValue::Bool(value) => out.put(if value { b"true" } else { b"false" }),
            AnyValue::Int(value) => json::int(value, out),
            AnyValue::Double(bits) => {
                self.lost += u64::from(!json::double(bits, out)?);
                Ok(())
            }
            AnyValue::Bytes(bytes) => {
                out.put(b"\"")?;
                json::base64(bytes, out)?;
                out.put(b"\"")
            }
            AnyValue::Array(_) | AnyValue::Map(_) if depth == 0 => {
                out.put(b"\"")?;
                self.text(value, &mut DynOutput(&mut json::StringContent(out)))?;
                out.put(b"\"")
            }
            AnyValue::Array(array) => {
                let is_uniform = self.is_free || is_uniform(array);
                self.lost += u64::from(!is_uniform);
                out.put(b"[")?;
                for (place, element) in array.values().enumerate() {
                    if place > 0 {
                        out.put(b",")?;
                    }
                    match element {
                        AnyValue::Empty => out.put(b"null")?,
                        element if is_uniform => self.value(element, depth - 1, out)?,
                        element => self.quoted(element, out)?,
                    }
                }
                out.put(b"]")
            }
            AnyValue::Map(map) => {
                let from = self.collect(map.entries(), |_| true);
                let done = self.collected(from, depth - 1, out);
                self.drop_from(from);
                done
            }
        }
    }

    /// Writes a value as a JSON string: texts as they are, others as the JSON that they would be.
    pub(super) fn quoted(&mut self, value: AnyValue<'a>, out: &mut impl Output) -> Result<(), Full> {
        out.put(b"\"")?;
        let mut inside = json::StringContent(out);
        match value {
            AnyValue::Empty => {}
            AnyValue::Text(text) => inside.put(text)?,
            AnyValue::Bytes(bytes) => json::base64(bytes, &mut inside)?,
            AnyValue::Double(bits) if !f64::from_bits(bits).is_finite() => {
                json::formatted(format_args!("{}", f64::from_bits(bits)), &mut inside)?;
            }
            value => self.text(value, &mut DynOutput(&mut inside))?,
        }
        out.put(b"\"")
    }

    /// Writes a value as JSON of any depth, without a call for each level.
    fn text(&mut self, value: AnyValue<'a>, out: &mut DynOutput<'_>) -> Result<(), Full> {
        let was_free = std::mem::replace(&mut self.is_free, true);
        let (open, pairs) = (self.open.len(), self.pairs.len());
        let done = self.text_beyond(open, value, out);
        self.open.truncate(open);
        self.pairs.truncate(pairs);
        self.is_free = was_free;
        done
    }

    fn text_beyond(&mut self, open: usize, value: AnyValue<'a>, out: &mut DynOutput<'_>) -> Result<(), Full> {
        self.begin(value, out)?;
        while self.open.len() > open {
            let next = match self.open.last_mut() {
                Some(OpenContainer::Array(values, begun)) => match values.next() {
                    Some(value) => {
                        if std::mem::replace(begun, true) {
                            out.put(b",")?;
                        }
                        Some(value)
                    }
                    None => {
                        out.put(b"]")?;
                        None
                    }
                },
                Some(OpenContainer::Map { from, at, is_renaming }) => {
                    let (from, place, renames) = (*from, *at, *is_renaming);
                    match self.pairs.get(place) {
                        Some(pair) if !renames && !is_field(pair.key) => {
                            *is_renaming = true;
                            self.settle(from, place);
                            continue;
                        }
                        Some(&KeyValue { key, value }) => {
                            *at += 1;
                            if place > from {
                                out.put(b",")?;
                            }
                            self.key(key, out)?;
                            Some(value)
                        }
                        None => {
                            self.pairs.truncate(from);
                            out.put(b"}")?;
                            None
                        }
                    }
                }
                None => return Ok(()),
            };
            match next {
                Some(value) => self.begin(value, out)?,
                None => drop(self.open.pop()),
            }
        }
        Ok(())
    }

    /// Writes a scalar, or begins a list or an object. What is deeper than in a checked body is nothing.
    fn begin(&mut self, value: AnyValue<'a>, out: &mut DynOutput<'_>) -> Result<(), Full> {
        match value {
            AnyValue::Array(_) | AnyValue::Map(_) if self.open.len() >= MAX_DEPTH => out.put(b"null"),
            AnyValue::Array(array) => {
                self.open.push(OpenContainer::Array(array.values(), false));
                out.put(b"[")
            }
            AnyValue::Map(map) => {
                let from = self.collect(map.entries(), |_| true);
                self.open.push(OpenContainer::Map { from, at: from, is_renaming: false });
                out.put(b"{")
            }
            scalar => self.value(scalar, MAX_OBJECT_DEPTH, out),
        }
    }
}

/// Whether a list can be a field: it holds objects, or scalars of one type.
fn is_uniform(array: Array<'_>) -> bool {
    let mut values = array.values().filter(|value| !matches!(value, AnyValue::Empty));
    match values.next() {
        None => true,
        Some(AnyValue::Array(_)) => false,
        Some(first) => values.all(|value| discriminant(&value) == discriminant(&first)),
    }
}

/// A key as [`ObjectWriter::name`] writes it, but for escapes.
fn written(key: &[u8]) -> impl Iterator<Item = u8> {
    let is_renamed = !is_field(key);
    let between: &[u8] = if is_renamed { b"_" } else { b"." };
    key.split(|byte| *byte == b'.').enumerate().flat_map(move |(place, part)| {
        let part = if is_renamed && part.trim_ascii().is_empty() { b"_" } else { part };
        let between = if place > 0 { between } else { &[] };
        between.iter().chain(part).copied()
    })
}

/// Whether a name like `key` may be there already; notes it.
#[inline]
fn was_seen(seen: &mut [u64; 4], key: &[u8]) -> bool {
    let (first, last) = (key.first().copied().unwrap_or(0), key.last().copied().unwrap_or(0));
    let mixed = usize::from(first) * 31 + usize::from(last) * 7 + key.len() * 13;
    let (word, bit) = (mixed / 64 % 4, 1u64 << (mixed % 64));
    match seen.get_mut(word) {
        Some(word) if *word & bit == 0 => {
            *word |= bit;
            false
        }
        _ => true,
    }
}

/// Whether Elasticsearch takes `key` for a path of fields: no part between dots is blank.
#[inline]
pub(super) fn is_field(key: &[u8]) -> bool {
    let mut blank = true;
    for &byte in key {
        if byte == b'.' {
            if blank {
                return false;
            }
            blank = true;
        } else {
            blank &= byte.is_ascii_whitespace();
        }
    }
    !blank
}

#[cfg(test)]
mod tests;
