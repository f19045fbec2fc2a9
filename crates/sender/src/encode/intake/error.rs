//! Lines of errors: log records of ERROR and above, and exceptions recorded in spans.

use super::json::Object;
use super::log::message;
use super::{counted, line};
use crate::record::{Attributes, Log, Value};
use crate::ring::EventOutput;

pub(crate) struct ErrorLine<'a> {
    log: &'a Log<'a>,
    id: [u8; 16],
    len: usize,
}

impl<'a> ErrorLine<'a> {
    pub(crate) fn new(log: &'a Log<'a>, id: [u8; 16]) -> Self {
        let mut line = ErrorLine { log, id, len: 0 };
        line.len = counted(|out| write(out, &line));
        line
    }
}

line!(ErrorLine, write);

fn write<O: EventOutput>(out: &mut O, line: &ErrorLine<'_>) {
    let log = line.log;
    let mut outer = Object::open(out);
    let mut object = outer.object("error");
    object.hex("id", &line.id);
    object.timestamp("timestamp", if log.time == 0 { log.observed } else { log.time });
    if let Some(context) = &log.context {
        object.hex("trace_id", &context.trace_id);
        object.hex("parent_id", &context.span_id);
    }
    let exception = ["exception.message", "exception.type"].into_iter().any(|key| has(log.attributes, key));
    if exception {
        let mut exception = object.object("exception");
        member(&mut exception, "message", log.attributes, "exception.message");
        member(&mut exception, "type", log.attributes, "exception.type");
        exception.close();
    } else {
        let mut inner = object.object("log");
        message(&mut inner, log);
        let level = if log.severity_text.is_empty() { log.severity.text() } else { log.severity_text };
        inner.keyword_if("level", level);
        inner.close();
    }
    let mut context = object.object("context");
    // A stack trace is text here, and the protocol's are lists of frames.
    let mut custom = context.object("custom");
    member(&mut custom, "stacktrace", log.attributes, "exception.stacktrace");
    custom.close();
    context.labels("tags", &UnmappedAttributes(log.attributes));
    context.close();
    object.close();
    outer.close();
    out.put(b"\n");
}

/// All attributes but those that have a place of their own.
struct UnmappedAttributes<'a>(&'a dyn Attributes);

impl Attributes for UnmappedAttributes<'_> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.each(&mut |key, value| {
            if !key.starts_with("exception.") {
                visit(key, value);
            }
        });
    }
}

fn has(attributes: &dyn Attributes, wanted: &str) -> bool {
    let mut has = false;
    attributes.each(&mut |key, _| has |= key == wanted);
    has
}

fn member<O: EventOutput>(object: &mut Object<'_, O>, name: &str, attributes: &dyn Attributes, wanted: &str) {
    let mut first = true;
    attributes.each(&mut |key, value| {
        if key == wanted && std::mem::take(&mut first) {
            object.value(name, value);
        }
    });
}
