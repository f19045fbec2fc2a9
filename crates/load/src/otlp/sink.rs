//! A receiver of OTLP that checks what arrives, and misbehaves when told to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use tokio::sync::watch;

use super::{ContentCoding, Signal, numbers};
use crate::numbers::NumberSet;
use crate::server::{Abandoned, Answer, serve};
use crate::sink::Behaviour;
use crate::target::Target;

/// The largest body, as sent and decompressed.
const MAX_BODY: usize = 256 << 20;

/// A receiver on loopback, for HTTP and gRPC on one port. It runs on a thread of its own and stops when dropped.
#[derive(Debug)]
pub struct OtlpSink {
    address: SocketAddr,
    orders: Option<watch::Sender<Behaviour>>,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// The received items.
#[derive(Clone, Debug, Default)]
pub struct ReceivedItems {
    /// The numbers of the items of each signal: traces, metrics, logs.
    pub numbers: [NumberSet; 3],
    /// Items that had arrived before.
    pub duplicates: u64,
    /// Items without a number.
    pub unnumbered: u64,
    /// Requests answered, by HTTP status, or by the code of gRPC for that transport.
    pub requests: BTreeMap<u16, u64>,
    /// Requests left without an answer.
    pub stalled: u64,
    /// Bytes of the bodies that were taken, as sent.
    pub bytes: u64,
    /// Requests that could not be read.
    pub malformed: u64,
}

impl ReceivedItems {
    /// The numbers of a signal's items.
    pub fn of(&self, signal: Signal) -> &NumberSet {
        &self.numbers[signal as usize]
    }
}

#[derive(Debug, Default)]
struct State {
    /// Whether bodies are looked into.
    inspects: bool,
    arrived: Mutex<ReceivedItems>,
    changed: Condvar,
}

impl OtlpSink {
    /// Starts a receiver on a free port; it reads the items' numbers if it `inspects`, and else only counts.
    ///
    /// # Errors
    /// When there is no port or no thread to be had.
    pub fn start(behaviour: Behaviour, looks: bool) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (orders, received) = watch::channel(behaviour);
        let state = Arc::new(State { inspects: looks, ..State::default() });
        let shared = Arc::clone(&state);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("otlp-sink".to_owned()).spawn(move || {
            let respond = move |request, orders| {
                let state = Arc::clone(&shared);
                async move { respond(request, orders, &state).await }
            };
            runtime.block_on(serve(listener, address, received, respond));
        })?;
        Ok(Self { address, orders: Some(orders), state, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where to send to.
    pub fn target(&self) -> Target {
        Target { authority: self.address.to_string(), path: String::new() }
    }

    /// Behaves differently from the next request on; those that wait because of a [`Behaviour::Stall`] are
    /// abandoned, and [`Behaviour::Refuse`] closes all connections. A [`Behaviour::Status`] of gRPC is
    /// `UNAVAILABLE` for 429 and 5xx and `INVALID_ARGUMENT` else; the other behaviours are as
    /// [`Behaviour::Healthy`].
    pub fn set(&self, behaviour: Behaviour) {
        if let Some(orders) = &self.orders {
            orders.send_replace(behaviour);
        }
    }

    /// The items received so far.
    pub fn report(&self) -> ReceivedItems {
        self.state.arrived().clone()
    }

    /// Waits until `enough` of what arrived, at most `limit`; says whether it came to that.
    pub fn wait_for(&self, limit: Duration, mut enough: impl FnMut(&ReceivedItems) -> bool) -> bool {
        let missing = |arrived: &mut ReceivedItems| !enough(arrived);
        let waited = self.state.changed.wait_timeout_while(self.state.arrived(), limit, missing);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for OtlpSink {
    fn drop(&mut self) {
        // The server ends when nobody is left to give it orders.
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl State {
    fn arrived(&self) -> MutexGuard<'_, ReceivedItems> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, change: impl FnOnce(&mut ReceivedItems)) {
        change(&mut self.arrived());
        self.changed.notify_all();
    }
}

async fn respond(
    request: hyper::Request<Incoming>,
    mut orders: watch::Receiver<Behaviour>,
    state: &State,
) -> Result<Answer, Abandoned> {
    let behaviour = *orders.borrow_and_update();
    if behaviour == Behaviour::Stall {
        state.record(|arrived| arrived.stalled += 1);
        let _ended = orders.changed().await;
        return Err(Abandoned);
    }
    let header =
        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let grpc = header("content-type").is_some_and(|kind| kind.starts_with("application/grpc"));
    let encoding = header(if grpc { "grpc-encoding" } else { "content-encoding" });
    let coding = ContentCoding::of_name(encoding.as_deref());
    let signal = Signal::of_path(request.uri().path());
    let body = Limited::new(request.into_body(), MAX_BODY).collect().await;
    let taken = match (behaviour, signal, coding, body) {
        (Behaviour::Status { code, retry_after }, ..) => Err((code, retry_after)),
        (_, Some(signal), Some(coding), Ok(body)) => {
            take(signal, coding, grpc, &body.to_bytes(), state).map_err(|()| (400, None))
        }
        _ => Err((400, None)),
    };
    let answer = if grpc { grpc_answer(taken) } else { http_answer(taken) };
    let code = match taken {
        Ok(()) if grpc => 0,
        Ok(()) => 200,
        Err((code, _)) => code,
    };
    state.record(|arrived| *arrived.requests.entry(code).or_default() += 1);
    Ok(answer)
}

fn take(signal: Signal, coding: ContentCoding, grpc: bool, body: &[u8], state: &State) -> Result<(), ()> {
    let mut found = Vec::new();
    let mut unnumbered = 0;
    if state.inspects {
        let (message, coding) = if grpc { framed(body, coding)? } else { (body, coding) };
        let raw = coding.decode(message, MAX_BODY);
        let read = raw
            .map_err(drop)
            .and_then(|raw| numbers(signal, &raw, |number| found.push(number)).map_err(drop));
        match read {
            Ok(others) => unnumbered = others,
            Err(()) => {
                state.record(|arrived| arrived.malformed += 1);
                return Err(());
            }
        }
    }
    state.record(|arrived| {
        for number in found {
            let new = arrived.numbers[signal as usize].insert(number, number + 1);
            arrived.duplicates += 1 - new;
        }
        arrived.unnumbered += unnumbered;
        arrived.bytes += body.len() as u64;
    });
    Ok(())
}

/// The one message of a call.
fn framed(body: &[u8], coding: ContentCoding) -> Result<(&[u8], ContentCoding), ()> {
    let ([compressed, len @ ..], message) = body.split_first_chunk::<5>().ok_or(())?;
    let whole = u32::from_be_bytes(*len) as usize == message.len();
    let coding = if *compressed == 1 { coding } else { ContentCoding::Identity };
    if whole { Ok((message, coding)) } else { Err(()) }
}

fn http_answer(taken: Result<(), (u16, Option<u64>)>) -> Answer {
    let (status, retry_after) = taken.err().unwrap_or((200, None));
    let mut response = hyper::Response::new(Full::new(Bytes::new()).boxed());
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert("content-type", hyper::header::HeaderValue::from_static("application/x-protobuf"));
    if let Some(seconds) = retry_after {
        headers.insert("retry-after", seconds.into());
    }
    response
}

fn grpc_answer(taken: Result<(), (u16, Option<u64>)>) -> Answer {
    let code: u16 = match taken {
        Ok(()) => 0,
        Err((429 | 500.., _)) => 14,
        Err(_) => 3,
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    // An empty message, and the status behind it.
    let message = Bytes::from_static(&[0; 5]);
    let message = (code == 0).then(|| Ok(Frame::data(message)));
    let frames = message.into_iter().chain([Ok::<_, Infallible>(Frame::trailers(trailers))]);
    let body = StreamBody::new(futures_util::stream::iter(frames));
    let mut response = hyper::Response::new(BodyExt::boxed(body));
    let kind = hyper::header::HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", kind);
    response
}
