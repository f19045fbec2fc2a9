//! OTLP 1.x: export requests of traces, metrics, logs and profiles, as views over protobuf bytes.
//!
//! [`check`] walks a decompressed body once and says what is in it, or what is wrong with it and where. The
//! views ([`TracesRequest`], [`MetricsRequest`], [`LogsRequest`], [`ProfilesRequest`]) show a checked body
//! without a copy. [`split`] cuts a body into smaller ones, [`route`](route::route) by a key.
//!
//! Schemas: `opentelemetry/proto/**` of opentelemetry-proto 1.x; rules:
//! <https://opentelemetry.io/docs/specs/otlp/>.

mod attribute;
mod check;
mod error;
pub mod json;
mod log;
pub mod logs;
mod metric;
mod point;
mod profile;
pub mod prometheus;
mod request;
pub mod route;
mod split;
pub mod splunk_hec;
#[cfg(test)]
mod tests;
mod trace;

pub use attribute::{
    AnyValue, Array, Attributes, EntityRef, KeyValue, MAX_DEPTH, Map, Resource, Scope, Values,
};
pub use check::{Counts, RetainedItems};
pub use error::{OtlpError, OtlpErrorKind};
pub use log::LogRecord;
pub use metric::{Data, ExponentialHistogram, Gauge, Histogram, Metric, Sum, Summary, temporality};
pub use point::{
    Buckets, Exemplar, ExponentialPoint, HistogramPoint, NO_RECORDED_VALUE, Number, NumberPoint, Quantile,
    SummaryPoint,
};
pub use profile::Profile;
pub use request::{
    Item, LogsRequest, MetricsRequest, ProfilesRequest, Request, ResourceGroup, ScopeGroup, TracesRequest,
};
pub use split::{Piece, Split, items, joinable, split};
pub use trace::{Event, Link, Span, Status};

/// Most heap bytes for examining a body, temporarily: for deeply nested values. Others take none.
pub const DEEP_BYTES: usize = check::DEEP_BYTES + json::DEEP_BYTES;

/// The contents of a request, known to a receiver from the path or the gRPC method alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// `ExportTraceServiceRequest`.
    Traces,
    /// `ExportMetricsServiceRequest`.
    Metrics,
    /// `ExportLogsServiceRequest`.
    Logs,
    /// `ExportProfilesServiceRequest`, in development: see [`check`].
    Profiles,
}

impl Signal {
    /// The full name of the protobuf message.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::Traces => "opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest",
            Self::Metrics => "opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest",
            Self::Logs => "opentelemetry.proto.collector.logs.v1.ExportLogsServiceRequest",
            Self::Profiles => {
                "opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest"
            }
        }
    }
}

/// Checks the decompressed body `raw` in one walk and counts what is in it. Nothing is allocated unless
/// there is an error to describe.
///
/// Checked: the protobuf structure of everything that the schema knows; that every `string` is UTF-8; the
/// lengths of ids; that values nest no deeper than [`MAX_DEPTH`]. Fields that the schema does not know are
/// skipped. An empty body is an empty request.
///
/// - A `trace_id` has 16 bytes and a `span_id` 8, or none: that is the same as nothing but zeros. The schema has
///   both of a span for invalid, and who receives them may leave them out; they are no reason to refuse the other
///   thousand, or to lose what they say.
/// - A message field that is not repeated may occur only once. A protobuf decoder would merge the pieces;
///   no encoder writes them, and views need not know about it. Scalars may come again, and the last counts.
/// - Numbers of enumerations are not checked: unknown ones are kept.
/// - Profiles are a schema in development, which changes incompatibly. So only the envelope, resources and
///   scopes are checked as above, and of a profile and the dictionary that they are sequences of fields.
///
/// # Errors
/// An [`OtlpError`]: which item, which byte, and what is wrong.
pub fn check(signal: Signal, raw: &[u8]) -> Result<Counts, OtlpError> {
    check::check(signal, raw)
}

/// Takes the items out of `raw` that [`check`] refuses, and moves the others to its start, with what encloses them.
/// For bodies that were refused: others are left as they are, but slowly.
///
/// An error in a resource, in a scope or in a metric's common part affects each of their items.
///
/// # Errors
/// An [`OtlpError`] when no item is good, or when the request is broken around its items, so that nobody knows how many
/// there are. `raw` is of no use then.
#[cold]
pub fn retain_valid(signal: Signal, raw: &mut [u8]) -> Result<RetainedItems, OtlpError> {
    check::retain_valid(signal, raw)
}
