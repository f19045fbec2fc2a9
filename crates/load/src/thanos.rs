//! Ingestors of Thanos Receive: members of a hashring that check what arrives, and misbehave when told to.

mod request;

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use tokio::sync::watch;

use crate::server::{Abandoned, Answer, serve};
use crate::sink::{Arrivals, Behaviour, Check};
use request::WriteRequest;

/// The largest message, as sent and decompressed.
const MAX_MESSAGE: usize = 256 << 20;
/// Codes of gRPC.
const OK: u16 = 0;
const INVALID_ARGUMENT: u16 = 3;
const UNAVAILABLE: u16 = 14;

/// Ingestors on loopback, each on a thread of its own; they stop when dropped.
#[derive(Debug)]
pub struct ThanosIngestors {
    members: Vec<Member>,
    state: Arc<State>,
}

#[derive(Debug)]
struct Member {
    address: SocketAddr,
    orders: Option<watch::Sender<Behaviour>>,
    thread: Option<JoinHandle<()>>,
}

/// A replica (from 1) and the key of a label set.
pub type IngestorSeries = (u64, u64);

#[derive(Debug)]
struct State {
    check: Check,
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    /// Counts of all members together, by replica: each series of one is at one member.
    replicas: BTreeMap<u64, Arrivals>,
    members: Vec<MemberArrivals>,
}

#[derive(Debug, Default)]
struct MemberArrivals {
    requests: u64,
    bytes: u64,
    samples: u64,
    stalled: u64,
    malformed: u64,
    series: HashSet<IngestorSeries>,
}

impl ThanosIngestors {
    /// Starts so many on free ports. With [`Check::Nothing`] they only count requests and bytes.
    ///
    /// # Errors
    /// When there is no port or no thread to be had.
    pub fn start(count: usize, check: Check) -> io::Result<Self> {
        let members = std::iter::repeat_with(MemberArrivals::default).take(count).collect();
        let seen = Mutex::new(Seen { members, ..Seen::default() });
        let state = Arc::new(State { check, seen, changed: Condvar::new() });
        let members = (0..count).map(|number| Member::start(number, &state)).collect::<io::Result<_>>()?;
        Ok(Self { members, state })
    }

    /// Where they listen.
    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(|member| member.address.to_string()).collect()
    }

    /// Has a member behave differently from the next request on. Requests that wait because of a [`Behaviour::Stall`] are abandoned,
    /// and [`Behaviour::Refuse`] closes all connections. A [`Behaviour::Status`] is `UNAVAILABLE` for 429 and 5xx, and
    /// `INVALID_ARGUMENT` else; the other behaviours are as [`Behaviour::Healthy`].
    pub fn set(&self, member: usize, behaviour: Behaviour) {
        if let Some(orders) = self.members.get(member).and_then(|member| member.orders.as_ref()) {
            orders.send_replace(behaviour);
        }
    }

    /// Counts of what arrived with the number of this replica, from 1, at all members together. A sample is out of order there also where its
    /// series moved to another member.
    pub fn replica(&self, number: u64) -> Arrivals {
        self.state.seen().replicas.get(&number).cloned().unwrap_or_default()
    }

    /// The replicas of which something arrived.
    pub fn replicas(&self) -> Vec<u64> {
        self.state.seen().replicas.keys().copied().collect()
    }

    /// The series of which a member was sent something.
    pub fn series_of(&self, member: usize) -> HashSet<IngestorSeries> {
        self.of(member, |member| member.series.clone())
    }

    /// Requests that a member took.
    pub fn requests_of(&self, member: usize) -> u64 {
        self.of(member, |member| member.requests)
    }

    /// Bytes of these requests, as sent.
    pub fn bytes_of(&self, member: usize) -> u64 {
        self.of(member, |member| member.bytes)
    }

    /// Samples that a member took; none are counted with [`Check::Nothing`].
    pub fn samples_of(&self, member: usize) -> u64 {
        self.of(member, |member| member.samples)
    }

    /// Requests that a member did not answer.
    pub fn stalled_of(&self, member: usize) -> u64 {
        self.of(member, |member| member.stalled)
    }

    /// Requests to any member that could not be read.
    pub fn malformed(&self) -> u64 {
        self.state.seen().members.iter().map(|member| member.malformed).sum()
    }

    /// Waits until `enough` samples arrived at a member, at most `limit`; says whether it came to that.
    pub fn wait_for(&self, member: usize, limit: Duration, mut enough: impl FnMut(u64) -> bool) -> bool {
        let missing =
            |seen: &mut Seen| !seen.members.get(member).is_some_and(|member| enough(member.samples));
        let waited = self.state.changed.wait_timeout_while(self.state.seen(), limit, missing);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn of<T: Default>(&self, member: usize, part: impl FnOnce(&MemberArrivals) -> T) -> T {
        self.state.seen().members.get(member).map(part).unwrap_or_default()
    }
}

impl Member {
    fn start(number: usize, state: &Arc<State>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (orders, received) = watch::channel(Behaviour::Healthy);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let state = Arc::clone(state);
        let thread = std::thread::Builder::new().name("thanos-ingestor".to_owned()).spawn(move || {
            let respond = move |request, orders| {
                let state = Arc::clone(&state);
                async move { respond(request, orders, number, &state).await }
            };
            runtime.block_on(serve(listener, address, received, respond));
        })?;
        Ok(Self { address, orders: Some(orders), thread: Some(thread) })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The server ends when nobody is left to give it orders.
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl State {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, member: usize, change: impl FnOnce(&mut MemberArrivals, &mut BTreeMap<u64, Arrivals>)) {
        let mut seen = self.seen();
        let Seen { members, replicas } = &mut *seen;
        if let Some(member) = members.get_mut(member) {
            change(member, replicas);
        }
        drop(seen);
        self.changed.notify_all();
    }

    /// Takes a request that was read whole; the code of the answer.
    fn take(&self, member: usize, body: &[u8], is_compressed: bool) -> u16 {
        if self.check == Check::Nothing {
            self.record(member, |member, _| member.took(body));
            return OK;
        }
        let mut arrived = Vec::new();
        let request = request::message(body, is_compressed, MAX_MESSAGE).and_then(|raw| {
            let request = WriteRequest::read(&raw)?;
            let totals = request.samples(&mut |sample| arrived.push(sample))?;
            Ok((request.replica, totals))
        });
        let Ok((replica, _totals)) = request else {
            self.record(member, |member, _| member.malformed += 1);
            return INVALID_ARGUMENT;
        };
        let timeline = if let Check::Timed(timeline) = self.check { Some(timeline) } else { None };
        self.record(member, |member, replicas| {
            member.took(body);
            member.samples += arrived.len() as u64;
            let arrivals = replicas.entry(replica).or_default();
            for sample in arrived {
                member.series.insert((replica, sample.key));
                arrivals.record_sample(sample, timeline);
            }
        });
        OK
    }
}

impl MemberArrivals {
    fn took(&mut self, body: &[u8]) {
        self.requests += 1;
        self.bytes += body.len() as u64;
    }
}

async fn respond(
    request: hyper::Request<Incoming>,
    mut orders: watch::Receiver<Behaviour>,
    member: usize,
    state: &State,
) -> Result<Answer, Abandoned> {
    let behaviour = *orders.borrow_and_update();
    if behaviour == Behaviour::Stall {
        state.record(member, |member, _| member.stalled += 1);
        let _ended = orders.changed().await;
        return Err(Abandoned);
    }
    let is_compressed = request.headers().get("grpc-encoding").is_some_and(|encoding| encoding == "snappy");
    let is_known = request.uri().path() == "/thanos.WriteableStore/RemoteWrite";
    let body = Limited::new(request.into_body(), MAX_MESSAGE).collect().await;
    let code = match (behaviour, body) {
        (Behaviour::Status { code: 429 | 500.., .. }, _) => UNAVAILABLE,
        (Behaviour::Status { .. }, _) | (_, Err(_)) => INVALID_ARGUMENT,
        (_, Ok(body)) if is_known => state.take(member, &body.to_bytes(), is_compressed),
        _ => INVALID_ARGUMENT,
    };
    Ok(answer(code))
}

/// An empty response with its status behind it, or a status alone.
fn answer(code: u16) -> Answer {
    let kind = HeaderValue::from_static("application/grpc");
    if code != OK {
        let mut answer = hyper::Response::new(Empty::new().boxed());
        answer.headers_mut().insert("content-type", kind);
        answer.headers_mut().insert("grpc-status", code.into());
        answer.headers_mut().insert("grpc-message", HeaderValue::from_static("as ordered"));
        return answer;
    }
    let mut end = HeaderMap::new();
    end.insert("grpc-status", code.into());
    let frames = [Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[0; 5]))), Ok(Frame::trailers(end))];
    let mut answer =
        hyper::Response::new(BodyExt::boxed(StreamBody::new(futures_util::stream::iter(frames))));
    answer.headers_mut().insert("content-type", kind);
    answer
}
