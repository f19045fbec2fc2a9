//! Writes streams as OTLP: a resource for each stream, a log record for each entry.

use super::SCOPE;
use super::error::ReadError;
use super::labels::{UnescapeError, unescape};
use super::names::attribute_of;
use crate::json::hex_digit;
use crate::otlp::json::error::ReadResult;
use crate::otlp::json::records::severity;
use crate::otlp::json::text;
use crate::otlp::json::value::length_delimited;
use crate::otlp::json::writer::ProtoOutput;
use crate::proto::write::varint_len;

/// Keys of fields with a length: of number 1 (a resource's logs, a resource, its attributes, a key, a scope) and of number 2
/// (a scope's logs, its records, the value of a key).
const FIRST: u16 = 0x0a;
const SECOND: u16 = 0x12;

// Keys of a `LogRecord`.
const TIME: u16 = 0x09;
const SEVERITY: u16 = 0x10;
const SEVERITY_TEXT: u16 = 0x1a;
const BODY: u16 = 0x2a;
const ATTRIBUTE: u16 = 0x32;
const TRACE_ID: u16 = 0x4a;
const SPAN_ID: u16 = 0x52;
const OBSERVED: u16 = 0x59;

/// A text as it stands in a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Text<'a> {
    /// As it is.
    Plain(&'a [u8]),
    /// With the escapes of Go, which are valid.
    Quoted(&'a [u8]),
    /// In JSON.
    Json(text::Text<'a>),
}

impl<'a> Text<'a> {
    /// Its length, about: with its escapes.
    fn len(&self) -> usize {
        match self {
            Text::Plain(raw) | Text::Quoted(raw) => raw.len(),
            Text::Json(text) => text.raw.len(),
        }
    }

    /// The text, if it has no escapes.
    fn plain(&self) -> Option<&'a [u8]> {
        match self {
            Text::Plain(raw) => Some(raw),
            Text::Json(text) if !text.is_escaped => Some(text.raw),
            Text::Quoted(_) | Text::Json(_) => None,
        }
    }

    /// Puts the text with U+FFFD where it is not UTF-8.
    pub(super) fn put(&self, out: &mut impl ProtoOutput) -> ReadResult<()> {
        match self {
            Text::Plain(raw) => put_lossy(raw, out),
            Text::Quoted(raw) => match unescape(raw, |piece| put_lossy(piece, out)) {
                Err(UnescapeError::Output(error)) => Err(error),
                // Its escapes were checked.
                Ok(()) | Err(UnescapeError::Escape) => Ok(()),
            },
            Text::Json(text) => text.unescape(|piece| put_lossy(piece, out)),
        }
    }
}

fn put_lossy(bytes: &[u8], out: &mut impl ProtoOutput) -> ReadResult<()> {
    if crate::utf8::is_utf8(bytes) {
        return out.put(bytes);
    }
    for chunk in bytes.utf8_chunks() {
        out.put(chunk.valid().as_bytes())?;
        if !chunk.invalid().is_empty() {
            out.put("\u{fffd}".as_bytes())?;
        }
    }
    Ok(())
}

/// A severity by its name.
#[derive(Debug, Clone, Copy, Default)]
struct Severity<'a> {
    number: u64,
    text: &'a [u8],
}

impl<'a> Severity<'a> {
    /// The severity that a label or structured metadata says, if it does.
    fn of(name: &[u8], value: &Text<'a>) -> Option<Self> {
        let text = value.plain()?;
        let number = match name {
            b"level" | b"detected_level" | b"severity" => severity(text),
            b"severity_number" => match str::from_utf8(text).ok()?.parse().ok()? {
                number @ 1..=24 => return Some(Severity { number, text: &[] }),
                _ => 0,
            },
            _ => 0,
        };
        (number > 0).then_some(Severity { number, text })
    }
}

/// Writes streams.
pub(super) struct StreamTranslator<O> {
    pub(super) out: O,
    received_ns: u64,
}

/// A stream that is being written: first its labels, then its entries.
pub(super) struct OpenStream<'a> {
    length_bytes: u8,
    logs: usize,
    /// The resource, and then the scope's logs.
    inner: usize,
    severity: Severity<'a>,
}

/// An entry that is being written, with its metadata.
pub(super) struct OpenEntry<'a> {
    record: usize,
    severity: Severity<'a>,
    trace_id: Option<[u8; 16]>,
    span_id: Option<[u8; 8]>,
}

impl<O: ProtoOutput> StreamTranslator<O> {
    pub(super) fn new(out: O, received_ns: u64) -> Self {
        Self { out, received_ns }
    }

    /// Begins a stream of about `len` bytes.
    pub(super) fn begin<'a>(&mut self, len: usize) -> Result<OpenStream<'a>, ReadError> {
        let length_bytes = u8::try_from(varint_len(len as u64)).unwrap_or(1);
        let logs = self.open(FIRST, length_bytes)?;
        let inner = self.open(FIRST, 1)?;
        Ok(OpenStream { length_bytes, logs, inner, severity: Severity::default() })
    }

    /// A label of the stream.
    pub(super) fn label<'a>(
        &mut self,
        stream: &mut OpenStream<'a>,
        name: &[u8],
        value: Text<'a>,
    ) -> Result<(), ReadError> {
        if let Some(severity) = Severity::of(name, &value) {
            stream.severity = severity;
        }
        Ok(self.attribute(FIRST, &Text::Plain(attribute_of(name)), &value)?)
    }

    /// Ends the labels of the stream.
    pub(super) fn entries(&mut self, stream: &mut OpenStream<'_>) -> Result<(), ReadError> {
        self.out.close(stream.inner, 1)?;
        stream.inner = self.open(SECOND, stream.length_bytes)?;
        let scope = self.open(FIRST, 1)?;
        self.out.key(FIRST)?;
        self.out.bytes(SCOPE.as_bytes())?;
        self.out.close(scope, 1)?;
        Ok(())
    }

    /// Ends the stream.
    pub(super) fn end(&mut self, stream: OpenStream<'_>) -> Result<(), ReadError> {
        self.out.close(stream.inner, stream.length_bytes)?;
        self.out.close(stream.logs, stream.length_bytes)?;
        Ok(())
    }

    /// Begins an entry of the stream.
    pub(super) fn begin_entry<'a>(&mut self, stream: &OpenStream<'a>) -> Result<OpenEntry<'a>, ReadError> {
        let record = self.open(SECOND, 2)?;
        Ok(OpenEntry { record, severity: stream.severity, trace_id: None, span_id: None })
    }

    /// Structured metadata of the entry.
    pub(super) fn metadata<'a>(
        &mut self,
        entry: &mut OpenEntry<'a>,
        name: Text<'a>,
        value: Text<'a>,
    ) -> Result<(), ReadError> {
        if let Some(known) = name.plain() {
            match known {
                b"trace_id" => entry.trace_id = value.plain().and_then(id),
                b"span_id" => entry.span_id = value.plain().and_then(id),
                _ => entry.severity = Severity::of(known, &value).unwrap_or(entry.severity),
            }
        }
        Ok(self.attribute(ATTRIBUTE, &name, &value)?)
    }

    /// Ends the entry, whose time is in nanoseconds since 1970.
    pub(super) fn end_entry(
        &mut self,
        entry: OpenEntry<'_>,
        time_ns: u64,
        line: Text<'_>,
    ) -> Result<(), ReadError> {
        let OpenEntry { record, severity, trace_id, span_id } = entry;
        if time_ns > 0 {
            self.time(TIME, time_ns)?;
        }
        if severity.number > 0 {
            self.out.key(SEVERITY)?;
            self.out.varint(severity.number)?;
        }
        if !severity.text.is_empty() {
            self.out.key(SEVERITY_TEXT)?;
            self.out.bytes(severity.text)?;
        }
        self.value(BODY, &line)?;
        if let Some(id) = trace_id {
            self.out.key(TRACE_ID)?;
            self.out.bytes(&id)?;
        }
        if let Some(id) = span_id {
            self.out.key(SPAN_ID)?;
            self.out.bytes(&id)?;
        }
        self.time(OBSERVED, self.received_ns)?;
        Ok(self.out.close(record, 2)?)
    }

    fn attribute(&mut self, key: u16, name: &Text<'_>, value: &Text<'_>) -> ReadResult<()> {
        let attribute = self.open(key, 1)?;
        if name.len() > 0 {
            self.out.key(FIRST)?;
            length_delimited(&mut self.out, name.len(), |out| name.put(out))?;
        }
        self.value(SECOND, value)?;
        self.out.close(attribute, 1)
    }

    fn value(&mut self, key: u16, text: &Text<'_>) -> ReadResult<()> {
        self.out.key(key)?;
        length_delimited(&mut self.out, text.len().saturating_add(2), |out| {
            out.key(FIRST)?;
            length_delimited(out, text.len(), |out| text.put(out))
        })
    }

    fn time(&mut self, key: u16, time: u64) -> ReadResult<()> {
        self.out.key(key)?;
        self.out.put(&time.to_le_bytes())
    }

    fn open(&mut self, key: u16, length_bytes: u8) -> ReadResult<usize> {
        self.out.key(key)?;
        self.out.open(length_bytes)
    }
}

/// The id that these hexadecimal digits are; `None` of others, and of nothing but zeros, which is none.
fn id<const LEN: usize>(digits: &[u8]) -> Option<[u8; LEN]> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let mut id = [0; LEN];
    if pairs.len() != LEN {
        return None;
    }
    for (byte, [high, low]) in id.iter_mut().zip(pairs) {
        let (high, low) = (hex_digit(*high), hex_digit(*low));
        if (high | low) > 15 {
            return None;
        }
        *byte = high << 4 | low;
    }
    Some(id).filter(|id| id.iter().any(|byte| *byte != 0))
}
