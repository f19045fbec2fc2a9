//! The columns of `spans`.

use super::{field, list, timestamp};
use arrow::datatypes::{DataType, Field, Fields};

/// Span attributes that have columns of their own, when they have the column's type. The list only grows:
/// an attribute's place gives its field id.
pub(crate) const PROMOTED: [&str; 14] = [
    "http.request.method",
    "http.route",
    "http.response.status_code",
    "url.path",
    "server.address",
    "db.system",
    "db.namespace",
    "db.query.text",
    "rpc.service",
    "rpc.method",
    "messaging.system",
    "messaging.destination.name",
    "exception.type",
    "enduser.id",
];

/// Those of them that are numbers.
const NUMBERS: [usize; 1] = [2];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanColumn {
    ServiceName,
    StartTime,
    StartNs,
    DurationNs,
    TraceId,
    SpanId,
    ParentSpanId,
    Name,
    Kind,
    StatusCode,
    StatusMessage,
    ScopeName,
    ScopeVersion,
    TraceState,
    Flags,
    Resource,
    Attributes,
    Events,
    Links,
    Dropped,
    BatchId,
    ScopeAttributes,
    ResourceSchemaUrl,
    ScopeSchemaUrl,
    Promoted(usize),
}

impl SpanColumn {
    pub(super) fn all() -> impl Iterator<Item = SpanColumn> {
        use SpanColumn::*;
        let own = [
            ServiceName,
            StartTime,
            StartNs,
            DurationNs,
            TraceId,
            SpanId,
            ParentSpanId,
            Name,
            Kind,
            StatusCode,
            StatusMessage,
            ScopeName,
            ScopeVersion,
            TraceState,
            Flags,
            Resource,
            Attributes,
            Events,
            Links,
            Dropped,
            BatchId,
            ScopeAttributes,
            ResourceSchemaUrl,
            ScopeSchemaUrl,
        ];
        own.into_iter().chain((0..PROMOTED.len()).map(Promoted))
    }

    /// The place of an attribute that has a column.
    #[inline]
    pub(crate) fn promoted(key: &[u8]) -> Option<usize> {
        PROMOTED.iter().position(|name| name.as_bytes() == key)
    }

    /// Whether the attribute of this place is kept as a number.
    pub(crate) fn is_number(place: usize) -> bool {
        NUMBERS.contains(&place)
    }

    pub(crate) fn field(self) -> Field {
        use DataType::{FixedSizeBinary, Int32, Int64, Struct, Utf8View};
        match self {
            Self::ServiceName => field(1, "service_name", Utf8View, false),
            Self::StartTime => field(2, "start_time", timestamp(), false),
            Self::StartNs => field(3, "start_ns", Int32, false),
            Self::DurationNs => field(4, "duration_ns", Int64, false),
            Self::TraceId => field(5, "trace_id", FixedSizeBinary(16), false),
            Self::SpanId => field(6, "span_id", FixedSizeBinary(8), false),
            Self::ParentSpanId => field(7, "parent_span_id", FixedSizeBinary(8), true),
            Self::Name => field(8, "span_name", Utf8View, false),
            Self::Kind => field(9, "kind", Int32, false),
            Self::StatusCode => field(10, "status_code", Int32, false),
            Self::StatusMessage => field(11, "status_message", Utf8View, true),
            Self::ScopeName => field(12, "scope_name", Utf8View, true),
            Self::ScopeVersion => field(13, "scope_version", Utf8View, true),
            Self::TraceState => field(14, "trace_state", Utf8View, true),
            Self::Flags => field(15, "flags", Int32, false),
            Self::Resource => field(16, "resource", Utf8View, false),
            Self::Attributes => field(17, "attributes", Utf8View, false),
            Self::Events => field(18, "events", list(30, Struct(event_fields())), true),
            Self::Links => field(19, "links", list(40, Struct(link_fields())), true),
            Self::Dropped => field(20, "dropped", Struct(span_dropped_fields()), true),
            Self::BatchId => field(21, "batch_id", FixedSizeBinary(16), false),
            Self::ScopeAttributes => field(22, "scope_attributes", Utf8View, true),
            Self::ResourceSchemaUrl => field(23, "resource_schema_url", Utf8View, true),
            Self::ScopeSchemaUrl => field(24, "scope_schema_url", Utf8View, true),
            Self::Promoted(place) => {
                let name = PROMOTED.get(place).copied().unwrap_or_default();
                let kind = if Self::is_number(place) { Int64 } else { Utf8View };
                field(100 + i32::try_from(place).unwrap_or(0), name, kind, true)
            }
        }
    }
}

/// The fields of an event.
pub(crate) fn event_fields() -> Fields {
    Fields::from(vec![
        field(31, "time", timestamp(), false),
        field(32, "time_ns", DataType::Int32, false),
        field(33, "name", DataType::Utf8View, false),
        field(34, "attributes", DataType::Utf8View, false),
        field(35, "dropped_attributes", DataType::Int64, false),
    ])
}

/// The fields of a link.
pub(crate) fn link_fields() -> Fields {
    Fields::from(vec![
        field(41, "trace_id", DataType::FixedSizeBinary(16), false),
        field(42, "span_id", DataType::FixedSizeBinary(8), false),
        field(43, "trace_state", DataType::Utf8View, true),
        field(44, "attributes", DataType::Utf8View, false),
        field(45, "flags", DataType::Int32, false),
        field(46, "dropped_attributes", DataType::Int64, false),
    ])
}

/// How many of each the sender left out.
pub(crate) fn span_dropped_fields() -> Fields {
    Fields::from(vec![
        field(51, "attributes", DataType::Int64, false),
        field(52, "events", DataType::Int64, false),
        field(53, "links", DataType::Int64, false),
    ])
}
