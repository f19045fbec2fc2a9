//! JSON objects and plain lines to log records in OTLP's protobuf: each object, and each line, is a record.
//!
//! As [`super`], in one pass without a tree; only, an object is read twice, since what it is depends on all of its members.
//! A record that is not right is left out and does not cost the others. Values nest at most [`LEVELS`] deep, so that what
//! comes out is within the hundred levels that decoders of protobuf usually grant.

use super::Translated;
use super::error::{ErrorAtOffset, OtlpJsonError, OtlpJsonErrorKind, ReadResult};
use super::number::{double, integer, is_number, signed};
use super::reader::Reader;
use super::text::Text;
use super::value::{expect_end, length_delimited};
use super::writer::{LengthCounter, ProtoOutput, Writer};
use crate::proto::write::{Varint, varint_len};
use crate::remote_write::Excerpt;
use crate::time;

/// How deep arrays and objects may be in each other.
pub const LEVELS: usize = 24;

/// How many errors are reported at most.
const TOLD: usize = 3;

/// How a body is divided into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Each line is a record's text. Empty ones are not.
    Text,
    /// Each line is a JSON object. Empty ones are not.
    Lines,
    /// JSON objects one after the other, or one array of them.
    Objects,
}

/// The properties that all records of a body share.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// How it is divided.
    pub layout: Layout,
    /// Their resource, as [`resource`] writes it.
    pub resource: &'a [u8],
    /// When they came, in nanoseconds since 1970.
    pub received_ns: u64,
}

/// The room in which the protobuf of `body` fits, while it is made and after, exactly: it takes the time of a translation.
///
/// # Errors
/// As [`translate`].
pub fn measure(request: &Request<'_>, body: &[u8]) -> Result<usize, OtlpJsonError> {
    walk(request, body, LengthCounter::default()).map(|walk| walk.out.max_len())
}

/// Writes an `ExportLogsServiceRequest` with the records of `body` to the start of `out`, which should have what
/// [`measure`] says. A record in which something is wrong is left out.
///
/// # Errors
/// An [`OtlpJsonError`] that hides where a record ends.
pub fn translate(request: &Request<'_>, body: &[u8], out: &mut [u8]) -> Result<Translated, OtlpJsonError> {
    let walk = walk(request, body, Writer::new(out))?;
    Ok(Translated { len: walk.out.len(), refused: walk.refused, errors: walk.errors })
}

/// A `Resource` with these attributes, all of them texts.
pub fn resource<'a>(attributes: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let field = |out: &mut Vec<u8>, key, bytes: &[u8]| {
        out.push(key);
        out.extend_from_slice(Varint::new(bytes.len() as u64).as_bytes());
        out.extend_from_slice(bytes);
    };
    let mut out = Vec::new();
    for (name, value) in attributes {
        let (mut any, mut attribute) = (Vec::new(), Vec::new());
        field(&mut any, STRING, value.as_bytes());
        field(&mut attribute, FIRST, name.as_bytes());
        field(&mut attribute, SECOND, &any);
        field(&mut out, FIRST, &attribute);
    }
    out
}

/// Keys of fields with a length: of number 1 (a resource's logs, a resource, its attributes, a key, a value in a list) and
/// of number 2 (a scope's logs, its records, the value of a key).
const FIRST: u8 = 0x0a;
const SECOND: u8 = 0x12;

// Keys of a `LogRecord`.
const TIME: u16 = 0x09;
const SEVERITY: u16 = 0x10;
const SEVERITY_TEXT: u16 = 0x1a;
const BODY: u16 = 0x2a;
const ATTRIBUTE: u16 = 0x32;
const OBSERVED: u16 = 0x59;

// Keys of an `AnyValue`.
const STRING: u8 = 0x0a;
const BOOL: u16 = 0x10;
const INT: u16 = 0x18;
const DOUBLE: u16 = 0x21;
const ARRAY: u16 = 0x2a;
const MAP: u16 = 0x32;

struct RecordTranslator<O> {
    out: O,
    received_ns: u64,
    /// Records that were left out.
    refused: u64,
    errors: Vec<OtlpJsonError>,
}

fn walk<O: ProtoOutput>(
    request: &Request<'_>,
    body: &[u8],
    out: O,
) -> Result<RecordTranslator<O>, OtlpJsonError> {
    let mut walk = RecordTranslator { out, received_ns: request.received_ns, refused: 0, errors: Vec::new() };
    walk.request(request, body)?;
    Ok(walk)
}

impl<O: ProtoOutput> RecordTranslator<O> {
    fn request(&mut self, request: &Request<'_>, body: &[u8]) -> Result<(), OtlpJsonError> {
        let whole = |wrong: ErrorAtOffset| wrong.at(String::new());
        let length_bytes = u8::try_from(varint_len(body.len() as u64)).unwrap_or(1);
        let logs = self.open(FIRST.into(), length_bytes).map_err(whole)?;
        if !request.resource.is_empty() {
            self.out.key(FIRST.into()).and_then(|()| self.out.bytes(request.resource)).map_err(whole)?;
        }
        let scope = self.open(SECOND.into(), length_bytes).map_err(whole)?;
        match request.layout {
            Layout::Text => self.lines(body, |walk, line, start| walk.text(line, start))?,
            Layout::Lines => self.lines(body, |walk, line, start| {
                check_utf8(line, start)?;
                let end = start + line.len();
                let mut reader = Reader::new(body.get(..end).unwrap_or_default()).from(start);
                walk.record(&mut reader)?;
                expect_end(&mut reader)
            })?,
            Layout::Objects => self.objects(body)?,
        }
        self.out.close(scope, length_bytes).map_err(whole)?;
        self.out.close(logs, length_bytes).map_err(whole)
    }

    /// Takes each line that is not empty, of which `take` gets the bytes and where they begin.
    fn lines(
        &mut self,
        body: &[u8],
        take: impl Fn(&mut Self, &[u8], usize) -> ReadResult<()>,
    ) -> Result<(), OtlpJsonError> {
        let mut start = 0;
        for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
            let len = line.len();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.trim_ascii().is_empty() {
                let begun = self.out.len();
                if let Err(wrong) = take(self, line, start) {
                    self.leave_out(wrong, begun, "line", index)?;
                }
            }
            start += len + 1;
        }
        Ok(())
    }

    fn objects(&mut self, body: &[u8]) -> Result<(), OtlpJsonError> {
        let whole = |wrong: ErrorAtOffset| wrong.at(String::new());
        check_utf8(body, 0).map_err(whole)?;
        let mut reader = Reader::new(body);
        let is_array = reader.take(b'[');
        if is_array && reader.take(b']') {
            return expect_end(&mut reader).map_err(whole);
        }
        for index in 0.. {
            if !is_array && reader.peek().is_none() {
                return Ok(());
            }
            let (mut behind, begun) = (reader, self.out.len());
            if let Err(wrong) = self.record(&mut reader) {
                if behind.skip_bad().is_err() {
                    return Err(wrong.at(place("object", index)));
                }
                self.leave_out(wrong, begun, "object", index)?;
                reader = behind;
            }
            if is_array && !reader.take(b',') {
                let end = reader.expect(b']', "`,` or `]`").and_then(|()| expect_end(&mut reader));
                return end.map_err(whole);
            }
        }
        Ok(())
    }

    /// Goes on as if the record that begun at this length of the output had not been there.
    #[cold]
    fn leave_out(
        &mut self,
        wrong: ErrorAtOffset,
        begun: usize,
        what: &str,
        index: usize,
    ) -> Result<(), OtlpJsonError> {
        if wrong.is_full() {
            return Err(wrong.at(String::new()));
        }
        self.out.truncate(begun);
        self.refused += 1;
        if self.errors.len() < TOLD {
            self.errors.push(wrong.at(place(what, index)));
        }
        Ok(())
    }

    /// A record whose body is a line.
    fn text(&mut self, line: &[u8], start: usize) -> ReadResult<()> {
        check_utf8(line, start)?;
        let record = self.open(SECOND.into(), 1)?;
        let body = self.open(BODY, 1)?;
        self.out.key(STRING.into())?;
        self.out.bytes(line)?;
        self.out.close(body, 1)?;
        self.time(OBSERVED, self.received_ns)?;
        self.out.close(record, 1)
    }

    /// The record that is the object that comes next.
    fn record(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
        let members = *reader;
        let known = RecordFields::of(reader)?;
        let record = self.open(SECOND.into(), 2)?;
        if let Some((_, time)) = known.time
            && time > 0
        {
            self.time(TIME, time)?;
        }
        if let Some((_, severity)) = &known.severity {
            if severity.number > 0 {
                self.out.key(SEVERITY)?;
                self.out.varint(severity.number)?;
            }
            if let Some(text) = severity.text.as_ref().filter(|text| !text.raw.is_empty()) {
                self.string(SEVERITY_TEXT, text)?;
            }
        }
        match known.message {
            Some(at) => {
                self.any(BODY, &mut members.from(at), 0)?;
                self.map(&mut members.clone(), ATTRIBUTE, 0, |at| known.has(at))?;
            }
            // Its whole is the body.
            None => self.any(BODY, &mut members.clone(), 0)?,
        }
        self.time(OBSERVED, self.received_ns)?;
        self.out.close(record, 2)
    }

    /// The members of the object that comes next but for those whose values begin at a place that `skips`, as fields of
    /// `key`.
    fn map(
        &mut self,
        reader: &mut Reader<'_>,
        key: u16,
        depth: usize,
        skips: impl Fn(usize) -> bool,
    ) -> ReadResult<()> {
        reader.expect(b'{', "an object")?;
        if reader.take(b'}') {
            return Ok(());
        }
        loop {
            let name = reader.name()?;
            reader.peek();
            if skips(reader.offset()) {
                reader.skip()?;
            } else {
                let member = self.open(key, 1)?;
                if !name.raw.is_empty() {
                    self.string(FIRST.into(), &name)?;
                }
                self.any(SECOND.into(), reader, depth)?;
                self.out.close(member, 1)?;
            }
            if !reader.take(b',') {
                return reader.expect(b'}', "`,` or `}`");
            }
        }
    }

    /// The value that comes next, as an `AnyValue` in a field of `key`. It recurses, at most [`LEVELS`] deep.
    fn any(&mut self, key: u16, reader: &mut Reader<'_>, depth: usize) -> ReadResult<()> {
        let any = self.open(key, 1)?;
        match reader.peek() {
            Some(b'"') => self.string(STRING.into(), &reader.string("a string")?)?,
            Some(b'{' | b'[') if depth >= LEVELS => {
                return Err(ErrorAtOffset::new(reader.offset(), OtlpJsonErrorKind::Depth));
            }
            Some(b'{') => {
                let map = self.open(MAP, 1)?;
                self.map(reader, FIRST.into(), depth + 1, |_| false)?;
                self.out.close(map, 1)?;
            }
            Some(b'[') => {
                let array = self.open(ARRAY, 1)?;
                self.array(reader, depth + 1)?;
                self.out.close(array, 1)?;
            }
            Some(b'0'..=b'9' | b'-') => self.number(reader)?,
            // Nothing is a value without anything.
            _ if reader.literal("null") => {}
            _ => {
                let is_true = reader.literal("true");
                if !is_true && !reader.literal("false") {
                    return Err(reader.unexpected("a value"));
                }
                self.out.key(BOOL)?;
                self.out.varint(is_true.into())?;
            }
        }
        self.out.close(any, 1)
    }

    fn array(&mut self, reader: &mut Reader<'_>, depth: usize) -> ReadResult<()> {
        reader.expect(b'[', "an array")?;
        if reader.take(b']') {
            return Ok(());
        }
        loop {
            self.any(FIRST.into(), reader, depth)?;
            if !reader.take(b',') {
                return reader.expect(b']', "`,` or `]`");
            }
        }
    }

    /// A number is whole when it is written so, and has 64 bits.
    fn number(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
        let at = reader.offset();
        let token = reader.number("a number")?;
        let is_whole = !token.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        if let Some(whole) = integer(token).filter(|_| is_whole).and_then(signed) {
            self.out.key(INT)?;
            return self.out.varint(whole.cast_unsigned());
        }
        let Some(number) = double(token) else {
            let expected = "a number of 64 bits";
            return Err(ErrorAtOffset::new(
                at,
                OtlpJsonErrorKind::Number { found: Excerpt::new(token), expected },
            ));
        };
        self.out.key(DOUBLE)?;
        self.out.put(&number.to_bits().to_le_bytes())
    }

    fn string(&mut self, key: u16, text: &Text<'_>) -> ReadResult<()> {
        self.out.key(key)?;
        if !text.is_escaped {
            return self.out.bytes(text.raw);
        }
        length_delimited(&mut self.out, text.raw.len(), |out| text.unescape(|piece| out.put(piece)))
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

/// The members of an object that mean something, each with where its value begins: the first of its kind that can be read.
#[derive(Default)]
struct RecordFields<'a> {
    time: Option<(usize, u64)>,
    severity: Option<(usize, Severity<'a>)>,
    message: Option<usize>,
}

struct Severity<'a> {
    number: u64,
    text: Option<Text<'a>>,
}

impl<'a> RecordFields<'a> {
    /// Looks at the object that comes next, and steps over it.
    fn of(reader: &mut Reader<'a>) -> ReadResult<Self> {
        let mut known = RecordFields::default();
        reader.expect(b'{', "an object")?;
        if reader.take(b'}') {
            return Ok(known);
        }
        loop {
            let name = reader.name()?;
            name.check()?;
            let first = reader.peek();
            let at = reader.offset();
            match name.plain().unwrap_or_default() {
                b"timestamp" | b"time" | b"ts" | b"@timestamp" if known.time.is_none() => {
                    known.time = time_of(*reader).map(|time| (at, time));
                }
                b"level" | b"severity" if known.severity.is_none() => {
                    known.severity = Severity::of(*reader).map(|severity| (at, severity));
                }
                b"message" | b"msg" | b"log" if known.message.is_none() && first != Some(b'n') => {
                    known.message = Some(at);
                }
                _ => {}
            }
            reader.skip()?;
            if !reader.take(b',') {
                reader.expect(b'}', "`,` or `}`")?;
                return Ok(known);
            }
        }
    }

    /// Whether the value that begins here is one of them.
    fn has(&self, at: usize) -> bool {
        let places = [self.time.map(|(at, _)| at), self.severity.as_ref().map(|(at, _)| *at), self.message];
        places.contains(&Some(at))
    }
}

impl<'a> Severity<'a> {
    /// By name, or by the numbers of Bunyan and Pino.
    fn of(mut reader: Reader<'a>) -> Option<Self> {
        if reader.peek() == Some(b'"') {
            let text = reader.string("").ok()?;
            text.check().ok()?;
            return Some(Self { number: severity(text.raw), text: Some(text) });
        }
        let number = match reader.number("").ok()? {
            b"10" => 1,
            b"20" => 5,
            b"30" => 9,
            b"40" => 13,
            b"50" => 17,
            b"60" => 21,
            _ => return None,
        };
        Some(Self { number, text: None })
    }
}

/// The number of a severity by its name; 0 of others.
pub(crate) fn severity(name: &[u8]) -> u64 {
    const NAMES: [(&str, u64); 19] = [
        ("trace", 1),
        ("debug", 5),
        ("info", 9),
        ("information", 9),
        ("informational", 9),
        ("notice", 10),
        ("warn", 13),
        ("warning", 13),
        ("error", 17),
        ("err", 17),
        ("critical", 21),
        ("crit", 21),
        ("fatal", 21),
        ("alert", 22),
        ("panic", 23),
        ("emerg", 24),
        ("emergency", 24),
        ("dpanic", 23),
        ("verbose", 1),
    ];
    let named = NAMES.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
    named.map_or(0, |(_, number)| *number)
}

/// The time that comes next, in nanoseconds since 1970: RFC 3339, or a number, in quotes or not.
fn time_of(mut reader: Reader<'_>) -> Option<u64> {
    if reader.peek() != Some(b'"') {
        return epoch(reader.number("").ok()?);
    }
    let text = reader.string("").ok()?;
    let text = text.plain()?;
    if is_number(text) { epoch(text) } else { time::parse_rfc3339(text) }
}

/// A number of seconds, milliseconds, microseconds or nanoseconds, by its size: each is taken for what is not beyond the
/// year 5000.
fn epoch(token: &[u8]) -> Option<u64> {
    let point = token.iter().position(|byte| *byte == b'.').unwrap_or(token.len());
    let (whole, fraction) = token.split_at_checked(point)?;
    let whole: u64 = str::from_utf8(whole).ok()?.parse().ok()?;
    let unit = match whole {
        0..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    let (mut part, mut scale) = (0, unit);
    for byte in fraction.iter().skip(1) {
        let digit = char::from(*byte).to_digit(10)?;
        scale /= 10;
        part += u64::from(digit) * scale;
    }
    whole.checked_mul(unit)?.checked_add(part)
}

fn check_utf8(bytes: &[u8], start: usize) -> ReadResult<()> {
    if simdutf8::basic::from_utf8(bytes).is_ok() {
        return Ok(());
    }
    let offset = str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    Err(ErrorAtOffset::new(start + offset, OtlpJsonErrorKind::Utf8))
}

/// The name of a record in an error: the first is number 1.
fn place(what: &str, index: usize) -> String {
    format!("{what} {}", index + 1)
}

#[cfg(test)]
mod tests;
