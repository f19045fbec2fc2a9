//! Every HTTP source on one listener, told apart by path: one table for HTTP/1.1 and HTTP/2.

mod source;

pub(crate) use source::{Answering, Destination, Exchange, HttpSource, Policy, Route};

use crate::clock::Timestamp;
use crate::otlp::Otlp;
use crate::thanos_receive::{self, MeasuredRequest, Readiness, ThanosMeters, ThanosReceive};
use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_admission::tenancy::Tenancy;
use tidegate_admission::{AnswerFormat, Caller, Gate, Permit, Rejection, answer, codec, with_origin};
use tidegate_http1::{
    AdmissionFuture, Admitted, Body, Head, Refusal as Codec, RefusalContext, Reply, Service,
};
use tidegate_ledger::{OpenRequest, Refusal, RefusalDetails, Signal, Source};
use tidegate_meters::Histogram;

/// The service behind the listeners for ingest.
#[derive(Clone)]
pub struct Http(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    gate: Gate,
    /// Where requests are entered that lead to no source.
    stray: Source,
    /// The table of routes: the first source that serves a path has it.
    sources: Vec<Arc<dyn HttpSource>>,
    /// The source of calls over gRPC.
    grpc: Option<Arc<Otlp>>,
    durations: Histogram,
    /// At the address of Thanos Receive: whether it is ready.
    thanos_receive: Option<Readiness>,
    /// Where requests of that are counted by Thanos' names.
    meters: Option<ThanosMeters>,
}

/// The decision on a request's head.
pub struct Ticket {
    /// The request's entry in the books, until somebody has a verdict.
    open: Cell<Option<OpenRequest>>,
    route: Route,
    /// Its claims on the limits, until it is answered.
    passage: Permit,
}

impl Ticket {
    /// The request's claims on the limits.
    pub(crate) fn passage(&self) -> &Permit {
        &self.passage
    }

    /// Counts its answer, where that is done by Thanos' names.
    fn answered(&self, reply: &Reply, bytes: usize) {
        if let Route::Boxed(exchange) = &self.route
            && let Some(measured) = exchange.measured()
        {
            measured.answered(reply.status(), bytes);
        }
    }
}

impl Http {
    /// Serves no source yet; what leads nowhere is entered under `stray`. `durations` observes how long it
    /// takes from the last byte of a request to its answer, which is mostly the wait for the disk.
    pub fn new(gate: Gate, stray: Source, durations: Histogram) -> Http {
        let inner = Inner {
            gate,
            stray,
            sources: Vec::new(),
            grpc: None,
            durations,
            thanos_receive: None,
            meters: None,
        };
        Http(Arc::new(inner))
    }

    /// Serves `source` besides.
    #[must_use]
    pub fn with(self, source: impl HttpSource) -> Http {
        let mut inner = Arc::unwrap_or_clone(self.0);
        inner.grpc = source.grpc().or(inner.grpc);
        // Those that may take every path come last.
        let at = inner.sources.partition_point(|known| !known.takes_the_rest() || source.takes_the_rest());
        inner.sources.insert(at, Arc::new(source));
        Http(Arc::new(inner))
    }

    /// Serves those sources that can have an address of their own, where they need no prefix, and nothing else:
    /// Elasticsearch.
    #[must_use]
    pub fn elasticsearch_alone(&self) -> Http {
        let sources = self.0.sources.iter().filter_map(|source| source.alone()).collect();
        Http(Arc::new(Inner { sources, grpc: None, ..Inner::clone(&self.0) }))
    }

    /// Serves only what Thanos Receive serves to senders, at its paths, with tenants by the rules of `tenancy`.
    #[must_use]
    pub fn thanos_receive(&self, settings: &ThanosReceive, tenancy: Tenancy) -> Http {
        let sources = self.0.sources.iter().filter_map(|source| source.of_thanos_receive(settings)).collect();
        let gate = self.0.gate.with_tenancy(tenancy);
        let meters = settings.meters.clone();
        let thanos_receive = Some(settings.readiness.clone());
        let inner = Inner::clone(&self.0);
        Http(Arc::new(Inner { gate, sources, grpc: None, thanos_receive, meters, ..inner }))
    }

    /// The same, where what does not name its tenant is `tenant`'s.
    #[must_use]
    pub fn with_default_tenant(&self, tenant: &str) -> Http {
        let inner = Inner::clone(&self.0);
        Http(Arc::new(Inner { gate: inner.gate.with_default(tenant), ..inner }))
    }

    /// Enters a connection that was refused before it could send a request.
    pub fn refuse_stray(&self, reason: Refusal) {
        self.0.stray.open().refuse(reason);
    }

    /// The answer to a request that was let in and whose body is refused.
    pub(crate) fn refuse_body(&self, ticket: &Ticket, refused: Rejection) -> Reply {
        if let Some(open) = ticket.open.take() {
            refused.close(open);
        }
        let reply = answer(refused, ticket.route.protocol());
        ticket.answered(&reply, 0);
        reply
    }

    /// The gate that it asks.
    pub(crate) fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// The source of calls over gRPC, where one is served.
    pub(crate) fn grpc(&self) -> Option<&Arc<Otlp>> {
        self.0.grpc.as_ref()
    }

    /// Where the time of requests is observed.
    pub(crate) fn durations(&self) -> &Histogram {
        &self.0.durations
    }
}

impl Inner {
    /// Finds the source for the path of `head`, with the request's metadata.
    fn destination(&self, head: &Head<'_>) -> Option<(&Source, Destination)> {
        self.sources
            .iter()
            .find_map(|source| source.destination(head).map(|destination| (source.books(), destination)))
    }

    /// The answer to a request that leads to no source.
    fn stray(&self, head: &Head<'_>) -> Reply {
        // Probes carry nothing, so the books have no place for them.
        if let Some(readiness) = &self.thanos_receive
            && let Some(reply) = thanos_receive::probe(&self.gate, readiness, head)
        {
            return reply;
        }
        let words = if self.thanos_receive.is_some() { thanos_receive::UNKNOWN_PATH } else { NOTHING };
        refuse_with_head(self.stray.open(), Refusal::NotFound, head, &"unknown path");
        answer(Rejection::new(Refusal::NotFound, words), AnswerFormat::Http)
    }

    /// Begins to measure a request for the meters of Thanos.
    fn measure(&self, head: &Head<'_>, open: &OpenRequest, since: Timestamp) -> Option<MeasuredRequest> {
        let meters = self.meters.as_ref()?;
        let handler = thanos_receive::handler_at(head.path())?;
        let tenant = open.tenant().map(|tenant| tenant.name());
        Some(meters.begin(handler, tenant, since))
    }

    /// Asks the gate.
    fn enter(
        &self,
        head: &Head<'_>,
        Destination { policy, route, .. }: &mut Destination,
        open: &mut OpenRequest,
    ) -> Result<Permit, Rejection> {
        let mut caller = Caller::of(head);
        caller.guarded &= !policy.from_pages;
        caller.journalled = policy.journalled;
        if policy.hears_strangers {
            let (passage, is_stranger) = self.gate.admit_anonymous(&caller, open)?;
            if let (true, Ok(Route::Boxed(exchange))) = (is_stranger, route) {
                exchange.of_stranger();
            }
            return Ok(passage);
        }
        let (passage, granted) = self.gate.admit_identified(&caller, open)?;
        if policy.brings_series {
            self.gate.check_head_series(open)?;
        }
        if let Ok(Route::Boxed(exchange)) = route {
            exchange.granted(granted);
        }
        Ok(passage)
    }
}

impl Service for Http {
    type RequestState = Ticket;

    fn prepare(&self, head: &Head<'_>) -> Option<AdmissionFuture> {
        self.0.gate.prepare(head, head.peer().ip())
    }

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<Ticket>, Reply> {
        let Some((books, mut destination)) = self.0.destination(head) else {
            return Err(self.0.stray(head));
        };
        let mut open = books.open();
        let since = Timestamp::now();
        let entered = self.0.enter(head, &mut destination, &mut open);
        let measured = self.0.measure(head, &open, since);
        let Destination { max_body, policy, route } = destination;
        let decided = match (entered, route) {
            (Ok(passage), route) => route.map(|route| (route, passage)),
            (Err(refused), Ok(Route::Boxed(exchange))) if exchange.is_heard(&refused) => {
                Ok((Route::Boxed(exchange), Permit::default()))
            }
            (Err(refused), Ok(route)) => Err((refused, route.protocol())),
            (Err(refused), Err((_, protocol))) => Err((refused, protocol)),
        };
        match decided {
            Ok((Route::Boxed(exchange), _)) if let Some(reply) = exchange.at_once(head) => {
                open.accept_empty(Signal::Events);
                Err(reply)
            }
            Ok((mut route, passage)) => {
                if let (Route::Boxed(exchange), Some(measured)) = (&mut route, measured) {
                    exchange.measure(measured);
                }
                let ticket = Ticket { open: Cell::new(Some(open)), route, passage };
                Ok(Admitted { max_body, ticket })
            }
            Err((refused, _)) if refused.reason == Refusal::Unauthorized && policy.greets_strangers => {
                open.accept_empty(Signal::Events);
                Err(Reply::new(200))
            }
            Err((refused, protocol)) => {
                refuse_with_head(open, refused.reason, head, &refused.words);
                let is_method = refused.reason == Refusal::Method;
                let reply = answer(refused, protocol);
                if let Some(measured) = measured {
                    measured.answered(reply.status(), 0);
                }
                Err(match policy.marks {
                    Some(marks) => reply.headers(marks),
                    None if is_method => reply.headers(policy.allowed),
                    None => reply,
                })
            }
        }
    }

    /// Not an `async fn`: that would keep the ticket and the body twice in every connection's task.
    #[expect(clippy::manual_async_fn, reason = "it is smaller")]
    fn answer(&self, ticket: Ticket, body: Body) -> impl Future<Output = Reply> + Send {
        async move {
            let received = Timestamp::now();
            // The codec answers a request once; otherwise there is nothing to enter.
            let Some(open) = ticket.open.take() else { return Reply::new(500) };
            // The ticket stays where it is until the end, and with it the passage.
            let (gate, passage) = (&self.0.gate, &ticket.passage);
            let reply = match ticket.route {
                Route::RemoteWrite(source, form) => {
                    source.receive(gate, passage, open, form, body, |_| {}).await
                }
                Route::Otlp(source, form) => source.answer(gate, passage, open, form, body).await,
                Route::Boxed(exchange) => exchange.answer(gate, passage, open, body).await,
            };
            self.0.durations.observe(received.elapsed_ns());
            reply
        }
    }

    fn poll_answer<R>(&self, peer: SocketAddr, mut bytes: u32, poll: impl FnOnce() -> R) -> R {
        with_origin(peer, &mut bytes, poll)
    }

    fn is_patient(&self, ticket: &Ticket) -> bool {
        matches!(&ticket.route, Route::Boxed(exchange) if exchange.is_patient())
    }

    fn is_withdrawn_by_leaving(&self, ticket: &Ticket) -> bool {
        matches!(&ticket.route, Route::Boxed(exchange) if exchange.is_withdrawn_by_leaving())
    }

    fn may_grow(&self, ticket: &mut Ticket, bytes: usize) -> bool {
        self.0.gate.grow(&ticket.passage, bytes).is_ok()
    }

    fn refuse(&self, refusal: Codec, context: RefusalContext<'_, Ticket>) -> Reply {
        let protocol = context.ticket.map_or(AnswerFormat::Http, |ticket| ticket.route.protocol());
        let delay = self.0.gate.memory_delay();
        let (reply, reason) = match context.ticket.and_then(|ticket| ticket.passage.denied()) {
            // Not the memory, but its part of that.
            Some(standing) if refusal == Codec::Memory => {
                let reply = answer(Rejection::canned(standing).retry_after(delay), protocol);
                (reply.closing(), standing.reason())
            }
            _ => codec(refusal, protocol, delay),
        };
        let open = context.ticket.and_then(|ticket| ticket.open.take());
        let bytes = Some(context.received as u64);
        let details = RefusalDetails { peer: Some(context.peer), bytes, ..RefusalDetails::default() };
        open.unwrap_or_else(|| self.0.stray.open()).refuse_with(reason, &details);
        if let Some(ticket) = context.ticket {
            ticket.answered(&reply, context.received);
        }
        reply
    }
}

/// Closes the books of a request that is refused for its head.
fn refuse_with_head(open: OpenRequest, reason: Refusal, head: &Head<'_>, words: &dyn fmt::Display) {
    let length = head.header("content-length").and_then(|length| str::from_utf8(length).ok()?.parse().ok());
    let target = format_args!("{} {}", head.method(), head.path());
    let details = RefusalDetails { peer: Some(head.peer()), target: &target, bytes: length, words };
    open.refuse_with(reason, &details);
}

const NOTHING: &str = "unknown path; remote write is served at /api/v1/write, OTLP at /v1/traces, \
                       /v1/metrics, /v1/logs and /v1development/profiles, documents at /elasticsearch/_bulk, log records in JSON or text at /ingest/logs, \
                       pushes of Loki at /loki/api/v1/push, and events of Elastic APM at /intake/v2/events\n";

/// A path without the slash at its end that some senders put there, as their receivers forgive it.
pub(crate) fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path)
}
