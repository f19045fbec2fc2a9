//! Lines of logs, with the names of the Elastic Common Schema.

use super::json::Object;
use super::{counted, line};
use crate::record::{Log, Value};
use crate::ring::EventOutput;

pub(crate) struct LogLine<'a> {
    log: &'a Log<'a>,
    len: usize,
}

impl<'a> LogLine<'a> {
    pub(crate) fn new(log: &'a Log<'a>) -> Self {
        let mut line = LogLine { log, len: 0 };
        line.len = counted(|out| write(out, &line));
        line
    }
}

line!(LogLine, write);

fn write<O: EventOutput>(out: &mut O, line: &LogLine<'_>) {
    let log = line.log;
    let mut outer = Object::open(out);
    let mut object = outer.object("log");
    object.timestamp("@timestamp", if log.time == 0 { log.observed } else { log.time });
    message(&mut object, log);
    let level = if log.severity_text.is_empty() { log.severity.text() } else { log.severity_text };
    object.keyword_if("log.level", level);
    object.keyword_if("event.action", log.event_name);
    if let Some(context) = &log.context {
        object.hex("trace.id", &context.trace_id);
        object.hex("span.id", &context.span_id);
    }
    object.labels("labels", log.attributes);
    object.close();
    outer.close();
    out.put(b"\n");
}

pub(super) fn message<O: EventOutput>(object: &mut Object<'_, O>, log: &Log<'_>) {
    match log.body {
        Value::Empty => object.text("message", log.event_name),
        body @ (Value::Str(_) | Value::Display(_)) => object.value("message", body),
        other => object.quoted("message", other),
    }
}
