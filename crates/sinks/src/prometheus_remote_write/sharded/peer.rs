//! The connection to one receiver.

use super::answer::Meaning;
use super::message::Form;
use super::protocol::ShardedProtocol;
use crate::delivery::EndpointError;
use crate::delivery::client::{ClientSettings, Version};
use crate::egress_budget::EgressBudget;
use crate::http_peer::{CONNECTION_BUFFER, HttpPeer};
use crate::prometheus_remote_write::Settings;
use crate::prometheus_remote_write::peer::headers;
use crate::spread::{Division, MemberPeer, RequestHead, Verdict};
use crate::tls::Tls;
use bytes::Bytes;
use hyper::Uri;
use hyper::header::HeaderName;
use std::time::Duration;
use tidegate_journal::Tenant;
use tidegate_wire::remote_write::Version as Protocol;

/// One request is in flight at a time.
const CONNECTIONS: usize = 1;

/// A receiver, as requests are sent to it.
pub(super) struct Peer {
    http: HttpPeer,
    tenant_header: Option<HeaderName>,
    pub(super) division: Division,
}

/// The memory of the connection to a receiver, in bytes.
pub(super) fn bytes(is_secure: bool) -> usize {
    let scheme = if is_secure { "https" } else { "http" };
    let uri = Uri::builder().scheme(scheme).authority("member:1").path_and_query("/").build();
    let tls = Tls::default();
    let settings = ClientSettings {
        tls: &tls,
        version: Version::Http1,
        max_in_flight: CONNECTIONS,
        buffer: CONNECTION_BUFFER,
        timeout: Duration::ZERO,
    };
    settings.bytes(&[uri.unwrap_or_default()])
}

impl Peer {
    /// The receiver at the URL `target`, without connections yet.
    ///
    /// # Errors
    /// When the URL or the TLS settings cannot be used.
    pub(super) fn new(target: &str, settings: &Settings) -> Result<Peer, EndpointError> {
        let uri: Uri = target.parse().map_err(|_| EndpointError::Address(Uri::default()))?;
        let Settings { headers, tenant_header, tls, timeout, .. } = settings;
        let http = HttpPeer::new(uri, headers.clone(), tls, *timeout, CONNECTIONS)?;
        Ok(Peer { http, tenant_header: tenant_header.clone(), division: Division::default() })
    }

    /// Sends a body once.
    pub(super) async fn post(&self, tenant: &Tenant, body: Bytes) -> Meaning {
        let headers = headers(self.tenant_header.as_ref(), tenant, Protocol::V1);
        Meaning::of(self.http.post(&headers, body).await, tenant)
    }
}

impl MemberPeer<ShardedProtocol> for Peer {
    async fn send(&self, room: &EgressBudget, head: &RequestHead<Form>, body: Bytes) -> Verdict {
        match self.post(&head.tenant, body.clone()).await {
            Meaning::Accepted => Verdict::Accepted,
            Meaning::Divisible(words) => Box::pin(self.divide(room, &head.tenant, body, words)).await,
            Meaning::Rejected(words) => Verdict::Rejected { words },
            Meaning::Later(words, after) => Verdict::Later { words, after },
        }
    }

    fn hang_up(&self) {
        self.http.hang_up();
    }

    async fn close(&self) {
        self.http.close().await;
    }
}
