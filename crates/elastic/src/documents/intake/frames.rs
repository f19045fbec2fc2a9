//! Stack traces, exceptions with their causes, and links, in the shapes of Elastic APM's documents.

use super::super::objects::Objects;
use tidegate_wire::intake::{Array, Object, Text, Value};
use tidegate_wire::output::{Full, Output};

/// Causes of causes that are followed.
const DEEPEST: usize = 16;

/// A list of frames.
pub(super) fn frames(list: Array<'_>, objects: &mut Objects<'_>, out: &mut impl Output) -> Result<(), Full> {
    out.put(b"[")?;
    for (place, frame) in list.values().filter_map(Value::object).enumerate() {
        out.put(if place == 0 { b"{" } else { b",{" })?;
        self::frame(frame, objects, out)?;
        out.put(b"}")?;
    }
    out.put(b"]")
}

fn frame(frame: Object<'_>, objects: &mut Objects<'_>, out: &mut impl Output) -> Result<(), Full> {
    let mut comma = false;
    for name in ["abs_path", "filename", "classname", "function", "module", "library_frame", "vars"] {
        member(frame, name, name, &mut comma, objects, out)?;
    }
    for (object, names) in [
        ("line", &[("lineno", "number"), ("colno", "column"), ("context_line", "context")][..]),
        ("context", &[("pre_context", "pre"), ("post_context", "post")][..]),
    ] {
        if names.iter().all(|(name, _)| frame.find(name.as_bytes()).is_none()) {
            continue;
        }
        open(object, &mut comma, out)?;
        let mut comma = false;
        for (from, to) in names {
            member(frame, from, to, &mut comma, objects, out)?;
        }
        out.put(b"}")?;
    }
    Ok(())
}

/// Links: the ids of other spans.
pub(super) fn links(event: Object<'_>, out: &mut impl Output) -> Result<(), Full> {
    let links = event.find(b"links").and_then(Value::array);
    out.put(b"[")?;
    for (place, link) in links.into_iter().flat_map(Array::values).filter_map(Value::object).enumerate() {
        out.put(if place == 0 { b"{" } else { b",{" })?;
        let mut comma = false;
        for (from, to) in [("trace_id", "trace"), ("span_id", "span")] {
            open(to, &mut comma, out)?;
            named("id", &mut false, out)?;
            text(link.find(from.as_bytes()), out)?;
            out.put(b"}")?;
        }
        out.put(b"}")?;
    }
    out.put(b"]")
}

/// Writes an exception and its causes, each with the place of the one that it caused.
pub(super) struct Errors<'o, 'a, O> {
    objects: &'o mut Objects<'a>,
    out: &'o mut O,
    count: u64,
}

impl<'o, 'a, O: Output> Errors<'o, 'a, O> {
    pub(super) fn new(objects: &'o mut Objects<'a>, out: &'o mut O) -> Self {
        Self { objects, out, count: 0 }
    }

    pub(super) fn tree(&mut self, exception: Object<'_>) -> Result<(), Full> {
        self.out.put(b"[")?;
        self.exception(exception, None, DEEPEST)?;
        self.out.put(b"]")
    }

    fn exception(&mut self, exception: Object<'_>, parent: Option<u64>, depth: usize) -> Result<(), Full> {
        self.out.put(if self.count == 0 { b"{" } else { b",{" })?;
        let place = self.count;
        self.count += 1;
        let mut comma = false;
        for name in ["type", "message", "module", "handled", "attributes"] {
            member(exception, name, name, &mut comma, self.objects, self.out)?;
        }
        if let Some(code) = exception.find(b"code") {
            named("code", &mut comma, self.out)?;
            match code {
                Value::Number(number) => {
                    self.out.put(b"\"")?;
                    self.out.put(number.raw())?;
                    self.out.put(b"\"")?;
                }
                code => value(code, self.objects, self.out)?,
            }
        }
        if let Some(list) = exception.find(b"stacktrace").and_then(Value::array) {
            named("stacktrace", &mut comma, self.out)?;
            frames(list, self.objects, self.out)?;
        }
        // The cause of the one before needs no saying.
        if let Some(parent) = parent.filter(|parent| parent + 1 != place) {
            named("parent", &mut comma, self.out)?;
            crate::json::unsigned(parent, self.out)?;
        }
        self.out.put(b"}")?;
        let causes = exception.find(b"cause").and_then(Value::array).filter(|_| depth > 0);
        for cause in causes.into_iter().flat_map(Array::values).filter_map(Value::object) {
            self.exception(cause, Some(place), depth - 1)?;
        }
        Ok(())
    }
}

/// Writes a member under another name, if it is there.
fn member(
    from: Object<'_>,
    name: &str,
    to: &str,
    comma: &mut bool,
    objects: &mut Objects<'_>,
    out: &mut impl Output,
) -> Result<(), Full> {
    let Some(found) = from.find(name.as_bytes()) else { return Ok(()) };
    named(to, comma, out)?;
    value(found, objects, out)
}

fn open(name: &str, comma: &mut bool, out: &mut impl Output) -> Result<(), Full> {
    named(name, comma, out)?;
    out.put(b"{")
}

fn named(name: &str, comma: &mut bool, out: &mut impl Output) -> Result<(), Full> {
    out.put(if std::mem::replace(comma, true) { b",\"" } else { b"\"" })?;
    out.put(name.as_bytes())?;
    out.put(b"\":")
}

fn value(value: Value<'_>, objects: &mut Objects<'_>, out: &mut impl Output) -> Result<(), Full> {
    match value {
        Value::Null => out.put(b"null"),
        Value::Bool(true) => out.put(b"true"),
        Value::Bool(false) => out.put(b"false"),
        Value::Number(number) => out.put(number.raw()),
        Value::Array(array) => objects.free(array.raw(), out),
        Value::Object(object) => objects.free(object.raw(), out),
        Value::Text(_) => text(Some(value), out),
    }
}

/// A text as it stands; an empty one where there is none.
fn text(value: Option<Value<'_>>, out: &mut impl Output) -> Result<(), Full> {
    out.put(b"\"")?;
    out.put(value.and_then(Value::text).unwrap_or(Text::EMPTY).raw())?;
    out.put(b"\"")
}
