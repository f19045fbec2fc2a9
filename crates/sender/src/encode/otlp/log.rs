//! `LogRecord`.

use super::Framed;
use super::proto::{bytes_field, fixed32_field, text_field, time_field, varint_field};
use super::value::{attributes, value_field};
use crate::record::{Log, Value};
use crate::ring::{EventOutput, Payload};

pub(crate) struct LogRecord<'a> {
    log: &'a Log<'a>,
    framed: Framed,
}

impl<'a> LogRecord<'a> {
    pub(crate) fn new(log: &'a Log<'a>) -> Self {
        LogRecord { log, framed: Framed::count(|out| write_log(out, log)) }
    }
}

impl Payload for LogRecord<'_> {
    fn len(&self) -> usize {
        self.framed.len()
    }

    fn write<O: EventOutput>(&self, out: &mut O) {
        self.framed.head(out);
        write_log(out, self.log);
    }
}

fn write_log<O: EventOutput>(out: &mut O, log: &Log<'_>) {
    time_field(out, 1, log.time);
    varint_field(out, 2, u64::from(log.severity.0));
    let text = if log.severity_text.is_empty() { log.severity.text() } else { log.severity_text };
    text_field(out, 3, text);
    if !matches!(log.body, Value::Empty) {
        value_field(out, 5, log.body);
    }
    attributes(out, 6, log.attributes);
    if let Some(context) = log.context {
        fixed32_field(out, 8, u32::from(context.flags));
        bytes_field(out, 9, &context.trace_id);
        bytes_field(out, 10, &context.span_id);
    }
    time_field(out, 11, log.observed);
    text_field(out, 12, log.event_name);
}
