//! Reads a push request in JSON: `{"streams":[{"stream":{"label":"value"},"values":[["ns","line",{"metadata":"value"}]]}]}`.
//!
//! The form of the first versions is read too, which some libraries still write:
//! `{"streams":[{"labels":"{label=\"value\"}","entries":[{"ts":"2026-01-02T03:04:05Z","line":"…"}]}]}`.

use super::LokiError;
use super::error::{LabelError, ReadError, wrong_number};
use super::labels::SeenNames;
use super::names::is_label;
use super::protobuf::write_labels;
use super::stream::{OpenStream, StreamTranslator, Text};
use crate::otlp::json::error::{ErrorAtOffset, OtlpJsonErrorKind};
use crate::otlp::json::reader::Reader;
use crate::otlp::json::value::expect_end;
use crate::otlp::json::writer::ProtoOutput;
use crate::remote_write::Excerpt;
use crate::time;

/// The longest labels in one text. They are unescaped on the stack.
const MAX_LABEL_TEXT: usize = 8 << 10;

pub(super) fn read<O: ProtoOutput>(
    body: &[u8],
    translator: &mut StreamTranslator<O>,
) -> Result<(), LokiError> {
    let mut reader = Reader::new(body);
    let mut index = 0;
    let outside = |error: ErrorAtOffset| ReadError::from(error).outside();
    reader.expect(b'{', "an object").map_err(outside)?;
    if !reader.take(b'}') {
        loop {
            let name = reader.name().map_err(outside)?;
            if name.plain() == Some(b"streams") && !is_null(&mut reader) {
                streams(&mut reader, translator, &mut index)?;
            } else if name.plain() != Some(b"streams") {
                reader.skip().map_err(outside)?;
            }
            if !reader.take(b',') {
                reader.expect(b'}', "`,` or `}`").map_err(outside)?;
                break;
            }
        }
    }
    expect_end(&mut reader).map_err(outside)
}

fn streams<O: ProtoOutput>(
    reader: &mut Reader<'_>,
    translator: &mut StreamTranslator<O>,
    index: &mut usize,
) -> Result<(), LokiError> {
    let outside = |error: ErrorAtOffset| ReadError::from(error).outside();
    reader.expect(b'[', "an array").map_err(outside)?;
    if reader.take(b']') {
        return Ok(());
    }
    loop {
        let mut entry = None;
        stream(reader, translator, &mut entry).map_err(|error| error.within(*index, entry))?;
        *index += 1;
        if !reader.take(b',') {
            return reader.expect(b']', "`,` or `]`").map_err(outside);
        }
    }
}

/// Where the parts of a stream are.
#[derive(Default)]
struct StreamParts {
    labels: Option<usize>,
    /// Whether the labels are one text.
    is_text: bool,
    entries: Option<usize>,
    /// Whether entries are objects.
    are_objects: bool,
}

impl StreamParts {
    /// Looks at the object that comes next, and steps over it.
    fn of(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        let mut parts = StreamParts::default();
        reader.expect(b'{', "an object")?;
        if reader.take(b'}') {
            return Ok(parts);
        }
        loop {
            let name = reader.name()?;
            name.check()?;
            reader.peek();
            let at = Some(reader.offset());
            match name.plain().unwrap_or_default() {
                b"stream" => (parts.labels, parts.is_text) = (at, false),
                b"labels" => (parts.labels, parts.is_text) = (at, true),
                b"values" => (parts.entries, parts.are_objects) = (at, false),
                b"entries" => (parts.entries, parts.are_objects) = (at, true),
                _ => {}
            }
            reader.skip()?;
            if !reader.take(b',') {
                reader.expect(b'}', "`,` or `}`")?;
                return Ok(parts);
            }
        }
    }
}

/// Translates the stream that comes next. `number` follows the entry at hand.
fn stream<O: ProtoOutput>(
    reader: &mut Reader<'_>,
    translator: &mut StreamTranslator<O>,
    number: &mut Option<usize>,
) -> Result<(), ReadError> {
    let (whole, start) = (*reader, reader.offset());
    let parts = StreamParts::of(reader)?;
    let Some(mut entries) = parts.entries.map(|at| whole.from(at)) else { return Ok(()) };
    if is_null(&mut entries) {
        return Ok(());
    }
    entries.expect(b'[', "an array")?;
    if entries.take(b']') {
        return Ok(());
    }
    let mut space = [0; MAX_LABEL_TEXT];
    let mut stream = translator.begin(reader.offset().saturating_sub(start))?;
    match parts.labels.map(|at| whole.from(at)) {
        None => translator.entries(&mut stream)?,
        Some(mut labels) if parts.is_text => {
            let labels = unescaped(&mut labels, &mut space)?;
            write_labels(labels, &mut stream, translator)?;
        }
        Some(mut labels) => {
            label_map(&mut labels, &mut stream, translator)?;
            translator.entries(&mut stream)?;
        }
    }
    for index in 0.. {
        *number = Some(index);
        if parts.are_objects {
            entry_object(&mut entries, &stream, translator)?;
        } else {
            entry(&mut entries, &stream, translator)?;
        }
        if !entries.take(b',') {
            entries.expect(b']', "`,` or `]`")?;
            break;
        }
    }
    *number = None;
    translator.end(stream)
}

/// The text that comes next, in `space` if it has escapes.
fn unescaped<'a>(reader: &mut Reader<'a>, space: &'a mut [u8]) -> Result<&'a [u8], ReadError> {
    let text = reader.string("the labels of the stream as a string")?;
    if !text.is_escaped {
        return Ok(text.raw);
    }
    let mut len = 0;
    text.unescape(|piece| {
        let end = len + piece.len();
        let too_long = || {
            ErrorAtOffset::new(
                text.at,
                OtlpJsonErrorKind::Unexpected {
                    found: crate::otlp::json::error::FoundToken::Byte(b'"'),
                    expected: "labels of at most 8 KiB",
                },
            )
        };
        space.get_mut(len..end).ok_or_else(too_long)?.copy_from_slice(piece);
        len = end;
        Ok(())
    })?;
    Ok(space.get(..len).unwrap_or_default())
}

fn label_map<'a, O: ProtoOutput>(
    reader: &mut Reader<'a>,
    stream: &mut OpenStream<'a>,
    translator: &mut StreamTranslator<O>,
) -> Result<(), ReadError> {
    if is_null(reader) {
        return Ok(());
    }
    let mut seen = SeenNames::new();
    members(reader, |name, value| {
        if name.is_escaped || !is_label(name.raw) {
            return Err(LabelError::Name(Excerpt::new(name.raw)).into());
        }
        seen.add(name.raw)?;
        translator.label(stream, name.raw, Text::Json(value))
    })
}

/// Gives each member of the object that comes next, all of which are strings.
fn members<'a>(
    reader: &mut Reader<'a>,
    mut member: impl FnMut(JsonText<'a>, JsonText<'a>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    reader.expect(b'{', "an object")?;
    if reader.take(b'}') {
        return Ok(());
    }
    loop {
        let name = reader.name()?;
        let value = reader.string("a string")?;
        member(name, value)?;
        if !reader.take(b',') {
            return Ok(reader.expect(b'}', "`,` or `}`")?);
        }
    }
}

type JsonText<'a> = crate::otlp::json::text::Text<'a>;

/// Translates the entry that comes next, `["nanoseconds","line",{metadata}]`. What may follow is left out.
fn entry<'a, O: ProtoOutput>(
    reader: &mut Reader<'a>,
    stream: &OpenStream<'a>,
    translator: &mut StreamTranslator<O>,
) -> Result<(), ReadError> {
    let mut entry = translator.begin_entry(stream)?;
    reader.expect(b'[', "an array of the time, the line and metadata")?;
    let text = reader.string("the time as a string of nanoseconds")?;
    let digits = text.plain().and_then(|digits| str::from_utf8(digits).ok());
    let time = digits.filter(|digits| !digits.starts_with('+')).and_then(|digits| digits.parse::<u64>().ok());
    let Some(time) = time else {
        return Err(wrong_number(text.at, text.raw, "a whole number of nanoseconds since 1970"));
    };
    reader.expect(b',', "`,`")?;
    let line = reader.string("the line as a string")?;
    if reader.take(b',') {
        members(reader, |name, value| translator.metadata(&mut entry, Text::Json(name), Text::Json(value)))?;
        while reader.take(b',') {
            reader.skip()?;
        }
    }
    reader.expect(b']', "`,` or `]`")?;
    translator.end_entry(entry, time, Text::Json(line))
}

/// Translates the entry that comes next, `{"ts":"RFC 3339","line":"…","structuredMetadata":{…}}`.
fn entry_object<'a, O: ProtoOutput>(
    reader: &mut Reader<'a>,
    stream: &OpenStream<'a>,
    translator: &mut StreamTranslator<O>,
) -> Result<(), ReadError> {
    let mut entry = translator.begin_entry(stream)?;
    let (mut time, mut line) = (None, Text::Plain(&[]));
    reader.expect(b'{', "an object")?;
    if !reader.take(b'}') {
        loop {
            match reader.name()?.plain().unwrap_or_default() {
                b"ts" | b"timestamp" => {
                    let text = reader.string("the time as RFC 3339")?;
                    time = text.plain().and_then(time::parse_rfc3339);
                }
                b"line" => line = Text::Json(reader.string("the line as a string")?),
                b"structuredMetadata" => members(reader, |name, value| {
                    translator.metadata(&mut entry, Text::Json(name), Text::Json(value))
                })?,
                _ => reader.skip()?,
            }
            if !reader.take(b',') {
                reader.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
    }
    translator.end_entry(entry, time.ok_or(ReadError::Time)?, line)
}

/// Steps over `null`, if that comes next.
fn is_null(reader: &mut Reader<'_>) -> bool {
    reader.peek();
    reader.literal("null")
}
