//! The columns of `logs`.

use super::{field, timestamp};
use arrow::datatypes::{DataType, Field};

/// Attributes of a record, or else of its resource, that have columns of their own. The list only grows: an
/// attribute's place gives its field id.
pub(crate) const PROMOTED: [&str; 6] = [
    "log.file.path",
    "k8s.namespace.name",
    "k8s.pod.name",
    "k8s.container.name",
    "host.name",
    "exception.type",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogColumn {
    ServiceName,
    Time,
    TimeNs,
    ObservedTime,
    ObservedNs,
    SeverityNumber,
    SeverityText,
    Body,
    BodyType,
    EventName,
    TraceId,
    SpanId,
    Flags,
    ScopeName,
    ScopeVersion,
    Resource,
    Attributes,
    DroppedAttributes,
    BatchId,
    ScopeAttributes,
    ResourceSchemaUrl,
    ScopeSchemaUrl,
    Promoted(usize),
}

impl LogColumn {
    pub(super) fn all() -> impl Iterator<Item = LogColumn> {
        use LogColumn::*;
        let own = [
            ServiceName,
            Time,
            TimeNs,
            ObservedTime,
            ObservedNs,
            SeverityNumber,
            SeverityText,
            Body,
            BodyType,
            EventName,
            TraceId,
            SpanId,
            Flags,
            ScopeName,
            ScopeVersion,
            Resource,
            Attributes,
            DroppedAttributes,
            BatchId,
            ScopeAttributes,
            ResourceSchemaUrl,
            ScopeSchemaUrl,
        ];
        own.into_iter().chain((0..PROMOTED.len()).map(Promoted))
    }

    pub(crate) fn field(self) -> Field {
        use DataType::{FixedSizeBinary, Int32, Int64, Utf8View};
        match self {
            Self::ServiceName => field(1, "service_name", Utf8View, false),
            Self::Time => field(2, "time", timestamp(), false),
            Self::TimeNs => field(3, "time_ns", Int32, false),
            Self::ObservedTime => field(4, "observed_time", timestamp(), true),
            Self::ObservedNs => field(5, "observed_ns", Int32, true),
            Self::SeverityNumber => field(6, "severity_number", Int32, false),
            Self::SeverityText => field(7, "severity_text", Utf8View, true),
            Self::Body => field(8, "body", Utf8View, true),
            Self::BodyType => field(9, "body_type", Int32, false),
            Self::EventName => field(10, "event_name", Utf8View, true),
            Self::TraceId => field(11, "trace_id", FixedSizeBinary(16), true),
            Self::SpanId => field(12, "span_id", FixedSizeBinary(8), true),
            Self::Flags => field(13, "flags", Int32, false),
            Self::ScopeName => field(14, "scope_name", Utf8View, true),
            Self::ScopeVersion => field(15, "scope_version", Utf8View, true),
            Self::Resource => field(16, "resource", Utf8View, false),
            Self::Attributes => field(17, "attributes", Utf8View, false),
            Self::DroppedAttributes => field(18, "dropped_attributes", Int64, false),
            Self::BatchId => field(19, "batch_id", FixedSizeBinary(16), false),
            Self::ScopeAttributes => field(22, "scope_attributes", Utf8View, true),
            Self::ResourceSchemaUrl => field(23, "resource_schema_url", Utf8View, true),
            Self::ScopeSchemaUrl => field(24, "scope_schema_url", Utf8View, true),
            Self::Promoted(place) => {
                let name = PROMOTED.get(place).copied().unwrap_or_default();
                field(100 + i32::try_from(place).unwrap_or(0), name, Utf8View, true)
            }
        }
    }
}
