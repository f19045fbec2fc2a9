//! How a cluster is to be served.

use crate::tls::Tls;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName};
use std::time::Duration;
use tidegate_elastic::documents::{IndexTemplate, Mapping, Product};

/// How a cluster is to be served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its nodes: one, or several that take turns. A path, if any, comes before `/_bulk`.
    pub endpoints: Vec<Uri>,
    /// The product of the nodes.
    pub flavour: Product,
    /// Headers that go with every request, those that say who sends it among them.
    pub headers: HeaderMap,
    /// The header that says whose data a request carries, where that is to be said.
    pub tenant_header: Option<HeaderName>,
    /// The TLS settings for `https` endpoints.
    pub tls: Tls,
    /// The level of gzip, 1 (fast) to 9 (small), with which requests are compressed, if they are.
    pub gzip: Option<i32>,
    /// The shape of documents that are made here.
    pub mapping: Mapping,
    /// The dataset of documents that do not name one.
    pub dataset: String,
    /// The namespace of documents that do not name one.
    pub namespace: String,
    /// The pattern of the names of indexes, where what is made here does not go to data streams.
    pub index: Option<IndexTemplate>,
    /// Whether documents that have no `_id` get one.
    pub ids: bool,
    /// Whether documents of metrics get one too.
    pub metric_ids: bool,
    /// Documents are joined up to so many bytes before compression.
    pub max_request_bytes: usize,
    /// The most requests under way at a time.
    pub max_in_flight: usize,
    /// How long to wait for more before a request is sent that is not full.
    pub linger: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The shortest and the longest time for which an endpoint that fails is left alone.
    pub backoff: (Duration, Duration),
}
