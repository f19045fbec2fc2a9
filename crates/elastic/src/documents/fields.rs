//! Fields of a document under their dotted names, written as objects within objects: each once, with what was put
//! last.
//!
//! A field that others are members of is written as their `value`, unless one of them is called that: then it is left
//! out. Of labels with one name the last counts, numbers and texts apart.

mod labels;

use super::intake::{SpecialMapping, shaped};
use super::objects::ObjectWriter;
use crate::json;
use labels::{KeyedLabel, LabelValue, labelled};
use std::cmp::Ordering;
use std::net::IpAddr;
use tidegate_wire::intake;
use tidegate_wire::otlp::AnyValue;
use tidegate_wire::output::{Full, Output};
use tidegate_wire::percent;

/// Fields of one document, and labels of one.
const MAX_FIELDS: usize = 1024;

/// The value of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldValue<'a> {
    /// A text.
    Text(&'a [u8]),
    /// Two texts with a character between them, if there are both.
    Joined(&'a [u8], char, &'a [u8]),
    /// Three with slashes.
    Path(&'a [u8], &'a [u8], &'a [u8]),
    /// A host and a port.
    Address(&'a [u8], u16),
    /// Hexadecimal digits.
    Hex(&'a [u8]),
    /// A number.
    Int(i64),
    /// A truth.
    Bool(bool),
    /// A value as it is.
    Value(AnyValue<'a>),
    /// A value as a text.
    Quoted(AnyValue<'a>),
    /// JSON as it stands, which is an object, a list, a number or a word.
    Json(&'a [u8]),
    /// The contents of a JSON string, without its quotes.
    Escaped(&'a [u8]),
    /// A number of JSON as a text, or a text.
    Word(intake::Value<'a>),
    /// A number as hexadecimal digits.
    Digits(u64),
    /// A list of an exception of this type and with this message.
    Exception(&'a [u8], &'a [u8]),
    /// Something else, by its number, that the writer of the document knows.
    Other(u32),
    /// No field, though one was put before: the resource's is not that of the document.
    Nothing,
    /// An address.
    Ip(IpAddr),
    /// A text in which `%` stands before the digits of a byte.
    Percent(&'a [u8]),
    /// A value of an intake event that is written in a shape of its own.
    Event(SpecialMapping, intake::Value<'a>),
    /// A metric of an intake event: its number.
    Sample(intake::Number<'a>),
}

#[derive(Debug, Clone, Copy)]
struct DocumentField<'a> {
    path: &'a [u8],
    said: FieldValue<'a>,
    order: u16,
}

/// Fields and labels that are being put together: those of the resource, and behind them those of the document.
#[derive(Debug)]
pub(super) struct FieldSet<'a> {
    fields: Vec<DocumentField<'a>>,
    labels: Vec<KeyedLabel<'a>>,
    base: (usize, usize),
    /// Whether the document's fields are in order, and each is there once.
    is_settled: bool,
    lost: u64,
}

impl<'a> FieldSet<'a> {
    pub(super) const BYTES: usize =
        2 * MAX_FIELDS * (size_of::<DocumentField<'_>>() + size_of::<KeyedLabel<'_>>());

    /// Without room, until there is need.
    pub(super) fn new() -> Self {
        Self { fields: Vec::new(), labels: Vec::new(), base: (0, 0), is_settled: false, lost: 0 }
    }

    /// Begins with a resource.
    pub(super) fn clear(&mut self) {
        if self.fields.capacity() == 0 {
            self.fields.reserve_exact(2 * MAX_FIELDS);
            self.labels.reserve_exact(2 * MAX_FIELDS);
        }
        self.fields.clear();
        self.labels.clear();
        self.base = (0, 0);
    }

    /// Marks the fields written so far as the resource's.
    pub(super) fn end_resource(&mut self) {
        self.base = (self.fields.len(), self.labels.len());
    }

    /// Begins a document, with all that is the resource's.
    pub(super) fn begin(&mut self) {
        self.is_settled = false;
        let (fields, labels) = self.base;
        self.fields.truncate(fields);
        self.labels.truncate(labels);
        self.fields.extend_from_within(..);
        self.labels.extend_from_within(..);
    }

    /// Puts a field.
    pub(super) fn put(&mut self, path: &'a [u8], said: FieldValue<'a>) {
        let count = self.fields.len() - self.base.0;
        if count >= MAX_FIELDS {
            self.lost += 1;
            return;
        }
        let order = u16::try_from(count).unwrap_or(u16::MAX);
        self.fields.push(DocumentField { path, said, order });
    }

    /// Puts a field, unless the text is empty.
    pub(super) fn text(&mut self, path: &'a [u8], text: &'a [u8]) {
        if !text.is_empty() {
            self.put(path, FieldValue::Text(text));
        }
    }

    /// Puts an id, unless it is none.
    pub(super) fn id(&mut self, path: &'a [u8], id: &'a [u8]) {
        if id.iter().any(|byte| *byte != 0) {
            self.put(path, FieldValue::Hex(id));
        }
    }

    /// Puts a label.
    pub(super) fn label(&mut self, key: &'a [u8], value: AnyValue<'a>) {
        let is_number = match value {
            AnyValue::Int(_) => true,
            AnyValue::Double(bits) => f64::from_bits(bits).is_finite(),
            AnyValue::Array(array) => {
                let is_number = |value| match value {
                    AnyValue::Int(_) => true,
                    AnyValue::Double(bits) => f64::from_bits(bits).is_finite(),
                    _ => false,
                };
                array.values().next().is_some() && array.values().all(is_number)
            }
            _ => false,
        };
        self.labelled(key, LabelValue::Otel(value), is_number);
    }

    /// Puts a label from an intake event.
    pub(super) fn tag(&mut self, key: intake::Text<'a>, value: intake::Value<'a>) {
        let is_number = match value {
            intake::Value::Null => return,
            intake::Value::Number(_) => true,
            intake::Value::Array(array) => {
                array.values().next().is_some() && array.values().all(|value| value.number().is_some())
            }
            _ => false,
        };
        match key.plain() {
            Some(key) => self.labelled(key, LabelValue::Json(value), is_number),
            None => self.labelled(key.raw(), LabelValue::Escaped(value), is_number),
        }
    }

    fn labelled(&mut self, key: &'a [u8], label: LabelValue<'a>, is_number: bool) {
        let count = self.labels.len() - self.base.1;
        if count >= MAX_FIELDS {
            self.lost += 1;
            return;
        }
        let order = u16::try_from(count).unwrap_or(u16::MAX);
        self.labels.push(KeyedLabel { key, label, is_number, order });
    }

    /// Puts the fields in order, and keeps of each what was put last.
    fn settle(&mut self) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        let base = self.base.0;
        let fields = self.fields.get_mut(base..).unwrap_or_default();
        fields.sort_unstable_by(|a, b| in_order(a.path, b.path).then(a.order.cmp(&b.order)));
        let mut kept = 0;
        for at in 0..fields.len() {
            let Some(&field) = fields.get(at) else { break };
            let is_last = fields.get(at + 1).is_none_or(|next| next.path != field.path);
            if is_last
                && !matches!(field.said, FieldValue::Nothing)
                && let Some(place) = fields.get_mut(kept)
            {
                *place = field;
                kept += 1;
            }
        }
        self.fields.truncate(base + kept);
    }

    /// Writes which template each metric of an intake event is of, as Elastic APM's templates have them: members of an
    /// object, with commas between them.
    pub(super) fn templates(&mut self, out: &mut impl Output) -> Result<(), Full> {
        self.settle();
        let fields = self.fields.get(self.base.0..).unwrap_or_default();
        let mut comma = false;
        for (at, field) in fields.iter().enumerate() {
            let template = match field.said {
                FieldValue::Sample(_) => "\"double_metrics\"",
                FieldValue::Event(SpecialMapping::Histogram, _) => "\"histogram_metrics\"",
                _ => continue,
            };
            if std::mem::replace(&mut comma, true) {
                out.put(b",")?;
            }
            let next = fields.get(at + 1).map(|next| next.path).unwrap_or_default();
            out.put(b"\"")?;
            json::escaped(field.path, out)?;
            out.put(if below(next, field.path).is_some() { b".value\":" } else { b"\":" })?;
            out.put(template.as_bytes())?;
        }
        Ok(())
    }

    /// Writes the document's members, each with a comma before it. `other` writes what is [`FieldValue::Other`].
    pub(super) fn write<O: Output>(
        &mut self,
        objects: &mut ObjectWriter<'a>,
        out: &mut O,
        mut other: impl FnMut(u32, &mut ObjectWriter<'a>, &mut O) -> Result<(), Full>,
    ) -> Result<(), Full> {
        objects.lost += std::mem::take(&mut self.lost);
        self.settle();
        let (base_fields, base_labels) = self.base;
        let fields = self.fields.get(base_fields..).unwrap_or_default();
        let (mut open, mut comma): (&[u8], bool) = (&[], true);
        for (at, field) in fields.iter().enumerate() {
            let next = fields.get(at + 1).map(|next| next.path).unwrap_or_default();
            // Beside its own members a field is named as if it were one of them.
            let has_members = next.strip_prefix(field.path).is_some_and(|rest| rest.first() == Some(&b'.'));
            let others = fields.get(at + 1..).unwrap_or_default();
            if has_members && others.iter().map_while(|other| below(other.path, field.path)).any(is_value) {
                objects.lost += 1;
                continue;
            }
            let (parent, name) = if has_members { (field.path, &b"value"[..]) } else { split(field.path) };
            while !is_within(parent, open) {
                out.put(b"}")?;
                comma = true;
                open = split(open).0;
            }
            let more = parent.get(open.len()..).unwrap_or_default();
            for part in more.split(|byte| *byte == b'.').filter(|part| !part.is_empty()) {
                key(part, comma, out)?;
                out.put(b"{")?;
                comma = false;
            }
            open = parent;
            key(name, comma, out)?;
            comma = true;
            value(field.said, objects, out, &mut other)?;
        }
        while !open.is_empty() {
            out.put(b"}")?;
            open = split(open).0;
        }
        let labels = self.labels.get_mut(base_labels..).unwrap_or_default();
        labels.sort_unstable_by(|a, b| {
            let by_key = || a.name().cmp(b.name());
            a.is_number.cmp(&b.is_number).then_with(by_key).then(a.order.cmp(&b.order))
        });
        let middle = labels.partition_point(|label| !label.is_number);
        let (texts, numbers) = labels.split_at_checked(middle).unwrap_or_default();
        labelled("labels", texts, objects, out)?;
        labelled("numeric_labels", numbers, objects, out)
    }
}

/// Parts are compared before what they have in them, so that an object's members follow each other.
fn in_order(a: &[u8], b: &[u8]) -> Ordering {
    let rank = |byte: &u8| if *byte == b'.' { 0 } else { u16::from(*byte) + 1 };
    a.iter().map(rank).cmp(b.iter().map(rank))
}

/// The object that a field is in, and its name there.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'.') {
        Some(dot) => (path.get(..dot).unwrap_or_default(), path.get(dot + 1..).unwrap_or_default()),
        None => (&[], path),
    }
}

/// The rest of a member's path after `object`.
fn below<'p>(path: &'p [u8], object: &[u8]) -> Option<&'p [u8]> {
    path.strip_prefix(object)?.strip_prefix(b".")
}

/// Whether the first name of a path is `value`.
fn is_value(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'.').next() == Some(b"value")
}

fn is_within(path: &[u8], object: &[u8]) -> bool {
    object.is_empty()
        || path.strip_prefix(object).is_some_and(|rest| matches!(rest.first(), None | Some(b'.')))
}

fn key(name: &[u8], comma: bool, out: &mut impl Output) -> Result<(), Full> {
    if comma {
        out.put(b",")?;
    }
    json::string(name, out)?;
    out.put(b":")
}

fn value<'a, O: Output>(
    said: FieldValue<'a>,
    objects: &mut ObjectWriter<'a>,
    out: &mut O,
    other: &mut impl FnMut(u32, &mut ObjectWriter<'a>, &mut O) -> Result<(), Full>,
) -> Result<(), Full> {
    match said {
        FieldValue::Text(text) => json::string(text, out),
        FieldValue::Joined(one, between, two) => {
            out.put(b"\"")?;
            json::escaped(one, out)?;
            if !one.is_empty() && !two.is_empty() {
                json::escaped(between.encode_utf8(&mut [0; 4]).as_bytes(), out)?;
            }
            json::escaped(two, out)?;
            out.put(b"\"")
        }
        FieldValue::Path(one, two, three) => {
            out.put(b"\"")?;
            json::escaped(one, out)?;
            for part in [two, three].into_iter().filter(|part| !part.is_empty()) {
                out.put(b"/")?;
                json::escaped(part, out)?;
            }
            out.put(b"\"")
        }
        FieldValue::Address(host, port) => {
            out.put(b"\"")?;
            json::escaped(host, out)?;
            out.put(b":")?;
            json::unsigned(port.into(), out)?;
            out.put(b"\"")
        }
        FieldValue::Hex(bytes) => {
            out.put(b"\"")?;
            json::hex(bytes, out)?;
            out.put(b"\"")
        }
        FieldValue::Int(value) => json::int(value, out),
        FieldValue::Bool(value) => out.put(if value { b"true" } else { b"false" }),
        FieldValue::Value(value) => objects.structured(value, out),
        FieldValue::Quoted(value) => objects.quoted(value, out),
        FieldValue::Json(raw) if matches!(raw.first(), Some(b'{' | b'[')) => objects.free(raw, out),
        FieldValue::Json(raw) => out.put(raw),
        FieldValue::Escaped(raw) => {
            out.put(b"\"")?;
            out.put(raw)?;
            out.put(b"\"")
        }
        FieldValue::Word(value) => word(value, out),
        FieldValue::Digits(number) => json::formatted(format_args!("\"{number:016x}\""), out),
        FieldValue::Exception(kind, message) => {
            out.put(br#"[{"type":"#)?;
            json::string(kind, out)?;
            out.put(br#","message":"#)?;
            json::string(message, out)?;
            out.put(b"}]")
        }
        FieldValue::Other(number) => other(number, objects, out),
        FieldValue::Nothing => out.put(b"null"),
        FieldValue::Ip(address) => json::formatted(format_args!("\"{address}\""), out),
        FieldValue::Percent(text) => {
            out.put(b"\"")?;
            percent(text, out)?;
            out.put(b"\"")
        }
        FieldValue::Event(shape, value) => shaped(shape, value, objects, out),
        FieldValue::Sample(number) => out.put(number.raw()),
    }
}

/// A text of UTF-8 without its escapes; as it stands where they stand for something else.
fn percent(text: &[u8], out: &mut impl Output) -> Result<(), Full> {
    let mut bytes = [0; 4096];
    let mut len = 0;
    for byte in percent::decode(text) {
        let Some(place) = bytes.get_mut(len) else { return json::escaped(text, out) };
        *place = byte;
        len += 1;
    }
    let plain = bytes.get(..len).unwrap_or_default();
    let is_text = percent::is_valid(text) && str::from_utf8(plain).is_ok();
    json::escaped(if is_text { plain } else { text }, out)
}

/// A scalar of JSON as a string.
fn word(value: intake::Value<'_>, out: &mut impl Output) -> Result<(), Full> {
    out.put(b"\"")?;
    match value {
        intake::Value::Null => {}
        intake::Value::Bool(true) => out.put(b"true")?,
        intake::Value::Bool(false) => out.put(b"false")?,
        intake::Value::Number(number) => out.put(number.raw())?,
        intake::Value::Text(text) => out.put(text.raw())?,
        intake::Value::Array(array) => json::escaped(array.raw(), out)?,
        intake::Value::Object(object) => json::escaped(object.raw(), out)?,
    }
    out.put(b"\"")
}
