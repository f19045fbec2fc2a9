//! Sampling of whole traces: the questions that a run asks of the one who decides about them.
//!
//! A step on spans sees one span at a time, and a decision about a trace needs all of them. So there are two steps: one
//! [watches](crate::StepKind::WatchTraces) the spans and says what they fulfil, the other
//! [drops](crate::StepKind::SampleTraces) the spans of traces that are not kept. Both ask the [`TraceSampler`] of their run.

/// The id of a trace: 16 bytes that are not all zero.
pub type TraceId = [u8; 16];

/// The most [tests](SpanTest) of one step: each has a bit.
pub const MAX_SPAN_TESTS: usize = 64;

/// The part of a span that decides about its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanFacts {
    /// The trace.
    pub trace_id: TraceId,
    /// When the span began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Whether it has no parent.
    pub is_root: bool,
    /// A bit for each test of the step that the span, or its resource, fulfils: the first test is the lowest bit.
    pub fulfilled: u64,
}

/// Decides about traces.
pub trait TraceSampler {
    /// Takes in a span.
    fn watch(&mut self, span: &SpanFacts);

    /// Takes in tests that an event of a span fulfils. The span itself is taken in before.
    fn watch_event(&mut self, trace_id: &TraceId, fulfilled: u64);

    /// Whether the spans of this trace are kept.
    fn keeps(&mut self, trace_id: &TraceId) -> bool;
}

/// A test of a span, of the policies of the Collector's tail sampling processor. Its trace fulfils it when a span does.
#[derive(Debug, Clone, PartialEq)]
pub enum SpanTest {
    /// An attribute of the span or its resource has one of these values, or matches one of these patterns in Go's syntax.
    StringAttribute {
        /// Its key.
        key: String,
        /// The values; empty ones never match.
        values: Vec<String>,
        /// Whether they are patterns, which match anywhere in the value.
        are_patterns: bool,
    },
    /// An attribute of the span or its resource is within a range. As in the Collector, what is no integer counts as 0.
    NumericAttribute {
        /// Its key.
        key: String,
        /// The least value.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// An attribute of the span or its resource has this value. As in the Collector, what is no boolean counts as false.
    BooleanAttribute {
        /// Its key.
        key: String,
        /// The value.
        value: bool,
    },
    /// The status of the span has one of these codes: 0 for unset, 1 for ok, 2 for an error.
    StatusCode(Vec<i64>),
    /// A member of the span's trace state has one of these values.
    TraceState {
        /// The key of the member.
        key: String,
        /// The values.
        values: Vec<String>,
    },
    /// The span has the flag `sampled`.
    TraceFlags,
    /// At least one OTTL condition holds.
    Condition {
        /// Conditions on spans.
        span: Vec<String>,
        /// Conditions on events of spans.
        span_event: Vec<String>,
    },
}

impl SpanTest {
    /// Its conditions, in the order in which they are compiled.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &String> {
        let (span, span_event): (&[String], &[String]) = match self {
            SpanTest::Condition { span, span_event } => (span, span_event),
            _ => (&[], &[]),
        };
        span.iter().chain(span_event)
    }

    /// All texts of it.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, many, more): (Option<&String>, &[String], &[String]) = match self {
            SpanTest::StringAttribute { key, values, .. } | SpanTest::TraceState { key, values } => {
                (Some(key), values, &[])
            }
            SpanTest::NumericAttribute { key, .. } | SpanTest::BooleanAttribute { key, .. } => {
                (Some(key), &[], &[])
            }
            SpanTest::Condition { span, span_event } => (None, span, span_event),
            SpanTest::StatusCode(_) | SpanTest::TraceFlags => (None, &[], &[]),
        };
        one.into_iter().chain(many).chain(more).map(String::as_str)
    }
}
