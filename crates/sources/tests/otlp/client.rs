//! Clients of both versions, that send what they are told to.

use crate::rig::Rig;
use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
pub(crate) const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
pub(crate) const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
pub(crate) const PROFILES: &str =
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

/// An answer of HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// An answer of gRPC.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) code: u8,
    pub(crate) message: String,
    pub(crate) details: Option<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) headers: HeaderMap,
    /// Whether the head was all there was.
    pub(crate) trailers_only: bool,
}

/// A head that announces `body`, and the body.
pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

pub(crate) const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// Sends these bytes and reads the first answer.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A refusal may come before all is sent.
    let _refused = stream.write_all(bytes).await;
    answer(&mut stream).await
}

/// Reads an answer of HTTP/1.1.
pub(crate) async fn answer(stream: &mut TcpStream) -> Answer {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Response::new(&mut headers);
        if let httparse::Status::Complete(end) = head.parse(&bytes).unwrap() {
            let headers: HeaderMap = head
                .headers
                .iter()
                .map(|header| (header.name.parse().unwrap(), header.value.try_into().unwrap()))
                .map(|(name, value): (http::HeaderName, http::HeaderValue)| (name, value))
                .collect();
            let length: usize =
                headers.get("content-length").map_or(0, |value| value.to_str().unwrap().parse().unwrap());
            let status = head.code.unwrap();
            while bytes.len() < end + length {
                let read = stream.read(&mut piece).await.unwrap();
                assert!(read > 0, "closed within an answer");
                bytes.extend_from_slice(&piece[..read]);
            }
            return Answer { status, headers, body: bytes[end..end + length].to_vec() };
        }
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "closed without an answer: {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&piece[..read]);
    }
}

/// A connection of HTTP/2, and the task that keeps it going.
pub(crate) async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test's own task, which ends with its client")]
    tokio::spawn(connection);
    client
}

/// Sends a request and waits for the whole answer.
pub(crate) async fn exchange(
    client: &mut SendRequest<Bytes>,
    request: Request<()>,
    body: &[u8],
) -> (Answer, Option<HeaderMap>) {
    let mut ready = client.clone().ready().await.unwrap();
    let (response, mut stream) = ready.send_request(request, body.is_empty()).unwrap();
    let sending = async {
        let mut left = body;
        while !left.is_empty() {
            stream.reserve_capacity(left.len());
            let Some(Ok(room)) = std::future::poll_fn(|context| stream.poll_capacity(context)).await else {
                return;
            };
            let (now, later) = left.split_at(room.min(left.len()));
            if stream.send_data(Bytes::copy_from_slice(now), later.is_empty()).is_err() {
                return;
            }
            left = later;
        }
    };
    let receiving = async {
        let response = response.await.unwrap();
        let (parts, mut answer) = response.into_parts();
        let mut body = Vec::new();
        while let Some(data) = answer.data().await {
            let data = data.unwrap();
            answer.flow_control().release_capacity(data.len()).unwrap();
            body.extend_from_slice(&data);
        }
        let trailers = answer.trailers().await.unwrap();
        (Answer { status: parts.status.as_u16(), headers: parts.headers, body }, trailers)
    };
    tokio::join!(sending, receiving).1
}

/// A request to a method with these headers besides those that all calls have.
pub(crate) fn call_to(method: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::post(format!("http://test{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// Makes a call and waits for its end.
pub(crate) async fn call(
    client: &mut SendRequest<Bytes>,
    method: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Called {
    called(exchange(client, call_to(method, headers), body).await)
}

/// Reads the answer to a call.
pub(crate) fn called((answer, trailers): (Answer, Option<HeaderMap>)) -> Called {
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/grpc"));
    let trailers_only = trailers.is_none();
    let end = trailers.as_ref().unwrap_or(&answer.headers);
    let text = |name| end.get(name).map(|value| value.to_str().unwrap().to_owned());
    Called {
        code: text("grpc-status").unwrap().parse().unwrap(),
        message: text("grpc-message").unwrap_or_default(),
        details: text("grpc-status-details-bin"),
        body: answer.body,
        headers: answer.headers.clone(),
        trailers_only,
    }
}

impl Rig {
    /// Sends a request over HTTP/1.1.
    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let request = post(path, headers, body);
        self.serve(async |address| raw(address, &request).await).await
    }

    /// Makes a call on a connection of its own.
    pub(crate) async fn call(&self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> Called {
        self.serve(async |address| call(&mut connect(address).await, method, headers, body).await).await
    }

    /// Sends a POST of HTTP over HTTP/2.
    pub(crate) async fn post2(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.request2("POST", path, headers, body).await
    }

    /// Sends a request of HTTP over HTTP/2.
    pub(crate) async fn request2(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("http://test{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        self.serve(async |address| exchange(&mut connect(address).await, request, body).await.0).await
    }
}
