//! How a peer is to be served.

use crate::tls::Tls;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName};
use std::time::Duration;
pub use tidegate_wire::otlp::prometheus::Naming;

/// How a peer is to be served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is: one endpoint, or several that take turns.
    pub endpoints: Vec<Uri>,
    /// The TLS settings for `https` endpoints.
    pub tls: Tls,
    /// Headers that go with every request.
    pub headers: HeaderMap,
    /// The header that says whose data a request carries, where that is to be said.
    pub tenant_header: Option<HeaderName>,
    /// Which version to send.
    pub prefer: Prefer,
    /// How many requests a batch is spread over.
    pub lanes: usize,
    /// The most bytes of a request before compression.
    pub max_bytes: usize,
    /// The most items of a request.
    pub max_items: u64,
    /// How long to wait for more records before a batch is sent that is not full.
    pub linger: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The shortest and the longest wait between attempts.
    pub backoff: (Duration, Duration),
    /// How OTLP metrics become series.
    pub otlp: Translation,
}

/// How OTLP metrics become series.
#[derive(Debug, Clone)]
pub struct Translation {
    /// How names are made.
    pub naming: Naming,
    /// Attributes of the resource that become labels of each of its series.
    pub promote: Vec<String>,
    /// Whether there are `otel_scope_…` labels.
    pub scope_labels: bool,
    /// Whether there is a `target_info` for each resource.
    pub target_info: bool,
    /// For how many series deltas are added up; where there is none, deltas are untranslatable.
    pub delta_series: usize,
}

impl Default for Translation {
    fn default() -> Translation {
        Translation {
            naming: Naming::default(),
            promote: Vec::new(),
            scope_labels: true,
            target_info: true,
            delta_series: 0,
        }
    }
}

/// Which version to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// As it was received, or 1.0 when the peer does not take 2.0. What was received as OTLP goes out as 1.0,
    /// which every peer takes.
    AsReceived,
    /// Always 1.0.
    V1,
    /// 2.0, unless the peer does not take it.
    V2,
}
