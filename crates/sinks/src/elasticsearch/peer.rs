//! One node: requests over its connections, and the answers, read as they come.

use super::answer::{BulkAnswer, RejectionReason};
use super::bulk_response::ResponseReader;
use super::settings::Settings;
use crate::delivery::EndpointError;
use crate::delivery::client::{Client, ClientSettings, Version, redirect};
use crate::endpoints;
use crate::http_peer::{chain, delay};
use crate::probe::{HarmlessRefusal, Probe, with_path};
use crate::secrets::Secrets;
use crate::tenant;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::{Method, Request as HttpRequest, Response, Uri};
use std::ops::ControlFlow;
use tidegate_bulk::{TransportError, TransportRequest, TransportResponse};
use tidegate_journal::Tenant;

/// The most that a connection buffers in each direction: heads of requests, and answers.
const BUFFER: usize = 64 << 10;
/// The most bytes of an answer: more is taken for none.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The most bytes of a refusal that are kept, for people.
const MAX_EXCERPT: usize = 512;
/// How many times a request's time there is in that which a node may wait for an unavailable index: its own
/// minute would have every request with one such document end without an answer.
const MAX_WAIT_FACTOR: u32 = 4;
/// The requested fields of an answer: those that are read.
const QUERY: &str = "filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason";
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// The memory of a sink's connections, in bytes: with their buffers and TLS sessions.
pub(super) fn bytes(settings: &Settings) -> usize {
    client_settings(settings).bytes(&settings.endpoints)
}

fn client_settings(settings: &Settings) -> ClientSettings<'_> {
    ClientSettings {
        tls: &settings.tls,
        version: Version::Http1,
        max_in_flight: settings.max_in_flight,
        buffer: BUFFER,
        timeout: settings.timeout,
    }
}

/// A request as it goes out. Clones are the same bytes.
#[derive(Debug, Clone)]
pub(super) struct BulkRequest {
    /// The tenant.
    pub(super) tenant: Tenant,
    pub(super) gzip: bool,
    /// Holds the memory that it lives in.
    pub(super) body: Bytes,
    pub(super) items: usize,
}

/// A request to the node at `uri` that asks what it is.
pub(super) fn probe(uri: &Uri, settings: &Settings) -> Result<Probe, EndpointError> {
    let mut request = HttpRequest::new(Bytes::new());
    *request.uri_mut() = with_path(uri, &format!("{}/", uri.path().trim_end_matches('/')))?;
    request.headers_mut().clone_from(&settings.headers);
    request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let harmless = &FORBIDDEN as &[_];
    Ok(Probe { harmless, ..Probe::new(request, "a request for the cluster's version", &settings.tls) })
}

/// A role that may only write may not ask for the version.
const FORBIDDEN: [HarmlessRefusal; 1] = [HarmlessRefusal {
    statuses: &[403],
    contains: "cluster:monitor/main",
    meaning: "it knows the credentials, which may not ask for the version; whether they may write was not tried",
}];

/// One node.
pub(super) struct Node {
    uri: Uri,
    headers: HeaderMap,
    secrets: Secrets,
    tenant_header: Option<HeaderName>,
    client: Client,
}

impl Node {
    /// The node at `uri`.
    pub(super) fn new(uri: &Uri, settings: &Settings) -> Result<Node, EndpointError> {
        let address = || EndpointError::Address(uri.clone());
        let mut parts = uri.clone().into_parts();
        let wait = (settings.timeout / MAX_WAIT_FACTOR).as_millis().max(1);
        let path = format!("{}/_bulk?{QUERY}&timeout={wait}ms", uri.path().trim_end_matches('/'));
        parts.path_and_query = Some(path.parse().map_err(|_| address())?);
        let bulk = Uri::from_parts(parts).map_err(|_| address())?;
        Ok(Node {
            uri: bulk,
            headers: settings.headers.clone(),
            secrets: Secrets::of(uri, &settings.headers),
            tenant_header: settings.tenant_header.clone(),
            client: Client::new(uri, client_settings(settings))?,
        })
    }

    /// Sends a request and reads the answer.
    pub(super) async fn send(&self, request: &BulkRequest) -> BulkAnswer {
        let head = self.head(request);
        let items = request.items;
        let answer = self.client.exchange(|connections| async move {
            match connections.request_following(head, || Some(self.head(request))).await {
                Ok(response) => read(response, items).await,
                Err(error) => BulkAnswer::lost(chain(&error)),
            }
        });
        match answer.await {
            Ok(answer) => answer.masked(&self.secrets),
            Err(late) => BulkAnswer::lost(late.to_string()),
        }
    }

    /// Sends a request of the bulk engine, and hands the body of a response with 200 to `answer` as it comes.
    ///
    /// # Errors
    /// When no connection could be made, or it broke.
    pub(super) async fn forward(
        &self,
        request: &TransportRequest,
        answer: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<TransportResponse, TransportError> {
        let unusable = |_| TransportError::NotSent("its URL is none".to_owned());
        let mut parts = self.uri.clone().into_parts();
        let base = self.uri.path().trim_end_matches("/_bulk");
        let separator = if request.path.contains('?') { '&' } else { '?' };
        let wait = (self.client.timeout() / MAX_WAIT_FACTOR).as_millis().max(1);
        let path = format!("{base}{}{separator}timeout={wait}ms", request.path);
        parts.path_and_query = Some(path.parse().map_err(|_| unusable(()))?);
        let uri = Uri::from_parts(parts).map_err(|_| unusable(()))?;
        let body = Bytes::from_owner(request.body.clone());
        let bulk = BulkRequest { tenant: Tenant::NONE, gzip: false, body, items: 0 };
        let mut head = self.head(&bulk);
        *head.uri_mut() = uri;
        let exchange = self.client.exchange(|connections| async move {
            match connections.request_following(head, || Some(self.head(&bulk))).await {
                Ok(response) => forwarded(response, answer).await,
                Err(error) if error.is_connect() => Err(TransportError::NotSent(chain(&error))),
                Err(error) => Err(TransportError::Broken(chain(&error))),
            }
        });
        let masked = |words| self.secrets.mask(words);
        match exchange.await {
            Ok(Ok(answered)) => Ok(TransportResponse { excerpt: masked(answered.excerpt), ..answered }),
            Ok(Err(TransportError::NotSent(words))) => Err(TransportError::NotSent(masked(words))),
            Ok(Err(TransportError::Broken(words))) => Err(TransportError::Broken(masked(words))),
            Err(late) => Err(TransportError::Broken(late.to_string())),
        }
    }

    /// Puts `body` at `path`, which stands in the place of `/_bulk`.
    ///
    /// # Errors
    /// The node's answer to it, or that there was none.
    pub(super) async fn put(&self, path: &str, body: &'static str) -> Result<(), RejectionReason> {
        let unusable = |words: String| RejectionReason { status: None, words };
        let mut parts = self.uri.clone().into_parts();
        let whole = format!("{}{path}", self.uri.path().trim_end_matches("/_bulk"));
        parts.path_and_query = Some(whole.parse().map_err(|_| unusable(format!("{whole} is no path")))?);
        let uri = Uri::from_parts(parts).map_err(|error| unusable(error.to_string()))?;
        let mut request = HttpRequest::new(Full::new(Bytes::from_static(body.as_bytes())));
        *request.method_mut() = Method::PUT;
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&self.headers);
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let exchange = self.client.exchange(|connections| async move {
            let response = connections.request(request).await.map_err(|error| unusable(chain(&error)))?;
            let status = response.status();
            let mut body = Limited::new(response.into_body(), MAX_EXCERPT).frame().await;
            let said =
                body.take().and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default();
            let words = self.secrets.mask(String::from_utf8_lossy(&said).trim().to_owned());
            if status.is_success() { Ok(()) } else { Err(RejectionReason { status: Some(status), words }) }
        });
        exchange.await.unwrap_or_else(|late| Err(unusable(late.to_string())))
    }

    fn head(&self, request: &BulkRequest) -> HttpRequest<Full<Bytes>> {
        let mut head = HttpRequest::new(Full::new(request.body.clone()));
        *head.method_mut() = Method::POST;
        head.uri_mut().clone_from(&self.uri);
        head.headers_mut().clone_from(&self.headers);
        let headers = head.headers_mut();
        tenant::put(self.tenant_header.as_ref(), &request.tenant, headers);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        if request.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        head
    }
}

impl endpoints::Peer for Node {
    fn uri(&self) -> &Uri {
        &self.uri
    }

    fn hang_up(&self) {
        self.client.hang_up();
    }

    async fn close(&self) {
        self.client.close().await;
    }
}

/// Hands out a response as it comes, where its status is 200.
async fn forwarded(
    response: Response<Incoming>,
    answer: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
) -> Result<TransportResponse, TransportError> {
    let (head, mut incoming) = response.into_parts();
    let status = head.status.as_u16();
    let mut excerpt = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let data = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(error) => return Err(TransportError::Broken(chain(&error))),
        };
        let wanted = MAX_EXCERPT.saturating_sub(excerpt.len()).min(data.len());
        if status != 200 {
            excerpt.extend(data.iter().take(wanted));
        }
        // Dropping the body ends the connection: cheaper than reading on.
        if (status == 200 && answer(&data).is_break()) || (status != 200 && excerpt.len() >= MAX_EXCERPT) {
            break;
        }
    }
    let retry_after = head.headers.get(RETRY_AFTER).and_then(delay);
    Ok(TransportResponse {
        status,
        retry_after,
        excerpt: redirect::words(head.status, &head.headers)
            .unwrap_or_else(|| String::from_utf8_lossy(&excerpt).trim().to_owned()),
    })
}

/// Reads an answer to its end.
async fn read(response: Response<Incoming>, items: usize) -> BulkAnswer {
    let (head, mut incoming) = response.into_parts();
    let mut reader = head.status.is_success().then(|| ResponseReader::new(items));
    let (mut excerpt, mut len) = (Vec::new(), 0usize);
    while let Some(frame) = incoming.frame().await {
        let data = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(error) => return BulkAnswer::lost(chain(&error)),
        };
        if let Some(reader) = &mut reader {
            reader.read(&data);
        }
        let wanted = MAX_EXCERPT.saturating_sub(excerpt.len()).min(data.len());
        excerpt.extend(data.iter().take(wanted));
        len = len.saturating_add(data.len());
        if len > MAX_ANSWER_BYTES {
            break;
        }
    }
    let words = || {
        redirect::words(head.status, &head.headers)
            .unwrap_or_else(|| String::from_utf8_lossy(&excerpt).trim().to_owned())
    };
    let after = head.headers.get(RETRY_AFTER).and_then(delay);
    match reader {
        None => BulkAnswer::of(head.status, words(), after),
        Some(reader) => match reader.finish() {
            Some(reply) => BulkAnswer::Taken(reply),
            None => BulkAnswer::lost(format!(
                "{} with an answer that is none to a `_bulk`: {}",
                head.status,
                words()
            )),
        },
    }
}
