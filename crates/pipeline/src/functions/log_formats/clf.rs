//! `ParseCLF`: the Common Log Format of web servers, and the combined one.

use super::{all, converter, optional, required};
use crate::any_value::write_named;
use crate::machine::Machine;
use crate::machine::arguments::literal;
use crate::memory::{Memory, Slice};
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};
use tidegate_wire::output::Output;

/// The parts of a line. Output: twice the line, and 350 bytes for the names.
pub(super) static PARSE_CLF: Signature = Signature {
    complete: |arguments, constants, _| match literal(arguments, 1) {
        Some(Value::Text(format)) => {
            let start = format.start as usize;
            match constants.get(start..start + format.len as usize) {
                Some(b"clf" | b"combined") => Ok(()),
                _ => Err((1, "there are the formats `clf` and `combined`".into())),
            }
        }
        _ => Ok(()),
    },
    ..converter(
        "ParseCLF",
        &[required("target", Type::Text), optional("format", Type::LiteralText)],
        Type::Map,
        line,
    )
};

const NO_MATCH: Failure = Failure::Invalid("the line is not in the Common Log Format");
const NO_NUMBER: Failure = Failure::Invalid("the status or the length in the line is no integer");

fn line(machine: &mut Machine<'_>, arguments: &[Argument]) -> Result<Value, Failure> {
    let [target, _] = all::<2>(arguments)?;
    let target = machine.text(target)?;
    let memory = &mut machine.memory;
    let is_combined = match literal(arguments, 1) {
        Some(Value::Text(format)) => memory.get(format) == b"combined",
        _ => false,
    };
    let mut rest = Rest { line: trimmed(memory, target) };
    let host = rest.word(memory)?;
    let identity = rest.behind(memory, b" ")?.word(memory)?;
    let user = rest.behind(memory, b" ")?.word(memory)?;
    let time = rest.behind(memory, b" [")?.bracketed(memory)?;
    let request = rest.behind(memory, b" ")?.quoted(memory)?;
    let status = rest.behind(memory, b" ")?.word(memory)?;
    let length = rest.behind(memory, b" ")?.word(memory)?;
    let more = match is_combined {
        true => {
            let referer = rest.behind(memory, b" ")?.quoted(memory)?;
            Some((referer, rest.behind(memory, b" ")?.quoted(memory)?))
        }
        false => None,
    };
    if rest.line.len > 0 {
        return Err(NO_MATCH);
    }
    let request = unescaped(memory, request)?;
    let more = match more {
        Some((referer, agent)) => Some((unescaped(memory, referer)?, unescaped(memory, agent)?)),
        None => None,
    };
    let number = |text| {
        let text = str::from_utf8(memory.get(text)).unwrap_or_default();
        text.parse().map(Value::Int).map_err(|_| NO_NUMBER)
    };
    let status = number(status)?;
    let length = if memory.get(length) == b"-" { None } else { Some(number(length)?) };
    let map = memory.build(|memory| {
        write_named(b"clf.remote_host", Value::Text(host), memory)?;
        write_named(b"clf.rfc931", Value::Text(identity), memory)?;
        write_named(b"clf.auth_user", Value::Text(user), memory)?;
        write_named(b"clf.timestamp", Value::Text(time), memory)?;
        write_named(b"clf.request", Value::Text(request), memory)?;
        let (method, rest) = cut(memory, request);
        let (uri, protocol) = rest.map_or((Slice::EMPTY, None), |rest| cut(memory, rest));
        if let Some(protocol) = protocol {
            write_named(b"clf.method", Value::Text(method), memory)?;
            write_named(b"clf.request_uri", Value::Text(uri), memory)?;
            write_named(b"clf.protocol", Value::Text(protocol), memory)?;
        }
        write_named(b"clf.status", status, memory)?;
        if let Some(length) = length {
            write_named(b"clf.bytes", length, memory)?;
        }
        if let Some((referer, agent)) = more {
            write_named(b"clf.referer", Value::Text(referer), memory)?;
            write_named(b"clf.user_agent", Value::Text(agent), memory)?;
        }
        Ok(())
    })?;
    Ok(Value::Map(map))
}

fn trimmed(memory: &Memory<'_>, text: Slice) -> Slice {
    let whole = str::from_utf8(memory.get(text)).unwrap_or_default();
    let start = whole.len() - whole.trim_start().len();
    text.part(start, start + whole.trim().len())
}

/// The parts before and behind the first space.
fn cut(memory: &Memory<'_>, text: Slice) -> (Slice, Option<Slice>) {
    match memchr::memchr(b' ', memory.get(text)) {
        Some(at) => (text.part(0, at), Some(text.part(at + 1, text.len as usize))),
        None => (text, None),
    }
}

/// The rest of a line.
struct Rest {
    line: Slice,
}

impl Rest {
    /// Takes the first bytes, up to `end`, and passes `more` behind them.
    fn take(&mut self, end: usize, more: usize) -> Slice {
        let taken = self.line.part(0, end);
        self.line = self.line.part(end + more, self.line.len as usize);
        taken
    }

    /// Passes `text`.
    fn behind(&mut self, memory: &Memory<'_>, text: &[u8]) -> Result<&mut Rest, Failure> {
        if !memory.get(self.line).starts_with(text) {
            return Err(NO_MATCH);
        }
        self.take(text.len(), 0);
        Ok(self)
    }

    /// One or more characters that are no white space.
    fn word(&mut self, memory: &Memory<'_>) -> Result<Slice, Failure> {
        let line = memory.get(self.line);
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
        match line.iter().position(is_space).unwrap_or(line.len()) {
            0 => Err(NO_MATCH),
            end => Ok(self.take(end, 0)),
        }
    }

    /// One or more characters up to a closing bracket.
    fn bracketed(&mut self, memory: &Memory<'_>) -> Result<Slice, Failure> {
        match memchr::memchr(b']', memory.get(self.line)) {
            None | Some(0) => Err(NO_MATCH),
            Some(end) => Ok(self.take(end, 1)),
        }
    }

    /// Characters between quotes. A backslash escapes what is behind it.
    fn quoted(&mut self, memory: &Memory<'_>) -> Result<Slice, Failure> {
        self.behind(memory, b"\"")?;
        let line = memory.get(self.line);
        let mut at = 0;
        loop {
            match line.get(at..).unwrap_or_default() {
                [] | [b'\\'] | [b'\\', b'\n', ..] => return Err(NO_MATCH),
                [b'"', ..] => return Ok(self.take(at, 1)),
                [b'\\', ..] => at += 2,
                _ => at += 1,
            }
        }
    }
}

/// A quoted text with its escapes decoded. What they do not make UTF-8 of stays escaped. Output: the text.
fn unescaped(memory: &mut Memory<'_>, text: Slice) -> Result<Slice, Failure> {
    if !memory.get(text).contains(&b'\\') {
        return Ok(text);
    }
    let mark = memory.mark();
    let (contents, mut room) = memory.split();
    let mut rest = contents.get(text);
    loop {
        let end = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        let (plain, behind) = rest.split_at(end);
        room.put(plain)?;
        rest = behind;
        let start = room.len();
        let run = rest;
        while let [b'\\', b'x', high, low, behind @ ..] = rest
            && let (Some(high), Some(low)) = (char::from(*high).to_digit(16), char::from(*low).to_digit(16))
        {
            // Both are below 16.
            room.put(&[(high << 4 | low) as u8])?;
            rest = behind;
        }
        if rest.len() < run.len() {
            if str::from_utf8(room.written().get(start..).unwrap_or_default()).is_err() {
                room.truncate(start);
                room.put(run.get(..run.len() - rest.len()).unwrap_or_default())?;
            }
            continue;
        }
        let [backslash, behind @ ..] = rest else { return Ok(memory.since(mark)) };
        rest = behind;
        let [next, behind @ ..] = rest else {
            room.put(&[*backslash])?;
            continue;
        };
        let meant = match next {
            b'\\' | b'"' => *next,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 0x08,
            b'f' => 0x0c,
            b'v' => 0x0b,
            _ => {
                // The character behind it follows as it is.
                room.put(&[*backslash])?;
                continue;
            }
        };
        room.put(&[meant])?;
        rest = behind;
    }
}
