//! A line of JSON that ends, whatever is in the item.

use jiff::Timestamp;
use std::fmt::{self, Write};
use tidegate_wire::otlp::{AnyValue, Attributes, KeyValue, Number};

/// Lists and objects end when a line is so long.
const LONG: usize = 32 << 10;
/// So much is shown of a text, in bytes as they are written.
const LONGEST_TEXT: usize = 4 << 10;
/// The longest line: what was written when it was long, and all that has no end of its own.
pub const LONGEST_LINE: usize = LONG + 12 * (LONGEST_TEXT + 128);
/// So many lists and objects in each other are shown.
const SHOWN_LEVELS: usize = 30;
/// Stands where a text or a list goes on.
const MORE: &str = "…";

/// A line being written, an object without its end.
#[derive(Default)]
pub(crate) struct Line {
    text: String,
    /// Whether anything was left out.
    cut: bool,
}

impl Line {
    /// Begins a line with `start`, an object without its end and with at least one field.
    pub(crate) fn begin(&mut self, start: &str) {
        self.cut = false;
        self.text.clear();
        self.text.push_str(start);
    }

    /// Ends it.
    pub(crate) fn end(&mut self) -> &str {
        if self.cut {
            self.plain("cut", true);
        }
        self.text.push_str("}\n");
        &self.text
    }

    /// The output so far, as a prefix for other lines.
    pub(crate) fn into_start(self) -> String {
        self.text
    }

    /// Two texts as one, behind a name that was written.
    pub(crate) fn join(&mut self, kind: &'static str, name: &str) {
        self.string(format!("{kind}:{name}").as_bytes());
    }

    /// A field whose value is JSON as it is displayed.
    pub(crate) fn plain(&mut self, name: &'static str, value: impl fmt::Display) {
        self.name(name);
        self.show(value);
    }

    /// A text; left out when it is empty.
    pub(crate) fn text(&mut self, name: &'static str, text: &[u8]) {
        if !text.is_empty() {
            self.name(name);
            self.string(text);
        }
    }

    /// Bytes in hexadecimal digits; left out when there are none.
    pub(crate) fn hex(&mut self, name: &'static str, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.name(name);
            self.digits(bytes);
        }
    }

    /// A time in nanoseconds since 1970; left out when it is 0, which stands for unknown.
    pub(crate) fn time(&mut self, name: &'static str, ns: u64) {
        if ns > 0
            && let Ok(time) = Timestamp::from_nanosecond(i128::from(ns))
        {
            self.plain(name, format_args!("\"{time}\""));
        }
    }

    /// A double, from its bits.
    pub(crate) fn double(&mut self, name: &'static str, bits: u64) {
        self.name(name);
        self.float(bits);
    }

    /// A number, in whichever form it was sent; left out when there is none.
    pub(crate) fn number(&mut self, name: &'static str, number: Option<Number>) {
        match number {
            Some(Number::Int(value)) => self.plain(name, value),
            Some(Number::Double(bits)) => self.double(name, bits),
            None => {}
        }
    }

    /// A value of OpenTelemetry.
    pub(crate) fn value(&mut self, name: &'static str, value: AnyValue<'_>) {
        self.name(name);
        self.any(value, 0);
    }

    /// Attributes as an object; left out when there are none.
    pub(crate) fn attributes(&mut self, name: &'static str, attributes: Attributes<'_>) {
        let pairs = attributes.map(|KeyValue { key, value }| (key, value));
        self.object(name, pairs, |line, value| line.any(value, 1));
    }

    /// Names and texts as an object; left out when there are none.
    pub(crate) fn texts<'a>(
        &mut self,
        name: &'static str,
        pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) {
        self.object(name, pairs, |line, text| line.string(text));
    }

    fn object<'a, V>(
        &mut self,
        name: &'static str,
        pairs: impl Iterator<Item = (&'a [u8], V)>,
        write: impl FnMut(&mut Line, V),
    ) {
        let mut pairs = pairs.peekable();
        if pairs.peek().is_some() {
            self.name(name);
            self.pairs(pairs, write);
        }
    }

    fn pairs<'a, V>(
        &mut self,
        pairs: impl Iterator<Item = (&'a [u8], V)>,
        mut write: impl FnMut(&mut Line, V),
    ) {
        self.text.push('{');
        for (place, (key, value)) in pairs.enumerate() {
            if place > 0 {
                self.text.push(',');
            }
            if self.is_long() {
                self.text.push_str("\"…\":\"…\"");
                break;
            }
            self.string(key);
            self.text.push(':');
            write(self, value);
        }
        self.text.push('}');
    }

    fn any(&mut self, value: AnyValue<'_>, depth: usize) {
        match value {
            AnyValue::Empty => self.text.push_str("null"),
            AnyValue::Text(text) => self.string(text),
            AnyValue::Bool(value) => self.show(value),
            AnyValue::Int(value) => self.show(value),
            AnyValue::Double(bits) => self.float(bits),
            AnyValue::Bytes(bytes) => self.digits(bytes),
            AnyValue::Array(_) | AnyValue::Map(_) if depth > SHOWN_LEVELS => {
                self.cut = true;
                self.string(MORE.as_bytes());
            }
            AnyValue::Map(map) => {
                let pairs = map.entries().map(|KeyValue { key, value }| (key, value));
                self.pairs(pairs, |line, value| line.any(value, depth + 1));
            }
            AnyValue::Array(array) => {
                self.text.push('[');
                for (place, value) in array.values().enumerate() {
                    if place > 0 {
                        self.text.push(',');
                    }
                    if self.is_long() {
                        self.string(MORE.as_bytes());
                        break;
                    }
                    self.any(value, depth + 1);
                }
                self.text.push(']');
            }
        }
    }

    /// Whether lists should end. Says so at the end of the line.
    fn is_long(&mut self) -> bool {
        let long = self.text.len() >= LONG;
        self.cut |= long;
        long
    }

    fn name(&mut self, name: &'static str) {
        self.text.push_str(",\"");
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    /// A text in quotes: what is not UTF-8 is replaced, what is too long is cut.
    fn string(&mut self, text: &[u8]) {
        // No text that is longer can be shown whole, however short its characters are.
        let shown = text.get(..LONGEST_TEXT).unwrap_or(text);
        self.text.push('"');
        let end = self.text.len() + LONGEST_TEXT;
        let mut whole = shown.len() == text.len();
        'chunks: for chunk in shown.utf8_chunks() {
            let replaced = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
            for c in chunk.valid().chars().chain(replaced) {
                if self.text.len() >= end {
                    whole = false;
                    break 'chunks;
                }
                self.character(c);
            }
        }
        if !whole {
            self.cut = true;
            self.text.push_str(MORE);
        }
        self.text.push('"');
    }

    fn character(&mut self, c: char) {
        match c {
            '"' => self.text.push_str("\\\""),
            '\\' => self.text.push_str("\\\\"),
            '\n' => self.text.push_str("\\n"),
            '\t' => self.text.push_str("\\t"),
            // Also what a terminal would obey, or show in another order.
            c if c.is_control() || matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}') => {
                self.show(format_args!("\\u{:04x}", u32::from(c)));
            }
            c => self.text.push(c),
        }
    }

    fn digits(&mut self, bytes: &[u8]) {
        let shown = bytes.get(..LONGEST_TEXT / 2).unwrap_or(bytes);
        self.text.push('"');
        shown.iter().for_each(|byte| self.show(format_args!("{byte:02x}")));
        if shown.len() < bytes.len() {
            self.cut = true;
            self.text.push_str(MORE);
        }
        self.text.push('"');
    }

    /// JSON has no word for what is not finite; texts say it.
    fn float(&mut self, bits: u64) {
        let value = f64::from_bits(bits);
        match value {
            value if value.is_finite() => self.show(format_args!("{value:?}")),
            value if value.is_nan() => self.text.push_str("\"NaN\""),
            value => self.text.push_str(if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" }),
        }
    }

    fn show(&mut self, value: impl fmt::Display) {
        // A string takes everything.
        let _ = write!(self.text, "{value}");
    }
}
