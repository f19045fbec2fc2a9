//! The connection to one member.

use super::answer::verdict;
use super::forwarding::Forwarding;
use super::message::Form;
use super::protocol::ThanosProtocol;
use super::settings::Settings;
use crate::delivery::EndpointError;
use crate::delivery::client::{self, Client, ClientSettings};
use crate::egress_budget::EgressBudget;
use crate::http_peer::chain;
use crate::otlp::{GrpcAnswer, grpc_answer};
use crate::probe::Probe;
use crate::secrets::Secrets;
use crate::spread::{MemberPeer, RequestHead, Verdict};
use crate::tls::Tls;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE, USER_AGENT};
use hyper::{Method, Request, Uri, Version};
use std::sync::Arc;

/// The least buffer of a connection over HTTP/1.1; there is none.
const BUFFER: usize = 16 << 10;
const METHOD: &str = "/thanos.WriteableStore/RemoteWrite";
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// A member, as requests are sent to it: one at a time, and one more that is given up.
pub(super) struct Peer {
    client: Client,
    uri: Uri,
    headers: HeaderMap,
    secrets: Secrets,
    forwarding: Arc<Forwarding>,
}

/// How members are connected to.
fn client_settings(settings: &Settings) -> ClientSettings<'_> {
    ClientSettings {
        tls: &settings.tls,
        version: client::Version::Http2,
        max_in_flight: 2,
        buffer: BUFFER,
        timeout: settings.timeout,
    }
}

/// The memory of the connection to a member, in bytes.
pub(super) fn bytes(is_secure: bool) -> usize {
    let scheme = if is_secure { "https" } else { "http" };
    let uri = Uri::builder().scheme(scheme).authority("member:1").path_and_query("/").build();
    let tls = crate::tls::Tls::default();
    let settings = ClientSettings {
        tls: &tls,
        version: client::Version::Http2,
        max_in_flight: 2,
        buffer: BUFFER,
        timeout: std::time::Duration::ZERO,
    };
    settings.bytes(&[uri.unwrap_or_default()])
}

impl Peer {
    /// The member at `address`, without connections yet.
    ///
    /// # Errors
    /// When the address or the TLS settings cannot be used.
    pub(super) fn new(
        address: &str,
        settings: &Settings,
        forwarding: &Arc<Forwarding>,
    ) -> Result<Peer, EndpointError> {
        let scheme = if settings.is_secure { "https" } else { "http" };
        let uri = Uri::builder().scheme(scheme).authority(address).path_and_query(METHOD).build();
        let uri = uri.map_err(|_| EndpointError::Address(Uri::default()))?;
        let client = Client::new(&uri, client_settings(settings))?;
        let secrets = Secrets::of(&uri, &settings.headers);
        let forwarding = Arc::clone(forwarding);
        Ok(Peer { client, uri, headers: settings.headers.clone(), secrets, forwarding })
    }
}

/// A write request without series to the member at `address`.
pub(super) fn probe(
    address: &str,
    is_secure: bool,
    headers: &HeaderMap,
    tls: &Tls,
) -> Result<Probe, EndpointError> {
    let scheme = if is_secure { "https" } else { "http" };
    let uri = Uri::builder().scheme(scheme).authority(address).path_and_query(METHOD).build();
    // The prefix of gRPC, and an empty message.
    let mut request = Request::new(Bytes::from_static(&[0; 5]));
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = uri.map_err(|_| EndpointError::Address(Uri::default()))?;
    request.headers_mut().clone_from(headers);
    request.headers_mut().extend([
        (USER_AGENT, HeaderValue::from_static(AGENT)),
        (CONTENT_TYPE, HeaderValue::from_static("application/grpc")),
        (TE, HeaderValue::from_static("trailers")),
    ]);
    Ok(Probe::new(request, "a write request without series", tls))
}

impl MemberPeer<ThanosProtocol> for Peer {
    async fn send(&self, _: &EgressBudget, head: &RequestHead<Form>, frame: Bytes) -> Verdict {
        let mut request = Request::new(Full::new(frame));
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        request.uri_mut().clone_from(&self.uri);
        request.headers_mut().clone_from(&self.headers);
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        if head.form == Form::Snappy {
            headers.insert(GRPC_ENCODING, HeaderValue::from_static("snappy"));
        }
        // At most eight digits.
        let patience = self.client.timeout().as_millis().min(99_999_999);
        if let Ok(patience) = HeaderValue::from_str(&format!("{patience}m")) {
            headers.insert(GRPC_TIMEOUT, patience);
        }
        let exchange = self.client.exchange(|connections| async move {
            match connections.request(request).await {
                Ok(response) => grpc_answer(response).await,
                Err(error) => GrpcAnswer::lost(chain(&error)),
            }
        });
        let answer = match exchange.await {
            Ok(answer) => answer,
            Err(late) => GrpcAnswer::lost(late.to_string()),
        };
        let verdict = verdict(GrpcAnswer { words: self.secrets.mask(answer.words), ..answer });
        self.forwarding.answered(&verdict);
        verdict
    }

    fn hang_up(&self) {
        self.client.hang_up();
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
