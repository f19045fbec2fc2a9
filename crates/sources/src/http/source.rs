//! The interface between sources and listeners: which source serves a path, and how a request is answered.
//!
//! The sources of most requests have a line in [`Route`], so that a request costs no allocation and a connection's task has no
//! room for more than they need. Every other source boxes its [`Exchange`]: it needs nothing here.

use crate::otlp::{self, Otlp};
use crate::prometheus_remote_write::{self, RemoteWrite};
use crate::thanos_receive::{MeasuredRequest, ThanosReceive};
use std::pin::Pin;
use std::sync::Arc;
use tidegate_admission::access::Identity;
use tidegate_admission::{AnswerFormat, Gate, Permit, Rejection};
use tidegate_http1::{Body, Head, Reply};
use tidegate_ledger::{OpenRequest, Source};

/// A source of requests over HTTP.
pub trait HttpSource: Send + Sync + 'static {
    /// Where its requests are entered.
    fn books(&self) -> &Source;

    /// The request's metadata from its head; `None` if its path is not served here.
    fn destination(&self, head: &Head<'_>) -> Option<Destination>;

    /// Whether it may take every path, and so comes after the others.
    fn takes_the_rest(&self) -> bool {
        false
    }

    /// The same source for an address of its own, without a prefix; nothing when it needs no such address.
    fn alone(&self) -> Option<Arc<dyn HttpSource>> {
        None
    }

    /// The same source at the paths of Thanos Receive; nothing where Thanos has no such path.
    fn of_thanos_receive(&self, _settings: &ThanosReceive) -> Option<Arc<dyn HttpSource>> {
        None
    }

    /// The source of calls over gRPC, where this is one.
    fn grpc(&self) -> Option<Arc<Otlp>> {
        None
    }
}

/// A request to a path that is served.
pub struct Destination {
    /// The longest body that is received.
    pub(crate) max_body: usize,
    /// The access rule of the path, and the format of its refusals.
    pub(crate) policy: Policy,
    /// How the request is answered, or why it is refused and how that is written.
    pub(crate) route: Result<Route, (Rejection, AnswerFormat)>,
}

/// The access rule of a path, and the headers of its refusals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// Whether pages of other origins may send.
    pub(crate) from_pages: bool,
    /// Whether requests are taken from those who show no credentials.
    pub(crate) hears_strangers: bool,
    /// Whether those who show no credentials are told that somebody is there.
    pub(crate) greets_strangers: bool,
    /// Whether its bodies bring series to a store that limits them.
    pub(crate) brings_series: bool,
    /// Whether its bodies are for the journal.
    pub(crate) journalled: bool,
    /// The headers of the refusal of a method.
    pub(crate) allowed: &'static [(&'static str, &'static str)],
    /// The headers of every refusal.
    pub(crate) marks: Option<&'static [(&'static str, &'static str)]>,
}

impl Policy {
    /// Whoever the gate lets in sends with POST.
    pub(crate) const POST: Policy = Policy {
        from_pages: false,
        hears_strangers: false,
        greets_strangers: false,
        brings_series: false,
        journalled: true,
        allowed: &[("Allow", "POST")],
        marks: None,
    };

    /// The same, for bodies of series.
    pub(crate) const SERIES: Policy = Policy { brings_series: true, ..Policy::POST };
}

/// Where a request leads, and what its head says about its body.
pub(crate) enum Route {
    RemoteWrite(Arc<RemoteWrite>, prometheus_remote_write::BodyFormat),
    Otlp(Arc<Otlp>, otlp::BodyFormat),
    /// On the heap, so that a connection's task has no room for what only these requests need.
    Boxed(Box<dyn Exchange>),
}

impl Route {
    /// How its answers are written.
    pub(crate) fn protocol(&self) -> AnswerFormat {
        match self {
            Route::RemoteWrite(..) => AnswerFormat::RemoteWrite,
            Route::Otlp(_, form) => AnswerFormat::Otlp(form.media),
            Route::Boxed(exchange) => exchange.protocol(),
        }
    }
}

/// An answer that is being made. On the heap: a connection's task has no room for what only some sources need.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Reply> + Send + 'a>>;

/// A request that was let in, and its answer.
pub(crate) trait Exchange: Send {
    /// How its refusals are written.
    fn protocol(&self) -> AnswerFormat;

    /// Whether its body may come as slowly as things happen.
    fn is_patient(&self) -> bool {
        false
    }

    /// Whether it is taken back when its client leaves before the answer.
    fn is_withdrawn_by_leaving(&self) -> bool {
        false
    }

    /// Notes who sends it.
    fn granted(&mut self, _granted: Identity) {}

    /// Notes that it came without the credentials that others need.
    fn of_stranger(&mut self) {}

    /// Has its answer counted by these meters.
    fn measure(&mut self, _measured: MeasuredRequest) {}

    /// The meters that count its answer if it is refused; they count it themselves otherwise.
    fn measured(&self) -> Option<&MeasuredRequest> {
        None
    }

    /// Whether it is answered although the gate has `refused` it.
    fn is_heard(&self, _refused: &Rejection) -> bool {
        false
    }

    /// The answer to a request that is answered on its head alone.
    fn at_once(&self, _head: &Head<'_>) -> Option<Reply> {
        None
    }

    /// Answers a request whose body is complete, and enters the verdict.
    fn answer<'a>(
        self: Box<Self>,
        gate: &'a Gate,
        passage: &'a Permit,
        open: OpenRequest,
        body: Body,
    ) -> Answering<'a>;
}
