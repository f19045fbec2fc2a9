//! OTLP: requests of numbered items, a driver over both transports, and a receiver that checks.
//!
//! Every item carries its number in an attribute, so that the receiver knows which arrived. Written
//! independently of the gateway's own OTLP, as everything here.

#[cfg(feature = "drivers")]
mod client;
#[cfg(feature = "drivers")]
mod coding;
mod demo;
#[cfg(feature = "drivers")]
mod drive;
mod request;
#[cfg(feature = "drivers")]
mod sink;

use crate::target::Target;
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(feature = "drivers")]
pub use client::{OtlpClient, OtlpResponse, Transport};
#[cfg(feature = "drivers")]
pub use coding::ContentCoding;
pub use demo::{DEMO_ITEMS, trickle};
#[cfg(feature = "drivers")]
pub use drive::{OtlpProfile, OtlpReport, drive, drive_blocking};
pub use request::{ExportRequest, ITEM_ATTRIBUTES, NUMBER, numbers};
#[cfg(feature = "drivers")]
pub use sink::{OtlpSink, ReceivedItems};

/// The contents of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Data points.
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    /// All of them.
    pub const ALL: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

    /// Where it goes over HTTP.
    pub fn path(self) -> &'static str {
        match self {
            Signal::Traces => "/v1/traces",
            Signal::Metrics => "/v1/metrics",
            Signal::Logs => "/v1/logs",
        }
    }

    /// Where it goes over gRPC.
    pub fn method(self) -> &'static str {
        match self {
            Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        }
    }

    #[cfg(feature = "drivers")]
    fn of_path(path: &str) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| [signal.path(), signal.method()].contains(&path))
    }
}

/// The head of a request with Protobuf over HTTP/1.1.
fn post(signal: Signal, target: &Target, encoding: &str, len: usize) -> String {
    format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tidegate-load\r\nContent-Type: application/x-protobuf\r\n\
         Content-Encoding: {encoding}\r\nContent-Length: {len}\r\n\r\n",
        signal.path(),
        target.authority,
    )
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
