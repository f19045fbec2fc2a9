//! One connection: its codec, its streams and its deadlines, in one task.

use super::answer;
use super::call::{self, Kind, Start};
use super::flow::{Flow, Quiet, Socket};
use super::server::Inner;
use crate::grpc;
use crate::otlp::{Form, Otlp};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use h2::server::{Builder, SendResponse};
use http::HeaderMap;
use http::request::Parts;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tidegate_admission::Refused;
use tidegate_admission::otlp::Media;
use tidegate_arena::Share;
use tidegate_http1::{Ended, Settings, Shutdown};
use tidegate_ledger::Refusal;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// The window of a connection and of each stream. What lies in the codec is bounded by what is read of the
/// socket ([`flow`](super::flow)) and not by this, so it is as large as most requests: they need no round trip.
const WINDOW: u32 = 512 << 10;
/// Streams at a time. Fewer than the hundred that the protocol recommends (RFC 9113, section 6.5.2): each may
/// bring a head as large as is allowed, and calls of telemetry are large and few.
const STREAMS: u32 = 64;
/// The most bytes of a head, as the protocol counts them: 32 for each header besides.
const HEADERS: u32 = 8 << 10;
/// The table that headers are remembered in, which has room for what a client of gRPC repeats. It stays while a
/// connection is idle, and full of the smallest entries it is five times as large as they count.
const HEADER_TABLE: u32 = 512;
/// Streams that were reset and are remembered; and that the peer may have reset before they were looked at.
const RESETS: usize = 16;

/// Serves one connection to its end.
pub(super) async fn serve(server: &Arc<Inner>, stream: TcpStream, shutdown: &Shutdown) -> Ended {
    let Some(otlp) = server.http.otlp().cloned() else { return Ended::Refused };
    let settings = &server.settings;
    let flow = Flow::new();
    let Some(mut codec) = Box::pin(greet(server, stream, &flow)).await else { return Ended::Lost };
    let mut calls = FuturesUnordered::new();
    let mut deadlines = Deadlines {
        settings,
        timer: pin!(sleep_until(Instant::now() + settings.idle)),
        active: Instant::now(),
        leaving: None,
    };
    let mut signal = pin!(shutdown.begun());
    let mut ended = Ended::ByClient;
    poll_fn(|context| {
        if deadlines.leaving.is_none() && signal.as_mut().poll(context).is_ready() {
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
                Poll::Pending => break,
            };
            let (parts, body) = request.into_parts();
            if let Some((start, respond)) = admit(server, &otlp, &flow, &parts, respond) {
                drop(parts);
                // On the heap, since the set keeps room for one even while it is empty.
                calls.push(Box::pin(call::serve(server, &otlp, &flow, start, body, respond)));
            }
        }
        let has_streams = !calls.is_empty() || codec.has_streams();
        let quiet = flow.settle(has_streams);
        match deadlines.poll(context, quiet, has_streams) {
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
async fn greet(server: &Inner, stream: TcpStream, flow: &Arc<Flow>) -> Option<Box<Codec>> {
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

type Codec = h2::server::Connection<Socket, Bytes>;

/// Decides on a request's head: what becomes a call, or nothing when the answer is given already.
fn admit(
    server: &Inner,
    otlp: &Otlp,
    flow: &Flow,
    parts: &Parts,
    mut respond: SendResponse<Bytes>,
) -> Option<(Start, SendResponse<Bytes>)> {
    let is_call = grpc::is_call(parts);
    let found = if is_call {
        grpc::form(parts).map(|form| form.map_err(|refused| (refused, Media::Protobuf)))
    } else {
        Form::signal_at(parts.uri.path())
            .map(|signal| Form::over_http(signal, parts.method.as_str(), headers(&parts.headers)))
    };
    let Some(form) = found else {
        server.http.refuse_stray(Refusal::NotFound);
        if is_call {
            let refused = Refused::new(Refusal::NotFound, "there is no such method here\n");
            answer::grpc(&mut respond, Some(&refused.into()));
        } else {
            answer::nowhere(&mut respond, NOTHING);
        }
        return None;
    };
    let open = otlp.books().open();
    let charge = server.http.gate().head().and_then(|()| {
        let charge =
            if flow.is_refused() { None } else { server.arena.try_charge(Share::Ingest, call::BYTES).ok() };
        charge.ok_or_else(|| server.http.gate().no_memory())
    });
    let refused = match (form, charge) {
        (Ok(form), Ok(charge)) => {
            let kind = if is_call { Kind::Grpc } else { Kind::Http(length(&parts.headers)) };
            let deadline =
                if is_call { grpc::timeout(parts).map(|wait| Instant::now() + wait) } else { None };
            return Some((Start { open, form, kind, deadline, charge }, respond));
        }
        (Err(refused), _) => refused,
        (Ok(form), Err(refused)) => (refused, form.media),
    };
    let (refused, media) = refused;
    open.refuse(refused.reason);
    if is_call {
        answer::grpc(&mut respond, Some(&refused.into()));
    } else {
        answer::http(&mut respond, Err(refused), media);
    }
    None
}

const NOTHING: &str = "nothing is served under this path over HTTP/2; OTLP is taken at /v1/traces, /v1/metrics, \
                       /v1/logs and /v1development/profiles, and whatever else over HTTP/1.1\n";

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

/// What a connection waits for has an end.
struct Deadlines<'a> {
    settings: &'a Settings,
    timer: Pin<&'a mut Sleep>,
    /// When there was a stream last.
    active: Instant,
    /// When the goodbye must have been heard, once it is said.
    leaving: Option<Instant>,
}

/// What did not happen in time.
enum Late {
    /// A request.
    Idle,
    /// The rest of a frame, or the peer taking what is written.
    Lost,
}

impl Deadlines<'_> {
    /// From now on the connection is to end.
    fn leave(&mut self) {
        self.leaving = Some(Instant::now() + self.settings.write);
    }

    fn poll(&mut self, context: &mut Context<'_>, quiet: Quiet, has_streams: bool) -> Poll<Late> {
        if has_streams {
            self.active = Instant::now();
        }
        let deadline = match quiet {
            Quiet::Blocked(since) => since + self.settings.write,
            // A stream has deadlines of its own.
            _ if has_streams => return Poll::Pending,
            Quiet::HalfFrame(since) => since + self.settings.body_stall,
            Quiet::Idle => self.leaving.unwrap_or(self.active + self.settings.idle),
        };
        ready!(self.poll_late(context, deadline));
        if quiet == Quiet::Idle && self.leaving.is_none() {
            self.leave();
            return Poll::Ready(Late::Idle);
        }
        Poll::Ready(Late::Lost)
    }

    /// Ready once `deadline` has passed. The timer is left alone while it is set to an earlier time: waking
    /// once in vain costs less than setting it for every request.
    fn poll_late(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        loop {
            if self.timer.deadline() > deadline || self.timer.is_elapsed() {
                self.timer.as_mut().reset(deadline);
            }
            ready!(self.timer.as_mut().poll(context));
            if self.timer.deadline() >= deadline {
                return Poll::Ready(());
            }
        }
    }
}
