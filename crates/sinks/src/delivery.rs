//! The delivery engine of the network sinks: batches, memory, requests in flight, endpoints, retries, books and stop.
//!
//! The engine is the same for every protocol; a protocol says which records go together, how a batch becomes a request,
//! what an answer means, and how a record is sent that needs more memory than the sink's own part. The design is in
//! `design/delivery.md`.

mod batching;
pub(crate) mod client;
pub(crate) mod compressor;
mod engine;
mod oversize;
mod pipeline;
mod report;
mod state;

pub use compressor::BadLevel;
pub(crate) use engine::Delivery;
pub(crate) use oversize::OversizeOutcome;
pub(crate) use pipeline::{Pipeline, PipelineLimits};
pub(crate) use report::DeliveryReport;
pub(crate) use state::MIN_REQUEST_SIZE;

use crate::batch::{Batch, BatchKey, BatchLimits, DropReason};
use crate::endpoints::{Peer, Reservation};
use crate::health::InFlightGuard;
use crate::journal_consumer::Record;
use futures_util::future::BoxFuture;
use std::time::Duration;
use tokio::time::Instant;

/// How long requests in flight may still be answered after the order to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Batches that are filled at a time.
const MAX_OPEN_BATCHES: usize = 4;

/// The part of a delivery that depends on the protocol.
pub(crate) trait SinkProtocol: Send + Sized + 'static {
    /// The shared properties of a batch's records.
    type Key: BatchKey;
    /// The connections to one endpoint.
    type Peer: Peer + Send + Sync + 'static;
    /// Encoders and their like: one preparation at a time uses them.
    type Tools: Send;
    /// A request with the records that are in it.
    type Request: Send;
    /// Work left of a request: what is to be prepared before it can be sent again, or the next part of it.
    type More: Send;
    /// The peer's answer.
    type Answer: Send;
    /// A record that is sent when nothing else is in flight.
    type Oversize: From<Record> + Send + Sync;

    /// Bytes left free before the first body of a batch.
    const PREFIX: usize;
    /// Whether records are sent in the order of the journal: one request at a time, none before the one ahead of it is
    /// settled, however often that fails.
    const ORDERED: bool = false;

    /// The most bytes of a batch as it goes out, for a sink with `part` bytes of its own.
    fn longest_batch(part: usize) -> usize;

    /// How large a batch of this key may become, where that differs from the `usual`.
    fn limits(&self, _pipeline: &Pipeline<Self>, _key: &Self::Key, usual: BatchLimits) -> BatchLimits {
        usual
    }

    /// Whether the protocol knows of this record, which was read now, and it goes nowhere. Asked of every record, before any
    /// memory is taken for it.
    fn knows(&mut self, _record: &Record) -> bool {
        false
    }

    /// Which records a record goes together with.
    fn route(&mut self, pipeline: &Pipeline<Self>, record: &Record) -> RecordRoute<Self::Key>;

    /// A request that is made without tools and without memory. Everything else is returned.
    #[expect(clippy::result_large_err, reason = "the batch is handed back, and is no error")]
    fn unchanged(&mut self, batch: Batch<Self::Key>) -> Result<Self::Request, Batch<Self::Key>> {
        Err(batch)
    }

    /// Makes a request.
    fn prepare(
        &mut self,
        pipeline: &Pipeline<Self>,
        work: Preparation<Self>,
        tools: Box<Self::Tools>,
    ) -> BoxFuture<'static, Prepared<Self>>;

    /// Takes in a request that was made.
    fn prepared(&mut self, pipeline: &mut Pipeline<Self>, request: Self::Request) {
        pipeline.send_next(request);
    }

    /// Takes in work that could not be prepared, and would not with more memory in a while.
    fn unprepared(&mut self, pipeline: &mut Pipeline<Self>, more: Self::More, why: DropReason);

    /// The memory of work, in bytes. Only asked for where the order is kept.
    fn held(_more: &Self::More) -> usize {
        0
    }

    /// Whether something of a request may have to be prepared after it was sent. Only asked for where the order is kept:
    /// then nothing else is read meanwhile, because that goes first and needs the memory.
    fn has_more(_request: &Self::Request) -> bool {
        false
    }

    /// How many requests it is at the peer.
    fn requests(_request: &Self::Request) -> u64 {
        1
    }

    /// How the request looks to the engine.
    fn stand(request: &Self::Request) -> RequestStatus;

    /// Sends a request and reads the answer.
    fn send(peer: &Self::Peer, request: &mut Self::Request) -> impl Future<Output = Self::Answer> + Send;

    /// Decides what follows from an answer. What is done is entered in the books here.
    fn answered(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        request: Self::Request,
        reservation: Reservation,
        answer: Self::Answer,
    ) -> NextStep<Self>;

    /// The record of an oversize one.
    fn record(oversize: &Self::Oversize) -> &Record;

    /// Sends a record on its own, with the turn to borrow, once: whole or piece by piece. `record` was recalled last.
    fn send_alone(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        oversize: &Self::Oversize,
        record: &Record,
    ) -> impl Future<Output = OversizeOutcome> + Send;

    /// When an oversize record may be sent, where that is not now.
    fn resumes_at(&self, _oversize: &Self::Oversize) -> Option<Instant> {
        None
    }

    /// A record that was to be sent on its own is lost; the engine enters it in the books.
    fn lost(&mut self, _pipeline: &Pipeline<Self>, _oversize: &Self::Oversize) {}

    /// Everything unsettled is read again; a record would have been sent on its own otherwise.
    fn rewound(&mut self, _instead_of: Option<Self::Oversize>) {}

    /// Does what is due beside everything else.
    fn tend(&mut self, _pipeline: &mut Pipeline<Self>) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// When [`tend`](Self::tend) has something to do.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Whether nothing is left to be done beside what the engine knows of.
    fn is_finished(&self) -> bool {
        true
    }
}

/// Where a record goes.
pub(crate) enum RecordRoute<K> {
    /// Into the batch of this key.
    Batch {
        /// The key that it shares with the others of the batch.
        key: K,
        /// About how long it is as it goes out, before compression.
        out_len: usize,
        /// The memory that a request of it alone needs.
        needed: usize,
        /// Into a batch of its own.
        single: bool,
    },
    /// Out on its own, when nothing else is in flight.
    Oversize,
    /// Nowhere: the peer's protocol has no form for it.
    Untranslatable,
}

/// The work to prepare.
#[expect(
    clippy::large_enum_variant,
    reason = "batches are the usual case, and a box for each is an allocation"
)]
pub(crate) enum Preparation<P: SinkProtocol> {
    /// Records to make a request of.
    Batch(Batch<P::Key>),
    /// The rest of a request.
    More(P::More),
}

/// The outcome of a preparation, and the tools.
pub(crate) type Prepared<P> =
    (Result<<P as SinkProtocol>::Request, UnsentWork<P>>, Box<<P as SinkProtocol>::Tools>);

/// The work that did not become a request.
pub(crate) struct UnsentWork<P: SinkProtocol> {
    pub(crate) work: Preparation<P>,
    pub(crate) why: DropReason,
}

/// A request's properties that the engine needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestStatus {
    /// Its length, as endpoints are charged for it.
    pub(crate) bytes: usize,
    pub(crate) lane: RequestLane,
    /// It may be at fault itself: others go before it, and reading continues while it waits.
    pub(crate) is_suspect: bool,
    /// It is not sent before.
    pub(crate) not_before: Option<Instant>,
}

/// How requests get their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestLane {
    /// One after the other, as many at a time as the endpoints and `max_in_flight` allow.
    Main,
    /// One at a time, beside the others.
    Side,
}

/// The next step after an answer.
pub(crate) enum NextStep<P: SinkProtocol> {
    /// Nothing: everything in the request is settled.
    Settled,
    /// The same request again.
    Again(P::Request),
    /// More of it is prepared first.
    Prepare(P::More),
    /// Unsettled records are read again from the journal.
    ReadAgain,
}

/// A request with its answer.
pub(crate) struct AnsweredRequest<P: SinkProtocol> {
    pub(crate) request: P::Request,
    pub(crate) reservation: Reservation,
    pub(crate) answer: P::Answer,
    _under_way: InFlightGuard,
}

/// The sink could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It could not be attached to the journal.
    #[error(transparent)]
    Attach(#[from] crate::journal_consumer::AttachError),
    /// An endpoint cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Requests cannot be compressed like this.
    #[error(transparent)]
    Level(#[from] BadLevel),
    /// There is nowhere to send to.
    #[error("there is no endpoint to send to: give at least one")]
    NoEndpoint,
}

/// An endpoint cannot be used as configured.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// TLS.
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
    /// The address.
    #[error("`{}` is not the address of an endpoint: give it as `http://host:port` or `https://host:port`", crate::secrets::Shown(.0))]
    Address(hyper::Uri),
}
