//! One sender of OTLP, over either transport.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};
use hyper::client::conn::http2;
use hyper::header::{HeaderMap, HeaderValue};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{ContentCoding, Signal, post};
use crate::http::{Connection, RequestError};
use crate::target::Target;

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Protobuf over HTTP/1.1.
    Http,
    /// gRPC.
    Grpc,
}

/// The response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpResponse {
    /// Whether the request was taken.
    pub taken: bool,
    /// Whether a sender is to send it again.
    pub retryable: bool,
    /// The HTTP status, or the code of gRPC.
    pub code: u16,
    /// How long to wait, when the answer says so.
    pub retry_after: Option<Duration>,
    /// The reason in words.
    pub reason: String,
}

/// A connection, with one request in flight.
#[derive(Debug)]
pub enum OtlpClient {
    /// HTTP/1.1
    Http(Connection, Target),
    /// HTTP/2
    Grpc(GrpcConnection),
}

/// A gRPC connection.
#[derive(Debug)]
pub struct GrpcConnection {
    sender: http2::SendRequest<UnsizedBody>,
    authority: String,
    /// The task that drives the connection, aborted on drop.
    _connection: JoinSet<()>,
}

impl OtlpClient {
    /// Connects to `target`, of which the path is not used.
    ///
    /// # Errors
    /// When there is nobody, or not within `deadline`.
    pub async fn open(
        transport: Transport,
        target: &Target,
        deadline: Duration,
    ) -> Result<OtlpClient, RequestError> {
        match transport {
            Transport::Http => {
                Ok(OtlpClient::Http(Connection::open(target, deadline).await?, target.clone()))
            }
            Transport::Grpc => {
                let shake = async {
                    let stream = TcpStream::connect(target.address()).await?;
                    stream.set_nodelay(true)?;
                    let shaken = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
                    shaken.map_err(io::Error::other)
                };
                let shaken = timeout(deadline, shake).await.map_err(|_| RequestError::Timeout(deadline))?;
                let (sender, connection) = shaken?;
                let mut driver = JoinSet::new();
                driver.spawn(async move {
                    // The requests on it say how it ended.
                    let _ended = connection.await;
                });
                let authority = target.authority.clone();
                Ok(OtlpClient::Grpc(GrpcConnection { sender, authority, _connection: driver }))
            }
        }
    }

    /// Whether another request can follow.
    pub fn is_reusable(&self) -> bool {
        match self {
            OtlpClient::Http(connection, _) => connection.is_reusable(),
            OtlpClient::Grpc(grpc) => !grpc.sender.is_closed(),
        }
    }

    /// Sends a body and reads the answer.
    ///
    /// # Errors
    /// When no answer came.
    pub async fn send(
        &mut self,
        signal: Signal,
        coding: ContentCoding,
        body: &[u8],
        deadline: Duration,
    ) -> Result<OtlpResponse, RequestError> {
        match self {
            OtlpClient::Http(connection, target) => {
                let head = post(signal, target, coding.name(), body.len());
                let response = connection.send(head.as_bytes(), body, deadline).await?;
                Ok(OtlpResponse {
                    taken: response.status == 200,
                    retryable: matches!(response.status, 429 | 502..=504),
                    code: response.status,
                    retry_after: response.retry_after.map(Duration::from_secs),
                    reason: response.body,
                })
            }
            OtlpClient::Grpc(grpc) => {
                let answered = timeout(deadline, grpc.call(signal, coding, body)).await;
                answered.map_err(|_| RequestError::Timeout(deadline))?
            }
        }
    }
}

/// The body of a call. Its length is not told, so that no `content-length` is sent: clients of gRPC send none.
#[derive(Debug)]
struct UnsizedBody(Full<Bytes>);

impl Body for UnsizedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}

impl GrpcConnection {
    async fn call(
        &mut self,
        signal: Signal,
        coding: ContentCoding,
        body: &[u8],
    ) -> Result<OtlpResponse, RequestError> {
        let broken = |error: hyper::Error| RequestError::Connection(io::Error::other(with_causes(&error)));
        let mut message = BytesMut::with_capacity(body.len() + 5);
        message.put_u8(u8::from(coding != ContentCoding::Identity));
        message.put_u32(u32::try_from(body.len()).map_err(|_| RequestError::Protocol("a body is too long"))?);
        message.put_slice(body);
        let request = hyper::Request::post(format!("http://{}{}", self.authority, signal.method()))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("grpc-encoding", coding.name())
            .body(UnsizedBody(Full::new(message.freeze())))
            .map_err(io::Error::other)?;
        self.sender.ready().await.map_err(broken)?;
        let response = self.sender.send_request(request).await.map_err(broken)?;
        let status = response.status().as_u16();
        let mut headers = response.headers().clone();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            if let Ok(trailers) = frame.map_err(broken)?.into_trailers() {
                headers = trailers;
            }
        }
        Ok(verdict(status, &headers))
    }
}

fn verdict(status: u16, headers: &HeaderMap) -> OtlpResponse {
    let text = |name: &str| headers.get(name).map(HeaderValue::as_bytes).map(String::from_utf8_lossy);
    // Without a status of gRPC the answer is somebody else's: UNKNOWN.
    let code = text("grpc-status").and_then(|code| code.parse().ok()).unwrap_or(2);
    let delay = text("grpc-status-details-bin").is_some().then_some(Duration::from_secs(1));
    let retryable = matches!(code, 1 | 4 | 10 | 11 | 14 | 15) || code == 8 && delay.is_some();
    let reason = text("grpc-message").map_or_else(|| format!("HTTP {status}"), |words| words.into_owned());
    OtlpResponse { taken: code == 0, retryable, code, retry_after: delay.filter(|_| retryable), reason }
}

/// An error with what caused it: the first alone says little.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
