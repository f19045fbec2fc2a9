//! A receiver of OTLP over HTTP on loopback that answers as it is told, on a thread of its own.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    /// Taken.
    Ok,
    /// Not taken, with this status and text.
    Status(u16, &'static str),
    /// Taken but for so many spans.
    Partial(i64),
    /// Taken if it has no more bytes than these.
    UpTo(usize),
    /// Taken if it does not have the span with this number.
    Without(u64),
    /// Not before [`Receiver::release`]; then it is taken.
    Stall,
}

/// The spans taken of each trace, in the order of arrival, by number.
pub(crate) type Traces = BTreeMap<u64, Vec<u64>>;

#[derive(Default)]
struct State {
    script: Mutex<(VecDeque<Reply>, Option<Reply>)>,
    seen: Mutex<Seen>,
    released: Notify,
}

#[derive(Default, Clone)]
pub(crate) struct Seen {
    pub(crate) traces: Traces,
    /// Names of services.
    pub(crate) services: Vec<String>,
    pub(crate) compressed: usize,
    pub(crate) requests: usize,
    pub(crate) stalled: usize,
    pub(crate) refused: usize,
}

/// A receiver.
pub(crate) struct Receiver {
    address: SocketAddr,
    state: Arc<State>,
    running: Option<(watch::Sender<bool>, JoinHandle<()>)>,
}

impl Receiver {
    /// A receiver that takes everything.
    pub(crate) fn new() -> Receiver {
        Receiver::on(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// Receivers with one port at so many addresses of loopback, from 127.0.0.1 on, as the pods of a headless service have it.
    pub(crate) fn pods(count: u8) -> Vec<Receiver> {
        // A port that is free at one address may be taken at another.
        let mut ports = (0..100).filter_map(|_| {
            let first = TcpListener::bind("127.0.0.1:0").ok()?;
            let port = first.local_addr().ok()?.port();
            let others = (2..=count).map(|last| TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), port)));
            std::iter::once(Ok(first)).chain(others).collect::<Result<Vec<_>, _>>().ok()
        });
        let listeners = ports.next().expect("a port that is free at all of them");
        listeners.into_iter().map(Receiver::on).collect()
    }

    fn on(listener: TcpListener) -> Receiver {
        let mut receiver =
            Receiver { address: listener.local_addr().unwrap(), state: Arc::default(), running: None };
        receiver.serve(listener);
        receiver
    }

    /// So many of them.
    pub(crate) fn some(count: usize) -> Vec<Receiver> {
        (0..count).map(|_| Receiver::new()).collect()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
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
        let state = Arc::clone(&self.state);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(accept(listener, stopped, state));
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

    pub(crate) fn seen(&self) -> Seen {
        self.state.seen.lock().unwrap().clone()
    }

    pub(crate) fn traces(&self) -> Traces {
        self.seen().traces
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.leave();
    }
}

async fn accept(listener: TcpListener, mut stopped: watch::Receiver<bool>, state: Arc<State>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                connections.spawn(converse(stream, Arc::clone(&state)));
            }
        }
    }
}

async fn converse(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(|request| answer(request, Arc::clone(&state)));
    // Whatever ends a connection, the sink says what it makes of it.
    let _ended =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await.map(|body| body.to_bytes()) else {
        return Ok(status(400, "no body"));
    };
    assert_eq!(head.uri.path(), "/v1/traces");
    assert_eq!(head.headers["content-type"], "application/x-protobuf");
    let mut raw = Vec::new();
    match head.headers.get("content-encoding") {
        None => raw.extend(&body),
        Some(encoding) => {
            assert_eq!(encoding, "gzip");
            state.seen.lock().unwrap().compressed += 1;
            let limit = 64 << 20;
            let mut decoded = flate2::read::GzDecoder::new(&body[..]).take(limit);
            std::io::copy(&mut decoded, &mut raw).unwrap();
        }
    }
    let request = ExportTraceServiceRequest::decode(&raw[..]).unwrap();
    state.seen.lock().unwrap().requests += 1;
    let reply = {
        let mut script = state.script.lock().unwrap();
        let always = script.1;
        script.0.pop_front().or(always).unwrap_or(Reply::Ok)
    };
    match reply {
        Reply::Status(code, text) => return Ok(status(code, text)),
        Reply::UpTo(most) if raw.len() > most => {
            state.seen.lock().unwrap().refused += 1;
            return Ok(status(413, "too long"));
        }
        Reply::Without(number) if Seen::default().taking(request.clone()).has(number) => {
            return Ok(status(400, "not this one"));
        }
        Reply::Ok | Reply::Partial(_) | Reply::UpTo(_) | Reply::Without(_) => {}
        Reply::Stall => {
            let mut released = std::pin::pin!(state.released.notified());
            released.as_mut().enable();
            state.seen.lock().unwrap().stalled += 1;
            released.await;
        }
    }
    state.seen.lock().unwrap().take(request);
    let rejected = if let Reply::Partial(rejected_spans) = reply { rejected_spans } else { 0 };
    let partial = ExportTracePartialSuccess { rejected_spans: rejected, error_message: "no".to_owned() };
    let answer = ExportTraceServiceResponse { partial_success: (rejected > 0).then_some(partial) };
    Ok(Response::new(Full::new(answer.encode_to_vec().into())))
}

impl Seen {
    fn taking(mut self, request: ExportTraceServiceRequest) -> Seen {
        self.take(request);
        self
    }

    fn has(&self, span: u64) -> bool {
        self.traces.values().any(|spans| spans.contains(&span))
    }

    fn take(&mut self, request: ExportTraceServiceRequest) {
        for resource in request.resource_spans {
            let attributes = resource.resource.unwrap().attributes;
            let name =
                attributes.into_iter().find(|attribute| attribute.key == "service.name").unwrap().value;
            let name = name.unwrap().value.unwrap();
            let opentelemetry_proto::tonic::common::v1::any_value::Value::StringValue(name) = name else {
                panic!("no name")
            };
            self.services.push(name);
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let trace = u64::from_be_bytes(*span.trace_id.last_chunk().unwrap());
                let number = u64::from_be_bytes(*span.span_id.last_chunk().unwrap());
                self.traces.entry(trace).or_default().push(number);
            }
        }
    }
}

fn status(code: u16, text: &'static str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *answer.status_mut() = code.try_into().unwrap();
    answer
}
