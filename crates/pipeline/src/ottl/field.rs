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
    /// All contexts, in the order in which one is inferred: the first of those that occur.
    pub(crate) const ALL: [Context; 7] = [
        Context::Log,
        Context::DataPoint,
        Context::Metric,
        Context::SpanEvent,
        Context::Span,
        Context::Scope,
        Context::Resource,
    ];

    /// The context of a path that begins with `name`.
    pub(crate) fn named(name: &str) -> Option<Context> {
        match name {
            "instrumentation_scope" => Some(Context::Scope),
            _ => Context::ALL.into_iter().find(|context| context.name() == name),
        }
    }

    /// Whether a statement of this context may use paths of `other`: of itself, and of what is around it.
    pub(crate) const fn reaches(self, other: Context) -> bool {
        matches!(
            (self, other),
            (_, Context::Resource)
                | (Context::Scope, Context::Scope)
                | (Context::Log, Context::Log | Context::Scope)
                | (Context::Metric, Context::Metric | Context::Scope)
                | (Context::DataPoint, Context::DataPoint | Context::Metric | Context::Scope)
                | (Context::Span, Context::Span | Context::Scope)
                | (Context::SpanEvent, Context::SpanEvent | Context::Span | Context::Scope)
        )
    }

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
    Events,
    Links,
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
    DataPoints,
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
    Exemplars,
    QuantileValues,
}

impl Field {
    /// Whether it is a list of messages, of which programs can only ask how many there are.
    pub(crate) const fn is_counted(self) -> bool {
        matches!(
            self,
            Field::Events | Field::Links | Field::DataPoints | Field::Exemplars | Field::QuantileValues
        )
    }
}
