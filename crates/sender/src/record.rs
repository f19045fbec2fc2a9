//! Events as callers show them: borrowed, walked, never owned.

mod attributes;
mod metric;

pub use attributes::{Attributes, NoAttributes, Value, Values};
pub use metric::{
    Buckets, ExponentialPoint, HistogramPoint, Metric, Number, NumberPoint, Point, Points, PointsOf,
    Temporality,
};

/// Nanoseconds since 1970.
pub type Nanos = u64;

/// Which library made an event. [`Scopes::add`](crate::Sender::scope) hands them out; the default one is the
/// program itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope(pub(crate) u16);

/// Where a span or log record belongs: its trace, and the span itself or the one it happened in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpanContext {
    /// 16 bytes, not all zero in a span.
    pub trace_id: [u8; 16],
    /// 8 bytes, not all zero in a span.
    pub span_id: [u8; 8],
    /// W3C trace flags: 1 is sampled.
    pub flags: u8,
}

impl SpanContext {
    /// Reads a W3C `traceparent` header: `00-<trace>-<span>-<flags>`. Nothing if it is not valid.
    pub fn from_traceparent(header: &str) -> Option<SpanContext> {
        let mut parts = header.trim().split('-');
        let version = parts.next().filter(|version| version.len() == 2 && *version != "ff")?;
        let trace_id = hex::<16>(parts.next()?)?;
        let span_id = hex::<8>(parts.next()?)?;
        let [flags] = hex::<1>(parts.next()?)?;
        let more = parts.next().is_some();
        let valid = trace_id != [0; 16] && span_id != [0; 8] && (version != "00" || !more);
        valid.then_some(SpanContext { trace_id, span_id, flags })
    }
}

/// Shows as a W3C `traceparent` header.
impl std::fmt::Display for SpanContext {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("00-")?;
        self.trace_id.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        out.write_str("-")?;
        self.span_id.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        write!(out, "-{:02x}", self.flags)
    }
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = *pair else { return None };
        let lower = |digit: u8| (digit as char).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
        *byte = u8::try_from(lower(high)? << 4 | lower(low)?).ok()?;
    }
    (digits.len() == 2 * N).then_some(bytes)
}

/// A span that ended.
#[derive(Clone, Copy)]
pub struct Span<'a> {
    /// Its identity.
    pub context: SpanContext,
    /// The span it is part of; `None` makes it a root.
    pub parent: Option<[u8; 8]>,
    /// The parent is in another process.
    pub parent_is_remote: bool,
    /// W3C tracestate, empty if there is none.
    pub trace_state: &'a str,
    /// The operation, with few distinct values: `GET /users/{id}`.
    pub name: &'a str,
    /// Its part in a call.
    pub kind: SpanKind,
    /// When it began.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// Further attributes.
    pub attributes: &'a dyn Attributes,
    /// Attributes that were left out.
    pub dropped_attributes: u32,
    /// The events of the span.
    pub events: &'a dyn SpanEvents,
    /// Spans of other traces that it has to do with.
    pub links: &'a dyn Links,
    /// How it ended.
    pub status: Status<'a>,
    /// Which library made it.
    pub scope: Scope,
}

impl Default for Span<'_> {
    fn default() -> Self {
        Span {
            context: SpanContext::default(),
            parent: None,
            parent_is_remote: false,
            trace_state: "",
            name: "",
            kind: SpanKind::Internal,
            start: 0,
            end: 0,
            attributes: &NoAttributes,
            dropped_attributes: 0,
            events: &NoAttributes,
            links: &NoAttributes,
            status: Status::Unset,
            scope: Scope::default(),
        }
    }
}

/// The part of a span in a call. The numbers are OTLP's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// within the program
    #[default]
    Internal = 1,
    /// answers a request
    Server = 2,
    /// makes a request
    Client = 3,
    /// puts a message into a queue
    Producer = 4,
    /// takes a message from a queue
    Consumer = 5,
}

/// How a span ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status<'a> {
    /// nobody said
    #[default]
    Unset,
    /// well, and somebody said so
    Ok,
    /// badly
    Error(&'a str),
}

/// Something that happened at one moment of a span.
#[derive(Clone, Copy)]
pub struct SpanEvent<'a> {
    /// When.
    pub time: Nanos,
    /// What.
    pub name: &'a str,
    /// More about it.
    pub attributes: &'a dyn Attributes,
}

/// A list of span events.
pub trait SpanEvents {
    /// Shows each in order, and the same ones each time it is asked.
    fn each(&self, visit: &mut dyn FnMut(&SpanEvent<'_>));
}

impl SpanEvents for NoAttributes {
    fn each(&self, _visit: &mut dyn FnMut(&SpanEvent<'_>)) {}
}

impl<const N: usize> SpanEvents for [SpanEvent<'_>; N] {
    fn each(&self, visit: &mut dyn FnMut(&SpanEvent<'_>)) {
        self.iter().for_each(visit);
    }
}

/// A span of another trace.
#[derive(Clone, Copy)]
pub struct Link<'a> {
    /// Its identity.
    pub context: SpanContext,
    /// W3C tracestate, empty if there is none.
    pub trace_state: &'a str,
    /// The relation to this span.
    pub attributes: &'a dyn Attributes,
}

/// A list of links.
pub trait Links {
    /// Shows each in order, and the same ones each time it is asked.
    fn each(&self, visit: &mut dyn FnMut(&Link<'_>));
}

impl Links for NoAttributes {
    fn each(&self, _visit: &mut dyn FnMut(&Link<'_>)) {}
}

impl<const N: usize> Links for [Link<'_>; N] {
    fn each(&self, visit: &mut dyn FnMut(&Link<'_>)) {
        self.iter().for_each(visit);
    }
}

/// A log record.
#[derive(Clone, Copy)]
pub struct Log<'a> {
    /// When it happened; 0 is unknown.
    pub time: Nanos,
    /// When it was seen.
    pub observed: Nanos,
    /// How bad it is.
    pub severity: Severity,
    /// The source's own word for the severity; empty for the usual one.
    pub severity_text: &'a str,
    /// The name of the event.
    pub body: Value<'a>,
    /// The name of this kind of event, empty if it has none.
    pub event_name: &'a str,
    /// Further attributes.
    pub attributes: &'a dyn Attributes,
    /// The span that it happened in; `None` outside of any.
    pub context: Option<SpanContext>,
    /// Which library made it.
    pub scope: Scope,
}

impl Default for Log<'_> {
    fn default() -> Self {
        Log {
            time: 0,
            observed: 0,
            severity: Severity::UNSPECIFIED,
            severity_text: "",
            body: Value::Empty,
            event_name: "",
            attributes: &NoAttributes,
            context: None,
            scope: Scope::default(),
        }
    }
}

/// How bad: OTLP's numbers from 1 (TRACE) to 24 (FATAL4), 0 for unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Severity(pub u8);

impl Severity {
    /// nobody said
    pub const UNSPECIFIED: Severity = Severity(0);
    /// 1
    pub const TRACE: Severity = Severity(1);
    /// 5
    pub const DEBUG: Severity = Severity(5);
    /// 9
    pub const INFO: Severity = Severity(9);
    /// 13
    pub const WARN: Severity = Severity(13);
    /// 17
    pub const ERROR: Severity = Severity(17);
    /// 21
    pub const FATAL: Severity = Severity(21);

    /// The usual word for it, empty for unknown.
    pub const fn text(self) -> &'static str {
        match self.0 {
            1..=4 => "TRACE",
            5..=8 => "DEBUG",
            9..=12 => "INFO",
            13..=16 => "WARN",
            17..=20 => "ERROR",
            21..=24 => "FATAL",
            _ => "",
        }
    }
}
