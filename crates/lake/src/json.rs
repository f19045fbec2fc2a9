//! OpenTelemetry's values as canonical JSON: keys sorted, nothing lost, every type told apart.
//!
//! | value | JSON |
//! |---|---|
//! | string | string |
//! | bool | `true`, `false` |
//! | int | a number without point and exponent |
//! | double | a number with one of them: `1.0`, `1e300`; else `{"$double":"NaN"}`, `"Infinity"`, `"-Infinity"`, or the bits of any other NaN as `"0x…"` |
//! | bytes | `{"$bytes":"<base64>"}` |
//! | array | array |
//! | kvlist | object; with a key that begins with `$`, `{"$kvlist":[[key,value],…]}` in the order that came |
//! | nothing | `null` |
//!
//! Keys that come twice stay twice. More than [`SORTED`] keys at a time stay in the order in which they came.

use std::convert::Infallible;
use tidegate_wire::otlp::{AnyValue, Attributes, KeyValue, MAX_DEPTH, Map, Values};
use tidegate_wire::{base64, json};

/// Where JSON goes: memory, or a count of bytes.
pub(crate) trait JsonOutput {
    fn put(&mut self, bytes: &[u8]);
}

impl JsonOutput for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Puts pieces to `out`, which takes all of them.
fn put_into(out: &mut impl JsonOutput) -> impl FnMut(&[u8]) -> Result<(), Infallible> {
    |piece| {
        out.put(piece);
        Ok(())
    }
}

/// Counts what would be written.
#[derive(Debug, Default)]
pub(crate) struct ByteCounter(pub(crate) usize);

impl JsonOutput for ByteCounter {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

/// Keys that are sorted, those of the objects around them included: it bounds the memory that sorting takes.
pub(crate) const SORTED: usize = 1024;

/// Most JSON bytes per byte of the message: a control character, or an empty `bytes` in an array.
pub(crate) const WIDEST: usize = 6;

/// Attributes of the objects that are being written.
pub(crate) type Stack<'a> = Vec<KeyValue<'a>>;

/// The number that OpenTelemetry's schema gives to a value's type.
pub(crate) fn type_number(value: AnyValue<'_>) -> u8 {
    match value {
        AnyValue::Empty => 0,
        AnyValue::Text(_) => 1,
        AnyValue::Bool(_) => 2,
        AnyValue::Int(_) => 3,
        AnyValue::Double(_) => 4,
        AnyValue::Array(_) => 5,
        AnyValue::Map(_) => 6,
        AnyValue::Bytes(_) => 7,
    }
}

/// Writes attributes as an object that is in so many arrays and objects.
fn write_object_at<'a>(
    attributes: Attributes<'a>,
    out: &mut impl JsonOutput,
    stack: &mut Stack<'a>,
    depth: usize,
) {
    let from = stack.len();
    if collect(attributes.clone(), |_| true, stack) {
        write_collected_at(from, out, stack, depth);
        stack.truncate(from);
    } else {
        write_unsorted_at(attributes, out, stack, depth);
    }
}

/// Puts those attributes that `wanted` says yes to on the stack, sorted. Puts nothing there and returns false
/// when there are too many.
#[inline]
pub(crate) fn collect<'a>(
    attributes: Attributes<'a>,
    mut wanted: impl FnMut(&KeyValue<'a>) -> bool,
    stack: &mut Stack<'a>,
) -> bool {
    let from = stack.len();
    for attribute in attributes {
        if stack.len() >= SORTED {
            stack.truncate(from);
            return false;
        }
        if wanted(&attribute) {
            stack.push(attribute);
        }
    }
    if let Some(pairs) = stack.get_mut(from..) {
        sort(pairs);
    }
    true
}

/// At least as many bytes as [`write_collected`] will write.
#[inline]
pub(crate) fn bound<'a>(from: usize, stack: &mut Stack<'a>) -> usize {
    let mut most = 2;
    let mut at = from;
    while let Some(&KeyValue { key, value }) = stack.get(at) {
        most += WIDEST * key.len() + 4;
        most += match value {
            AnyValue::Text(text) => WIDEST * text.len() + 2,
            AnyValue::Empty | AnyValue::Bool(_) | AnyValue::Int(_) | AnyValue::Double(_) => LONGEST_NUMBER,
            nested => {
                let mut counter = ByteCounter::default();
                write_value(nested, &mut counter, stack);
                counter.0
            }
        };
        at += 1;
    }
    most
}

/// `{"$double":"0x…"}`.
const LONGEST_NUMBER: usize = 34;

/// Writes the attributes that are on the stack beyond `from` as an object.
#[inline]
pub(crate) fn write_collected<'a>(from: usize, out: &mut impl JsonOutput, stack: &mut Stack<'a>) {
    write_collected_at(from, out, stack, 0);
}

#[inline]
fn write_collected_at<'a>(from: usize, out: &mut impl JsonOutput, stack: &mut Stack<'a>, depth: usize) {
    let mut at = from;
    out.put(b"{");
    let to = stack.len();
    while at < to {
        let Some(&KeyValue { key, value }) = stack.get(at) else { break };
        if at > from {
            out.put(b",");
        }
        write_string(key, out);
        out.put(b":");
        write_value_at(value, out, stack, depth);
        at += 1;
    }
    out.put(b"}");
}

/// Writes attributes as an object, in the order in which they came.
pub(crate) fn write_unsorted<'a>(
    attributes: impl Iterator<Item = KeyValue<'a>>,
    out: &mut impl JsonOutput,
    stack: &mut Stack<'a>,
) {
    write_unsorted_at(attributes, out, stack, 0);
}

fn write_unsorted_at<'a>(
    attributes: impl Iterator<Item = KeyValue<'a>>,
    out: &mut impl JsonOutput,
    stack: &mut Stack<'a>,
    depth: usize,
) {
    out.put(b"{");
    for (place, KeyValue { key, value }) in attributes.enumerate() {
        if place > 0 {
            out.put(b",");
        }
        write_string(key, out);
        out.put(b":");
        write_value_at(value, out, stack, depth);
    }
    out.put(b"}");
}

/// Few keys, and mostly in order already: what the same library sends is in the same order every time.
#[inline]
fn sort(pairs: &mut [KeyValue<'_>]) {
    if pairs.len() > 20 {
        return pairs.sort_by(|left, right| left.key.cmp(right.key));
    }
    for at in 1..pairs.len() {
        let mut place = at;
        while place > 0 && pairs.get(place - 1).zip(pairs.get(place)).is_some_and(|(a, b)| a.key > b.key) {
            pairs.swap(place - 1, place);
            place -= 1;
        }
    }
}

/// How many levels of arrays and maps are written by functions that call each other.
const FEW: usize = 8;

/// Writes a value.
pub(crate) fn write_value<'a>(value: AnyValue<'a>, out: &mut impl JsonOutput, stack: &mut Stack<'a>) {
    write_value_at(value, out, stack, 0);
}

/// Writes a value that is in so many arrays and maps.
fn write_value_at<'a>(value: AnyValue<'a>, out: &mut impl JsonOutput, stack: &mut Stack<'a>, depth: usize) {
    match value {
        AnyValue::Array(_) | AnyValue::Map(_) if depth >= FEW => write_deep(value, out, stack),
        AnyValue::Array(array) => {
            out.put(b"[");
            for (place, element) in array.values().enumerate() {
                if place > 0 {
                    out.put(b",");
                }
                write_value_at(element, out, stack, depth + 1);
            }
            out.put(b"]");
        }
        AnyValue::Map(map) => {
            if !is_list(map) {
                return write_object_at(map.entries(), out, stack, depth + 1);
            }
            out.put(br#"{"$kvlist":["#);
            for (place, KeyValue { key, value }) in map.entries().enumerate() {
                out.put(if place > 0 { &b",["[..] } else { b"[" });
                write_string(key, out);
                out.put(b",");
                write_value_at(value, out, stack, depth + 1);
                out.put(b"]");
            }
            out.put(b"]}");
        }
        scalar => write_scalar(scalar, out),
    }
}

/// Writes a value that has no other in it.
#[inline]
fn write_scalar(value: AnyValue<'_>, out: &mut impl JsonOutput) {
    match value {
        AnyValue::Empty | AnyValue::Array(_) | AnyValue::Map(_) => out.put(b"null"),
        AnyValue::Text(text) => write_string(text, out),
        AnyValue::Bool(value) => out.put(if value { &b"true"[..] } else { b"false" }),
        AnyValue::Int(value) => write_int(value, out),
        AnyValue::Double(bits) => write_double(bits, out),
        AnyValue::Bytes(bytes) => {
            out.put(br#"{"$bytes":""#);
            let Ok(()) = base64::encode(bytes, put_into(out));
            out.put(br#""}"#);
        }
    }
}

/// Whether a map is written as a list, so that none of its keys is taken for one of ours.
fn is_list(map: Map<'_>) -> bool {
    map.entries().any(|entry| entry.key.starts_with(b"$"))
}

/// An open container in [`write_deep`].
enum OpenContainer<'a> {
    Array(Values<'a>),
    /// The stack entries above the first number; the second number is the next of them.
    Sorted(usize, usize),
    Unsorted(Attributes<'a>),
    List(Attributes<'a>),
}

/// Writes an array or a map without a call for each level. What is open takes a moment's memory: 40 bytes for each
/// level, of which a checked body has [`MAX_DEPTH`].
#[cold]
#[inline(never)]
fn write_deep<'a>(value: AnyValue<'a>, out: &mut impl JsonOutput, stack: &mut Stack<'a>) {
    let mut open = Vec::new();
    begin(value, out, stack, &mut open);
    // Whether something stands before what comes next in what is open.
    let mut follows = false;
    while let Some(innermost) = open.last_mut() {
        let (next, end): (_, &[u8]) = match innermost {
            OpenContainer::Array(values) => (values.next().map(|value| (None, value)), b"]"),
            OpenContainer::Sorted(from, at) => match stack.get(*at) {
                Some(&KeyValue { key, value }) => {
                    *at += 1;
                    (Some((Some(key), value)), b"}")
                }
                None => {
                    stack.truncate(*from);
                    (None, b"}")
                }
            },
            OpenContainer::Unsorted(entries) => {
                (entries.next().map(|entry| (Some(entry.key), entry.value)), b"}")
            }
            OpenContainer::List(entries) => {
                if follows {
                    out.put(b"]");
                }
                (entries.next().map(|entry| (Some(entry.key), entry.value)), b"]}")
            }
        };
        let Some((key, value)) = next else {
            out.put(end);
            open.pop();
            follows = true;
            continue;
        };
        if follows {
            out.put(b",");
        }
        let is_list = matches!(innermost, OpenContainer::List(_));
        if let Some(key) = key {
            if is_list {
                out.put(b"[");
            }
            write_string(key, out);
            out.put(if is_list { b"," } else { b":" });
        }
        follows = !begin(value, out, stack, &mut open);
    }
}

/// Writes a scalar, or begins an array or a map, and says whether it did that. What is deeper than in a checked body
/// is nothing.
fn begin<'a>(
    value: AnyValue<'a>,
    out: &mut impl JsonOutput,
    stack: &mut Stack<'a>,
    open: &mut Vec<OpenContainer<'a>>,
) -> bool {
    match value {
        AnyValue::Array(array) if open.len() < MAX_DEPTH => {
            out.put(b"[");
            open.push(OpenContainer::Array(array.values()));
        }
        AnyValue::Map(map) if open.len() < MAX_DEPTH => {
            let from = stack.len();
            if is_list(map) {
                out.put(br#"{"$kvlist":["#);
                open.push(OpenContainer::List(map.entries()));
            } else if collect(map.entries(), |_| true, stack) {
                out.put(b"{");
                open.push(OpenContainer::Sorted(from, from));
            } else {
                out.put(b"{");
                open.push(OpenContainer::Unsorted(map.entries()));
            }
        }
        scalar => {
            write_scalar(scalar, out);
            return false;
        }
    }
    true
}

/// Writes a string between quotes.
#[inline]
pub(crate) fn write_string(text: &[u8], out: &mut impl JsonOutput) {
    let Ok(()) = json::string(text, put_into(out));
}

fn write_int(value: i64, out: &mut impl JsonOutput) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + (rest % 10).to_le_bytes()[0];
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.put(b"-");
    }
    out.put(digits.get(at..).unwrap_or(&[]));
}

fn write_double(bits: u64, out: &mut impl JsonOutput) {
    let value = f64::from_bits(bits);
    if value.is_finite() {
        // The shortest that reads back as the same; there is always a point or an exponent.
        return out.put(format!("{value:?}").as_bytes());
    }
    out.put(br#"{"$double":""#);
    match value {
        f64::INFINITY => out.put(b"Infinity"),
        f64::NEG_INFINITY => out.put(b"-Infinity"),
        _ if bits == f64::NAN.to_bits() => out.put(b"NaN"),
        _ => out.put(format!("{bits:#018x}").as_bytes()),
    }
    out.put(br#""}"#);
}

#[cfg(test)]
mod tests;
