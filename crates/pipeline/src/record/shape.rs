//! Where the fields of contexts are on the wire.

use crate::ottl::field::Field;

/// A message of OTLP whose fields statements read and change.
///
/// <https://github.com/open-telemetry/opentelemetry-proto/tree/main/opentelemetry/proto>
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Resource,
    Scope,
    Log,
    Span,
    Event,
    Metric,
    /// Properties of all points of a metric that follow from its kind: `Sum`, `Histogram`, ….
    Data,
    Number,
    Histogram,
    Exponential,
    Summary,
}

/// How a field is encoded, and its value in the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Text,
    /// A varint of 32 bits without a sign.
    Unsigned,
    /// A varint of 32 bits with a sign: an enumeration.
    Enumeration,
    Flag,
    Zigzag,
    Fixed32,
    Fixed64,
    Time,
    Double,
    /// One of the two kinds of a number point's value.
    IntValue,
    DoubleValue,
    TraceId,
    TraceIdText,
    SpanId,
    SpanIdText,
    /// An `AnyValue`.
    Any,
    AnyText,
    KindText,
    KindDeprecatedText,
    /// Within the message of this field: text, enumeration, zigzag number.
    NestedText(u32),
    NestedEnumeration(u32),
    NestedZigzag(u32),
    /// Within the message of this field: varints, packed or not.
    NestedVarints(u32),
    /// Messages, of which only the number is of interest.
    Messages,
    /// Numbers of eight bytes, packed or not.
    Integers,
    Doubles,
}

impl Shape {
    /// The field number of the attributes, or of a metric's metadata; 0 for messages that have none.
    pub(crate) const fn attributes(self) -> u32 {
        match self {
            Shape::Resource | Shape::Exponential => 1,
            Shape::Scope | Shape::Event => 3,
            Shape::Log => 6,
            Shape::Span | Shape::Histogram => 9,
            Shape::Number | Shape::Summary => 7,
            Shape::Metric => 12,
            Shape::Data => 0,
        }
    }

    /// The field of a message, and its coding; `None` when it has no such field.
    pub(super) const fn place(self, field: Field) -> Option<(u32, Coding)> {
        match self {
            Shape::Resource => resource(field),
            Shape::Scope => scope(field),
            Shape::Log => log(field),
            Shape::Span => span(field),
            Shape::Event => event(field),
            Shape::Metric => metric(field),
            Shape::Data => data(field),
            Shape::Number => number(field),
            Shape::Histogram => histogram(field),
            Shape::Exponential => exponential(field),
            Shape::Summary => summary(field),
        }
    }
}

const fn resource(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::DroppedAttributesCount => (2, Coding::Unsigned),
        _ => return None,
    })
}

const fn scope(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::Name => (1, Coding::Text),
        Field::Version => (2, Coding::Text),
        Field::DroppedAttributesCount => (4, Coding::Unsigned),
        _ => return None,
    })
}

const fn log(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::TimeUnixNano => (1, Coding::Fixed64),
        Field::Time => (1, Coding::Time),
        Field::SeverityNumber => (2, Coding::Enumeration),
        Field::SeverityText => (3, Coding::Text),
        Field::Body => (5, Coding::Any),
        Field::BodyText => (5, Coding::AnyText),
        Field::DroppedAttributesCount => (7, Coding::Unsigned),
        Field::Flags => (8, Coding::Fixed32),
        Field::TraceId => (9, Coding::TraceId),
        Field::TraceIdText => (9, Coding::TraceIdText),
        Field::SpanId => (10, Coding::SpanId),
        Field::SpanIdText => (10, Coding::SpanIdText),
        Field::ObservedTimeUnixNano => (11, Coding::Fixed64),
        Field::ObservedTime => (11, Coding::Time),
        Field::EventName => (12, Coding::Text),
        _ => return None,
    })
}

const fn span(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::TraceId => (1, Coding::TraceId),
        Field::TraceIdText => (1, Coding::TraceIdText),
        Field::SpanId => (2, Coding::SpanId),
        Field::SpanIdText => (2, Coding::SpanIdText),
        Field::TraceState => (3, Coding::Text),
        Field::ParentSpanId => (4, Coding::SpanId),
        Field::ParentSpanIdText => (4, Coding::SpanIdText),
        Field::Name => (5, Coding::Text),
        Field::Kind => (6, Coding::Enumeration),
        Field::KindText => (6, Coding::KindText),
        Field::KindDeprecatedText => (6, Coding::KindDeprecatedText),
        Field::StartTimeUnixNano => (7, Coding::Fixed64),
        Field::StartTime => (7, Coding::Time),
        Field::EndTimeUnixNano => (8, Coding::Fixed64),
        Field::EndTime => (8, Coding::Time),
        Field::DroppedAttributesCount => (10, Coding::Unsigned),
        Field::DroppedEventsCount => (12, Coding::Unsigned),
        Field::DroppedLinksCount => (14, Coding::Unsigned),
        Field::StatusMessage => (15, Coding::NestedText(2)),
        Field::StatusCode => (15, Coding::NestedEnumeration(3)),
        Field::Flags => (16, Coding::Fixed32),
        _ => return None,
    })
}

const fn event(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::TimeUnixNano => (1, Coding::Fixed64),
        Field::Time => (1, Coding::Time),
        Field::Name => (2, Coding::Text),
        Field::DroppedAttributesCount => (4, Coding::Unsigned),
        _ => return None,
    })
}

const fn metric(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::Name => (1, Coding::Text),
        Field::Description => (2, Coding::Text),
        Field::Unit => (3, Coding::Text),
        _ => return None,
    })
}

const fn data(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::AggregationTemporality => (2, Coding::Enumeration),
        Field::IsMonotonic => (3, Coding::Flag),
        _ => return None,
    })
}

const fn point_times(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::StartTimeUnixNano => (2, Coding::Fixed64),
        Field::StartTime => (2, Coding::Time),
        Field::TimeUnixNano => (3, Coding::Fixed64),
        Field::Time => (3, Coding::Time),
        _ => return None,
    })
}

const fn number(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::ValueDouble => (4, Coding::DoubleValue),
        Field::ValueInt => (6, Coding::IntValue),
        Field::Exemplars => (5, Coding::Messages),
        Field::Flags => (8, Coding::Unsigned),
        _ => return point_times(field),
    })
}

const fn histogram(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::Count => (4, Coding::Fixed64),
        Field::Sum => (5, Coding::Double),
        Field::BucketCounts => (6, Coding::Integers),
        Field::ExplicitBounds => (7, Coding::Doubles),
        Field::Exemplars => (8, Coding::Messages),
        Field::Flags => (10, Coding::Unsigned),
        _ => return point_times(field),
    })
}

const fn exponential(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::Count => (4, Coding::Fixed64),
        Field::Sum => (5, Coding::Double),
        Field::Scale => (6, Coding::Zigzag),
        Field::ZeroCount => (7, Coding::Fixed64),
        Field::PositiveOffset => (8, Coding::NestedZigzag(1)),
        Field::PositiveBucketCounts => (8, Coding::NestedVarints(2)),
        Field::NegativeOffset => (9, Coding::NestedZigzag(1)),
        Field::NegativeBucketCounts => (9, Coding::NestedVarints(2)),
        Field::Exemplars => (11, Coding::Messages),
        Field::Flags => (10, Coding::Unsigned),
        _ => return point_times(field),
    })
}

const fn summary(field: Field) -> Option<(u32, Coding)> {
    Some(match field {
        Field::QuantileValues => (6, Coding::Messages),
        Field::Count => (4, Coding::Fixed64),
        Field::Sum => (5, Coding::Double),
        Field::Flags => (8, Coding::Unsigned),
        _ => return point_times(field),
    })
}
