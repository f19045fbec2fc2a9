//! A peer on loopback that answers as it is told, over HTTP/1.1 and over HTTP/2, on a thread of its own.

use crate::bodies::{decoded, numbers};
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tidegate_journal::{Encoding, Signal};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// How a request is answered.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Taken, with this response.
    Ok(Vec<u8>),
    /// With a status of HTTP, headers and a text.
    Http(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// With a code of gRPC, a message, and `grpc-status-details-bin`.
    Grpc(u16, &'static str, Option<String>),
    /// The connection is closed once the request was read.
    Reset,
    /// Not before [`Peer::release`]; then it is taken.
    Stall,
    /// Taken after so long.
    Slow(Duration),
    /// With 413, or what gRPC says for it, when it is longer than so many bytes; otherwise taken.
    AtMost(usize),
    /// With 400, or what gRPC says for it, when this item is in it; otherwise taken.
    Dislikes(u64),
    /// Taken, with a response of so many bytes.
    Long(usize),
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) signal: Signal,
    pub(crate) numbers: Vec<u64>,
    pub(crate) encoding: Encoding,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) raw_len: usize,
    pub(crate) taken: bool,
}

#[derive(Default)]
struct State {
    script: Mutex<(VecDeque<Reply>, Option<Reply>)>,
    seen: Mutex<Seen>,
    changed: Condvar,
    released: Notify,
}

#[derive(Default)]
struct Seen {
    arrived: Vec<Arrived>,
    connections: usize,
    /// Requests that are being answered, and the most at a time.
    busy: usize,
    most: usize,
    stalled: usize,
}

pub(crate) struct Peer {
    address: SocketAddr,
    state: Arc<State>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Peer {
    /// A peer that takes everything.
    pub(crate) fn new() -> Peer {
        Peer::on(listener())
    }

    /// A peer that takes everything that comes here.
    pub(crate) fn on(listener: std::net::TcpListener) -> Peer {
        Peer::start(listener, None)
    }

    /// A peer that speaks TLS as this says.
    pub(crate) fn secure(config: ServerConfig) -> Peer {
        Peer::start(listener(), Some(Arc::new(config).into()))
    }

    fn start(listener: std::net::TcpListener, tls: Option<TlsAcceptor>) -> Peer {
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let (stop, mut stopped) = watch::channel(false);
        let serving = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let mut connections = JoinSet::new();
                loop {
                    tokio::select! {
                        _ = stopped.changed() => return,
                        accepted = listener.accept() => {
                            let Ok((stream, _)) = accepted else { continue };
                            serving.seen.lock().unwrap().connections += 1;
                            connections.spawn(serve(stream, Arc::clone(&serving), tls.clone()));
                        }
                    }
                }
            });
        });
        Peer { address, state, stop, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> hyper::Uri {
        format!("http://{}", self.address).parse().unwrap()
    }

    /// Answers the next requests with these, in order, and takes what comes after.
    pub(crate) fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        *self.state.script.lock().unwrap() = (replies.into_iter().collect(), None);
    }

    /// Answers every request with this.
    pub(crate) fn always(&self, reply: Reply) {
        *self.state.script.lock().unwrap() = (VecDeque::new(), Some(reply));
    }

    /// Lets go of those that were stalled.
    pub(crate) fn release(&self) {
        self.state.released.notify_waiters();
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.state.seen.lock().unwrap().arrived.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.seen.lock().unwrap().connections
    }

    /// The most requests that were answered at a time.
    pub(crate) fn most_at_a_time(&self) -> usize {
        self.state.seen.lock().unwrap().most
    }

    /// How often each item was taken.
    pub(crate) fn taken(&self) -> BTreeMap<u64, usize> {
        let mut taken = BTreeMap::new();
        for arrived in self.arrived().into_iter().filter(|arrived| arrived.taken) {
            arrived.numbers.into_iter().for_each(|number| *taken.entry(number).or_default() += 1);
        }
        taken
    }

    /// Waits until `enough` requests are stalled.
    pub(crate) async fn stalled(&self, enough: usize) {
        self.wait(move |seen| seen.stalled >= enough).await;
    }

    /// Waits until `enough` requests came.
    pub(crate) async fn requests(&self, enough: usize) {
        self.wait(move |seen| seen.arrived.len() >= enough).await;
    }

    async fn wait(&self, enough: impl Fn(&Seen) -> bool + Send + 'static) {
        let state = Arc::clone(&self.state);
        let waiting = tokio::task::spawn_blocking(move || {
            let seen = state.seen.lock().unwrap();
            let (_seen, waited) = state
                .changed
                .wait_timeout_while(seen, Duration::from_secs(20), |seen| !enough(seen))
                .unwrap();
            waited.timed_out()
        });
        assert!(!waiting.await.unwrap(), "waited in vain");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn listener() -> std::net::TcpListener {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap()
}

async fn serve(stream: TcpStream, state: Arc<State>, tls: Option<TlsAcceptor>) {
    let Some(tls) = tls else {
        let mut start = [0; 3];
        while stream.peek(&mut start).await.is_ok_and(|len| len > 0 && len < 3) {}
        return converse(stream, start == *b"PRI", state).await;
    };
    // Whoever is not trusted gets no further.
    let Ok(stream) = tls.accept(stream).await else { return };
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    converse(stream, is_h2, state).await;
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    is_h2: bool,
    state: Arc<State>,
) {
    let cut = Arc::new(Notify::new());
    let service = service_fn(|request| answer(request, Arc::clone(&state), Arc::clone(&cut)));
    let io = TokioIo::new(stream);
    // Whatever ends a connection, the client says what it makes of it.
    let served = async {
        if is_h2 {
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            drop(builder.serve_connection(io, service).await);
        } else {
            drop(hyper::server::conn::http1::Builder::new().serve_connection(io, service).await);
        }
    };
    tokio::select! {
        () = served => {}
        () = cut.notified() => {}
    }
}

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

async fn answer(
    request: Request<Incoming>,
    state: Arc<State>,
    cut: Arc<Notify>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await.map(|body| body.to_bytes()) else {
        return Ok(Response::new(StreamBody::new(futures_util::stream::empty()).boxed_unsync()));
    };
    let grpc = head.headers.get("content-type").unwrap() == "application/grpc";
    let header = if grpc { "grpc-encoding" } else { "content-encoding" };
    let encoding = match head.headers.get(header).map(|value| value.to_str().unwrap()) {
        None => Encoding::Identity,
        Some("gzip") => Encoding::Gzip,
        Some("zstd") => Encoding::Zstd,
        other => panic!("{other:?}"),
    };
    let message = if grpc {
        let (prefix, message) = body.split_at(5);
        assert_eq!(prefix[0] == 1, encoding != Encoding::Identity);
        assert_eq!(u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize, message.len());
        message
    } else {
        &body
    };
    let is_push = head.uri.path().ends_with("/push");
    let (raw, pushed) =
        if is_push { crate::loki::decoded(message) } else { (decoded(encoding, message), Vec::new()) };
    let content_type = head.headers.get("content-type").map_or("", |value| value.to_str().unwrap());
    let (signal, numbers) = if is_push {
        (Signal::Logs, pushed)
    } else if content_type.contains("json") {
        crate::json::numbers(&raw)
    } else {
        assert!(grpc || content_type == "application/x-protobuf", "{content_type}");
        let signals = [
            (Signal::Traces, "trace"),
            (Signal::Metrics, "metrics"),
            (Signal::Logs, "logs"),
            (Signal::Profiles, "profiles"),
        ];
        let (signal, _) = *signals.iter().find(|(_, word)| head.uri.path().contains(word)).unwrap();
        (signal, numbers(signal, &raw))
    };
    {
        let mut seen = state.seen.lock().unwrap();
        seen.busy += 1;
        seen.most = seen.most.max(seen.busy);
    }
    let reply = {
        let mut script = state.script.lock().unwrap();
        let always = script.1.clone();
        script.0.pop_front().or(always).unwrap_or(Reply::Ok(Vec::new()))
    };
    let reply = match reply {
        Reply::AtMost(most) if raw.len() > most => {
            if grpc {
                Reply::Grpc(8, "too large", None)
            } else {
                Reply::Http(413, vec![], b"too large".into())
            }
        }
        Reply::Dislikes(number) if numbers.contains(&number) => {
            if grpc {
                Reply::Grpc(3, "bad item", None)
            } else {
                Reply::Http(400, vec![], b"bad item".into())
            }
        }
        Reply::AtMost(_) | Reply::Dislikes(_) => Reply::Ok(Vec::new()),
        Reply::Stall => {
            let released = state.released.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            state.seen.lock().unwrap().stalled += 1;
            state.changed.notify_all();
            released.await;
            Reply::Ok(Vec::new())
        }
        Reply::Slow(time) => {
            tokio::time::sleep(time).await;
            Reply::Ok(Vec::new())
        }
        Reply::Long(len) => Reply::Ok(vec![0x7a; len]),
        reply => reply,
    };
    let taken = matches!(reply, Reply::Ok(_));
    {
        let mut seen = state.seen.lock().unwrap();
        seen.busy -= 1;
        let raw_len = raw.len();
        let (method, path, headers) = (head.method, head.uri.path().to_owned(), head.headers);
        seen.arrived.push(Arrived { signal, numbers, encoding, method, path, headers, raw_len, taken });
        state.changed.notify_all();
    }
    Ok(match reply {
        Reply::Ok(response) if grpc => grpc_response(0, "", None, Some(response)),
        Reply::Ok(response) => http_response(200, vec![], response),
        Reply::Http(status, headers, text) => http_response(status, headers, text),
        Reply::Grpc(code, message, details) => grpc_response(code, message, details, None),
        _ => {
            cut.notify_one();
            std::future::pending().await
        }
    })
}

fn http_response(status: u16, headers: Vec<(&'static str, String)>, text: Vec<u8>) -> Response<Body> {
    let frames = [Ok(Frame::data(Bytes::from(text)))];
    let mut response = Response::new(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync());
    *response.status_mut() = status.try_into().unwrap();
    for (name, value) in headers {
        response.headers_mut().insert(HeaderName::from_static(name), value.parse().unwrap());
    }
    response
}

/// With a message the status is behind it, without one it is in the head.
fn grpc_response(
    code: u16,
    message: &'static str,
    details: Option<String>,
    response: Option<Vec<u8>>,
) -> Response<Body> {
    let mut end = HeaderMap::new();
    end.insert("grpc-status", code.into());
    end.insert("grpc-message", HeaderValue::from_static(message));
    if let Some(details) = details {
        end.insert("grpc-status-details-bin", details.parse().unwrap());
    }
    let Some(response) = response else {
        let mut answer = Response::new(StreamBody::new(futures_util::stream::empty()).boxed_unsync());
        *answer.headers_mut() = end;
        return answer;
    };
    let mut framed = vec![0];
    framed.extend((response.len() as u32).to_be_bytes());
    framed.extend(response);
    let frames = [Ok(Frame::data(Bytes::from(framed))), Ok(Frame::trailers(end))];
    Response::new(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync())
}
