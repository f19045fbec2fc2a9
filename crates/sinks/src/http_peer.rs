//! One peer over HTTP/1.1: a POST with a body that lives in a window, and the answer, bounded.

use crate::delivery::EndpointError;
use crate::delivery::client::{Client, ClientSettings, Version, redirect};
use crate::secrets::Secrets;
use crate::tls::Tls;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode, Uri};
use std::error::Error;
use std::time::{Duration, SystemTime};

/// The most bytes of an answer's text that are kept, for the log and the dead letters.
pub(crate) const EXCERPT: usize = 1 << 10;
/// The most bytes of an answer that are read so that the connection can be used again.
const ANSWER: usize = 64 << 10;
/// The most that one connection buffers: declared in the plan, twice over for both directions.
pub(crate) const CONNECTION_BUFFER: usize = 64 << 10;

/// Sends requests to one URL over as many connections as there are requests in flight.
pub(crate) struct HttpPeer {
    client: Client,
    uri: Uri,
    headers: HeaderMap,
    secrets: Secrets,
}

/// The peer's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpAnswer {
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

impl HttpPeer {
    /// A peer at `uri`. `headers` go with every request, before those of the protocol.
    ///
    /// # Errors
    /// When the address or the TLS settings cannot be used.
    pub(crate) fn new(
        uri: Uri,
        headers: HeaderMap,
        tls: &Tls,
        timeout: Duration,
        connections: usize,
    ) -> Result<HttpPeer, EndpointError> {
        let settings = ClientSettings {
            tls,
            version: Version::Http1,
            max_in_flight: connections,
            buffer: CONNECTION_BUFFER,
            timeout,
        };
        let client = Client::new(&uri, settings)?;
        let secrets = Secrets::of(&uri, &headers);
        Ok(HttpPeer { client, uri, headers, secrets })
    }

    /// Where it is.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Ends all connections that no request waits on: what a peer has not read of a body is let go.
    pub(crate) fn hang_up(&self) {
        self.client.hang_up();
    }

    /// Ends all connections, and waits until what they hold is given back.
    pub(crate) async fn close(&self) {
        self.client.close().await;
    }

    /// Sends `body` with `headers` and waits for the answer.
    ///
    /// # Errors
    /// When the connection fails or the answer takes too long.
    pub(crate) async fn post(&self, headers: &HeaderMap, body: Bytes) -> Result<HttpAnswer, NoAnswer> {
        let head = || {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = Method::POST;
            request.uri_mut().clone_from(&self.uri);
            request.headers_mut().clone_from(&self.headers);
            for (name, value) in headers {
                request.headers_mut().insert(name, value.clone());
            }
            request
        };
        let exchange = self.client.exchange(|connections| async move {
            let response = connections.request_following(head(), || Some(head())).await;
            read(response.map_err(|error| NoAnswer::Connection(chain(&error)))?).await
        });
        let answer = exchange.await.map_err(|late| NoAnswer::Timeout(late.0))??;
        Ok(HttpAnswer { excerpt: self.secrets.mask(answer.excerpt), ..answer })
    }
}

async fn read(response: Response<Incoming>) -> Result<HttpAnswer, NoAnswer> {
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
    let excerpt = redirect::words(head.status, &head.headers)
        .unwrap_or_else(|| String::from_utf8_lossy(&excerpt).trim().to_owned());
    Ok(HttpAnswer { status: head.status, retry_after, headers: head.headers, excerpt })
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
