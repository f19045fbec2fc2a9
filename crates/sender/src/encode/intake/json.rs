//! JSON without a tree and without a heap.

use crate::encode::text;
use crate::record::{Attributes, Value};
use crate::ring::EventOutput;
use std::fmt::{self, Write};

/// Characters of what the server calls a keyword, at most.
const KEYWORD: usize = 1024;
/// Lists in maps in lists, and so on, at most; what is deeper is null.
const DEPTH: u32 = 8;

/// The members of an object under way.
pub(super) struct Object<'a, O: EventOutput> {
    pub(super) out: &'a mut O,
    first: bool,
}

impl<'a, O: EventOutput> Object<'a, O> {
    pub(super) fn open(out: &'a mut O) -> Self {
        out.put(b"{");
        Object { out, first: true }
    }

    pub(super) fn close(self) {
        self.out.put(b"}");
    }

    /// Writes the name, after which the caller writes the value.
    pub(super) fn key(&mut self, name: &str) -> &mut O {
        if !self.first {
            self.out.put(b",");
        }
        self.first = false;
        string(self.out, name);
        self.out.put(b":");
        self.out
    }

    pub(super) fn object(&mut self, name: &str) -> Object<'_, O> {
        Object::open(self.key(name))
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        string(self.key(name), value);
    }

    /// Cut to what the server takes.
    pub(super) fn keyword(&mut self, name: &str, value: &str) {
        let end = value.char_indices().nth(KEYWORD).map_or(value.len(), |(at, _)| at);
        self.text(name, value.get(..end).unwrap_or(value));
    }

    /// Left out when empty.
    pub(super) fn keyword_if(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.keyword(name, value);
        }
    }

    pub(super) fn hex(&mut self, name: &str, bytes: &[u8]) {
        let out = self.key(name);
        out.put(b"\"");
        hex(out, bytes);
        out.put(b"\"");
    }

    pub(super) fn whole(&mut self, name: &str, number: u64) {
        text::decimal(self.key(name), number);
    }

    pub(super) fn double(&mut self, name: &str, number: f64) {
        double(self.key(name), number);
    }

    /// Nanoseconds as the microseconds of the protocol.
    pub(super) fn timestamp(&mut self, name: &str, nanos: u64) {
        if nanos != 0 {
            self.whole(name, nanos / 1000);
        }
    }

    pub(super) fn value(&mut self, name: &str, value: Value<'_>) {
        any(self.key(name), value, DEPTH);
    }

    /// A list, map or number as text.
    pub(super) fn quoted(&mut self, name: &str, value: Value<'_>) {
        quoted(self.key(name), value);
    }

    /// The sample of a metric set, under a name that the server takes.
    pub(super) fn sample(&mut self, name: &str) -> Object<'_, O> {
        if !self.first {
            self.out.put(b",");
        }
        self.first = false;
        sample_name(self.out, name);
        self.out.put(b":");
        Object::open(self.out)
    }

    /// All attributes as members. Names stay as they are.
    pub(super) fn members(&mut self, attributes: &dyn Attributes) {
        attributes.each(&mut |name, value| any(self.key(name), value, DEPTH));
    }

    /// Labels: flat, of text, truth or number, with names that the server takes.
    pub(super) fn labels(&mut self, name: &str, attributes: &dyn Attributes) {
        let mut labels = self.object(name);
        attributes.each(&mut |name, value| {
            if !labels.first {
                labels.out.put(b",");
            }
            labels.first = false;
            label_name(labels.out, name);
            labels.out.put(b":");
            match value {
                Value::List(_) | Value::Map(_) => quoted(labels.out, value),
                scalar => any(labels.out, scalar, DEPTH),
            }
        });
        labels.close();
    }
}

fn any<O: EventOutput>(out: &mut O, value: Value<'_>, depth: u32) {
    match value {
        Value::Empty => out.put(b"null"),
        Value::Str(text) => string(out, text),
        Value::Bool(true) => out.put(b"true"),
        Value::Bool(false) => out.put(b"false"),
        Value::Int(number) => whole(out, number),
        Value::Double(number) => double(out, number),
        Value::Bytes(bytes) => {
            out.put(b"\"");
            hex(out, bytes);
            out.put(b"\"");
        }
        Value::Display(shown) => {
            out.put(b"\"");
            let _ = write!(Escaped(out), "{shown}");
            out.put(b"\"");
        }
        Value::List(_) | Value::Map(_) if depth == 0 => out.put(b"null"),
        Value::List(values) => {
            let mut first = true;
            out.put(b"[");
            values.each(&mut |value| {
                if !first {
                    out.put(b",");
                }
                first = false;
                any(out, value, depth - 1);
            });
            out.put(b"]");
        }
        Value::Map(pairs) => {
            let mut object = Object::open(out);
            pairs.each(&mut |name, value| any(object.key(name), value, depth - 1));
            object.close();
        }
    }
}

/// A list or map as text inside a string.
fn quoted<O: EventOutput>(out: &mut O, value: Value<'_>) {
    struct Quoting<'a, O>(&'a mut O);
    impl<O: EventOutput> EventOutput for Quoting<'_, O> {
        fn put(&mut self, bytes: &[u8]) {
            escape(self.0, bytes);
        }
    }
    out.put(b"\"");
    let mut quoting = Quoting(out);
    let mut quoting: &mut dyn EventOutput = &mut quoting;
    any(&mut quoting, value, DEPTH);
    out.put(b"\"");
}

pub(super) fn string<O: EventOutput>(out: &mut O, text: &str) {
    out.put(b"\"");
    escape(out, text.as_bytes());
    out.put(b"\"");
}

/// The server refuses `.`, `*` and `"` in the names of labels.
fn label_name<O: EventOutput>(out: &mut O, name: &str) {
    name_without(out, name, &['.', '*', '"']);
}

/// The server refuses `*` and `"` in the names of samples.
fn sample_name<O: EventOutput>(out: &mut O, name: &str) {
    name_without(out, name, &['*', '"']);
}

fn name_without<O: EventOutput>(out: &mut O, name: &str, refused: &[char]) {
    out.put(b"\"");
    for part in name.split_inclusive(refused) {
        let kept = part.trim_end_matches(refused);
        escape(out, kept.as_bytes());
        if kept.len() < part.len() {
            out.put(b"_");
        }
    }
    out.put(b"\"");
}

fn escape<O: EventOutput>(out: &mut O, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        let (plain, special) = rest.split_at(at);
        out.put(plain);
        let Some((byte, after)) = special.split_first() else { break };
        rest = after;
        match byte {
            b'"' => out.put(b"\\\""),
            b'\\' => out.put(b"\\\\"),
            b'\n' => out.put(b"\\n"),
            b'\r' => out.put(b"\\r"),
            b'\t' => out.put(b"\\t"),
            byte => {
                out.put(b"\\u00");
                hex(out, &[*byte]);
            }
        }
    }
    out.put(rest);
}

struct Escaped<'a, O>(&'a mut O);

impl<O: EventOutput> fmt::Write for Escaped<'_, O> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(self.0, text.as_bytes());
        Ok(())
    }
}

fn hex<O: EventOutput>(out: &mut O, bytes: &[u8]) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    for byte in bytes {
        out.put(&[digit(byte >> 4), digit(byte & 15)]);
    }
}

fn whole<O: EventOutput>(out: &mut O, number: i64) {
    if number < 0 {
        out.put(b"-");
    }
    text::decimal(out, number.unsigned_abs());
}

pub(super) fn double<O: EventOutput>(out: &mut O, number: f64) {
    if number.is_finite() {
        // `Debug`: large and small ones with an exponent instead of hundreds of digits.
        let _ = write!(Escaped(out), "{number:?}");
    } else {
        out.put(b"null");
    }
}

/// Nanoseconds as milliseconds, exactly.
pub(super) fn milliseconds<O: EventOutput>(out: &mut O, nanos: u64) {
    text::decimal(out, nanos / 1_000_000);
    let rest = nanos % 1_000_000;
    if rest > 0 {
        out.put(b".");
        let mut scale = 100_000;
        while scale > rest {
            out.put(b"0");
            scale /= 10;
        }
        text::decimal(out, rest);
    }
}
