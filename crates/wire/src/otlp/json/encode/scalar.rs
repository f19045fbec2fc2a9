//! Writes scalars, long texts in several steps, and the names of fields.

use super::{DATA, Encoder, LONGEST_STEP, MOST_FIELDS, OpenMessage, StackFrame};
use crate::json::write as json;
use crate::otlp::json::schema::{Field, Kind, Message, Rule};
use crate::output::{Full, Output, SliceOutput};
use crate::proto::{Key, Reader, low32, zigzag};

/// The end of the names of times.
pub(super) const UNIX_NANO: &str = "UnixNano";

/// A scalar as it stands in protobuf.
#[derive(Clone, Copy)]
pub(super) enum Scalar<'a> {
    Bits(u64),
    Bytes(&'a [u8]),
}

/// How JSON has text and bytes between quotes.
#[derive(Clone, Copy)]
pub(super) enum Notation {
    Text,
    Base64,
}

impl Notation {
    /// `None` for fields that are never long.
    pub(super) fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::String => Some(Notation::Text),
            Kind::Bytes => Some(Notation::Base64),
            _ => None,
        }
    }
}

impl<'a> Encoder<'a> {
    /// Writes the scalars of a message from the field at `from` on, up to the end of them or to a long text; of one that is
    /// there several times the last counts.
    pub(super) fn scalars(
        &mut self,
        out: &mut SliceOutput<'_>,
        message: &'static Message,
        body: &'a [u8],
        mut is_first: bool,
        after: &'static str,
        from: usize,
    ) -> Result<(), Full> {
        self.walked += body.len();
        let mut last = [None; MOST_FIELDS];
        let mut chosen = 0;
        let mut reader = Reader::new(body);
        while let Ok(Some(key)) = reader.key() {
            let found = message.fields.iter().position(|field| u32::from(field.number) == key.field);
            match found.and_then(|at| Some((at, message.fields.get(at)?))) {
                Some((at, field)) if field.is_scalar() => {
                    let Some(value) = scalar(field.kind, key, &mut reader) else { break };
                    for (rival, place) in message.fields.iter().zip(&mut last) {
                        if rival.choice == field.choice {
                            *place = None;
                        }
                    }
                    if let Some(place) = last.get_mut(at) {
                        *place = Some(value);
                    }
                    continue;
                }
                Some((_, field)) if field.choice == DATA => chosen = field.number,
                _ => {}
            }
            if reader.skip(key).is_err() {
                break;
            }
        }
        for (at, (field, value)) in message.fields.iter().zip(last).enumerate().skip(from) {
            let Some(value) = value else { continue };
            let is_zero = matches!(value, Scalar::Bits(0) | Scalar::Bytes([]));
            if is_zero && field.rule == Rule::Plain {
                continue;
            }
            let is_number = self.is_plain() && matches!(field.name, "asInt" | "asDouble");
            self.name(out, if is_number { "value" } else { field.name }, &mut is_first)?;
            match (Notation::of(field.kind), value) {
                (Some(notation), Scalar::Bytes(text)) if text.len() > LONGEST_STEP => {
                    let (table, from) = (message, at + 1);
                    self.open.push(StackFrame::Begin {
                        table,
                        body,
                        before: "",
                        schema_url: &[],
                        after,
                        from,
                    });
                    return self.text(out, text, notation, "\"");
                }
                _ => self.scalar(out, field, value)?,
            }
        }
        let (table, rest) = (message, Reader::new(body));
        self.open.push(StackFrame::Message(OpenMessage { table, rest, lists: 0, chosen, is_first, after }));
        Ok(())
    }

    pub(super) fn scalar(
        &self,
        out: &mut SliceOutput<'_>,
        field: &Field,
        value: Scalar<'_>,
    ) -> Result<(), Full> {
        let bits = match (field.kind, value) {
            (Kind::String, Scalar::Bytes(text)) => return json::string(text, out),
            (Kind::Bytes, Scalar::Bytes(bytes)) => return base64(bytes, out),
            (_, Scalar::Bytes(id)) => {
                out.put(b"\"")?;
                json::hex(id, out)?;
                return out.put(b"\"");
            }
            (_, Scalar::Bits(bits)) => bits,
        };
        match field.kind {
            Kind::Bool => out.put(if bits == 0 { b"false" } else { b"true" }),
            Kind::Double => double(bits, out),
            Kind::Zigzag32 => json::int(zigzag(u64::from(low32(bits))), out),
            Kind::Fixed32 | Kind::Uint32 => json::unsigned(low32(bits).into(), out),
            Kind::Enum => match enum_name(field.name, low32(bits)).filter(|_| self.is_plain()) {
                Some(word) => json::string(word.as_bytes(), out),
                None => json::int(low32(bits).cast_signed().into(), out),
            },
            Kind::Fixed64 if self.is_plain() && field.name.ends_with(UNIX_NANO) => json::rfc3339(bits, out),
            Kind::Int64 | Kind::SignedFixed64 => self.long(out, |out| json::int(bits.cast_signed(), out)),
            _ => self.long(out, |out| json::unsigned(bits, out)),
        }
    }

    /// Writes a number of 64 bits, which is a text in OTLP/JSON.
    pub(super) fn long<'o>(
        &self,
        out: &mut SliceOutput<'o>,
        write: impl FnOnce(&mut SliceOutput<'o>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let quote: &[u8] = if self.is_plain() { b"" } else { b"\"" };
        out.put(quote)?;
        write(out)?;
        out.put(quote)
    }

    /// Writes `text` behind a quote. `after` has the other quote.
    pub(super) fn text(
        &mut self,
        out: &mut SliceOutput<'_>,
        text: &'a [u8],
        notation: Notation,
        after: &'static str,
    ) -> Result<(), Full> {
        out.put(b"\"")?;
        self.rest_of_text(out, text, notation, after)
    }

    /// Writes as much of a text as may be in one step; the next step writes the rest.
    pub(super) fn rest_of_text(
        &mut self,
        out: &mut SliceOutput<'_>,
        text: &'a [u8],
        notation: Notation,
        after: &'static str,
    ) -> Result<(), Full> {
        let (first, rest) = text.split_at_checked(LONGEST_STEP).unwrap_or((text, &[]));
        match notation {
            Notation::Text => json::escaped(first, out)?,
            Notation::Base64 => json::base64(first, out)?,
        }
        if rest.is_empty() {
            return out.put(after.as_bytes());
        }
        self.open.push(StackFrame::Long { rest, notation, after });
        Ok(())
    }
}

/// Reads the scalar that follows `key`.
pub(super) fn scalar<'a>(kind: Kind, key: Key, reader: &mut Reader<'a>) -> Option<Scalar<'a>> {
    Some(match kind {
        Kind::String | Kind::Id(_) | Kind::Bytes | Kind::Message(_) => Scalar::Bytes(reader.bytes(key).ok()?),
        Kind::Double | Kind::Fixed64 | Kind::SignedFixed64 => Scalar::Bits(reader.fixed64(key).ok()?),
        Kind::Fixed32 => Scalar::Bits(reader.fixed32(key).ok()?.into()),
        Kind::Bool | Kind::Int64 | Kind::Uint64 | Kind::Uint32 | Kind::Zigzag32 | Kind::Enum => {
            Scalar::Bits(reader.varint(key).ok()?)
        }
    })
}

/// The word for the value of an enumeration.
pub(super) fn enum_name(name: &str, value: u32) -> Option<&'static str> {
    let words: &[&str] = match name {
        "kind" => &["unspecified", "internal", "server", "client", "producer", "consumer"],
        "code" => &["unset", "ok", "error"],
        "aggregationTemporality" => &["unspecified", "delta", "cumulative"],
        _ => return None,
    };
    words.get(usize::try_from(value).ok()?).copied()
}

/// The name of a field in snake_case, without what says that a time is a number.
pub(super) fn snake_case(name: &str, out: &mut impl Output) -> Result<(), Full> {
    let name = name.strip_suffix(UNIX_NANO).unwrap_or(name);
    for part in name.as_bytes().chunk_by(|_, next| !next.is_ascii_uppercase()) {
        match part {
            [capital @ b'A'..=b'Z', rest @ ..] => {
                out.put(&[b'_', capital.to_ascii_lowercase()])?;
                out.put(rest)?;
            }
            part => out.put(part)?,
        }
    }
    Ok(())
}

pub(super) fn base64(bytes: &[u8], out: &mut impl Output) -> Result<(), Full> {
    out.put(b"\"")?;
    json::base64(bytes, out)?;
    out.put(b"\"")
}

/// A double; JSON has no number for what is not finite.
pub(super) fn double(bits: u64, out: &mut impl Output) -> Result<(), Full> {
    match f64::from_bits(bits) {
        value if value.is_finite() => json::double(bits, out).map(drop),
        value if value.is_nan() => out.put(b"\"NaN\""),
        value if value > 0.0 => out.put(b"\"Infinity\""),
        _ => out.put(b"\"-Infinity\""),
    }
}
