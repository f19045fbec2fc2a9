//! Measurements of items: what a run tells the one who sums them up.
//!
//! A step that [measures](crate::StepKind::Measure) looks at spans, their events, log records, metrics or data points. For each that meets its
//! conditions it tells the [`Measurements`] of the run under which key it is to be counted, and with which value. It changes nothing.

use crate::traces::TraceId;

/// The instrumentation scope of derived metrics. Metrics and data points of this scope are not measured.
pub const DERIVED_SCOPE: &str = "tidegate/derive";
/// The most bytes of a [`MeasureKey`].
pub const MEASURE_KEY_MAX: usize = 4096;

/// A measurement that a step takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// The items that it looks at.
    pub of: Measured,
    /// OTTL conditions on them, of which one has to hold. Without any all items are measured.
    pub conditions: Vec<String>,
    /// The attributes of the resource that are a part of the key.
    pub resource: KeyAttributes,
    /// The attributes that are a part of the key beside them.
    pub attributes: KeyAttributes,
    /// The value of an item.
    pub value: MeasureValue,
    /// How often the value counts.
    pub count: MeasureCount,
    /// Whether observations of spans and their events say which span it is.
    pub tells_span: bool,
}

/// Items that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// Spans.
    Spans,
    /// Events of spans.
    SpanEvents,
    /// Log records.
    Logs,
    /// Metrics, each with all of its data points.
    Metrics,
    /// Data points.
    DataPoints,
}

/// Attributes that are a part of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyAttributes {
    /// All that there are.
    All,
    /// These, in this order.
    Listed(Vec<KeyAttribute>),
}

/// An attribute that is a part of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyAttribute {
    /// Its key.
    pub key: String,
    /// Where its value comes from.
    pub from: AttributeSource,
    /// The value where there is none.
    pub default: Option<AttributeValue>,
    /// Whether an item is measured without it where it has neither value nor default.
    pub is_optional: bool,
}

/// A value that is the same for all items.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// An integer.
    Int(i64),
    /// A number.
    Double(f64),
    /// A boolean.
    Bool(bool),
}

/// Where the value of an attribute comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeSource {
    /// The attributes of the item alone.
    Item,
    /// The attributes of the item; then those of its resource.
    ItemOrResource,
    /// The attributes of its resource; then those of the item.
    ResourceOrItem,
    /// The attributes of the item, then of its instrumentation scope, then of its resource.
    ItemOrScopeOrResource,
    /// The attributes of the span of an event, then of the event, then of its resource.
    SpanOrEventOrResource,
    /// The attributes of the resource.
    Resource,
    /// The name of the span.
    SpanName,
    /// The kind of the span, as `SPAN_KIND_SERVER`.
    SpanKind,
    /// The status of the span, as `STATUS_CODE_ERROR`.
    StatusCode,
}

/// The value of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeasureValue {
    /// One.
    One,
    /// The nanoseconds that a span took; zero where it ends before it begins.
    Duration,
    /// That of an OTTL expression, which has to be a number.
    Expression(String),
}

/// How often the value of an item counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeasureCount {
    /// Once.
    One,
    /// As often as the `tracestate` of a span says that it stands for.
    Adjusted,
    /// As often as an OTTL expression says, which has to be a number: what is behind its point is cut off.
    Expression(String),
}

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// Any other.
    Double(f64),
}

impl Number {
    /// It as a double, rounded where that is needed.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Double(number) => number,
        }
    }
}

/// A measurement of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Its value.
    pub value: Number,
    /// How often it counts.
    pub count: u64,
    /// The span that it is, or that it is an event of, where the measure [tells](Measure::tells_span) it.
    pub span: Option<MeasuredSpan>,
}

/// A span that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeasuredSpan {
    /// Its trace; all zero where it has none.
    pub trace_id: TraceId,
    /// Its id; all zero where it has none.
    pub span_id: [u8; 8],
    /// The id of its parent; all zero where it has none.
    pub parent_span_id: [u8; 8],
    /// Its kind: 0 to 5.
    pub kind: i64,
    /// Its status: 0 for unset, 1 for ok, 2 for an error.
    pub status: i64,
    /// When it began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// Sums up what a run measures.
///
/// Before a call the run has put into the [`key`](Self::key) what it belongs to, and the call empties it.
pub trait Measurements {
    /// The key under construction.
    fn key(&mut self) -> &mut MeasureKey;

    /// The observations of this measure that follow are of another resource: the key holds its attributes, as fields `1` with the message `KeyValue` each.
    fn resource(&mut self, measure: usize);

    /// An item was measured. The key holds the values of [listed](KeyAttributes::Listed) attributes in their order, each as the message `AnyValue` behind its
    /// length and one as a varint; zero stands for no value. Where [all](KeyAttributes::All) attributes are a part of it, it holds them as fields `1` with
    /// the message `KeyValue` each.
    fn observe(&mut self, measure: usize, observation: &Observation);
}

/// A key under construction: at most [`MEASURE_KEY_MAX`] bytes, all of which are allocated from the beginning.
#[derive(Debug)]
pub struct MeasureKey {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Default for MeasureKey {
    fn default() -> MeasureKey {
        MeasureKey { bytes: Vec::with_capacity(MEASURE_KEY_MAX), is_cut: false }
    }
}

impl MeasureKey {
    /// Begins another one.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.is_cut = false;
    }

    /// Appends bytes. Where there is no room for them, the key is [cut](Self::is_cut).
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() <= MEASURE_KEY_MAX {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.is_cut = true;
        }
    }

    /// Appends a short text as the message `AnyValue` behind its length and one; false where it is too long for that.
    #[inline]
    pub(crate) fn push_text(&mut self, text: &[u8]) -> bool {
        const LONGEST: usize = 100;
        if text.len() > LONGEST {
            return false;
        }
        let len = text.len() as u8;
        if self.bytes.len() + 3 + text.len() > MEASURE_KEY_MAX {
            self.is_cut = true;
        } else {
            self.bytes.extend_from_slice(&[len + 3, 1 << 3 | 2, len]);
            self.bytes.extend_from_slice(text);
        }
        true
    }

    /// Says that something had no room.
    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// What was appended.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether something had no room: what is there is not the key.
    #[must_use]
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}
