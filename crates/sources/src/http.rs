//! Every HTTP source on one listener, told apart by path.

use crate::clock::Stamp;
use crate::elastic_apm::{self, ElasticApm};
use crate::elasticsearch::{self, Elasticsearch};
use crate::otlp::{self, Otlp};
use crate::prometheus_remote_write::{self, RemoteWrite};
use std::cell::Cell;
use std::sync::Arc;
use tidegate_admission::access::Granted;
use tidegate_admission::{Caller, Gate, Passage, Protocol, Refused, answer, codec};
use tidegate_http1::{Admitted, Body, Context, Head, Preparation, Refusal as Codec, Reply, Service};
use tidegate_ledger::{Open, Refusal, Signal, Source};
use tidegate_meters::Histogram;

/// The service behind the listeners for ingest.
#[derive(Clone)]
pub struct Http(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    gate: Gate,
    /// Where requests are entered that lead to no source.
    stray: Source,
    remote_write: Option<RemoteWrite>,
    otlp: Option<Otlp>,
    elastic_apm: Option<ElasticApm>,
    elasticsearch: Option<Elasticsearch>,
    /// Whether that alone is served here, and so needs no prefix.
    alone: bool,
    durations: Histogram,
}

/// What was decided on a request's head.
pub struct Ticket {
    /// The request's entry in the books, until somebody has a verdict.
    open: Cell<Option<Open>>,
    route: Route,
    /// What it holds of the limits, until it is answered.
    passage: Passage,
}

/// Where a request leads, and what its head says about its body.
enum Route {
    RemoteWrite(prometheus_remote_write::Form),
    Otlp(otlp::Form),
    ElasticApm(elastic_apm::Form),
    Elasticsearch(elasticsearch::Form, Granted),
}

impl Ticket {
    /// What the request holds of the limits.
    pub(crate) fn passage(&self) -> &Passage {
        &self.passage
    }
}

impl Route {
    /// How its answers are written.
    fn protocol(&self) -> Protocol {
        match self {
            Route::RemoteWrite(_) => Protocol::RemoteWrite,
            Route::Otlp(form) => Protocol::Otlp(form.media),
            Route::ElasticApm(form) => form.protocol(),
            Route::Elasticsearch(..) => Protocol::Elastic,
        }
    }
}

/// A path that is served: by whom, and the form of the request at hand, or why it is refused and how that is
/// written.
struct Destination<'a> {
    books: &'a Source,
    max_body: usize,
    route: Result<Route, (Refused, Protocol)>,
}

impl Http {
    /// Serves no source yet; what leads nowhere is entered under `stray`. `durations` observes how long it
    /// takes from the last byte of a request to its answer, which is mostly the wait for the disk.
    pub fn new(gate: Gate, stray: Source, durations: Histogram) -> Http {
        Http(Arc::new(Inner {
            gate,
            stray,
            remote_write: None,
            otlp: None,
            elastic_apm: None,
            elasticsearch: None,
            alone: false,
            durations,
        }))
    }

    /// Serves `remote_write` besides.
    #[must_use]
    pub fn with_remote_write(self, remote_write: RemoteWrite) -> Http {
        let inner = Arc::unwrap_or_clone(self.0);
        Http(Arc::new(Inner { remote_write: Some(remote_write), ..inner }))
    }

    /// Serves `otlp` besides.
    #[must_use]
    pub fn with_otlp(self, otlp: Otlp) -> Http {
        let inner = Arc::unwrap_or_clone(self.0);
        Http(Arc::new(Inner { otlp: Some(otlp), ..inner }))
    }

    /// Serves `elastic_apm` besides.
    #[must_use]
    pub fn with_elastic_apm(self, elastic_apm: ElasticApm) -> Http {
        let inner = Arc::unwrap_or_clone(self.0);
        Http(Arc::new(Inner { elastic_apm: Some(elastic_apm), ..inner }))
    }

    /// Serves `elasticsearch` besides, under its prefix.
    #[must_use]
    pub fn with_elasticsearch(self, elasticsearch: Elasticsearch) -> Http {
        let inner = Arc::unwrap_or_clone(self.0);
        Http(Arc::new(Inner { elasticsearch: Some(elasticsearch), ..inner }))
    }

    /// Serves what [`with_elasticsearch`](Self::with_elasticsearch) gave, and nothing else: for a listener of its
    /// own, without a prefix.
    #[must_use]
    pub fn elasticsearch_alone(&self) -> Http {
        Http(Arc::new(Inner { alone: true, otlp: None, ..Inner::clone(&self.0) }))
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
    pub(crate) fn refuse_body(&self, ticket: &Ticket, refused: Refused) -> Reply {
        if let Some(open) = ticket.open.take() {
            open.refuse(refused.reason);
        }
        answer(refused, ticket.route.protocol())
    }

    /// The gate that it asks.
    pub(crate) fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// The source of OTLP, where that is served.
    pub(crate) fn otlp(&self) -> Option<&Otlp> {
        self.0.otlp.as_ref()
    }

    /// Where the time of requests is observed.
    pub(crate) fn durations(&self) -> &Histogram {
        &self.0.durations
    }
}

impl Inner {
    /// The table of paths: one line for each source.
    fn destination(&self, head: &Head<'_>) -> Option<Destination<'_>> {
        if self.alone {
            return self.elasticsearch_at(head);
        }
        self.remote_write_at(head)
            .or_else(|| self.otlp_at(head))
            .or_else(|| self.elastic_apm_at(head))
            .or_else(|| self.elasticsearch_at(head))
    }

    /// Asks the gate. What browsers send is taken from strangers too, where that is said.
    fn enter(
        &self,
        head: &Head<'_>,
        route: Result<Route, (Refused, Protocol)>,
        open: &mut Open,
    ) -> (Result<Passage, Refused>, Result<Route, (Refused, Protocol)>) {
        let mut caller = Caller::of(head);
        let is_apm = matches!(route, Ok(Route::ElasticApm(_)) | Err(_));
        caller.guarded &=
            !(is_apm && elastic_apm::place_of(head).is_some_and(elastic_apm::Place::is_of_browsers));
        // What is refused for its form or its rate comes from strangers, too, and is no attempt at guessing.
        let may_be_theirs = !self.alone && is_apm;
        match &self.elastic_apm {
            Some(elastic_apm) if may_be_theirs && elastic_apm.hears_strangers(head) => {
                match (self.gate.enter_openly(&caller, open), route) {
                    (Ok((passage, true)), Ok(Route::ElasticApm(form))) => {
                        (Ok(passage), Ok(Route::ElasticApm(form.of_stranger())))
                    }
                    (entered, route) => (entered.map(|(passage, _stranger)| passage), route),
                }
            }
            _ => match (self.gate.enter_known(&caller, open), route) {
                (Ok((passage, granted)), Ok(Route::Elasticsearch(form, _))) => {
                    (Ok(passage), Ok(Route::Elasticsearch(form, granted)))
                }
                (entered, route) => (entered.map(|(passage, _)| passage), route),
            },
        }
    }

    fn remote_write_at(&self, head: &Head<'_>) -> Option<Destination<'_>> {
        let remote_write = self.remote_write.as_ref().filter(|_| RemoteWrite::is_served_at(head.path()))?;
        Some(Destination {
            books: remote_write.books(),
            max_body: remote_write.max_received(),
            route: RemoteWrite::form(head)
                .map(Route::RemoteWrite)
                .map_err(|refused| (refused, Protocol::RemoteWrite)),
        })
    }

    fn otlp_at(&self, head: &Head<'_>) -> Option<Destination<'_>> {
        let otlp = self.otlp.as_ref()?;
        let signal = otlp::Form::signal_at(without_slash(head.path()))?;
        let headers = head.sole_header("content-type").and_then(|content_type| {
            head.sole_header("content-encoding").map(|encoding| (content_type, encoding))
        });
        let form = otlp::Form::over_http(signal, head.method(), headers.map_err(|_repeated| ()));
        Some(Destination {
            books: otlp.books(),
            max_body: otlp.max_received(),
            route: form.map(Route::Otlp).map_err(|(refused, media)| (refused, Protocol::Otlp(media))),
        })
    }

    fn elastic_apm_at(&self, head: &Head<'_>) -> Option<Destination<'_>> {
        let elastic_apm = self.elastic_apm.as_ref()?;
        let place = elastic_apm::place_of(head)?;
        Some(Destination {
            books: elastic_apm.books(),
            max_body: elastic_apm.max_received(place),
            route: elastic_apm.form(place, head).map(Route::ElasticApm),
        })
    }

    fn elasticsearch_at(&self, head: &Head<'_>) -> Option<Destination<'_>> {
        let elasticsearch = self.elasticsearch.as_ref()?;
        let form = elasticsearch.form(head, self.alone)?;
        Some(Destination {
            books: elasticsearch.books(),
            max_body: elasticsearch.max_received(form.as_ref().ok()),
            route: form
                .map(|form| Route::Elasticsearch(form, Granted::default()))
                .map_err(|refused| (refused, Protocol::Elastic)),
        })
    }
}

impl Service for Http {
    type Ticket = Ticket;

    fn prepare(&self, head: &Head<'_>) -> Option<Preparation> {
        self.0.gate.prepare(head, head.peer().ip())
    }

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<Ticket>, Reply> {
        let Some(Destination { books, max_body, route }) = self.0.destination(head) else {
            self.0.stray.open().refuse(Refusal::NotFound);
            return Err(answer(Refused::new(Refusal::NotFound, NOTHING), Protocol::Http));
        };
        let mut open = books.open();
        let (entered, route) = self.0.enter(head, route, &mut open);
        let decided = match (entered, route) {
            (Ok(passage), route) => route.map(|route| (route, passage)),
            (Err(refused), Ok(Route::Elasticsearch(form, nobody))) if form.is_heard(&refused) => {
                Ok((Route::Elasticsearch(form, nobody), Passage::default()))
            }
            (Err(refused), Ok(route)) => Err((refused, route.protocol())),
            (Err(refused), Err((_, protocol))) => Err((refused, protocol)),
        };
        match decided {
            Ok((Route::ElasticApm(form), _))
                if let Some(elastic_apm) = &self.0.elastic_apm
                    && let Some(reply) = elastic_apm.at_once(&form, head) =>
            {
                open.accept_empty(Signal::Events);
                Err(reply)
            }
            Ok((route, passage)) => {
                Ok(Admitted { max_body, ticket: Ticket { open: Cell::new(Some(open)), route, passage } })
            }
            // Agents ask before they show who they are, and are content to hear that somebody is there.
            Err((refused, _))
                if refused.reason == Refusal::Unauthorized
                    && elastic_apm::place_of(head) == Some(elastic_apm::Place::Root) =>
            {
                open.accept_empty(Signal::Events);
                Err(Reply::new(200))
            }
            Err((refused, protocol)) => {
                open.refuse(refused.reason);
                let is_method = refused.reason == Refusal::Method;
                let reply = answer(refused, protocol);
                // A page is to see why it was refused.
                let is_shared = matches!(protocol, Protocol::Intake { .. })
                    && elastic_apm::place_of(head).is_some_and(elastic_apm::Place::is_of_browsers);
                Err(match protocol {
                    _ if is_shared => reply.headers(elastic_apm::SHARED),
                    _ if !is_method => reply,
                    Protocol::Elastic => reply.headers(elasticsearch::ALLOWED),
                    _ => reply.headers(&[("Allow", "POST")]),
                })
            }
        }
    }

    /// Not an `async fn`: that would keep the ticket and the body twice in every connection's task.
    #[expect(clippy::manual_async_fn, reason = "it is smaller")]
    fn answer(&self, ticket: Ticket, body: Body) -> impl Future<Output = Reply> + Send {
        async move {
            let received = Stamp::now();
            // The codec answers a request once; otherwise there is nothing to enter.
            let Some(open) = ticket.open.take() else { return Reply::new(500) };
            // The ticket stays where it is until the end, and with it the passage.
            let reply = match ticket.route {
                Route::RemoteWrite(form) => match &self.0.remote_write {
                    Some(remote_write) => {
                        remote_write.receive(&self.0.gate, &ticket.passage, open, form, body).await
                    }
                    None => Reply::new(500),
                },
                Route::Otlp(form) => self.otlp_reply(&ticket.passage, open, form, body).await,
                Route::ElasticApm(form) => match &self.0.elastic_apm {
                    Some(elastic_apm) => {
                        Box::pin(elastic_apm.receive(&self.0.gate, &ticket.passage, open, form, body)).await
                    }
                    None => Reply::new(500),
                },
                // On the heap, so that a connection's task has no room for what only these requests need.
                Route::Elasticsearch(form, granted) => match &self.0.elasticsearch {
                    Some(source) => {
                        let sender = (&ticket.passage, granted);
                        Box::pin(source.receive(&self.0.gate, sender, open, form, body)).await
                    }
                    None => Reply::new(500),
                },
            };
            self.0.durations.observe(received.elapsed_ns());
            reply
        }
    }

    fn is_patient(&self, ticket: &Ticket) -> bool {
        matches!(&ticket.route, Route::ElasticApm(form) if form.is_patient())
    }

    fn may_grow(&self, ticket: &mut Ticket, bytes: usize) -> bool {
        self.0.gate.grow(&ticket.passage, bytes).is_ok()
    }

    fn refuse(&self, refusal: Codec, context: Context<'_, Ticket>) -> Reply {
        let protocol = context.ticket.map_or(Protocol::Http, |ticket| ticket.route.protocol());
        let delay = self.0.gate.memory_delay();
        let (reply, reason) = match context.ticket.and_then(|ticket| ticket.passage.denied()) {
            // Not the memory, but its part of that.
            Some(standing) if refusal == Codec::Memory => {
                let reply = answer(Refused::standing(standing).retry_after(delay), protocol);
                (reply.closing(), standing.reason())
            }
            _ => codec(refusal, protocol, delay),
        };
        let open = context.ticket.and_then(|ticket| ticket.open.take());
        open.unwrap_or_else(|| self.0.stray.open()).refuse(reason);
        reply
    }
}

const NOTHING: &str = "nothing is served under this path; remote write is taken at /api/v1/write, OTLP at /v1/traces, \
                       /v1/metrics, /v1/logs and /v1development/profiles, documents at /elasticsearch/_bulk, and \
                       events of Elastic APM at /intake/v2/events\n";

/// A path without the slash at its end that some senders put there, as their receivers forgive it.
pub(crate) fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path)
}

impl Http {
    /// Success is the empty message, unless something was rejected.
    async fn otlp_reply(&self, passage: &Passage, open: Open, form: otlp::Form, body: Body) -> Reply {
        let Some(otlp) = self.otlp() else { return Reply::new(500) };
        match otlp.receive(&self.0.gate, passage, open, form, body.into()).await {
            Ok(left_out) => otlp::accepted(form, left_out),
            Err(refused) => answer(refused, Protocol::Otlp(form.media)),
        }
    }
}
