//! The address that stands in for Thanos Receive: its paths over the sources of remote write and OTLP, and its
//! probes.
//!
//! Reference: `pkg/receive/handler.go` and `pkg/prober/http.go` of Thanos 0.42. `design/thanos-receive-door.md` compares the
//! answers.

mod meters;

pub use meters::ThanosMeters;
pub(crate) use meters::{Handler, MeasuredRequest};

use crate::http::{Answering, Destination, Exchange, HttpSource, Route, without_slash};
use crate::otlp::Otlp;
use crate::prometheus_remote_write::RemoteWrite;
use std::fmt;
use std::sync::Arc;
use tidegate_admission::{AnswerFormat, Gate, Permit, Rejection};
use tidegate_http1::{Body, Head, Reply};
use tidegate_ledger::{OpenRequest, Refusal, Source};
use tidegate_wire::otlp::Signal;
use tidegate_wire::remote_write::Counts;

/// The path of remote write.
pub(crate) const RECEIVE_PATH: &str = "/api/v1/receive";
/// The paths of OTLP metrics: Thanos', and the one of exporters that add the signal to it.
pub(crate) const OTLP_PATHS: [&str; 2] = ["/api/v1/otlp", "/api/v1/otlp/v1/metrics"];

/// The answer to a request for another path.
pub(crate) const UNKNOWN_PATH: &str = "unknown path; at this address remote write is served at /api/v1/receive, OTLP metrics \
                                       at /api/v1/otlp, and probes at /-/healthy and /-/ready\n";

/// Settings of an address that stands in for Thanos Receive.
#[derive(Debug, Clone)]
pub struct ThanosReceive {
    /// The header that numbers a replica of a request.
    pub replica_header: Box<str>,
    /// Where its requests are counted by Thanos' names, if anywhere.
    pub meters: Option<ThanosMeters>,
    /// Whether what receives the data has its hashrings. Asked at each request, so it must not wait.
    pub readiness: Readiness,
}

/// Says whether requests are accepted.
#[derive(Clone)]
pub struct Readiness(Arc<dyn Fn() -> bool + Send + Sync>);

impl Readiness {
    /// Readiness as `is_ready` says it.
    pub fn new(is_ready: impl Fn() -> bool + Send + Sync + 'static) -> Readiness {
        Readiness(Arc::new(is_ready))
    }

    pub(crate) fn is_ready(&self) -> bool {
        (self.0)()
    }
}

impl Default for Readiness {
    /// Always ready.
    fn default() -> Readiness {
        Readiness::new(|| true)
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readiness").field(&self.is_ready()).finish()
    }
}

/// Remote write at [`RECEIVE_PATH`].
struct ReceiveEndpoint {
    source: Arc<RemoteWrite>,
    settings: ThanosReceive,
}

/// OTLP metrics at [`OTLP_PATHS`].
struct OtlpEndpoint {
    source: Arc<Otlp>,
    settings: ThanosReceive,
}

impl ThanosReceive {
    /// Remote write as Thanos serves it.
    pub(crate) fn remote_write(&self, source: &RemoteWrite) -> Arc<dyn HttpSource> {
        Arc::new(ReceiveEndpoint { source: Arc::new(source.clone().answering_200()), settings: self.clone() })
    }

    /// OTLP as Thanos serves it.
    pub(crate) fn otlp(&self, source: &Arc<Otlp>) -> Arc<dyn HttpSource> {
        Arc::new(OtlpEndpoint { source: Arc::clone(source), settings: self.clone() })
    }

    /// Checks the number of a replica. A router of Thanos checks it and then replicates each request by itself, so the number
    /// has no other effect.
    fn check_replica(&self, head: &Head<'_>) -> Result<(), Rejection> {
        let twice = |_| Rejection::new(Refusal::Headers, "the replica header may be given once\n");
        let Some(value) = head.sole_header(&self.replica_header).map_err(twice)? else { return Ok(()) };
        let is_number = value.iter().all(u8::is_ascii_digit)
            && (value.is_empty() || str::from_utf8(value).is_ok_and(|text| text.parse::<u64>().is_ok()));
        if is_number { Ok(()) } else { Err(Rejection::new(Refusal::Headers, BAD_REPLICA)) }
    }

    /// Checks that there are hashrings.
    fn check_ready(&self) -> Result<(), Rejection> {
        if self.readiness.is_ready() {
            return Ok(());
        }
        Err(Rejection::new(Refusal::Shutdown, NOT_READY).retry_after(RETRY_AFTER_SECONDS))
    }

    /// `destination`, refused if there are no hashrings, or the request has a replica header that is no number.
    fn checked(&self, head: &Head<'_>, destination: Destination) -> Destination {
        match (self.check_ready().and_then(|()| self.check_replica(head)), &destination.route) {
            (Err(refused), Ok(route)) => {
                let protocol = route.protocol();
                Destination { route: Err((refused, protocol)), ..destination }
            }
            _ if self.meters.is_none() => destination,
            _ => {
                let measured = |route| Route::Boxed(Box::new(MeasuredExchange { route, measured: None }));
                Destination { route: destination.route.map(measured), ..destination }
            }
        }
    }
}

/// A request whose answer is counted by Thanos' names. On the heap, with its meters: a connection's task has no room for them.
struct MeasuredExchange {
    route: Route,
    measured: Option<MeasuredRequest>,
}

impl Exchange for MeasuredExchange {
    fn protocol(&self) -> AnswerFormat {
        self.route.protocol()
    }

    fn measure(&mut self, measured: MeasuredRequest) {
        self.measured = Some(measured);
    }

    fn measured(&self) -> Option<&MeasuredRequest> {
        self.measured.as_ref()
    }

    fn answer<'a>(
        self: Box<Self>,
        gate: &'a Gate,
        passage: &'a Permit,
        open: OpenRequest,
        body: Body,
    ) -> Answering<'a> {
        let MeasuredExchange { route, measured } = *self;
        Box::pin(async move {
            let bytes = body.len();
            let reply = match route {
                Route::RemoteWrite(source, form) => {
                    let counted = |counts: &Counts| {
                        if let Some(measured) = &measured {
                            measured.writes(counts.series, counts.samples);
                        }
                    };
                    source.receive(gate, passage, open, form, body, counted).await
                }
                Route::Otlp(source, form) => source.answer(gate, passage, open, form, body).await,
                Route::Boxed(exchange) => exchange.answer(gate, passage, open, body).await,
            };
            if let Some(measured) = measured {
                measured.answered(reply.status(), bytes);
            }
            reply
        })
    }
}

/// The endpoint at a path.
pub(crate) fn handler_at(path: &str) -> Option<Handler> {
    let path = without_slash(path);
    let otlp = OTLP_PATHS.contains(&path).then_some(Handler::Otlp);
    if path == RECEIVE_PATH { Some(Handler::Receive) } else { otlp }
}

/// The answer to a probe, if this is one: `/-/healthy` while the process runs, `/-/ready` while requests can be accepted.
pub(crate) fn probe(gate: &Gate, readiness: &Readiness, head: &Head<'_>) -> Option<Reply> {
    let is_good = match head.path() {
        "/-/healthy" => true,
        "/-/ready" => readiness.is_ready() && gate.check_open().is_ok(),
        _ => return None,
    };
    Some(match (head.method(), is_good) {
        ("GET" | "HEAD", true) => Reply::new(200).text("OK"),
        ("GET" | "HEAD", false) => Reply::new(503).text("NOT OK\n"),
        _ => Reply::new(405).text("probes are sent with GET\n").headers(&[("Allow", "GET, HEAD")]),
    })
}

impl HttpSource for ReceiveEndpoint {
    fn books(&self) -> &Source {
        self.source.books()
    }

    fn destination(&self, head: &Head<'_>) -> Option<Destination> {
        if without_slash(head.path()) != RECEIVE_PATH {
            return None;
        }
        Some(self.settings.checked(head, self.source.request(head)))
    }
}

impl HttpSource for OtlpEndpoint {
    fn books(&self) -> &Source {
        self.source.books()
    }

    fn destination(&self, head: &Head<'_>) -> Option<Destination> {
        if !OTLP_PATHS.contains(&without_slash(head.path())) {
            return None;
        }
        Some(self.settings.checked(head, Otlp::request(&self.source, Signal::Metrics, head)))
    }
}

const NOT_READY: &str = "the sink has no hashrings yet\n";
const RETRY_AFTER_SECONDS: u32 = 5;
const BAD_REPLICA: &str = "could not parse replica header: it must be a number\n";
