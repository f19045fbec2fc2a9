//! Contexts and their fields.

/// The kind of thing that a path refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Context {
    Resource,
    Scope,
    Span,
    SpanEvent,
    Metric,
    DataPoint,
    Log,
}

impl Context {
    /// The name in paths.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Context::Resource => "resource",
            Context::Scope => "scope",
            Context::Span => "span",
            Context::SpanEvent => "spanevent",
            Context::Metric => "metric",
            Context::DataPoint => "datapoint",
            Context::Log => "log",
        }
    }
}

/// A field of a context. Several contexts share the names that mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    // All contexts but the metric.
    Attributes,
    DroppedAttributesCount,
    // All contexts.
    Cache,
    // Resource and scope.
    SchemaUrl,
    // Scope, span, span event, metric.
    Name,
    Version,
    // Span and log.
    TraceId,
    TraceIdText,
    SpanId,
    SpanIdText,
    Flags,
    // Span.
    ParentSpanId,
    ParentSpanIdText,
    TraceState,
    Kind,
    KindText,
    KindDeprecatedText,
    StatusCode,
    StatusMessage,
    StartTimeUnixNano,
    StartTime,
    EndTimeUnixNano,
    EndTime,
    DroppedEventsCount,
    DroppedLinksCount,
    // Span event, log, data point.
    TimeUnixNano,
    Time,
    EventIndex,
    // Log.
    ObservedTimeUnixNano,
    ObservedTime,
    SeverityNumber,
    SeverityText,
    Body,
    BodyText,
    EventName,
    // Metric.
    Description,
    Unit,
    MetricType,
    Metadata,
    IsMonotonic,
    AggregationTemporality,
    // Data point.
    ValueInt,
    ValueDouble,
    Count,
    Sum,
    Scale,
    ZeroCount,
    BucketCounts,
    ExplicitBounds,
    PositiveOffset,
    PositiveBucketCounts,
    NegativeOffset,
    NegativeBucketCounts,
}
