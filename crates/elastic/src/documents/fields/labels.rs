//! Labels of a document: attributes that ECS has no field for.

use super::word;
use crate::documents::dedup_keys::Unescaped;
use crate::documents::objects::ObjectWriter;
use crate::json;
use tidegate_wire::intake;
use tidegate_wire::otlp::AnyValue;
use tidegate_wire::output::{Full, Output};

/// The value of a label.
#[derive(Debug, Clone, Copy)]
pub(super) enum LabelValue<'a> {
    Otel(AnyValue<'a>),
    Json(intake::Value<'a>),
    /// The same, under a key that is written with escapes.
    Escaped(intake::Value<'a>),
}

/// A label with its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyedLabel<'a> {
    pub(super) key: &'a [u8],
    pub(super) label: LabelValue<'a>,
    pub(super) is_number: bool,
    pub(super) order: u16,
}

impl KeyedLabel<'_> {
    /// Its key as the name of a field without fields in it, but for escapes.
    pub(super) fn name(&self) -> impl Iterator<Item = u8> {
        let blank = self.is_blank().then_some(b'_');
        let allowed = |byte| if matches!(byte, b'.' | b'*' | b'"') { b'_' } else { byte };
        blank.into_iter().chain(self.bytes().map(allowed))
    }

    fn is_blank(&self) -> bool {
        self.bytes().all(|byte| byte.is_ascii_whitespace())
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        Unescaped::new(self.key, matches!(self.label, LabelValue::Escaped(_)))
    }
}

/// Writes `labels`, sorted by name, as an object called `name`. Of several with one name the last is written.
pub(super) fn labelled<'a>(
    name: &str,
    labels: &[KeyedLabel<'a>],
    objects: &mut ObjectWriter<'a>,
    out: &mut impl Output,
) -> Result<(), Full> {
    let mut is_first = true;
    for (at, label) in labels.iter().enumerate() {
        if labels.get(at + 1).is_some_and(|next| next.name().eq(label.name())) {
            objects.lost += 1;
            continue;
        }
        if is_first {
            out.put(b",\"")?;
            out.put(name.as_bytes())?;
            out.put(b"\":{\"")?;
        } else {
            out.put(b",\"")?;
        }
        is_first = false;
        if label.is_blank() {
            objects.lost += 1;
            out.put(b"_")?;
        }
        match label.label {
            LabelValue::Escaped(_) => {
                let special = |byte| matches!(byte, b'.' | b'*' | b'"');
                for byte in label.bytes() {
                    json::escaped(&[if special(byte) { b'_' } else { byte }], out)?;
                }
            }
            LabelValue::Otel(_) | LabelValue::Json(_) => {
                for (place, part) in label.key.split(|byte| matches!(byte, b'.' | b'*' | b'"')).enumerate() {
                    if place > 0 {
                        out.put(b"_")?;
                    }
                    json::escaped(part, out)?;
                }
            }
        }
        out.put(b"\":")?;
        match label.label {
            LabelValue::Json(intake::Value::Number(value))
            | LabelValue::Escaped(intake::Value::Number(value)) => {
                out.put(value.raw())?;
            }
            LabelValue::Json(intake::Value::Array(value))
            | LabelValue::Escaped(intake::Value::Array(value))
                if label.is_number =>
            {
                out.put(value.raw())?;
            }
            LabelValue::Json(value) | LabelValue::Escaped(value) => intake_label(value, out)?,
            LabelValue::Otel(value) => otel_label(value, label.is_number, objects, out)?,
        }
    }
    if is_first { Ok(()) } else { out.put(b"}") }
}

/// A label of an intake event: a list of scalars stays one.
fn intake_label(value: intake::Value<'_>, out: &mut impl Output) -> Result<(), Full> {
    let is_scalar = |value: intake::Value<'_>| value.array().is_none() && value.object().is_none();
    let Some(array) = value.array().filter(|array| array.values().all(is_scalar)) else {
        return word(value, out);
    };
    out.put(b"[")?;
    for (place, value) in array.values().enumerate() {
        if place > 0 {
            out.put(b",")?;
        }
        word(value, out)?;
    }
    out.put(b"]")
}

/// A label of OpenTelemetry: lists of scalars stay lists, what else is no scalar becomes JSON in a text.
fn otel_label<'a>(
    value: AnyValue<'a>,
    is_number: bool,
    objects: &mut ObjectWriter<'a>,
    out: &mut impl Output,
) -> Result<(), Full> {
    let AnyValue::Array(array) = value else {
        return if is_number { objects.structured(value, out) } else { objects.quoted(value, out) };
    };
    if array.values().any(|value| matches!(value, AnyValue::Array(_) | AnyValue::Map(_))) {
        return objects.quoted(value, out);
    }
    out.put(b"[")?;
    for (place, value) in array.values().enumerate() {
        if place > 0 {
            out.put(b",")?;
        }
        if is_number { objects.structured(value, out)? } else { objects.quoted(value, out)? }
    }
    out.put(b"]")
}
