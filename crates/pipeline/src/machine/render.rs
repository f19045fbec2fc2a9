//! Writes values as text, as Go's `encoding/json` does: the keys of maps sorted, bytes in base64.

use super::Machine;
use crate::any_value::{DEEPEST, Elements, Pairs};
use crate::memory::{Memory, Slice};
use crate::table::MapTable;
use crate::value::{Failure, Value};
use tidegate_wire::json::write;
use tidegate_wire::output::Output;

/// Whether `<`, `>` and `&` are escaped too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Html {
    Escaped,
    Plain,
}

const NESTED: Failure = Failure::Invalid("the value is nested too deeply");

impl Machine<'_> {
    /// `pcommon.Value.AsString`: texts as they are, maps and lists as JSON, bytes in base64.
    pub(crate) fn as_text(&mut self, value: Value) -> Result<Slice, Failure> {
        match value {
            Value::Text(text) => return Ok(text),
            Value::Nil => return Ok(Slice::EMPTY),
            _ => {}
        }
        let mark = self.memory.mark();
        match value {
            Value::Bytes(bytes) => self.base64(bytes)?,
            Value::Double(number) if !number.is_finite() => self.memory.push(match number {
                f64::INFINITY => b"Infinity",
                f64::NEG_INFINITY => b"-Infinity",
                _ => b"NaN",
            })?,
            _ => self.json(value, Html::Plain)?,
        }
        Ok(self.memory.since(mark))
    }

    /// Appends a value as JSON.
    ///
    /// # Errors
    /// For doubles that JSON does not have, for maps of too many keys, and for what is nested too deeply.
    pub(crate) fn json(&mut self, value: Value, html: Html) -> Result<(), Failure> {
        self.json_within(value, html, DEEPEST)
    }

    /// As [`json`](Self::json), with `levels` that the value may nest. What calls itself has small frames: stacks are small.
    fn json_within(&mut self, value: Value, html: Html, levels: usize) -> Result<(), Failure> {
        match value {
            Value::Map(_) | Value::List(_) if levels == 0 => Err(NESTED),
            Value::List(list) => self.json_list(list, html, levels - 1),
            Value::Map(map) => {
                let base = self.spare.sorted.len();
                let result = self.json_map(map, html, base, levels - 1);
                self.spare.sorted.truncate(base);
                result
            }
            value => self.json_scalar(value, html),
        }
    }

    #[inline(never)]
    fn json_scalar(&mut self, value: Value, html: Html) -> Result<(), Failure> {
        match value {
            // These have their own functions.
            Value::List(_) | Value::Map(_) => Ok(()),
            Value::Nil => self.memory.push(b"null"),
            Value::Bool(value) => self.memory.push(if value { b"true" } else { b"false" }),
            Value::Int(number) | Value::Duration(number) => {
                Ok(write::int(number, &mut self.memory.split().1)?)
            }
            Value::Double(number) => double(number, html, &mut self.memory),
            Value::Text(text) => self.json_text(text, html),
            Value::Bytes(bytes) if bytes.len == 0 => self.memory.push(b"null"),
            Value::Bytes(bytes) => {
                self.memory.push(b"\"")?;
                self.base64(bytes)?;
                self.memory.push(b"\"")
            }
            Value::Id(id) => {
                let (contents, mut room) = self.memory.split();
                let mut comma: &[u8] = b"[";
                for byte in contents.get(id) {
                    room.put(comma)?;
                    write::unsigned(u64::from(*byte), &mut room)?;
                    comma = b",";
                }
                Ok(room.put(b"]")?)
            }
            Value::Time(time) => {
                let (_, mut room) = self.memory.split();
                room.put(b"\"")?;
                crate::functions::rfc3339(time, &mut room)?;
                Ok(room.put(b"\"")?)
            }
        }
    }

    fn json_list(&mut self, list: Slice, html: Html, levels: usize) -> Result<(), Failure> {
        self.memory.push(b"[")?;
        let mut elements = Elements::new(list);
        let mut comma: &[u8] = b"";
        while let Some(element) = elements.next(&self.memory) {
            self.memory.push(comma)?;
            self.json_within(element, html, levels)?;
            comma = b",";
        }
        self.memory.push(b"]")
    }

    /// Appends a map, whose pairs are sorted behind the first `base`.
    fn json_map(&mut self, map: Slice, html: Html, base: usize, levels: usize) -> Result<(), Failure> {
        let end = self.sort_pairs(map, base)?;
        self.memory.push(b"{")?;
        let mut comma: &[u8] = b"";
        for at in base..end {
            if let Some(value) = self.json_name(at, end, comma, html)? {
                self.json_within(value, html, levels)?;
                comma = b",";
            }
        }
        self.memory.push(b"}")
    }

    /// Sorts the pairs of a map behind the first `base`; returns the end of them.
    #[inline(never)]
    fn sort_pairs(&mut self, map: Slice, base: usize) -> Result<usize, Failure> {
        let Machine { memory, spare, .. } = &mut *self;
        let mut pairs = Pairs::new(map);
        while let Some(pair) = pairs.next(memory) {
            if spare.sorted.len() >= MapTable::CAPACITY {
                return Err(Failure::TooLarge);
            }
            spare.sorted.push(pair);
        }
        let sorted = spare.sorted.get_mut(base..).unwrap_or_default();
        sorted.sort_unstable_by(|one, other| {
            memory.get(one.key).cmp(memory.get(other.key)).then(one.raw.start.cmp(&other.raw.start))
        });
        Ok(base + sorted.len())
    }

    /// Appends the name of the sorted pair at `at`, and returns its value; `None` for a pair that is left out.
    #[inline(never)]
    fn json_name(
        &mut self,
        at: usize,
        end: usize,
        comma: &[u8],
        html: Html,
    ) -> Result<Option<Value>, Failure> {
        let place = |at: usize| self.spare.sorted.get(at).filter(|_| at < end).copied();
        let Some(pair) = place(at) else { return Ok(None) };
        // Of several pairs with one key, Go's map keeps the last.
        if place(at + 1).is_some_and(|next| self.memory.get(next.key) == self.memory.get(pair.key)) {
            return Ok(None);
        }
        self.memory.push(comma)?;
        self.json_text(pair.key, html)?;
        self.memory.push(b":")?;
        Ok(Some(pair.value))
    }

    fn json_text(&mut self, text: Slice, html: Html) -> Result<(), Failure> {
        let (contents, mut room) = self.memory.split();
        let text = contents.get(text);
        room.put(b"\"")?;
        let mut from = 0;
        for (at, byte) in text.iter().enumerate() {
            let mut escape = *b"\\u0000";
            let (len, escape) = match *byte {
                b'"' => (1, &b"\\\""[..]),
                b'\\' => (1, &b"\\\\"[..]),
                b'\n' => (1, &b"\\n"[..]),
                b'\r' => (1, &b"\\r"[..]),
                b'\t' => (1, &b"\\t"[..]),
                8 if html == Html::Plain => (1, &b"\\b"[..]),
                12 if html == Html::Plain => (1, &b"\\f"[..]),
                0..0x20 => {
                    let [.., high, low] = &mut escape;
                    *high += *byte >> 4;
                    *low = DIGITS.get(usize::from(*byte & 15)).copied().unwrap_or(b'0');
                    (1, &escape[..])
                }
                b'<' if html == Html::Escaped => (1, &b"\\u003c"[..]),
                b'>' if html == Html::Escaped => (1, &b"\\u003e"[..]),
                b'&' if html == Html::Escaped => (1, &b"\\u0026"[..]),
                // The line and paragraph separators, which JavaScript does not take in strings.
                0xe2 if text.get(at..at + 3) == Some(b"\xe2\x80\xa8") => (3, &b"\\u2028"[..]),
                0xe2 if text.get(at..at + 3) == Some(b"\xe2\x80\xa9") => (3, &b"\\u2029"[..]),
                _ => continue,
            };
            room.put(text.get(from..at).unwrap_or_default())?;
            room.put(escape)?;
            from = at + len;
        }
        room.put(text.get(from..).unwrap_or_default())?;
        room.put(b"\"")?;
        Ok(())
    }

    fn base64(&mut self, bytes: Slice) -> Result<(), Failure> {
        let (contents, mut room) = self.memory.split();
        Ok(write::base64(contents.get(bytes), &mut room)?)
    }

    /// Appends bytes as hexadecimal digits.
    pub(crate) fn hex(&mut self, bytes: Slice) -> Result<(), Failure> {
        let (contents, mut room) = self.memory.split();
        Ok(write::hex(contents.get(bytes), &mut room)?)
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends a double as Go's encoders of JSON do: exponents for what is less than 1e-6 or at least 1e21.
fn double(number: f64, html: Html, memory: &mut Memory<'_>) -> Result<(), Failure> {
    if !number.is_finite() {
        return Err(Failure::Invalid("JSON has no infinite numbers"));
    }
    let (_, mut room) = memory.split();
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return Ok(write::formatted(format_args!("{number}"), &mut room)?);
    }
    // The encoder of `StringLikeGetter` writes two digits, and `AsString` one.
    let sign = match size {
        1.0.. => "+",
        1e-9..1.0 if html == Html::Escaped => "-0",
        _ => "-",
    };
    let mut digits = [0; 40];
    let mut text = tidegate_wire::output::SliceOutput::new(&mut digits);
    write::formatted(format_args!("{number:e}"), &mut text)?;
    let len = text.len();
    let text = digits.get(..len).unwrap_or_default();
    let at = memchr::memchr(b'e', text).map_or(len, |at| at + 1);
    room.put(text.get(..at).unwrap_or_default())?;
    room.put(sign.as_bytes())?;
    let exponent = text.get(at..).unwrap_or_default();
    room.put(exponent.strip_prefix(b"-").unwrap_or(exponent))?;
    Ok(())
}
