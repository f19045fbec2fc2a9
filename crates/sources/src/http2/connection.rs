//! One connection: its codec, its streams and its deadlines, in one task.

use super::answer;
use super::call;
use super::deadlines::{Deadlines, MissedDeadline};
use super::flow::{Body, Flow, WINDOW};
use super::receive;
use super::request;
use super::server::Inner;
use super::socket::Socket;
use super::streams::{RESETS, STREAMS, UNSEEN_RESETS};
use super::transport::Transport;
use crate::grpc;
use crate::otlp::Otlp;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use h2::RecvStream;
use h2::server::{Builder, SendResponse};
use http::HeaderMap;
use http::request::Parts;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use tidegate_admission::{Caller, Headers, Rejection, from_peer, is_guarded};
use tidegate_arena::{Charge, Share};
use tidegate_http1::{AdmissionFuture, Certificate, ConnectionEnd, DuplicateHeader, Shutdown};
use tidegate_ledger::{Refusal, RefusalDetails};
use tidegate_limit::Moment;
use tidegate_wire::otlp::Signal;
use tokio::time::{Instant, sleep_until, timeout};

/// The most bytes of a head, as the protocol counts them: 32 for each header besides. Tokens are long.
const HEADERS: u32 = 64 << 10;
/// The table that headers are remembered in, which has room for what a client of gRPC repeats. It stays while a
/// connection is idle, and full of the smallest entries it is five times as large as they count.
const HEADER_TABLE: u32 = 512;

/// Serves one connection to its end.
pub(super) async fn serve<T: Transport>(
    server: &Arc<Inner>,
    stream: T,
    shutdown: &Shutdown,
) -> ConnectionEnd {
    let settings = &server.settings;
    let Ok(peer) = stream.peer() else { return ConnectionEnd::Lost };
    let certificate = stream.certificate();
    let flow = Flow::new(server.arena.clone());
    let Some(mut codec) = Box::pin(greet(server, stream, &flow)).await else { return ConnectionEnd::Lost };
    let mut calls = FuturesUnordered::<Call<'_>>::new();
    let timer = pin!(sleep_until(Instant::now() + settings.idle));
    let mut deadlines = Deadlines::new(settings, &flow, timer).until(certificate.as_deref());
    let mut signal = pin!(shutdown.begun());
    let mut ended = ConnectionEnd::ByClient;
    poll_fn(|context| {
        if !deadlines.is_leaving() && signal.as_mut().poll(context).is_ready() {
            ended = ConnectionEnd::Shutdown;
            deadlines.leave();
            codec.graceful_shutdown();
        }
        flow.begin_turn();
        loop {
            // Bytes in the codec go into windows before more is read.
            while let Poll::Ready(Some(())) = calls.poll_next_unpin(context) {}
            let (request, respond) = match codec.poll_accept(context) {
                Poll::Ready(Some(Ok(accepted))) => accepted,
                Poll::Ready(Some(Err(_))) => return Poll::Ready(ConnectionEnd::Lost),
                Poll::Ready(None) => return Poll::Ready(ended),
                Poll::Pending if flow.resumes(context) => continue,
                Poll::Pending => break,
            };
            let (parts, body) = request.into_parts();
            let stream = body.stream_id().as_u32();
            if let Some((preparation, charge)) =
                prepare(server, &flow, peer.ip(), (&parts, body.is_end_stream()))
            {
                let way = flow.body(stream, false);
                let (server, flow, certificate) = (&*server, &*flow, certificate.as_deref());
                calls.push(Box::pin(async move {
                    preparation.await;
                    let has_end = body.is_end_stream();
                    let admitted = admit(server, flow, (peer, certificate), (&parts, has_end), respond);
                    let has_rest = !has_end && !grpc::is_call(&parts);
                    drop((parts, charge));
                    match admitted {
                        Some((start, respond)) => {
                            start.having_waited().serve((server, flow), peer, way, body, respond).await;
                        }
                        None if !has_rest => {}
                        None => {
                            if let Some(_charge) = rest(server, flow) {
                                receive::discard(&way, body).await;
                            }
                        }
                    }
                }));
                continue;
            }
            // From here on the flow knows the body, so that no byte of it goes another way.
            let has_end = body.is_end_stream();
            match admit(server, &flow, (peer, certificate.as_deref()), (&parts, has_end), respond) {
                Some((start, respond)) => {
                    drop(parts);
                    let way = flow.body(stream, start.goes_past());
                    calls.push(start.serve((server, &flow), peer, way, body, respond));
                }
                None if has_end || grpc::is_call(&parts) => flow.abandon(stream),
                None => {
                    let Some(charge) = rest(server, &flow) else {
                        flow.abandon(stream);
                        continue;
                    };
                    let way = flow.body(stream, false);
                    calls.push(Box::pin(async move {
                        receive::discard(&way, body).await;
                        drop(charge);
                    }));
                }
            }
        }
        let has_streams = !calls.is_empty() || codec.has_streams();
        let quiet = flow.settle(has_streams);
        // Grown buffers stay charged while idle, until others need the memory.
        let grown = flow.has_grown().then_some(&server.arena);
        match deadlines.poll(context, quiet, has_streams, grown) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(MissedDeadline::Lost) => Poll::Ready(ConnectionEnd::Lost),
            Poll::Ready(MissedDeadline::Idle) => {
                ended = ConnectionEnd::Idle;
                codec.graceful_shutdown();
                // For the goodbye to be written.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await
}

/// Exchanges the first frames. What comes of it lies on the heap, since a future keeps room for each place that
/// it moves something through.
async fn greet<T: Transport>(server: &Inner, stream: T, flow: &Arc<Flow>) -> Option<Box<Codec<T>>> {
    let settings = &server.settings;
    let socket = Socket::new(stream, Arc::clone(flow), server.arena.clone(), *settings);
    let mut builder = Builder::new();
    builder
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADERS)
        .header_table_size(HEADER_TABLE)
        .max_concurrent_reset_streams(RESETS)
        .max_pending_accept_reset_streams(UNSEEN_RESETS);
    flow.begin_turn();
    timeout(settings.head, builder.handshake(socket)).await.ok()?.ok().map(Box::new)
}

/// The cost of draining the rest of a refused request's body; `None` without memory for it.
fn rest(server: &Inner, flow: &Flow) -> Option<Charge> {
    if flow.is_refused() { None } else { server.arena.try_charge(Share::Ingest, receive::REST_BYTES).ok() }
}

/// The future that admission awaits, with the charge of the request's head meanwhile. Without memory the request is
/// decided on at once, and refused with a delay.
fn prepare(
    server: &Inner,
    flow: &Flow,
    peer: IpAddr,
    (parts, has_end): (&Parts, bool),
) -> Option<(AdmissionFuture, Charge)> {
    let preparation = server.http.gate().prepare(&Fields(&parts.headers), peer)?;
    if flow.is_refused() {
        return None;
    }
    // Its body comes meanwhile, and lies in the codec.
    let body = if has_end { 0 } else { u64::from(WINDOW) };
    let charge = server.arena.try_charge(Share::Ingest, u64::from(HEADERS) + call::BYTES + body).ok()?;
    Some((preparation, charge))
}

type Codec<T> = h2::server::Connection<Socket<T>, Bytes>;

/// The work for one stream.
type Call<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A request that was let in.
enum Start {
    Call(Arc<Otlp>, call::Start),
    Request(request::Start),
}

impl Start {
    /// Whether its message goes past the codec.
    fn goes_past(&self) -> bool {
        matches!(self, Start::Call(_, call) if call.goes_past())
    }

    /// The same, where its body began to come through the codec.
    fn having_waited(self) -> Start {
        match self {
            Start::Call(otlp, call) => Start::Call(otlp, call::Start { has_waited: true, ..call }),
            request @ Start::Request(_) => request,
        }
    }

    /// Serves it to its answer. On the heap, since the set of calls keeps room for one even while it is empty.
    fn serve<'a>(
        self,
        (server, flow): (&'a Inner, &'a Flow),
        peer: SocketAddr,
        way: Body<'a>,
        body: RecvStream,
        respond: SendResponse<Bytes>,
    ) -> Call<'a> {
        match self {
            Start::Call(otlp, start) => {
                Box::pin(from_peer(peer, call::serve(server, otlp, flow, start, way, body, respond)))
            }
            Start::Request(start) => {
                Box::pin(from_peer(peer, request::serve(server, flow, start, way, body, respond)))
            }
        }
    }
}

/// Decides on a request's head. Nothing where the answer is given already.
fn admit(
    server: &Inner,
    flow: &Flow,
    from: (SocketAddr, Option<&Certificate>),
    (parts, has_end): (&Parts, bool),
    respond: SendResponse<Bytes>,
) -> Option<(Start, SendResponse<Bytes>)> {
    if grpc::is_call(parts) {
        admit_call(server, flow, from, parts, respond)
    } else {
        let (start, respond) = request::admit(server, flow, from, (parts, has_end), respond)?;
        Some((Start::Request(start), respond))
    }
}

fn admit_call(
    server: &Inner,
    flow: &Flow,
    (peer, certificate): (SocketAddr, Option<&Certificate>),
    parts: &Parts,
    mut respond: SendResponse<Bytes>,
) -> Option<(Start, SendResponse<Bytes>)> {
    let (Some(otlp), Some(form)) = (server.http.grpc(), grpc::form(parts)) else {
        server.http.refuse_stray(Refusal::NotFound);
        let refused = Rejection::new(Refusal::NotFound, "there is no such method here\n");
        answer::grpc(&mut respond, Err(&refused.into()));
        return None;
    };
    let mut open = otlp.books().open();
    let length = length(&parts.headers);
    let headers = &Fields(&parts.headers);
    let guarded = is_guarded(parts.method.as_str());
    let now = Moment::now();
    let caller =
        Caller { peer: peer.ip(), certificate, headers, bytes: length, now, guarded, journalled: true };
    let gate = server.http.gate();
    let brings_series = form.as_ref().is_ok_and(|form| form.signal == Signal::Metrics);
    let entered = gate.admit(&caller, &mut open).and_then(|passage| {
        if brings_series {
            gate.check_head_series(&open)?;
        }
        let charge =
            if flow.is_refused() { None } else { server.arena.try_charge(Share::Ingest, call::BYTES).ok() };
        charge.map(|charge| (charge, passage)).ok_or_else(|| server.http.gate().no_memory())
    });
    let refused = match (form, entered) {
        (Ok(form), Ok((charge, passage))) => {
            let deadline = grpc::timeout(parts).map(|wait| Instant::now() + wait);
            let announces_length = length.is_some();
            let start =
                call::Start { open, form, announces_length, deadline, has_waited: false, charge, passage };
            return Some((Start::Call(Arc::clone(otlp), start), respond));
        }
        (Err(refused), _) | (Ok(_), Err(refused)) => refused,
    };
    let target = format_args!("{} {}", parts.method, parts.uri.path());
    let details = RefusalDetails { peer: Some(peer), target: &target, bytes: length, words: &refused.words };
    open.refuse_with(refused.reason, &details);
    answer::grpc(&mut respond, Err(&refused.into()));
    None
}

/// Headers, for the gate.
struct Fields<'a>(&'a HeaderMap);

impl Headers for Fields<'_> {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
        let mut values = self.0.get_all(name).iter();
        let first = values.next().map(http::HeaderValue::as_bytes);
        if values.next().is_some() { Err(DuplicateHeader) } else { Ok(first) }
    }
}

/// The length that is announced; the codec sees to it that it is true.
fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(http::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
