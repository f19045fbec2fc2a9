//! A Thanos ingestor on loopback that answers as it is told, on a thread of its own.

use crate::messages::Series;
use crate::write_request::WriteRequest;
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// How a request is answered.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Taken.
    Ok,
    /// With this code and message.
    Grpc(u16, &'static str),
    /// The connection is closed once the request was read.
    Reset,
    /// Not before [`Member::release`]; then it is taken.
    Stall,
}

/// A series as it was taken, in the order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) tenant: String,
    pub(crate) replica: i64,
    /// Its bytes.
    pub(crate) raw: Vec<u8>,
}

/// The times of the samples taken of a series: by tenant, replica (from 1) and number.
pub(crate) type Samples = BTreeMap<(String, i64, u64), Vec<i64>>;

#[derive(Default)]
struct State {
    script: Mutex<(VecDeque<Reply>, Option<Reply>)>,
    seen: Mutex<Seen>,
    released: Notify,
}

#[derive(Default)]
struct Seen {
    taken: Vec<Taken>,
    samples: Samples,
    requests: usize,
    stalled: usize,
    tuples: usize,
}

/// A member of rings.
pub(crate) struct Member {
    address: SocketAddr,
    state: Arc<State>,
    tls: Option<TlsAcceptor>,
    running: Option<(watch::Sender<bool>, JoinHandle<()>)>,
}

impl Member {
    /// A member that takes everything.
    pub(crate) fn new() -> Member {
        Member::start(None)
    }

    /// The same over TLS.
    pub(crate) fn secure(config: ServerConfig) -> Member {
        Member::start(Some(Arc::new(config).into()))
    }

    fn start(tls: Option<TlsAcceptor>) -> Member {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut member = Member { address, state: Arc::default(), tls, running: None };
        member.serve(listener);
        member
    }

    /// So many of them.
    pub(crate) fn some(count: usize) -> Vec<Member> {
        (0..count).map(|_| Member::new()).collect()
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Ends all connections and refuses new ones.
    pub(crate) fn leave(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            stop.send_replace(true);
            thread.join().unwrap();
        }
    }

    /// Is back at its address.
    pub(crate) fn come_back(&mut self) {
        self.serve(TcpListener::bind(self.address).unwrap());
    }

    fn serve(&mut self, listener: TcpListener) {
        listener.set_nonblocking(true).unwrap();
        let (stop, stopped) = watch::channel(false);
        let (state, tls) = (Arc::clone(&self.state), self.tls.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(accept((listener, tls), stopped, state));
        });
        self.running = Some((stop, thread));
    }

    /// Answers the next requests with these, and takes those behind them.
    pub(crate) fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        *self.state.script.lock().unwrap() = (replies.into_iter().collect(), None);
    }

    /// Answers every request with this.
    pub(crate) fn always(&self, reply: Reply) {
        *self.state.script.lock().unwrap() = (VecDeque::new(), Some(reply));
    }

    /// Takes everything from now on, also what is stalled.
    pub(crate) fn release(&self) {
        self.script([]);
        self.state.released.notify_waiters();
    }

    /// Requests that were read.
    pub(crate) fn requests(&self) -> usize {
        self.state.seen.lock().unwrap().requests
    }

    /// Requests that were stalled.
    pub(crate) fn stalled(&self) -> usize {
        self.state.seen.lock().unwrap().stalled
    }

    /// Tuples of series and tenant in what was read.
    pub(crate) fn tuples(&self) -> usize {
        self.state.seen.lock().unwrap().tuples
    }

    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.state.seen.lock().unwrap().taken.clone()
    }

    pub(crate) fn samples(&self) -> Samples {
        self.state.seen.lock().unwrap().samples.clone()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}

async fn accept(
    (listener, tls): (TcpListener, Option<TlsAcceptor>),
    mut stopped: watch::Receiver<bool>,
    state: Arc<State>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let (state, tls) = (Arc::clone(&state), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => converse(stream, state).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                converse(stream, state).await;
                            }
                        }
                    }
                });
            }
        }
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<State>) {
    let cut = Arc::new(Notify::new());
    let service = service_fn(|request| answer(request, Arc::clone(&state), Arc::clone(&cut)));
    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    tokio::select! {
        // Whatever ends a connection, the sink says what it makes of it.
        _ended = builder.serve_connection(TokioIo::new(stream), service) => {}
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
        return Ok(status(2, "no body"));
    };
    assert_eq!(head.uri.path(), "/thanos.WriteableStore/RemoteWrite");
    assert_eq!(head.headers["content-type"], "application/grpc");
    assert_eq!(head.headers["te"], "trailers");
    let is_compressed = head.headers.get("grpc-encoding").is_some_and(|encoding| encoding == "snappy");
    let request = decoded(&body, is_compressed);
    state.seen.lock().unwrap().requests += 1;
    let reply = {
        let mut script = state.script.lock().unwrap();
        let always = script.1.clone();
        script.0.pop_front().or(always).unwrap_or(Reply::Ok)
    };
    match reply {
        Reply::Ok => {}
        Reply::Grpc(code, message) => return Ok(status(code, message)),
        Reply::Reset => {
            cut.notify_one();
            return std::future::pending().await;
        }
        Reply::Stall => {
            let mut released = std::pin::pin!(state.released.notified());
            released.as_mut().enable();
            state.seen.lock().unwrap().stalled += 1;
            released.await;
        }
    }
    state.seen.lock().unwrap().take(request);
    Ok(accepted())
}

impl Seen {
    fn take(&mut self, request: WriteRequest) {
        let WriteRequest { series, tenant, replica, tuples } = request;
        self.tuples += tuples.len();
        let tuples = tuples.into_iter().map(|tuple| (tuple.tenant, tuple.series));
        for (tenant, series) in std::iter::once((tenant, series)).chain(tuples) {
            for raw in series {
                let series = Series::decode(&raw[..]).unwrap();
                if let Some(number) = series.label("number") {
                    let key = (tenant.clone(), replica, number.parse().unwrap());
                    let times = series.samples.iter().map(|sample| sample.time);
                    self.samples.entry(key).or_default().extend(times);
                }
                self.taken.push(Taken { tenant: tenant.clone(), replica, raw });
            }
        }
    }
}

fn decoded(body: &[u8], is_compressed: bool) -> WriteRequest {
    let (prefix, message) = body.split_at(5);
    assert_eq!(prefix[0] == 1, is_compressed);
    assert_eq!(u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize, message.len());
    if !is_compressed {
        return WriteRequest::decode(message).unwrap();
    }
    let mut raw = Vec::new();
    std::io::copy(&mut snap::read::FrameDecoder::new(message), &mut raw).unwrap();
    WriteRequest::decode(&raw[..]).unwrap()
}

/// An empty response, and the status behind it.
fn accepted() -> Response<Body> {
    let mut end = HeaderMap::new();
    end.insert("grpc-status", 0.into());
    let frames = [Ok(Frame::data(Bytes::from_static(&[0; 5]))), Ok(Frame::trailers(end))];
    Response::new(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync())
}

/// A status without a response: it is in the head.
fn status(code: u16, message: &'static str) -> Response<Body> {
    let mut answer = Response::new(StreamBody::new(futures_util::stream::empty()).boxed_unsync());
    answer.headers_mut().insert("grpc-status", code.into());
    answer.headers_mut().insert("grpc-message", message.parse().unwrap());
    answer
}
