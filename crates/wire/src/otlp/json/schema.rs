//! The messages of OTLP as tables: a field's name in JSON, its number, and how its value is written.
//!
//! Source: `opentelemetry/proto/**` of opentelemetry-proto 1.x. All field numbers are below 32.

/// A message and what may be in it, in the order in which most senders write it.
pub(super) struct Message {
    pub(super) fields: &'static [Field],
    /// How many bytes its length usually takes.
    pub(super) length_bytes: u8,
    /// Whether it is what a request is about: a span, a record, a point.
    pub(super) is_item: bool,
}

/// A field of a message.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) number: u8,
    pub(super) kind: Kind,
    pub(super) rule: Rule,
    /// The number of the field that stands for all that exclude each other; else its own.
    pub(super) choice: u8,
}

/// How often a field may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Once, and being zero is the same as not being there.
    Plain,
    /// Once, and being zero is something else than not being there.
    Present,
    /// In an array.
    Repeated,
}

/// How a value is written in JSON and in protobuf.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    String,
    /// Bytes in hexadecimal, so many or none.
    Id(usize),
    /// Bytes in base64.
    Bytes,
    Bool,
    Double,
    Fixed64,
    SignedFixed64,
    Fixed32,
    Int64,
    Uint64,
    Uint32,
    Zigzag32,
    Enum,
    Message(&'static Message),
}

impl Field {
    /// Its key in protobuf, of one byte or two. Repeated numbers are packed.
    pub(super) const fn key(&self) -> u16 {
        let wire = match (self.kind, self.rule) {
            (Kind::String | Kind::Id(_) | Kind::Bytes | Kind::Message(_), _) | (_, Rule::Repeated) => 2,
            (Kind::Double | Kind::Fixed64 | Kind::SignedFixed64, _) => 1,
            (Kind::Fixed32, _) => 5,
            _ => 0,
        };
        (self.number as u16) << 3 | wire
    }
}

const fn plain(name: &'static str, number: u8, kind: Kind) -> Field {
    Field { name, number, kind, rule: Rule::Plain, choice: number }
}

const fn present(name: &'static str, number: u8, kind: Kind) -> Field {
    Field { name, number, kind, rule: Rule::Present, choice: number }
}

const fn repeated(name: &'static str, number: u8, kind: Kind) -> Field {
    Field { name, number, kind, rule: Rule::Repeated, choice: number }
}

const fn attributes(name: &'static str, number: u8) -> Field {
    repeated(name, number, Kind::Message(&KEY_VALUE))
}

const fn choice(choice: u8, name: &'static str, number: u8, kind: Kind) -> Field {
    Field { name, number, kind, rule: Rule::Present, choice }
}

const fn message(length_bytes: u8, fields: &'static [Field]) -> Message {
    Message { fields, length_bytes, is_item: false }
}

const fn item(length_bytes: u8, fields: &'static [Field]) -> Message {
    Message { fields, length_bytes, is_item: true }
}

const TRACE_ID: Kind = Kind::Id(16);
const SPAN_ID: Kind = Kind::Id(8);

pub(super) static TRACES: Message =
    message(0, &[repeated("resourceSpans", 1, Kind::Message(&RESOURCE_SPANS))]);
pub(super) static LOGS: Message = message(0, &[repeated("resourceLogs", 1, Kind::Message(&RESOURCE_LOGS))]);
pub(super) static METRICS: Message =
    message(0, &[repeated("resourceMetrics", 1, Kind::Message(&RESOURCE_METRICS))]);

pub(super) static KEY_VALUE: Message =
    message(1, &[plain("key", 1, Kind::String), present("value", 2, Kind::Message(&ANY_VALUE))]);

pub(super) static ANY_VALUE: Message = message(
    1,
    &[
        choice(1, "stringValue", 1, Kind::String),
        choice(1, "boolValue", 2, Kind::Bool),
        choice(1, "intValue", 3, Kind::Int64),
        choice(1, "doubleValue", 4, Kind::Double),
        choice(1, "arrayValue", 5, Kind::Message(&ARRAY)),
        choice(1, "kvlistValue", 6, Kind::Message(&MAP)),
        choice(1, "bytesValue", 7, Kind::Bytes),
    ],
);
static ARRAY: Message = message(1, &[repeated("values", 1, Kind::Message(&ANY_VALUE))]);
static MAP: Message = message(1, &[attributes("values", 1)]);

pub(super) static SCOPE: Message = message(
    1,
    &[
        plain("name", 1, Kind::String),
        plain("version", 2, Kind::String),
        attributes("attributes", 3),
        plain("droppedAttributesCount", 4, Kind::Uint32),
    ],
);

pub(super) static RESOURCE: Message = message(
    2,
    &[
        attributes("attributes", 1),
        plain("droppedAttributesCount", 2, Kind::Uint32),
        repeated("entityRefs", 3, Kind::Message(&ENTITY_REF)),
    ],
);
static ENTITY_REF: Message = message(
    1,
    &[
        plain("schemaUrl", 1, Kind::String),
        plain("type", 2, Kind::String),
        repeated("idKeys", 3, Kind::String),
        repeated("descriptionKeys", 4, Kind::String),
    ],
);

static RESOURCE_SPANS: Message = message(
    3,
    &[
        present("resource", 1, Kind::Message(&RESOURCE)),
        repeated("scopeSpans", 2, Kind::Message(&SCOPE_SPANS)),
        plain("schemaUrl", 3, Kind::String),
    ],
);
static SCOPE_SPANS: Message = message(
    3,
    &[
        present("scope", 1, Kind::Message(&SCOPE)),
        repeated("spans", 2, Kind::Message(&SPAN)),
        plain("schemaUrl", 3, Kind::String),
    ],
);
static SPAN: Message = item(
    2,
    &[
        plain("traceId", 1, TRACE_ID),
        plain("spanId", 2, SPAN_ID),
        plain("traceState", 3, Kind::String),
        plain("parentSpanId", 4, SPAN_ID),
        plain("flags", 16, Kind::Fixed32),
        plain("name", 5, Kind::String),
        plain("kind", 6, Kind::Enum),
        plain("startTimeUnixNano", 7, Kind::Fixed64),
        plain("endTimeUnixNano", 8, Kind::Fixed64),
        attributes("attributes", 9),
        plain("droppedAttributesCount", 10, Kind::Uint32),
        repeated("events", 11, Kind::Message(&EVENT)),
        plain("droppedEventsCount", 12, Kind::Uint32),
        repeated("links", 13, Kind::Message(&LINK)),
        plain("droppedLinksCount", 14, Kind::Uint32),
        present("status", 15, Kind::Message(&STATUS)),
    ],
);
static EVENT: Message = message(
    2,
    &[
        plain("timeUnixNano", 1, Kind::Fixed64),
        plain("name", 2, Kind::String),
        attributes("attributes", 3),
        plain("droppedAttributesCount", 4, Kind::Uint32),
    ],
);
static LINK: Message = message(
    1,
    &[
        plain("traceId", 1, TRACE_ID),
        plain("spanId", 2, SPAN_ID),
        plain("traceState", 3, Kind::String),
        attributes("attributes", 4),
        plain("droppedAttributesCount", 5, Kind::Uint32),
        plain("flags", 6, Kind::Fixed32),
    ],
);
static STATUS: Message = message(1, &[plain("message", 2, Kind::String), plain("code", 3, Kind::Enum)]);

static RESOURCE_LOGS: Message = message(
    3,
    &[
        present("resource", 1, Kind::Message(&RESOURCE)),
        repeated("scopeLogs", 2, Kind::Message(&SCOPE_LOGS)),
        plain("schemaUrl", 3, Kind::String),
    ],
);
static SCOPE_LOGS: Message = message(
    3,
    &[
        present("scope", 1, Kind::Message(&SCOPE)),
        repeated("logRecords", 2, Kind::Message(&LOG_RECORD)),
        plain("schemaUrl", 3, Kind::String),
    ],
);
static LOG_RECORD: Message = item(
    2,
    &[
        plain("timeUnixNano", 1, Kind::Fixed64),
        plain("observedTimeUnixNano", 11, Kind::Fixed64),
        plain("severityNumber", 2, Kind::Enum),
        plain("severityText", 3, Kind::String),
        present("body", 5, Kind::Message(&ANY_VALUE)),
        attributes("attributes", 6),
        plain("droppedAttributesCount", 7, Kind::Uint32),
        plain("flags", 8, Kind::Fixed32),
        plain("traceId", 9, TRACE_ID),
        plain("spanId", 10, SPAN_ID),
        plain("eventName", 12, Kind::String),
    ],
);

static RESOURCE_METRICS: Message = message(
    3,
    &[
        present("resource", 1, Kind::Message(&RESOURCE)),
        repeated("scopeMetrics", 2, Kind::Message(&SCOPE_METRICS)),
        plain("schemaUrl", 3, Kind::String),
    ],
);
static SCOPE_METRICS: Message = message(
    3,
    &[
        present("scope", 1, Kind::Message(&SCOPE)),
        repeated("metrics", 2, Kind::Message(&METRIC)),
        plain("schemaUrl", 3, Kind::String),
    ],
);
pub(super) static METRIC: Message = message(
    2,
    &[
        plain("name", 1, Kind::String),
        plain("description", 2, Kind::String),
        plain("unit", 3, Kind::String),
        choice(5, "gauge", 5, Kind::Message(&GAUGE)),
        choice(5, "sum", 7, Kind::Message(&SUM)),
        choice(5, "histogram", 9, Kind::Message(&HISTOGRAM)),
        choice(5, "exponentialHistogram", 10, Kind::Message(&EXPONENTIAL_HISTOGRAM)),
        choice(5, "summary", 11, Kind::Message(&SUMMARY)),
        attributes("metadata", 12),
    ],
);

static GAUGE: Message = message(2, &[repeated("dataPoints", 1, Kind::Message(&NUMBER_POINT))]);
static SUM: Message = message(
    2,
    &[
        repeated("dataPoints", 1, Kind::Message(&NUMBER_POINT)),
        plain("aggregationTemporality", 2, Kind::Enum),
        plain("isMonotonic", 3, Kind::Bool),
    ],
);
static HISTOGRAM: Message = message(
    2,
    &[
        repeated("dataPoints", 1, Kind::Message(&HISTOGRAM_POINT)),
        plain("aggregationTemporality", 2, Kind::Enum),
    ],
);
static EXPONENTIAL_HISTOGRAM: Message = message(
    2,
    &[
        repeated("dataPoints", 1, Kind::Message(&EXPONENTIAL_POINT)),
        plain("aggregationTemporality", 2, Kind::Enum),
    ],
);
static SUMMARY: Message = message(2, &[repeated("dataPoints", 1, Kind::Message(&SUMMARY_POINT))]);

static NUMBER_POINT: Message = item(
    2,
    &[
        attributes("attributes", 7),
        plain("startTimeUnixNano", 2, Kind::Fixed64),
        plain("timeUnixNano", 3, Kind::Fixed64),
        choice(4, "asDouble", 4, Kind::Double),
        choice(4, "asInt", 6, Kind::SignedFixed64),
        repeated("exemplars", 5, Kind::Message(&EXEMPLAR)),
        plain("flags", 8, Kind::Uint32),
    ],
);
static HISTOGRAM_POINT: Message = item(
    2,
    &[
        attributes("attributes", 9),
        plain("startTimeUnixNano", 2, Kind::Fixed64),
        plain("timeUnixNano", 3, Kind::Fixed64),
        plain("count", 4, Kind::Fixed64),
        present("sum", 5, Kind::Double),
        repeated("bucketCounts", 6, Kind::Fixed64),
        repeated("explicitBounds", 7, Kind::Double),
        repeated("exemplars", 8, Kind::Message(&EXEMPLAR)),
        plain("flags", 10, Kind::Uint32),
        present("min", 11, Kind::Double),
        present("max", 12, Kind::Double),
    ],
);
static EXPONENTIAL_POINT: Message = item(
    2,
    &[
        attributes("attributes", 1),
        plain("startTimeUnixNano", 2, Kind::Fixed64),
        plain("timeUnixNano", 3, Kind::Fixed64),
        plain("count", 4, Kind::Fixed64),
        present("sum", 5, Kind::Double),
        plain("scale", 6, Kind::Zigzag32),
        plain("zeroCount", 7, Kind::Fixed64),
        present("positive", 8, Kind::Message(&BUCKETS)),
        present("negative", 9, Kind::Message(&BUCKETS)),
        plain("flags", 10, Kind::Uint32),
        repeated("exemplars", 11, Kind::Message(&EXEMPLAR)),
        present("min", 12, Kind::Double),
        present("max", 13, Kind::Double),
        plain("zeroThreshold", 14, Kind::Double),
    ],
);
static BUCKETS: Message =
    message(2, &[plain("offset", 1, Kind::Zigzag32), repeated("bucketCounts", 2, Kind::Uint64)]);
static SUMMARY_POINT: Message = item(
    2,
    &[
        attributes("attributes", 7),
        plain("startTimeUnixNano", 2, Kind::Fixed64),
        plain("timeUnixNano", 3, Kind::Fixed64),
        plain("count", 4, Kind::Fixed64),
        plain("sum", 5, Kind::Double),
        repeated("quantileValues", 6, Kind::Message(&QUANTILE)),
        plain("flags", 8, Kind::Uint32),
    ],
);
static QUANTILE: Message = message(1, &[plain("quantile", 1, Kind::Double), plain("value", 2, Kind::Double)]);
static EXEMPLAR: Message = message(
    1,
    &[
        attributes("filteredAttributes", 7),
        plain("timeUnixNano", 2, Kind::Fixed64),
        choice(3, "asDouble", 3, Kind::Double),
        choice(3, "asInt", 6, Kind::SignedFixed64),
        plain("spanId", 4, SPAN_ID),
        plain("traceId", 5, TRACE_ID),
    ],
);
