//! Encodes `ExportLogsServiceRequest` into memory that the caller owns, without allocation.
//!
//! [`Attributes`] encodes a list of attributes once, for a resource or for a record; [`LogsEncoder`] puts records with
//! them into a batch, under the resource and the scope that they share. The bytes are those of an ordinary protobuf
//! encoder: fields in the order of their numbers, lengths as short as they can be, no default values.
//!
//! Both give back [`Full`](crate::output::Full) when there is no room, and have then written nothing of what did not
//! fit.
//!
//! Schema: `opentelemetry/proto/logs/v1/logs.proto` of opentelemetry-proto 1.x.

mod attributes;
mod encoder;
#[cfg(test)]
mod tests;

pub use attributes::{Attributes, OpenValue, Value};
pub use encoder::{EncodedLogs, LogsEncoder};

/// A log record to encode. The default is one without any field.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRecord<'a> {
    /// When it happened, in nanoseconds since the Unix epoch; 0 when unknown.
    pub time_ns: u64,
    /// When it was read or received, in nanoseconds since the Unix epoch.
    pub observed_ns: u64,
    /// `SeverityNumber`, 1 to 24; 0 when unknown.
    pub severity: u8,
    /// The severity in the source's own words.
    pub severity_text: &'a str,
    /// The body.
    pub body: Body<'a>,
    /// Attributes as [`Attributes`] encodes them.
    pub attributes: &'a [u8],
}

/// The body of a log record.
#[derive(Debug, Clone, Copy, Default)]
pub enum Body<'a> {
    /// None at all.
    #[default]
    None,
    /// A text in pieces, which together are UTF-8.
    Text(&'a [&'a [u8]]),
    /// A map, whose members are given as [`Attributes`] encodes them.
    Map(&'a [u8]),
    /// The fields of an `AnyValue`.
    Encoded(&'a [u8]),
}
