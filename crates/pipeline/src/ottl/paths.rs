//! The paths of each context: their fields, types and keys.

use super::field::{Context, Field};
use crate::value::Kind;

/// A path behind its context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathField {
    /// The names between dots: `body.string`.
    pub(crate) name: &'static str,
    pub(crate) field: Field,
    /// The kind of its value without keys; `None` when it depends on the record.
    pub(crate) kind: Option<Kind>,
    pub(crate) keys: Keys,
    /// Whether `set` can change it.
    pub(crate) settable: bool,
}

/// The keys that may follow a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    Never,
    Any,
    /// None or one.
    One,
}

/// The paths of `context`.
pub(crate) fn of(context: Context) -> impl Iterator<Item = &'static PathField> {
    own(context).iter().chain(CACHE)
}

/// The path `name` of `context`.
pub(crate) fn find(context: Context, name: &str) -> Option<&'static PathField> {
    of(context).find(|path| path.name == name)
}

/// Why a path that the Collector has is not supported.
pub(crate) fn refused(context: Context, name: &str) -> Option<&'static str> {
    let first = name.split('.').next().unwrap_or_default();
    match (context, first) {
        (Context::Span, "status") => Some("use `span.status.code` and `span.status.message`"),
        (Context::DataPoint, "positive" | "negative") => Some("use its `.offset` and `.bucket_counts`"),
        _ => None,
    }
}

const fn own(context: Context) -> &'static [PathField] {
    match context {
        Context::Resource => RESOURCE,
        Context::Scope => SCOPE,
        Context::Span => SPAN,
        Context::SpanEvent => SPAN_EVENT,
        Context::Metric => METRIC,
        Context::DataPoint => DATA_POINT,
        Context::Log => LOG,
    }
}

const fn any(name: &'static str, field: Field) -> PathField {
    PathField { name, field, kind: None, keys: Keys::Any, settable: true }
}

const fn map(name: &'static str, field: Field) -> PathField {
    PathField { name, field, kind: Some(Kind::Map), keys: Keys::Any, settable: true }
}

const fn scalar(name: &'static str, field: Field, kind: Kind) -> PathField {
    PathField { name, field, kind: Some(kind), keys: Keys::Never, settable: true }
}

const fn text(name: &'static str, field: Field) -> PathField {
    scalar(name, field, Kind::Text)
}

const fn int(name: &'static str, field: Field) -> PathField {
    scalar(name, field, Kind::Int)
}

const fn fixed(name: &'static str, field: Field) -> PathField {
    PathField { name, field, kind: Some(Kind::Int), keys: Keys::Never, settable: false }
}

/// A list of messages, of which programs can only ask how many there are.
const fn counted(name: &'static str, field: Field) -> PathField {
    PathField { name, field, kind: Some(Kind::List), keys: Keys::Never, settable: false }
}

const CACHE: &[PathField] = &[map("cache", Field::Cache)];

const ATTRIBUTES: PathField = map("attributes", Field::Attributes);

const DROPPED: PathField = int("dropped_attributes_count", Field::DroppedAttributesCount);

const RESOURCE: &[PathField] = &[ATTRIBUTES, DROPPED, text("schema_url", Field::SchemaUrl)];

const SCOPE: &[PathField] = &[
    ATTRIBUTES,
    DROPPED,
    text("name", Field::Name),
    text("version", Field::Version),
    text("schema_url", Field::SchemaUrl),
];

const SPAN: &[PathField] = &[
    ATTRIBUTES,
    DROPPED,
    text("name", Field::Name),
    scalar("trace_id", Field::TraceId, Kind::Id),
    text("trace_id.string", Field::TraceIdText),
    scalar("span_id", Field::SpanId, Kind::Id),
    text("span_id.string", Field::SpanIdText),
    scalar("parent_span_id", Field::ParentSpanId, Kind::Id),
    text("parent_span_id.string", Field::ParentSpanIdText),
    PathField {
        name: "trace_state",
        field: Field::TraceState,
        kind: Some(Kind::Text),
        keys: Keys::One,
        settable: true,
    },
    int("kind", Field::Kind),
    text("kind.string", Field::KindText),
    text("kind.deprecated_string", Field::KindDeprecatedText),
    int("status.code", Field::StatusCode),
    text("status.message", Field::StatusMessage),
    int("start_time_unix_nano", Field::StartTimeUnixNano),
    scalar("start_time", Field::StartTime, Kind::Time),
    int("end_time_unix_nano", Field::EndTimeUnixNano),
    scalar("end_time", Field::EndTime, Kind::Time),
    int("dropped_events_count", Field::DroppedEventsCount),
    int("dropped_links_count", Field::DroppedLinksCount),
    counted("events", Field::Events),
    counted("links", Field::Links),
    int("flags", Field::Flags),
];

const SPAN_EVENT: &[PathField] = &[
    ATTRIBUTES,
    DROPPED,
    text("name", Field::Name),
    int("time_unix_nano", Field::TimeUnixNano),
    scalar("time", Field::Time, Kind::Time),
    fixed("event_index", Field::EventIndex),
];

const LOG: &[PathField] = &[
    ATTRIBUTES,
    DROPPED,
    any("body", Field::Body),
    text("body.string", Field::BodyText),
    int("severity_number", Field::SeverityNumber),
    text("severity_text", Field::SeverityText),
    int("time_unix_nano", Field::TimeUnixNano),
    scalar("time", Field::Time, Kind::Time),
    int("observed_time_unix_nano", Field::ObservedTimeUnixNano),
    scalar("observed_time", Field::ObservedTime, Kind::Time),
    scalar("trace_id", Field::TraceId, Kind::Id),
    text("trace_id.string", Field::TraceIdText),
    scalar("span_id", Field::SpanId, Kind::Id),
    text("span_id.string", Field::SpanIdText),
    text("event_name", Field::EventName),
    int("flags", Field::Flags),
];

const METRIC: &[PathField] = &[
    text("name", Field::Name),
    text("description", Field::Description),
    text("unit", Field::Unit),
    fixed("type", Field::MetricType),
    map("metadata", Field::Metadata),
    scalar("is_monotonic", Field::IsMonotonic, Kind::Bool),
    int("aggregation_temporality", Field::AggregationTemporality),
    counted("data_points", Field::DataPoints),
];

const DATA_POINT: &[PathField] = &[
    ATTRIBUTES,
    int("value_int", Field::ValueInt),
    scalar("value_double", Field::ValueDouble, Kind::Double),
    int("time_unix_nano", Field::TimeUnixNano),
    scalar("time", Field::Time, Kind::Time),
    int("start_time_unix_nano", Field::StartTimeUnixNano),
    scalar("start_time", Field::StartTime, Kind::Time),
    int("flags", Field::Flags),
    int("count", Field::Count),
    scalar("sum", Field::Sum, Kind::Double),
    int("scale", Field::Scale),
    int("zero_count", Field::ZeroCount),
    scalar("bucket_counts", Field::BucketCounts, Kind::List),
    scalar("explicit_bounds", Field::ExplicitBounds, Kind::List),
    int("positive.offset", Field::PositiveOffset),
    scalar("positive.bucket_counts", Field::PositiveBucketCounts, Kind::List),
    int("negative.offset", Field::NegativeOffset),
    scalar("negative.bucket_counts", Field::NegativeBucketCounts, Kind::List),
    counted("exemplars", Field::Exemplars),
    counted("quantile_values", Field::QuantileValues),
];
