//! Writes OTLP's protobuf as JSON: as OTLP/JSON, or as one object for each item.
//!
//! Both layouts come from one walk over the tables of [`schema`](super::schema), so nothing that the schema knows is left
//! out, and a field that is added there is written in both. The walk keeps its own list of open messages: it never calls
//! itself, it stops wherever the output is full or the turn is over, and goes on from there.
//!
//! An object for an item is the message of the protobuf with what encloses it:
//!
//! - Names are those of opentelemetry-proto, in snake_case. Times lose their `_unix_nano`: they are RFC 3339.
//! - Attributes and values are plain JSON: `{"http.status":200}`. Bytes are base64; a double that JSON has no number for is a
//!   text, `"NaN"`, as in the JSON of protobuf.
//! - Enumerations are words where they have some: `"kind":"server"`.
//! - `resource` and `scope` are objects with their attributes, and with the `schema_url` of their group. A point has the
//!   members of its metric, and the `type` of that.
//!
//! Specification: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

mod envelope;
mod items;
mod scalar;
mod values;

use super::super::{AnyValue, Attributes, MAX_DEPTH, Signal, Values};
use super::schema::{ANY_VALUE, Field, KEY_VALUE, Kind, Message, RESOURCE, Rule, SCOPE};
use crate::output::{Full, Output, SliceOutput};
use crate::proto::{Messages, Reader};
use envelope::{ENVELOPE_BYTES, Envelope, Envelopes};
use items::{Item, Items};
use scalar::{Notation, snake_case};
use values::Numbers;

/// How requests are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The request as OTLP/JSON has it.
    Request,
    /// An object for each item, each on a line of its own: NDJSON.
    Lines,
    /// An array of an object for each item.
    Array,
}

/// Writes one request as JSON, a part at a time.
pub struct Encoder<'a> {
    layout: Layout,
    items: Items<'a>,
    /// The open messages, innermost last.
    open: Vec<StackFrame<'a>>,
    envelopes: Envelopes<'a>,
    /// Bytes of messages that were looked through in this turn.
    walked: usize,
    stage: Stage,
}

/// The result of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that were written.
    pub written: usize,
    /// The next part.
    pub next: Next,
}

/// The next state after a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the request is written.
    Done,
    /// More; others may have their turn first.
    More,
    /// More, for which the space was too short.
    Space,
}

/// The fields of a metric of which one counts.
const DATA: u8 = 5;
/// The most fields that a message has.
const MOST_FIELDS: usize = 16;

/// About how much is written in one part.
pub(super) const TURN: usize = 64 << 10;
/// As many bytes are looked through in the time in which one is written.
const WALKED_FOR_ONE: usize = 8;
/// The most bytes of a text that are written in one step. A multiple of three, so that base64 is padded at the end only.
/// Small for the fuzzer, whose inputs are short.
pub(super) const LONGEST_STEP: usize = if cfg!(fuzzing) { 12 } else { 12 << 10 };
/// The most numbers of a list that are written in one step.
const MOST_NUMBERS: usize = if cfg!(fuzzing) { 3 } else { 256 };
/// The deepest list of open messages: deeper values, which no check lets through, are empty.
const DEEPEST: usize = MAX_DEPTH + 24;
/// Most heap bytes of an [`Encoder`]: for deeply nested values, and for what is written again for each item.
pub const ENCODER_BYTES: usize = DEEPEST.next_power_of_two() * size_of::<StackFrame<'_>>() + ENVELOPE_BYTES;

/// How many times longer than in protobuf an item with its envelope is at most, beside the names of its own fields.
pub const GROWTH: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    First,
    Others,
    Done,
}

/// Something that is being written.
#[derive(Clone)]
enum StackFrame<'a> {
    Text(&'static str),
    /// An envelope around items begins, or ends, here.
    Mark(Envelope, bool),
    /// The envelope of an item, as it was written for the one before.
    Again(Envelope),
    /// A message of which nothing is written yet; what comes before it, and behind it.
    Begin {
        table: &'static Message,
        body: &'a [u8],
        before: &'static str,
        schema_url: &'a [u8],
        after: &'static str,
        /// The first of its fields that is not written yet: scalars are written up to a long one at a time.
        from: usize,
    },
    /// The rest of a long text.
    Long {
        rest: &'a [u8],
        notation: Notation,
        after: &'static str,
    },
    /// The value of an attribute with a long key.
    Value(AnyValue<'a>, bool),
    /// A message of which the scalars are written.
    Message(OpenMessage<'a>),
    List {
        members: Members<'a>,
        is_first: bool,
        after: &'static str,
    },
}

impl<'a> StackFrame<'a> {
    /// A message of which nothing is written yet, between `before` and `after`.
    fn message(
        table: &'static Message,
        body: &'a [u8],
        before: &'static str,
        after: &'static str,
    ) -> StackFrame<'a> {
        StackFrame::Begin { table, body, before, schema_url: &[], after, from: 0 }
    }
}

/// A message of which the scalars are written.
#[derive(Clone)]
struct OpenMessage<'a> {
    table: &'static Message,
    rest: Reader<'a>,
    /// Lists that are written, by field number.
    lists: u32,
    /// Which of the messages that exclude each other counts.
    chosen: u8,
    is_first: bool,
    after: &'static str,
}

#[derive(Clone)]
enum Members<'a> {
    Messages(&'static Message, Messages<'a>),
    Pairs(Attributes<'a>),
    Values(Values<'a>),
    Numbers(&'static Field, Numbers<'a>),
}

impl<'a> Encoder<'a> {
    /// Writes the checked request `raw`. Profiles have no JSON: of them nothing is written.
    #[must_use]
    pub fn new(signal: Signal, raw: &'a [u8], layout: Layout) -> Self {
        let (items, envelopes) = (Items::new(signal, raw), Envelopes::default());
        Self { layout, items, open: Vec::new(), envelopes, walked: 0, stage: Stage::Begin }
    }

    /// Writes on, to the start of `space`.
    pub fn write(&mut self, space: &mut [u8]) -> Progress {
        let mut written = 0;
        self.envelopes.begin_part();
        loop {
            if self.open.is_empty() && !self.next_item() {
                return Progress { written, next: Next::Done };
            }
            if written + self.walked / WALKED_FOR_ONE >= TURN && !self.envelopes.is_begun(written) {
                self.walked = 0;
                return Progress { written, next: Next::More };
            }
            if let Some(StackFrame::Mark(envelope, is_end)) = self.open.last() {
                self.envelopes.mark(*envelope, *is_end, space.get(..written).unwrap_or_default());
                self.open.pop();
                continue;
            }
            let (depth, last) = (self.open.len(), self.open.last().cloned());
            let mut out = SliceOutput::new(space.get_mut(written..).unwrap_or_default());
            if self.step(&mut out).is_err() {
                // As it was before.
                self.open.truncate(depth.saturating_sub(1));
                self.open.extend(last);
                return Progress { written, next: Next::Space };
            }
            written += out.len();
        }
    }

    /// Opens what comes next at the outermost level; false at the end.
    fn next_item(&mut self) -> bool {
        let (begin, between, end) = match (self.layout, self.items.signal) {
            (Layout::Request, Signal::Traces) => ("{\"resourceSpans\":[", ",", "]}"),
            (Layout::Request, Signal::Metrics) => ("{\"resourceMetrics\":[", ",", "]}"),
            (Layout::Request, _) => ("{\"resourceLogs\":[", ",", "]}"),
            (Layout::Lines, _) => ("", "", ""),
            (Layout::Array, _) => ("[", ",", "]"),
        };
        let item = match self.stage {
            Stage::Begin => {
                self.open.push(StackFrame::Text(begin));
                self.stage = Stage::First;
                return true;
            }
            Stage::First | Stage::Others => self.items.next(self.layout == Layout::Request),
            Stage::Done => return false,
        };
        let Some(item) = item else {
            self.stage = Stage::Done;
            self.open.push(StackFrame::Text(end));
            return true;
        };
        let after = if self.layout == Layout::Lines { "}\n" } else { "}" };
        let members = |(table, body)| StackFrame::message(table, body, "", "");
        match item {
            Item::Group(group, body) => {
                self.open.push(StackFrame::message(group, body, "{", after));
            }
            Item::One { head, metric, item, resource: (resource, of_resource), scope: (scope, of_scope) } => {
                self.open.push(StackFrame::Text(after));
                if self.envelopes.has(Envelope::Group, [resource, of_resource, scope, of_scope]) {
                    self.open.push(StackFrame::Again(Envelope::Group));
                } else {
                    self.open.push(StackFrame::Mark(Envelope::Group, true));
                    for (body, schema_url, table, before) in [
                        (scope, of_scope, &SCOPE, ",\"scope\":{"),
                        (resource, of_resource, &RESOURCE, ",\"resource\":{"),
                    ] {
                        if !body.is_empty() || !schema_url.is_empty() {
                            self.open.push(StackFrame::Begin {
                                table,
                                body,
                                before,
                                schema_url,
                                after: "}",
                                from: 0,
                            });
                        }
                    }
                    self.open.push(StackFrame::Mark(Envelope::Group, false));
                }
                self.open.push(members(item));
                if let Some([metric, data]) = metric {
                    if self.envelopes.has(Envelope::Metric, [metric.1, data.1, &[], &[]]) {
                        self.open.push(StackFrame::Again(Envelope::Metric));
                    } else {
                        self.open.push(StackFrame::Mark(Envelope::Metric, true));
                        self.open.extend([metric, data].map(members));
                        self.open.push(StackFrame::Mark(Envelope::Metric, false));
                    }
                }
                self.open.push(StackFrame::Text(head));
            }
        }
        if self.stage == Stage::Others {
            self.open.push(StackFrame::Text(between));
        }
        self.stage = Stage::Others;
        true
    }

    fn step(&mut self, out: &mut SliceOutput<'_>) -> Result<(), Full> {
        match self.open.pop() {
            None => Ok(()),
            Some(StackFrame::Text(text)) => out.put(text.as_bytes()),
            Some(StackFrame::Again(envelope)) => out.put(self.envelopes.text(envelope)),
            // They are taken before a step.
            Some(StackFrame::Mark(..)) => Ok(()),
            Some(StackFrame::Begin { table, body, before, schema_url, after, from }) => {
                out.put(before.as_bytes())?;
                // A part without its own brace follows other members.
                let mut is_first = !before.is_empty();
                if !schema_url.is_empty() {
                    self.name(out, "schemaUrl", &mut is_first)?;
                    self.open.push(StackFrame::Begin {
                        table,
                        body,
                        before: "",
                        schema_url: &[],
                        after,
                        from,
                    });
                    return self.text(out, schema_url, Notation::Text, "\"");
                }
                self.scalars(out, table, body, is_first, after, from)
            }
            Some(StackFrame::Long { rest, notation, after }) => self.rest_of_text(out, rest, notation, after),
            Some(StackFrame::Value(value, in_pair)) => self.value(out, value, in_pair),
            Some(StackFrame::Message(message)) => self.field(out, message),
            Some(StackFrame::List { members, is_first, after }) => self.member(out, members, is_first, after),
        }
    }

    fn is_plain(&self) -> bool {
        self.layout != Layout::Request
    }

    /// Writes a member's name, as the layout has it.
    fn name(&self, out: &mut SliceOutput<'_>, name: &str, is_first: &mut bool) -> Result<(), Full> {
        out.put(if std::mem::take(is_first) { b"\"" } else { b",\"" })?;
        if self.is_plain() {
            snake_case(name, out)?;
        } else {
            out.put(name.as_bytes())?;
        }
        out.put(b"\":")
    }

    /// Writes the next field of a message that is no scalar, or its end.
    fn field(&mut self, out: &mut SliceOutput<'_>, mut message: OpenMessage<'a>) -> Result<(), Full> {
        loop {
            let before = message.rest;
            let Ok(Some(key)) = message.rest.key() else { return out.put(message.after.as_bytes()) };
            let field = message.table.fields.iter().find(|field| u32::from(field.number) == key.field);
            if message.rest.skip(key).is_err() {
                return out.put(message.after.as_bytes());
            }
            let Some(field) = field.filter(|field| !field.is_scalar()) else { continue };
            let nested = match field.kind {
                Kind::Message(nested) => Some(nested),
                _ => None,
            };
            let is_list = field.rule == Rule::Repeated;
            let is_written = is_list && message.lists & 1 << field.number != 0;
            let is_rival = field.choice == DATA && field.number != message.chosen;
            // An item has no items in it: they are written on their own.
            let is_outside = self.is_plain() && nested.is_some_and(Message::holds_items);
            if is_written || is_rival || is_outside {
                continue;
            }
            self.name(out, field.name, &mut message.is_first)?;
            let Some(nested) = nested else {
                message.lists |= 1 << field.number;
                self.open.push(StackFrame::Message(message));
                let members = Members::Numbers(field, Numbers::new(field, before.rest()));
                self.open.push(StackFrame::List { members, is_first: true, after: "]" });
                return out.put(b"[");
            };
            if is_list {
                message.lists |= 1 << field.number;
                self.open.push(StackFrame::Message(message));
                let number = u32::from(field.number);
                let is_object = self.is_plain() && std::ptr::eq(nested, &KEY_VALUE);
                let (start, after) = if is_object { (b"{", "}") } else { (b"[", "]") };
                let members = if std::ptr::eq(nested, &KEY_VALUE) {
                    Members::Pairs(Attributes::new(before.rest(), number))
                } else {
                    Members::Messages(nested, Messages::new(before.rest(), number))
                };
                self.open.push(StackFrame::List { members, is_first: true, after });
                return out.put(start);
            }
            let mut reader = before;
            let body = reader.key().ok().flatten().and_then(|key| reader.bytes(key).ok()).unwrap_or_default();
            self.open.push(StackFrame::Message(message));
            if std::ptr::eq(nested, &ANY_VALUE) {
                let value = AnyValue::read(body).unwrap_or(AnyValue::Empty);
                return self.value(out, value, false);
            }
            self.open.push(StackFrame::message(nested, body, "{", "}"));
            return Ok(());
        }
    }
}

impl Field {
    /// Whether it is one number or text.
    fn is_scalar(&self) -> bool {
        self.rule != Rule::Repeated && !matches!(self.kind, Kind::Message(_))
    }
}

impl Message {
    /// Whether it is an item, or has items as its members.
    fn holds_items(&self) -> bool {
        self.is_item
            || self.fields.iter().any(|field| matches!(field.kind, Kind::Message(inner) if inner.is_item))
    }
}
