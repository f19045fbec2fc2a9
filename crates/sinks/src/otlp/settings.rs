//! How a peer is to be served.

use crate::tls::Tls;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName};
use std::time::Duration;
use tidegate_journal::Encoding;
use tidegate_wire::otlp::json::Layout;

/// How a peer is to be served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is: one endpoint, or several that take turns. For [`Transport::Http`] the path, if any, comes
    /// before `/v1/traces` and its sisters; for [`Transport::Grpc`] it has no meaning.
    pub endpoints: Vec<Uri>,
    /// How requests are carried.
    pub transport: Transport,
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
            _ if self.layout().is_some() => None,
            Compression::None => Some(Encoding::Identity),
            Compression::Gzip(_) => self.join_members.then_some(Encoding::Gzip),
            Compression::Zstd(_) => self.join_members.then_some(Encoding::Zstd),
        }
    }

    /// The JSON layout of requests, if they are JSON.
    pub(super) fn layout(&self) -> Option<Layout> {
        match self.transport {
            Transport::Json(json) => Some(json.layout),
            Transport::Grpc | Transport::Http => None,
        }
    }

    /// The default of [`max_request_bytes`](Self::max_request_bytes): what gRPC servers take unless told
    /// otherwise.
    pub const MAX_REQUEST_BYTES: usize = 4 << 20;
    /// The default of [`max_in_flight`](Self::max_in_flight).
    pub const MAX_IN_FLIGHT: usize = 8;
}
