//! `ParseCSV`: a row of values separated by commas (RFC 4180, as Go's `encoding/csv` reads it).

use super::members::{Known, Names, finish, remove_from};
use super::{all, converter, optional, required};
use crate::machine::arguments::literal;
use crate::memory::Room;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};
use tidegate_wire::output::Output;

pub(super) static CONVERTERS: &[&Signature] = &[&PARSE_CSV];

const NOT_CSV: Failure = Failure::Invalid("the string is not CSV");
const WRONG_NUMBER: Failure = Failure::Invalid("the row and the header have different numbers of fields");

/// A map from the header's names to the row's values. Lines behind the first continue its last value. Output: the target, the
/// header, and 28 bytes for each value.
static PARSE_CSV: Signature = Signature {
    complete: |arguments, constants, _| check(arguments, constants),
    ..converter(
        "ParseCSV",
        &[
            required("target", Type::Text),
            required("header", Type::Text),
            optional("delimiter", Type::LiteralText),
            optional("header_delimiter", Type::LiteralText),
            optional("mode", Type::LiteralText),
        ],
        Type::Map,
        |machine, arguments| {
            let [target, header, ..] = all::<5>(arguments)?;
            let target = machine.text(target)?;
            let header = machine.text(header)?;
            let mark = machine.memory.mark();
            let (contents, mut room) = machine.memory.split();
            let text = |at: usize| match literal(arguments, at) {
                Some(Value::Text(text)) => Some(contents.get(text)),
                _ => None,
            };
            let delimiter = text(2).unwrap_or(b",");
            let header_delimiter = text(3).unwrap_or(delimiter);
            let header = contents.get(header);
            if header.is_empty() {
                return Err(Failure::Invalid("the header is empty"));
            }
            let mut row = Row {
                room: &mut room,
                header: Some(header),
                header_delimiter,
                names: Names::default(),
                start: 0,
            };
            match text(4) {
                Some(b"ignoreQuotes") => {
                    let mut rest = contents.get(target);
                    while let Some(at) = memchr::memmem::find(rest, delimiter) {
                        row.room.put(rest.get(..at).unwrap_or_default())?;
                        row.end_field()?;
                        rest = rest.get(at + delimiter.len()..).unwrap_or_default();
                    }
                    row.room.put(rest)?;
                }
                mode => row.read(contents.get(target), delimiter, mode == Some(b"lazyQuotes"))?,
            }
            row.end_field()?;
            if row.header.is_some() {
                return Err(WRONG_NUMBER);
            }
            row.names.settle(row.room, 0)?;
            Ok(Value::Map(machine.memory.since(mark)))
        },
    )
};

fn check(arguments: &[Argument], constants: &[u8]) -> Result<(), (usize, String)> {
    let text = |at: usize| match literal(arguments, at) {
        Some(Value::Text(text)) => {
            let start = text.start as usize;
            str::from_utf8(constants.get(start..start + text.len as usize)?).ok()
        }
        _ => None,
    };
    for at in [2, 3] {
        if text(at).is_some_and(|delimiter| delimiter.chars().count() != 1) {
            return Err((at, "a delimiter has one character".into()));
        }
    }
    if matches!(text(2), Some("\"" | "\r" | "\n" | "\u{fffd}")) && text(4) != Some("ignoreQuotes") {
        return Err((2, "a quote, the end of a line or U+FFFD is no delimiter".into()));
    }
    match text(4) {
        None | Some("strict" | "lazyQuotes" | "ignoreQuotes") => Ok(()),
        Some(mode) => {
            Err((4, format!("unknown mode `{mode}`: there are `strict`, `lazyQuotes` and `ignoreQuotes`")))
        }
    }
}

/// A row that is being read. The value of the current field is written from `start` to the end of the room, behind the
/// entries of those before it.
struct Row<'r, 'm, 'h> {
    room: &'r mut Room<'m>,
    /// The names that have no value yet.
    header: Option<&'h [u8]>,
    header_delimiter: &'h [u8],
    names: Names,
    start: usize,
}

impl Row<'_, '_, '_> {
    /// Makes an entry of the current field; the next begins behind it.
    fn end_field(&mut self) -> Result<(), Failure> {
        let header = self.header.ok_or(WRONG_NUMBER)?;
        let name = match memchr::memmem::find(header, self.header_delimiter) {
            Some(at) => {
                self.header = header.get(at + self.header_delimiter.len()..);
                header.get(..at).unwrap_or_default()
            }
            None => {
                self.header = None;
                header
            }
        };
        if self.names.add(name) == Known::Maybe {
            self.start -= remove_from(self.room, 0..self.start, name);
        }
        finish(self.room, self.start, name)?;
        self.start = self.room.len();
        Ok(())
    }

    /// Reads the lines of a text; the last field stays open.
    fn read(&mut self, text: &[u8], delimiter: &[u8], lazy: bool) -> Result<(), Failure> {
        let mut rest = text;
        let mut is_first = true;
        while let Some(line) = next_line(&mut rest) {
            if line.text.is_empty() {
                continue;
            }
            if !is_first {
                self.room.put(b"\n")?;
            }
            is_first = false;
            self.record(line, &mut rest, delimiter, lazy)?;
        }
        if is_first { Err(Failure::Invalid("the string has no row")) } else { Ok(()) }
    }

    /// Reads a record that begins with `line`; values between quotes may go on in the next ones.
    fn record<'t>(
        &mut self,
        mut line: Line<'t>,
        rest: &mut &'t [u8],
        delimiter: &[u8],
        lazy: bool,
    ) -> Result<(), Failure> {
        'fields: loop {
            let Some(quoted) = line.text.strip_prefix(b"\"") else {
                let end = memchr::memmem::find(line.text, delimiter);
                let field = line.text.get(..end.unwrap_or(line.text.len())).unwrap_or_default();
                if !lazy && field.contains(&b'"') {
                    return Err(NOT_CSV);
                }
                self.room.put(field)?;
                let Some(end) = end else { return Ok(()) };
                self.end_field()?;
                line.text = line.text.get(end + delimiter.len()..).unwrap_or_default();
                continue;
            };
            line.text = quoted;
            loop {
                let Some(end) = memchr::memchr(b'"', line.text) else {
                    if line.text.is_empty() && !line.has_end {
                        return if lazy { Ok(()) } else { Err(NOT_CSV) };
                    }
                    self.room.put(line.text)?;
                    if line.has_end {
                        self.room.put(b"\n")?;
                    }
                    line = next_line(rest).unwrap_or(Line { text: b"", has_end: false });
                    continue;
                };
                self.room.put(line.text.get(..end).unwrap_or_default())?;
                line.text = line.text.get(end + 1..).unwrap_or_default();
                if let Some(behind) = line.text.strip_prefix(b"\"") {
                    self.room.put(b"\"")?;
                    line.text = behind;
                } else if let Some(behind) = line.text.strip_prefix(delimiter) {
                    line.text = behind;
                    self.end_field()?;
                    continue 'fields;
                } else if line.text.is_empty() {
                    return Ok(());
                } else if lazy {
                    self.room.put(b"\"")?;
                } else {
                    return Err(NOT_CSV);
                }
            }
        }
    }
}

/// A line, and whether its end is in the text.
struct Line<'t> {
    text: &'t [u8],
    has_end: bool,
}

/// The next line; without the carriage return at its end.
fn next_line<'t>(rest: &mut &'t [u8]) -> Option<Line<'t>> {
    if rest.is_empty() {
        return None;
    }
    let end = memchr::memchr(b'\n', rest);
    let (text, behind) = rest.split_at(end.unwrap_or(rest.len()));
    *rest = behind.get(1..).unwrap_or_default();
    Some(Line { text: text.strip_suffix(b"\r").unwrap_or(text), has_end: end.is_some() })
}
