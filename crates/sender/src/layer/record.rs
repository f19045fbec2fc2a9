//! The fields of an open span, flat: entries in sequence, each with its kind and lengths in front.

use super::open::OpenSpan;
use crate::record::{self, Attributes, Link, Nanos, NoAttributes, SpanContext, SpanEvent, SpanKind, Value};
use std::fmt::{self, Write};
use tracing_core::field::{Field, Visit};

/// kind (1), length of the key (2), length of the value (4)
const HEAD: usize = 7;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// Attribute of the span, or of the event in front of it.
    Str = 1,
    Int = 2,
    Double = 3,
    Bool = 4,
    EventStr = 5,
    EventInt = 6,
    EventDouble = 7,
    EventBool = 8,
    /// An event begins: the key is its name, the value its time.
    Event = 9,
    Link = 10,
    Name = 11,
    Message = 12,
}

pub(super) struct Store {
    bytes: Box<[u8]>,
    len: usize,
}

impl Store {
    pub(super) fn new(bytes: usize) -> Store {
        Store { bytes: vec![0; bytes].into_boxed_slice(), len: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends an entry; false when there is no room for it.
    fn put(&mut self, entry: Entry, key: &str, value: &[u8]) -> bool {
        self.write(entry, key, |room| {
            let room = room.get_mut(..value.len())?;
            room.copy_from_slice(value);
            Some(value.len())
        })
    }

    fn show(&mut self, entry: Entry, key: &str, value: &dyn fmt::Debug) -> bool {
        self.write(entry, key, |room| {
            let mut into = BoundedWriter { room, len: 0 };
            write!(into, "{value:?}").ok()?;
            Some(into.len)
        })
    }

    fn write(&mut self, entry: Entry, key: &str, value: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let written = (|| {
            let room = self.bytes.get_mut(self.len..)?;
            let (head, rest) = room.split_at_mut_checked(HEAD)?;
            let (name, rest) = rest.split_at_mut_checked(key.len())?;
            name.copy_from_slice(key.as_bytes());
            let len = value(rest)?;
            let [a, b] = u16::try_from(key.len()).ok()?.to_le_bytes();
            let [c, d, e, f] = u32::try_from(len).ok()?.to_le_bytes();
            head.copy_from_slice(&[entry as u8, a, b, c, d, e, f]);
            Some(HEAD + key.len() + len)
        })();
        self.len += written.unwrap_or(0);
        written.is_some()
    }

    fn entries(&self) -> impl Iterator<Item = (u8, &str, &[u8])> {
        let mut rest = self.bytes.get(..self.len).unwrap_or_default();
        std::iter::from_fn(move || {
            let (&[entry, a, b, c, d, e, f], after) = rest.split_first_chunk::<HEAD>()?;
            let (key, after) = after.split_at_checked(usize::from(u16::from_le_bytes([a, b])))?;
            let (value, after) = after.split_at_checked(u32::from_le_bytes([c, d, e, f]) as usize)?;
            rest = after;
            Some((entry, std::str::from_utf8(key).ok()?, value))
        })
    }

    fn text(&self, entry: Entry) -> Option<&str> {
        let (.., value) = self.entries().filter(|(kind, ..)| *kind == entry as u8).last()?;
        std::str::from_utf8(value).ok()
    }
}

/// Shows into what room there is, and fails beyond.
struct BoundedWriter<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl fmt::Write for BoundedWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.room.get_mut(self.len..self.len + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

impl OpenSpan {
    pub(super) fn link(&mut self, context: SpanContext) {
        let mut bytes = [0; 25];
        let (trace, rest) = bytes.split_at_mut(16);
        trace.copy_from_slice(&context.trace_id);
        let (span, flags) = rest.split_at_mut(8);
        span.copy_from_slice(&context.span_id);
        flags.copy_from_slice(&[context.flags]);
        self.store.put(Entry::Link, "", &bytes);
    }

    /// Keeps an event, all of it or nothing.
    pub(super) fn event(&mut self, time: Nanos, record: impl FnOnce(&mut OpenSpan)) {
        let (before, dropped) = (self.store.len, self.dropped);
        // Its name is only known when its fields have been seen: the message.
        if self.store.put(Entry::Event, "", &time.to_le_bytes()) {
            record(self);
        }
        if self.dropped > dropped {
            self.store.len = before;
            self.dropped = dropped;
        }
    }

    pub(super) fn name(&self) -> &str {
        self.store.text(Entry::Name).unwrap_or(self.static_name)
    }

    pub(super) fn message(&self) -> &str {
        self.store.text(Entry::Message).unwrap_or("")
    }

    pub(super) fn attributes(&self) -> impl Attributes + '_ {
        Recorded { store: &self.store, event: None }
    }

    pub(super) fn events(&self) -> impl record::SpanEvents + '_ {
        Recorded { store: &self.store, event: None }
    }

    pub(super) fn links(&self) -> impl record::Links + '_ {
        Recorded { store: &self.store, event: None }
    }

    fn put(&mut self, entry: Entry, key: &str, value: &[u8]) {
        if !self.store.put(entry, key, value) {
            self.dropped += 1;
        }
    }
}

/// A span's entries as the encoders walk them: of the span, or of its event of that number.
struct Recorded<'a> {
    store: &'a Store,
    event: Option<usize>,
}

impl Attributes for Recorded<'_> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        let mut event = 0;
        for (entry, key, value) in self.store.entries() {
            if entry == Entry::Event as u8 {
                event += 1;
            }
            let own = match self.event {
                None => entry <= Entry::Bool as u8,
                Some(wanted) => (5..=8).contains(&entry) && event == wanted && key != "message",
            };
            if own && let Some(value) = decoded(entry, value) {
                visit(key, value);
            }
        }
    }
}

impl record::SpanEvents for Recorded<'_> {
    fn each(&self, visit: &mut dyn FnMut(&SpanEvent<'_>)) {
        let mut event = 0;
        let mut entries = self.store.entries().peekable();
        while let Some((entry, _, time)) = entries.next() {
            if entry != Entry::Event as u8 {
                continue;
            }
            event += 1;
            let mut name = "event";
            while let Some((_, key, value)) = entries.next_if(|(entry, ..)| (5..=8).contains(entry)) {
                if key == "message" {
                    name = std::str::from_utf8(value).unwrap_or(name);
                }
            }
            let time = time.first_chunk().map_or(0, |time| u64::from_le_bytes(*time));
            visit(&SpanEvent { time, name, attributes: &Recorded { store: self.store, event: Some(event) } });
        }
    }
}

impl record::Links for Recorded<'_> {
    fn each(&self, visit: &mut dyn FnMut(&Link<'_>)) {
        for (entry, _, value) in self.store.entries() {
            if entry == Entry::Link as u8
                && let Some((trace_id, rest)) = value.split_first_chunk()
                && let Some((span_id, flags)) = rest.split_first_chunk()
            {
                let context = SpanContext {
                    trace_id: *trace_id,
                    span_id: *span_id,
                    flags: flags.first().copied().unwrap_or(0),
                };
                visit(&Link { context, trace_state: "", attributes: &NoAttributes });
            }
        }
    }
}

fn decoded(entry: u8, value: &[u8]) -> Option<Value<'_>> {
    let number = || value.first_chunk().map(|bytes| i64::from_le_bytes(*bytes));
    match entry {
        1 | 5 => std::str::from_utf8(value).ok().map(Value::Str),
        2 | 6 => number().map(Value::Int),
        3 | 7 => number().map(|bits| Value::Double(f64::from_bits(bits as u64))),
        _ => value.first().map(|byte| Value::Bool(*byte == 1)),
    }
}

/// Writes fields into a span: as its own attributes, or as those of its last event.
pub(super) struct Recorder<'a> {
    span: &'a mut OpenSpan,
    kinds: [Entry; 4],
}

impl<'a> Recorder<'a> {
    pub(super) fn attributes(span: &'a mut OpenSpan) -> Self {
        Recorder { span, kinds: [Entry::Str, Entry::Int, Entry::Double, Entry::Bool] }
    }

    pub(super) fn event(span: &'a mut OpenSpan) -> Self {
        Recorder { span, kinds: [Entry::EventStr, Entry::EventInt, Entry::EventDouble, Entry::EventBool] }
    }

    /// Fields that mean something of the span itself.
    fn understood(&mut self, name: &str, value: &str) -> bool {
        if self.kinds[0] != Entry::Str {
            return false;
        }
        match name {
            "otel.name" => self.span.put(Entry::Name, "", value.as_bytes()),
            "otel.status_message" | "otel.status_description" => {
                self.span.put(Entry::Message, "", value.as_bytes());
            }
            "otel.status_code" => {
                self.span.error = value.eq_ignore_ascii_case("error");
                self.span.ok = value.eq_ignore_ascii_case("ok");
            }
            "otel.kind" => {
                let kinds = [
                    ("server", SpanKind::Server),
                    ("client", SpanKind::Client),
                    ("producer", SpanKind::Producer),
                    ("consumer", SpanKind::Consumer),
                ];
                let kind = kinds.into_iter().find(|(name, _)| value.eq_ignore_ascii_case(name));
                self.span.kind = kind.map(|(_, kind)| kind);
            }
            "traceparent" => {
                if let Some(remote) = SpanContext::from_traceparent(value) {
                    self.span.context.trace_id = remote.trace_id;
                    self.span.context.flags = remote.flags;
                    self.span.parent = Some(remote.span_id);
                    self.span.parent_is_remote = true;
                }
            }
            _ => return false,
        }
        true
    }
}

impl Visit for Recorder<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if !self.understood(field.name(), value) {
            self.span.put(self.kinds[0], field.name(), value.as_bytes());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.span.put(self.kinds[1], field.name(), &value.to_le_bytes());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.record_i64(field, value),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.span.put(self.kinds[2], field.name(), &value.to_bits().to_le_bytes());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.span.put(self.kinds[3], field.name(), &[u8::from(value)]);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A field that is understood may come as `%value`, which is `Debug` here: short, so shown aside.
        let mut short = [0; 128];
        let mut into = BoundedWriter { room: &mut short, len: 0 };
        if field.name().starts_with("otel.") || field.name() == "traceparent" {
            let shown = write!(into, "{value:?}").is_ok();
            let len = into.len;
            if let Some(text) = short.get(..len).and_then(|text| std::str::from_utf8(text).ok())
                && shown
                && self.understood(field.name(), text)
            {
                return;
            }
        }
        if !self.span.store.show(self.kinds[0], field.name(), value) {
            self.span.dropped += 1;
        }
    }
}
