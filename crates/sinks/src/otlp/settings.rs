//! How a peer is to be served.

use super::json::JsonWriter;
use crate::tls::Tls;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName};
use std::sync::Arc;
use std::time::Duration;
use tidegate_journal::Encoding;
use tidegate_wire::loki::push::LabelRules;
use tidegate_wire::otlp::json::Layout;
use tidegate_wire::otlp::splunk_hec::Metadata;

/// How a peer is to be served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is: one endpoint, or several that take turns. For [`Transport::Http`] the path, if any, comes
    /// before `/v1/traces` and its sisters; for [`Transport::Grpc`] it has no meaning.
    pub endpoints: Vec<Uri>,
    /// How requests are carried.
    pub transport: Transport,
    /// The events of [`Transport::SplunkHec`]; other transports do not read it.
    pub splunk_hec: SplunkHec,
    /// How requests are compressed.
    pub compression: Compression,
    /// Whether the peer is known to read bodies of several gzip members or zstd frames. Then records that came
    /// compressed as requests go out are joined without being decoded.
    pub join_members: bool,
    /// Headers (for gRPC: metadata) that go with every request.
    pub headers: HeaderMap,
    /// The header that says whose data a request carries, where that is to be said.
    pub tenant_header: Option<HeaderName>,
    /// The TLS settings for `https` endpoints.
    pub tls: Tls,
    /// Records are joined up to so many bytes before compression, and larger ones are split where that is
    /// possible.
    pub max_request_bytes: usize,
    /// The most requests under way at a time.
    pub max_in_flight: usize,
    /// How long to wait for more records before a request is sent that is not full.
    pub linger: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The shortest and the longest time for which an endpoint that fails is left alone.
    pub backoff: (Duration, Duration),
    /// The resource attributes that become labels, for [`Transport::Loki`].
    pub labels: Arc<LabelRules>,
}

/// How requests are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// gRPC: over HTTP/2, known to be spoken or agreed on by TLS.
    Grpc,
    /// HTTP/1.1, `POST` to `/v1/…`.
    Http,
    /// JSON over HTTP/1.1.
    Json(Json),
    /// Events of Splunk's HTTP Event Collector, over HTTP/1.1: logs only.
    SplunkHec,
    /// Push requests of Loki in Snappy over HTTP/1.1, `POST` to `/loki/api/v1/push`: logs only. Requests are not compressed
    /// besides.
    Loki,
}

/// A form that requests are written in after they were joined as OTLP.
#[derive(Debug, Clone)]
pub(super) enum Form {
    Json(JsonWriter),
    Push(Arc<LabelRules>),
}

/// How events are sent to Splunk's HTTP Event Collector.
#[derive(Debug, Clone, Default)]
pub struct SplunkHec {
    /// The origin of `host`, `source`, `sourcetype` and `index`.
    pub metadata: Arc<Metadata>,
    /// Whether a request counts only when its events are indexed.
    pub acknowledgement: Option<IndexerAcknowledgement>,
}

/// How long, and how often, the collector is asked whether events are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexerAcknowledgement {
    /// The time between two requests.
    pub interval: Duration,
    /// Events that are not indexed within this time are sent again.
    pub timeout: Duration,
}

/// The form of JSON requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json {
    /// The contents of requests. [`Layout::Request`] goes to `/v1/…` as over [`Transport::Http`], everything else to
    /// the endpoint's URL.
    pub layout: Layout,
    /// Whether the method is `PUT` instead of `POST`.
    pub put: bool,
}

/// How requests are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, of this level: 1 (fast) to 9 (small).
    Gzip(i32),
    /// zstd, of this level: 1 (fast) to 9 (small).
    Zstd(i32),
}

impl Settings {
    /// The encoding of bodies whose bytes are joined to requests as they are, if there is one.
    pub(super) fn joined(&self) -> Option<Encoding> {
        match self.compression {
            _ if self.is_rewritten() => None,
            Compression::None => Some(Encoding::Identity),
            Compression::Gzip(_) => self.join_members.then_some(Encoding::Gzip),
            Compression::Zstd(_) => self.join_members.then_some(Encoding::Zstd),
        }
    }

    /// Whether requests go out in another form than OTLP in protobuf.
    pub(super) fn is_rewritten(&self) -> bool {
        matches!(self.transport, Transport::Json(_) | Transport::SplunkHec | Transport::Loki)
    }

    /// That form.
    pub(super) fn form(&self) -> Option<Form> {
        match self.transport {
            Transport::Json(json) => Some(Form::Json(JsonWriter::Otlp(json.layout))),
            Transport::SplunkHec => {
                Some(Form::Json(JsonWriter::SplunkHec(Arc::clone(&self.splunk_hec.metadata))))
            }
            Transport::Loki => Some(Form::Push(Arc::clone(&self.labels))),
            Transport::Grpc | Transport::Http => None,
        }
    }

    /// The default of [`max_request_bytes`](Self::max_request_bytes): what gRPC servers take unless told
    /// otherwise.
    pub const MAX_REQUEST_BYTES: usize = 4 << 20;
    /// The default of [`max_in_flight`](Self::max_in_flight).
    pub const MAX_IN_FLIGHT: usize = 8;
}
