//! A request and its answer on a connection, and what a failure says of the other side.

use super::connection::Stream;
use super::{LooksLike, connection};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{DATE, HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::error::Error;
use std::net::SocketAddr;
use std::time::SystemTime;
use tidegate_sinks::Probe;

/// The most bytes of an answer's text that are shown.
pub(crate) const EXCERPT: usize = 300;
/// The most bytes of a text that are kept until secrets in it are masked.
const KEPT: usize = 4 << 10;

/// An answer of HTTP.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// That of gRPC, and its message, from headers or trailers.
    pub(crate) grpc: Option<(u16, String)>,
    /// The clock of the peer.
    pub(crate) date: Option<SystemTime>,
    /// The text, as far as it is kept.
    pub(crate) body: Vec<u8>,
    /// The beginning of the text, without secrets.
    pub(crate) excerpt: String,
}

/// Why a request has no answer.
pub(super) type ExchangeError = Box<dyn Error + Send + Sync>;

/// The request of a probe as it goes over a connection: with the whole URL where a proxy reads it, and else without.
pub(super) fn request(
    probe: &Probe,
    is_forwarded: bool,
    credentials: Option<HeaderValue>,
) -> Request<Full<Bytes>> {
    let (mut head, body) = probe.request.clone().into_parts();
    let is_http2 = head.version == Version::HTTP_2;
    if !is_http2 {
        if let Some(authority) = head.uri.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            head.headers.entry(HOST).or_insert(host);
        }
        if !is_forwarded {
            let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
            head.uri = path.parse::<Uri>().unwrap_or_default();
        }
    }
    if let Some(credentials) = credentials {
        head.headers.insert(PROXY_AUTHORIZATION, credentials);
    }
    Request::from_parts(head, Full::new(body))
}

/// Sends a request over HTTP/1.1.
pub(crate) async fn ask_http1(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<Answer, ExchangeError> {
    ask_http1_keeping(stream, request, KEPT).await
}

/// The same, with so many bytes of the text.
pub(crate) async fn ask_http1_keeping(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    kept: usize,
) -> Result<Answer, ExchangeError> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async { read(sender.send_request(request).await?, kept).await };
    with(connection, exchange).await
}

/// Sends a request over HTTP/2.
pub(super) async fn ask_http2(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<Answer, ExchangeError> {
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    let exchange = async { read(sender.send_request(request).await?, KEPT).await };
    with(connection, exchange).await
}

/// Runs an exchange while its connection is driven.
async fn with(
    connection: impl Future<Output = Result<(), hyper::Error>>,
    exchange: impl Future<Output = Result<Answer, ExchangeError>>,
) -> Result<Answer, ExchangeError> {
    let (mut connection, mut exchange) = (Box::pin(connection), Box::pin(exchange));
    let ended = tokio::select! {
        biased;
        answer = &mut exchange => return answer,
        ended = &mut connection => ended,
    };
    // It may have ended behind the answer, and says more of why there is none.
    match (exchange.await, ended) {
        (Err(_), Err(error)) => Err(error.into()),
        (answer, _) => answer,
    }
}

async fn read(response: Response<Incoming>, kept: usize) -> Result<Answer, ExchangeError> {
    let (head, mut body) = response.into_parts();
    let date = head.headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    let mut answer = Answer { status: head.status.as_u16(), date, ..Answer::default() };
    answer.grpc = grpc(&head.headers);
    while let Some(frame) = body.frame().await {
        // A server that refuses a request without reading it may cut off its own answer.
        let Ok(frame) = frame else { break };
        if let Some(trailers) = frame.trailers_ref() {
            answer.grpc = grpc(trailers).or(answer.grpc);
        }
        let Some(data) = frame.data_ref() else { continue };
        let room = kept.saturating_sub(answer.body.len());
        answer.body.extend(data.iter().take(room));
        if data.len() > room {
            // Dropping the rest closes the connection.
            break;
        }
    }
    let is_text = std::str::from_utf8(&answer.body).is_ok() || answer.body.len() == kept;
    answer.excerpt = match is_text {
        true => String::from_utf8_lossy(&answer.body).trim().to_owned(),
        false => format!("({} bytes that are no text)", answer.body.len()),
    };
    Ok(answer)
}

fn grpc(headers: &hyper::HeaderMap) -> Option<(u16, String)> {
    let status = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    let message = headers.get("grpc-message").map(HeaderValue::as_bytes).unwrap_or_default();
    Some((status, percent_encoding::percent_decode(message).decode_utf8_lossy().into_owned()))
}

/// The beginning of a text.
pub(super) fn shortened(text: &str) -> String {
    if text.len() <= EXCERPT {
        return text.to_owned();
    }
    format!("{}…", text.get(..text.floor_char_boundary(EXCERPT)).unwrap_or_default())
}

/// An error with its causes, each once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

/// Guesses from a failed exchange what the other side is.
pub(super) async fn guess(
    error: &ExchangeError,
    probe: &Probe,
    is_secure: bool,
    address: Option<SocketAddr>,
) -> Option<LooksLike> {
    let is_binary = error.downcast_ref::<hyper::Error>().is_some_and(is_binary);
    let address = address.filter(|_| !is_secure);
    if let Some(address) = address
        && connection::speaks_tls(address).await
    {
        return Some(LooksLike::Tls);
    }
    if !probe.is_http2() {
        return is_binary.then_some(LooksLike::Http2);
    }
    match address {
        Some(address) => connection::speaks_http1(address).await.then_some(LooksLike::Http1),
        // HTTP/1.1 answers the preface of HTTP/2 with text, which is a long frame.
        None => chain(&**error).contains("frame with invalid size").then_some(LooksLike::Http1),
    }
}

/// Whether the answer was not HTTP/1.1, or came before the request, as the settings of HTTP/2 do.
fn is_binary(error: &hyper::Error) -> bool {
    error.is_parse() || (error.is_canceled() && chain(error).contains("unexpected message"))
}
