//! One peer over HTTP/1.1: a POST with a body that lives in a window, and the answer, bounded.

use crate::secrets::{Secrets, Shown};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::rt::Executor;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioTimer;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::task::JoinSet;

/// The most bytes of an answer's text that are kept, for the log and the dead letters.
pub(crate) const EXCERPT: usize = 1 << 10;
/// The most bytes of an answer that are read so that the connection can be used again.
const ANSWER: usize = 64 << 10;
/// The most that one connection buffers: declared in the plan, twice over for both directions.
pub(crate) const CONNECTION_BUFFER: usize = 64 << 10;

/// Sends requests to one URL over as many connections as there are requests in flight.
pub(crate) struct Peer {
    client: Client,
    connections: Connections,
    uri: Uri,
    headers: HeaderMap,
    secrets: Secrets,
    timeout: Duration,
}

enum Client {
    Plain(legacy::Client<HttpConnector, Full<Bytes>>),
    Tls(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

/// What the peer said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// How long to stay away, when it says so.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) headers: HeaderMap,
    /// The beginning of its text.
    pub(crate) excerpt: String,
}

/// There was no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("{0}")]
    Connection(String),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

/// A peer cannot be used as configured.
#[derive(Debug, thiserror::Error)]
#[error("preparing TLS for {}: the system's root certificates cannot be read: {source}", Shown(uri))]
pub(crate) struct NoRoots {
    uri: Uri,
    source: std::io::Error,
}

impl Peer {
    /// A peer at `uri`. `headers` go with every request, before those of the protocol.
    pub(crate) fn new(
        uri: Uri,
        headers: HeaderMap,
        timeout: Duration,
        connections: usize,
    ) -> Result<Peer, NoRoots> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(timeout));
        let tasks = Connections::default();
        let mut builder = legacy::Client::builder(tasks.clone());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_max_idle_per_host(connections)
            .http1_max_buf_size(CONNECTION_BUFFER);
        let client = if uri.scheme_str() == Some("https") {
            let provider = rustls::crypto::ring::default_provider();
            let tls = HttpsConnectorBuilder::new()
                .with_provider_and_native_roots(provider)
                .map_err(|source| NoRoots { uri: uri.clone(), source })?
                .https_only()
                .enable_http1()
                .wrap_connector(connector);
            Client::Tls(builder.build(tls))
        } else {
            Client::Plain(builder.build(connector))
        };
        let secrets = Secrets::of(&uri, &headers);
        Ok(Peer { client, connections: tasks, uri, headers, secrets, timeout })
    }

    /// Where it is.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Ends all connections, whatever they are at: what a peer has not read of a body is let go.
    pub(crate) fn hang_up(&self) {
        self.connections.end();
    }

    /// Sends `body` with `headers` and waits for the answer.
    ///
    /// # Errors
    /// When the connection fails or the answer takes too long.
    pub(crate) async fn post(&self, headers: &HeaderMap, body: Bytes) -> Result<Answer, NoAnswer> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&self.uri);
        request.headers_mut().clone_from(&self.headers);
        for (name, value) in headers {
            request.headers_mut().insert(name, value.clone());
        }
        let exchange = async {
            let response = match &self.client {
                Client::Plain(client) => client.request(request).await,
                Client::Tls(client) => client.request(request).await,
            };
            read(response.map_err(|error| NoAnswer::Connection(chain(&error)))?).await
        };
        // On the heap: it is the largest part of what a sink waits in.
        let exchange = Box::pin(exchange);
        let answer = tokio::time::timeout(self.timeout, exchange)
            .await
            .map_err(|_| NoAnswer::Timeout(self.timeout))??;
        Ok(Answer { excerpt: self.secrets.mask(answer.excerpt), ..answer })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// The tasks that serve the connections of one peer: at most a few for each request in flight.
#[derive(Clone, Default)]
struct Connections(Arc<Mutex<JoinSet<()>>>);

impl Connections {
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.tasks().abort_all();
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Connections {
    fn execute(&self, task: F) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

async fn read(response: Response<Incoming>) -> Result<Answer, NoAnswer> {
    let (head, mut body) = response.into_parts();
    let (mut excerpt, mut seen) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| NoAnswer::Connection(chain(&error)))?;
        let Some(data) = frame.data_ref() else { continue };
        let wanted = EXCERPT.saturating_sub(excerpt.len()).min(data.len());
        excerpt.extend(data.iter().take(wanted));
        seen += data.len();
        if seen > ANSWER {
            // Dropping the body closes the connection: cheaper than reading on.
            break;
        }
    }
    let retry_after = head.headers.get(RETRY_AFTER).and_then(delay);
    let excerpt = String::from_utf8_lossy(&excerpt).trim().to_owned();
    Ok(Answer { status: head.status, retry_after, headers: head.headers, excerpt })
}

/// `Retry-After` in seconds or as a date, RFC 9110 section 10.2.3; at most an hour is believed.
pub(crate) fn delay(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let delay = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).unwrap_or_default(),
    };
    Some(delay.min(Duration::from_secs(3600)))
}

/// An error with its causes: the last one usually says what is wrong.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
