//! Values of intake events that Elastic APM's documents have in shapes of their own.

use super::frames::{self, ExceptionChain};
use crate::documents::objects::ObjectWriter;
use crate::json;
use tidegate_wire::intake::{Array, Number, Object, Text, Value};
use tidegate_wire::output::{Full, Output};
use xxhash_rust::xxh3::Xxh3;

/// A shape of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum SpecialMapping {
    /// A list of frames of a stack.
    Frames,
    /// An exception, and behind it its causes.
    Exception,
    /// Links to other spans.
    Links,
    /// Headers: a list of texts under each name, in the letters that HTTP/1 has.
    Headers,
    /// An object of the user's making, whose own names are those of fields without fields in them.
    Custom,
    /// Marks: such objects within one, of numbers.
    Marks,
    /// Values and counts.
    Histogram,
    /// A list of texts.
    Texts,
    /// A text, or several with commas between them.
    Joined,
}

/// Headers that are told apart; more are left out.
const MAX_HEADERS: usize = 128;

/// Writes a value in its shape.
pub(in super::super) fn shaped(
    shape: SpecialMapping,
    value: Value<'_>,
    objects: &mut ObjectWriter<'_>,
    out: &mut impl Output,
) -> Result<(), Full> {
    match (shape, value) {
        (SpecialMapping::Frames, Value::Array(list)) => frames::frames(list, objects, out),
        (SpecialMapping::Links, Value::Array(list)) => frames::links(list, out),
        (SpecialMapping::Exception, Value::Object(exception)) => {
            ExceptionChain::new(objects, out).tree(exception)
        }
        (SpecialMapping::Headers, Value::Object(all)) => headers(all, objects, out),
        (SpecialMapping::Custom, Value::Object(custom)) => objects.renamed_members(custom, out),
        (SpecialMapping::Marks, Value::Object(all)) => marks(all, objects, out),
        (SpecialMapping::Histogram, Value::Object(sample)) => histogram(sample, out),
        (SpecialMapping::Texts, Value::Array(list)) => texts(list, out),
        (SpecialMapping::Joined, Value::Text(text)) => quoted(text, out),
        (SpecialMapping::Joined, Value::Array(list)) => {
            out.put(b"\"")?;
            for (place, text) in list.values().filter_map(Value::text).enumerate() {
                if place > 0 {
                    out.put(b", ")?;
                }
                out.put(text.raw())?;
            }
            out.put(b"\"")
        }
        _ => out.put(b"null"),
    }
}

/// Whether a value can be written in a shape, so that Elasticsearch takes it.
pub(super) fn fits(shape: SpecialMapping, value: Value<'_>) -> bool {
    match (shape, value) {
        (SpecialMapping::Histogram, Value::Object(sample)) => is_histogram(sample),
        (SpecialMapping::Frames | SpecialMapping::Links, Value::Array(list)) => {
            list.values().any(|one| one.object().is_some())
        }
        (SpecialMapping::Texts, Value::Array(list)) => list.values().any(|one| one.text().is_some()),
        (
            SpecialMapping::Headers
            | SpecialMapping::Custom
            | SpecialMapping::Exception
            | SpecialMapping::Marks,
            Value::Object(_),
        ) => true,
        _ => false,
    }
}

fn texts(list: Array<'_>, out: &mut impl Output) -> Result<(), Full> {
    out.put(b"[")?;
    for (place, text) in list.values().filter_map(Value::text).enumerate() {
        if place > 0 {
            out.put(b",")?;
        }
        quoted(text, out)?;
    }
    out.put(b"]")
}

fn quoted(text: Text<'_>, out: &mut impl Output) -> Result<(), Full> {
    out.put(b"\"")?;
    out.put(text.raw())?;
    out.put(b"\"")
}

/// Headers; of those that are the same but for the case of letters the last counts.
fn headers(all: Object<'_>, objects: &mut ObjectWriter<'_>, out: &mut impl Output) -> Result<(), Full> {
    let mut known = [0u64; MAX_HEADERS];
    let mut count = 0;
    for (name, _) in all.members() {
        match known.get_mut(count) {
            Some(place) => *place = canonical_hash(name),
            None => objects.lost += 1,
        }
        count += 1;
    }
    let known = known.get(..count.min(MAX_HEADERS)).unwrap_or_default();
    let mut comma = false;
    out.put(b"{")?;
    for ((place, hash), (name, value)) in known.iter().enumerate().zip(all.members()) {
        let is_there = matches!(value, Value::Text(_) | Value::Array(_));
        if !is_there || known.get(place + 1..).is_some_and(|later| later.contains(hash)) {
            objects.lost += 1;
            continue;
        }
        if std::mem::replace(&mut comma, true) {
            out.put(b",")?;
        }
        out.put(b"\"")?;
        canonical(name, |bytes| out.put(bytes))?;
        out.put(b"\":")?;
        match value {
            Value::Array(list) => texts(list, out)?,
            Value::Text(text) => {
                out.put(b"[")?;
                quoted(text, out)?;
                out.put(b"]")?;
            }
            _ => {}
        }
    }
    out.put(b"}")
}

/// A header's name with the first letter of each word in upper case, the others in lower case, as it stands in JSON. One
/// that is no name of a header stays as it is.
fn canonical(name: Text<'_>, mut put: impl FnMut(&[u8]) -> Result<(), Full>) -> Result<(), Full> {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let raw = name.raw();
    if !raw.iter().all(is_token) {
        return put(raw);
    }
    for word in raw.split_inclusive(|byte| *byte == b'-') {
        let mut upper = true;
        for byte in word {
            let byte = if upper { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
            put(&[byte])?;
            upper = false;
        }
    }
    Ok(())
}

fn canonical_hash(name: Text<'_>) -> u64 {
    let mut hash = Xxh3::new();
    _ = canonical(name, |bytes| {
        hash.update(bytes);
        Ok(())
    });
    hash.digest()
}

fn marks(all: Object<'_>, objects: &mut ObjectWriter<'_>, out: &mut impl Output) -> Result<(), Full> {
    objects.renamed_numbers(all, out)
}

/// Whether both lists are equally long, of ascending values and counts that are none below zero.
fn is_histogram(sample: Object<'_>) -> bool {
    let (Some(Value::Array(values)), Some(Value::Array(counts))) =
        (sample.find(b"values"), sample.find(b"counts"))
    else {
        return false;
    };
    let mut counts = counts.values();
    let mut before = f64::NEG_INFINITY;
    for value in values.values() {
        let Some(value) = value.number().map(Number::double) else { return false };
        let count = counts.next().and_then(Value::number).and_then(Number::integer);
        if !value.is_finite() || value <= before || count.is_none_or(|count| count < 0) {
            return false;
        }
        before = value;
    }
    counts.next().is_none()
}

fn histogram(sample: Object<'_>, out: &mut impl Output) -> Result<(), Full> {
    out.put(b"{")?;
    for (name, comma) in [("values", ""), ("counts", ",")] {
        let list = sample.find(name.as_bytes()).and_then(Value::array);
        json::formatted(format_args!("{comma}\"{name}\":"), out)?;
        out.put(list.map_or(b"[]", |list| list.raw()))?;
    }
    out.put(b"}")
}
