//! Stack traces, exceptions with their causes, and links, in the shapes of Elastic APM's documents.

use super::super::objects::ObjectWriter;
use tidegate_wire::intake::{Array, Object, Text, Value};
use tidegate_wire::output::{Full, Output};

/// Causes of causes that are followed.
const MAX_CAUSES: usize = 64;

/// A list of frames.
pub(super) fn frames(
    list: Array<'_>,
    objects: &mut ObjectWriter<'_>,
    out: &mut impl Output,
) -> Result<(), Full> {
    out.put(b"[")?;
    for (place, frame) in list.values().filter_map(Value::object).enumerate() {
        out.put(if place == 0 { b"{" } else { b",{" })?;
        self::frame(frame, objects, out)?;
        out.put(b"}")?;
    }
    out.put(b"]")
}

fn frame(frame: Object<'_>, objects: &mut ObjectWriter<'_>, out: &mut impl Output) -> Result<(), Full> {
    // Only what browsers send is ever left out of the groups, and those are told by a pattern that is not kept here.
    out.put(br#""exclude_from_grouping":false"#)?;
    let mut comma = true;
    for name in ["abs_path", "filename", "classname", "function", "module"] {
        text_member(frame, name, name, &mut comma, out)?;
    }
    if frame.find(b"library_frame") == Some(Value::Bool(true)) {
        named("library_frame", &mut comma, out)?;
        out.put(b"true")?;
    }
    if let Some(vars @ Value::Object(_)) = frame.find(b"vars") {
        named("vars", &mut comma, out)?;
        value(vars, objects, out)?;
    }
    let is_number = |name: &str| frame.find(name.as_bytes()).and_then(Value::number).is_some();
    let is_text =
        |name: &str| frame.find(name.as_bytes()).and_then(Value::text).is_some_and(|text| !text.is_empty());
    if is_number("lineno") || is_number("colno") || is_text("context_line") {
        open("line", &mut comma, out)?;
        let mut comma = false;
        for (from, to) in [("lineno", "number"), ("colno", "column")] {
            if let Some(number @ Value::Number(_)) = frame.find(from.as_bytes()) {
                named(to, &mut comma, out)?;
                value(number, objects, out)?;
            }
        }
        text_member(frame, "context_line", "context", &mut comma, out)?;
        out.put(b"}")?;
    }
    let lines = |name: &str| {
        let list = frame.find(name.as_bytes()).and_then(Value::array);
        list.filter(|list| list.values().next().is_some())
    };
    if lines("pre_context").or_else(|| lines("post_context")).is_some() {
        open("context", &mut comma, out)?;
        let mut comma = false;
        for (from, to) in [("pre_context", "pre"), ("post_context", "post")] {
            if let Some(list) = lines(from) {
                named(to, &mut comma, out)?;
                value(Value::Array(list), objects, out)?;
            }
        }
        out.put(b"}")?;
    }
    Ok(())
}

/// Writes a text under another name, if there is anything in it.
fn text_member(
    from: Object<'_>,
    name: &str,
    to: &str,
    comma: &mut bool,
    out: &mut impl Output,
) -> Result<(), Full> {
    match from.find(name.as_bytes()) {
        Some(found @ Value::Text(text)) if !text.is_empty() => {
            named(to, comma, out)?;
            self::text(Some(found), out)
        }
        _ => Ok(()),
    }
}

/// Links: the ids of other spans.
pub(super) fn links(list: Array<'_>, out: &mut impl Output) -> Result<(), Full> {
    out.put(b"[")?;
    for (place, link) in list.values().filter_map(Value::object).enumerate() {
        out.put(if place == 0 { b"{" } else { b",{" })?;
        let mut comma = false;
        for (from, to) in [("trace_id", "trace"), ("span_id", "span")] {
            let id = link.find(from.as_bytes());
            if id.and_then(Value::text).is_some_and(|id| !id.is_empty()) {
                open(to, &mut comma, out)?;
                named("id", &mut false, out)?;
                text(id, out)?;
                out.put(b"}")?;
            }
        }
        out.put(b"}")?;
    }
    out.put(b"]")
}

/// The properties of an exception, found in one pass: causes nest, and each pass reads everything inside them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExceptionProperties<'a> {
    pub(super) kind: Text<'a>,
    pub(super) message: Text<'a>,
    module: Text<'a>,
    code: Value<'a>,
    handled: Value<'a>,
    attributes: Value<'a>,
    pub(super) frames: Option<Array<'a>>,
    causes: Option<Array<'a>>,
}

impl<'a> ExceptionProperties<'a> {
    pub(super) fn of(object: Object<'a>) -> Self {
        let (none, nothing) = (Text::EMPTY, Value::Null);
        let mut all = ExceptionProperties {
            kind: none,
            message: none,
            module: none,
            code: nothing,
            handled: nothing,
            attributes: nothing,
            frames: None,
            causes: None,
        };
        for (name, value) in object.members().filter(|(_, value)| *value != Value::Null) {
            match name.plain().unwrap_or_default() {
                b"type" => all.kind = value.text().unwrap_or(none),
                b"message" => all.message = value.text().unwrap_or(none),
                b"module" => all.module = value.text().unwrap_or(none),
                b"code" => all.code = value,
                b"handled" => all.handled = value,
                b"attributes" => all.attributes = value,
                b"stacktrace" => all.frames = value.array(),
                b"cause" => all.causes = value.array(),
                _ => {}
            }
        }
        all
    }

    pub(super) fn causes(self) -> impl Iterator<Item = Object<'a>> {
        self.causes.into_iter().flat_map(Array::values).filter_map(Value::object)
    }
}

/// Writes an exception and its causes, each with the place of the one that it caused.
pub(super) struct ExceptionChain<'o, 'a, O> {
    objects: &'o mut ObjectWriter<'a>,
    out: &'o mut O,
    count: u64,
}

impl<'o, 'a, O: Output> ExceptionChain<'o, 'a, O> {
    pub(super) fn new(objects: &'o mut ObjectWriter<'a>, out: &'o mut O) -> Self {
        Self { objects, out, count: 0 }
    }

    pub(super) fn tree(&mut self, exception: Object<'_>) -> Result<(), Full> {
        self.out.put(b"[")?;
        self.exception(exception, None, MAX_CAUSES)?;
        self.out.put(b"]")
    }

    fn exception(&mut self, exception: Object<'_>, parent: Option<u64>, depth: usize) -> Result<(), Full> {
        let said = ExceptionProperties::of(exception);
        self.out.put(if self.count == 0 { b"{" } else { b",{" })?;
        let place = self.count;
        self.count += 1;
        let mut comma = false;
        for (name, said) in [("type", said.kind), ("message", said.message), ("module", said.module)] {
            if !said.is_empty() {
                named(name, &mut comma, self.out)?;
                text(Some(Value::Text(said)), self.out)?;
            }
        }
        if let handled @ Value::Bool(_) = said.handled {
            named("handled", &mut comma, self.out)?;
            value(handled, self.objects, self.out)?;
        }
        if let attributes @ Value::Object(_) = said.attributes {
            named("attributes", &mut comma, self.out)?;
            value(attributes, self.objects, self.out)?;
        }
        match said.code {
            Value::Number(number) => {
                named("code", &mut comma, self.out)?;
                self.out.put(b"\"")?;
                self.out.put(number.raw())?;
                self.out.put(b"\"")?;
            }
            code @ Value::Text(said) if !said.is_empty() => {
                named("code", &mut comma, self.out)?;
                text(Some(code), self.out)?;
            }
            _ => {}
        }
        if let Some(list) = said.frames {
            named("stacktrace", &mut comma, self.out)?;
            frames(list, self.objects, self.out)?;
        }
        // The cause of the one before needs no saying.
        if let Some(parent) = parent.filter(|parent| parent + 1 != place) {
            named("parent", &mut comma, self.out)?;
            crate::json::unsigned(parent, self.out)?;
        }
        self.out.put(b"}")?;
        if depth > 0 {
            for cause in said.causes() {
                self.exception(cause, Some(place), depth - 1)?;
            }
        }
        Ok(())
    }
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

fn value(value: Value<'_>, objects: &mut ObjectWriter<'_>, out: &mut impl Output) -> Result<(), Full> {
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
