//! One receiver: requests with the headers of their version.

use super::outbound_request::Request;
use super::settings::Settings;
use crate::delivery::EndpointError;
use crate::endpoints;
use crate::http_peer::{HttpAnswer, HttpPeer, NoAnswer};
use crate::probe::Probe;
use crate::tenant;
use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request as HttpRequest, Uri};
use tidegate_journal::Tenant;
use tidegate_wire::remote_write::Version;

const VERSION: HeaderName = HeaderName::from_static("x-prometheus-remote-write-version");

/// One receiver.
pub(super) struct Receiver {
    peer: HttpPeer,
    tenant_header: Option<HeaderName>,
}

impl Receiver {
    /// The receiver at `uri`.
    pub(super) fn new(uri: &Uri, settings: &Settings) -> Result<Receiver, EndpointError> {
        let Settings { headers, tenant_header, tls, timeout, lanes, .. } = settings;
        let peer = HttpPeer::new(uri.clone(), headers.clone(), tls, *timeout, *lanes)?;
        Ok(Receiver { peer, tenant_header: tenant_header.clone() })
    }

    /// Sends a request with data of this tenant, and reads the answer.
    pub(super) async fn send(&self, request: &Request, tenant: &Tenant) -> Result<HttpAnswer, NoAnswer> {
        let headers = headers(self.tenant_header.as_ref(), tenant, request.version);
        self.peer.post(&headers, request.body.clone()).await
    }
}

/// The headers of a request of this version, with data of this tenant.
pub(super) fn headers(tenant_header: Option<&HeaderName>, tenant: &Tenant, version: Version) -> HeaderMap {
    let (content_type, version) = match version {
        Version::V1 => ("application/x-protobuf", "0.1.0"),
        Version::V2 => ("application/x-protobuf;proto=io.prometheus.write.v2.Request", "2.0.0"),
    };
    let mut headers = HeaderMap::new();
    tenant::put(tenant_header, tenant, &mut headers);
    headers.extend([
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CONTENT_ENCODING, HeaderValue::from_static("snappy")),
        (VERSION, HeaderValue::from_static(version)),
        (USER_AGENT, HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")))),
    ]);
    headers
}

/// An empty request to the receiver at `uri`.
pub(super) fn probe(uri: &Uri, settings: &Settings) -> Probe {
    // Snappy's block of nothing: a write request without series.
    let mut request = HttpRequest::new(Bytes::from_static(&[0]));
    *request.method_mut() = Method::POST;
    request.uri_mut().clone_from(uri);
    request.headers_mut().clone_from(&settings.headers);
    for (name, value) in &headers(None, &Tenant::NONE, Version::V1) {
        request.headers_mut().insert(name, value.clone());
    }
    let lacks_tenant = settings.tenant_header.is_some();
    Probe { lacks_tenant, ..Probe::new(request, "a write request without series", &settings.tls) }
}

impl endpoints::Peer for Receiver {
    fn uri(&self) -> &Uri {
        self.peer.uri()
    }

    fn hang_up(&self) {
        self.peer.hang_up();
    }

    async fn close(&self) {
        self.peer.close().await;
    }
}
