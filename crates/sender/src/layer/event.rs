//! An event of `tracing` as a log record, read where it is.

use crate::clock;
use crate::record::{Attributes, Log, Scope, Severity, SpanContext, Value};
use std::fmt;
use tracing_core::field::{Field, Visit};
use tracing_core::{Event, Level};

pub(super) struct Fields<'a>(pub(super) &'a Event<'a>);

impl Fields<'_> {
    pub(super) fn log(&self, context: Option<SpanContext>, scope: Scope) -> Log<'_> {
        let now = clock::now();
        let severity = match *self.0.metadata().level() {
            Level::ERROR => Severity::ERROR,
            Level::WARN => Severity::WARN,
            Level::INFO => Severity::INFO,
            Level::DEBUG => Severity::DEBUG,
            Level::TRACE => Severity::TRACE,
        };
        Log {
            time: now,
            observed: now,
            severity,
            body: Value::Display(self),
            attributes: self,
            context,
            scope,
            ..Log::default()
        }
    }
}

/// The message.
impl fmt::Display for Fields<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Message<'a, 'b>(&'a mut fmt::Formatter<'b>, fmt::Result);
        impl Visit for Message<'_, '_> {
            fn record_str(&mut self, field: &Field, value: &str) {
                if field.name() == "message" {
                    self.1 = self.0.write_str(value);
                }
            }
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                if field.name() == "message" {
                    self.1 = write!(self.0, "{value:?}");
                }
            }
        }
        let mut message = Message(out, Ok(()));
        self.0.record(&mut message);
        message.1
    }
}

/// All other fields, and where in the program the event is.
impl Attributes for Fields<'_> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        let metadata = self.0.metadata();
        visit("log.target", Value::Str(metadata.target()));
        if let Some(file) = metadata.file() {
            visit("code.file.path", Value::Str(file));
        }
        if let Some(line) = metadata.line() {
            visit("code.line.number", line.into());
        }
        self.0.record(&mut Each(visit));
    }
}

struct Each<'a>(&'a mut dyn FnMut(&str, Value<'_>));

impl Visit for Each<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() != "message" {
            (self.0)(field.name(), Value::Str(value));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        (self.0)(field.name(), Value::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.record_i64(field, value),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        (self.0)(field.name(), Value::Double(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        (self.0)(field.name(), Value::Bool(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() != "message" {
            (self.0)(field.name(), Value::Display(&DebugValue(value)));
        }
    }
}

struct DebugValue<'a>(&'a dyn fmt::Debug);

impl fmt::Display for DebugValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}
