//! One connection: its codec, its streams and its deadlines, in one task.

use super::answer;
use super::call::{self, Kind, Start};
use super::deadlines::{Deadlines, Late};
use super::flow::{Flow, WINDOW};
use super::server::Inner;
use super::socket::Socket;
use super::streams::{RESETS, STREAMS};
use super::transport::Transport;
use crate::grpc;
use crate::http::without_slash;
use crate::otlp::{Form, Otlp};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use h2::server::{Builder, SendResponse};
use http::HeaderMap;
use http::request::Parts;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tidegate_admission::otlp::Media;
use tidegate_admission::{Caller, Headers, Refused, is_guarded};
use tidegate_arena::{Charge, Share};
use tidegate_http1::{Certificate, Ended, Preparation, Repeated, Shutdown};
use tidegate_ledger::Refusal;
use tidegate_limit::Moment;
use tokio::time::{Instant, sleep_until, timeout};

/// The most bytes of a head, as the protocol counts them: 32 for each header besides. Tokens are long.
const HEADERS: u32 = 64 << 10;
/// The table that headers are remembered in, which has room for what a client of gRPC repeats. It stays while a
/// connection is idle, and full of the smallest entries it is five times as large as they count.
const HEADER_TABLE: u32 = 512;

/// Serves one connection to its end.
pub(super) async fn serve<T: Transport>(server: &Arc<Inner>, stream: T, shutdown: &Shutdown) -> Ended {
    let Some(otlp) = server.http.otlp().cloned() else { return Ended::Refused };
    let settings = &server.settings;
    let Ok(peer) = stream.peer() else { return Ended::Lost };
    let certificate = stream.certificate();
    let flow = Flow::new(server.arena.clone());
    let Some(mut codec) = Box::pin(greet(server, stream, &flow)).await else { return Ended::Lost };
    let mut calls = FuturesUnordered::new();
    let timer = pin!(sleep_until(Instant::now() + settings.idle));
    let mut deadlines = Deadlines::new(settings, &flow, timer).until(certificate.as_deref());
    let mut signal = pin!(shutdown.begun());
    let mut ended = Ended::ByClient;
    poll_fn(|context| {
        if !deadlines.is_leaving() && signal.as_mut().poll(context).is_ready() {
            ended = Ended::Shutdown;
            deadlines.leave();
            codec.graceful_shutdown();
        }
        flow.begin_turn();
        loop {
            // What lies in the codec goes into windows before more is read.
            while let Poll::Ready(Some(())) = calls.poll_next_unpin(context) {}
            let (request, respond) = match codec.poll_accept(context) {
                Poll::Ready(Some(Ok(accepted))) => accepted,
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Ended::Lost),
                Poll::Ready(None) => return Poll::Ready(ended),
                Poll::Pending if flow.resumes(context) => continue,
                Poll::Pending => break,
            };
            let (parts, body) = request.into_parts();
            let stream = body.stream_id().as_u32();
            if let Some((preparation, charge)) = prepare(server, &flow, peer, &parts) {
                let way = flow.body(stream, false);
                let (server, otlp, flow, certificate) = (&*server, &otlp, &*flow, certificate.as_deref());
                calls.push(Either::Right(Either::Left(Box::pin(async move {
                    preparation.await;
                    let admitted = admit(server, otlp, flow, (peer, certificate), &parts, respond);
                    let has_end = body.is_end_stream() || grpc::is_call(&parts);
                    drop((parts, charge));
                    match admitted {
                        Some((start, respond)) => {
                            let start = Start { has_waited: true, ..start };
                            call::serve(server, otlp, flow, start, way, body, respond).await;
                        }
                        None if has_end => {}
                        None => {
                            if let Some(_charge) = rest(server, flow) {
                                call::discard(&way, body).await;
                            }
                        }
                    }
                }))));
                continue;
            }
            // On the heap, since the set keeps room for one even while it is empty. From here on the flow knows the
            // body, so that no byte of it goes another way.
            match admit(server, &otlp, &flow, (peer, certificate.as_deref()), &parts, respond) {
                Some((start, respond)) => {
                    drop(parts);
                    let way = flow.body(stream, start.goes_past());
                    calls.push(Either::Left(Box::pin(call::serve(
                        server, &otlp, &flow, start, way, body, respond,
                    ))));
                }
                None if body.is_end_stream() || grpc::is_call(&parts) => {}
                None => {
                    let Some(charge) = rest(server, &flow) else { continue };
                    let way = flow.body(stream, false);
                    calls.push(Either::Right(Either::Right(Box::pin(async move {
                        call::discard(&way, body).await;
                        drop(charge);
                    }))));
                }
            }
        }
        let has_streams = !calls.is_empty() || codec.has_streams();
        let quiet = flow.settle(has_streams);
        // What has grown is charged also while it is idle: that ends where others lack it.
        let grown = flow.has_grown().then_some(&server.arena);
        match deadlines.poll(context, quiet, has_streams, grown) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Late::Lost) => Poll::Ready(Ended::Lost),
            Poll::Ready(Late::Idle) => {
                ended = Ended::Idle;
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
    let socket = Socket::new(stream, Arc::clone(flow), server.arena.clone(), settings.memory_wait);
    let mut builder = Builder::new();
    builder
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADERS)
        .header_table_size(HEADER_TABLE)
        .max_concurrent_reset_streams(RESETS)
        .max_pending_accept_reset_streams(RESETS);
    flow.begin_turn();
    timeout(settings.head, builder.handshake(socket)).await.ok()?.ok().map(Box::new)
}

/// What it costs to throw the rest of a refused request's body away; nothing where even that is not there.
fn rest(server: &Inner, flow: &Flow) -> Option<Charge> {
    if flow.is_refused() { None } else { server.arena.try_charge(Share::Ingest, call::REST_BYTES).ok() }
}

/// What has to be waited for before a request can be decided on, and what its head is charged meanwhile. Without memory
/// it is decided on at once, and told to come back.
fn prepare(server: &Inner, flow: &Flow, peer: IpAddr, parts: &Parts) -> Option<(Preparation, Charge)> {
    let preparation = server.http.gate().prepare(&Fields(&parts.headers), peer)?;
    if flow.is_refused() {
        return None;
    }
    let charge = server.arena.try_charge(Share::Ingest, u64::from(HEADERS) + call::BYTES).ok()?;
    Some((preparation, charge))
}

type Codec<T> = h2::server::Connection<Socket<T>, Bytes>;

/// Decides on a request's head: what becomes a call, or nothing when the answer is given already.
fn admit(
    server: &Inner,
    otlp: &Otlp,
    flow: &Flow,
    (peer, certificate): (IpAddr, Option<&Certificate>),
    parts: &Parts,
    mut respond: SendResponse<Bytes>,
) -> Option<(Start, SendResponse<Bytes>)> {
    let is_call = grpc::is_call(parts);
    let found = if is_call {
        grpc::form(parts).map(|form| form.map_err(|refused| (refused, Media::Protobuf)))
    } else {
        Form::signal_at(without_slash(parts.uri.path()))
            .map(|signal| Form::over_http(signal, parts.method.as_str(), headers(&parts.headers)))
    };
    let Some(form) = found else {
        server.http.refuse_stray(Refusal::NotFound);
        if is_call {
            let refused = Refused::new(Refusal::NotFound, "there is no such method here\n");
            answer::grpc(&mut respond, Err(&refused.into()));
        } else {
            answer::nowhere(&mut respond, NOTHING);
        }
        return None;
    };
    let mut open = otlp.books().open();
    let length = length(&parts.headers);
    let bytes = length.map(|length| length as u64);
    let headers = &Fields(&parts.headers);
    let guarded = is_guarded(parts.method.as_str());
    let caller = Caller { peer, certificate, headers, bytes, now: Moment::now(), guarded };
    let entered = server.http.gate().enter(&caller, &mut open).and_then(|passage| {
        let charge =
            if flow.is_refused() { None } else { server.arena.try_charge(Share::Ingest, call::BYTES).ok() };
        charge.map(|charge| (charge, passage)).ok_or_else(|| server.http.gate().no_memory())
    });
    let refused = match (form, entered) {
        (Ok(form), Ok((charge, passage))) => {
            let kind = if is_call { Kind::Grpc } else { Kind::Http };
            let deadline =
                if is_call { grpc::timeout(parts).map(|wait| Instant::now() + wait) } else { None };
            return Some((
                Start { open, form, kind, length, deadline, has_waited: false, charge, passage },
                respond,
            ));
        }
        (Err(refused), _) => refused,
        (Ok(form), Err(refused)) => (refused, form.media),
    };
    let (refused, media) = refused;
    open.refuse(refused.reason);
    if is_call {
        answer::grpc(&mut respond, Err(&refused.into()));
    } else {
        answer::http(&mut respond, Err(refused), media);
    }
    None
}

const NOTHING: &str = "nothing is served under this path over HTTP/2; OTLP is taken at /v1/traces, /v1/metrics, \
                       /v1/logs and /v1development/profiles, and whatever else over HTTP/1.1\n";

/// Headers, for the gate.
struct Fields<'a>(&'a HeaderMap);

impl Headers for Fields<'_> {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, Repeated> {
        let mut values = self.0.get_all(name).iter();
        let first = values.next().map(http::HeaderValue::as_bytes);
        if values.next().is_some() { Err(Repeated) } else { Ok(first) }
    }
}

/// The headers that say how a body is written; an error where one of them is there twice.
fn headers(headers: &HeaderMap) -> crate::otlp::Headers<'_> {
    let sole = |name| {
        let mut values = headers.get_all(name).iter();
        let first = values.next().map(http::HeaderValue::as_bytes);
        if values.next().is_some() { Err(()) } else { Ok(first) }
    };
    Ok((sole("content-type")?, sole("content-encoding")?))
}

/// The length that is announced; the codec sees to it that it is true.
fn length(headers: &HeaderMap) -> Option<usize> {
    headers.get(http::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
