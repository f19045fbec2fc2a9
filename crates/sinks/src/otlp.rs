//! The sink `otlp`: requests of OTLP as they came, joined where that needs no decoding.
//!
//! Specification: OTLP 1.x, <https://opentelemetry.io/docs/specs/otlp/>. The decisions are in `design/otlp.md`; what this
//! sink shares with the others is in `design/delivery.md`.
//!
//! Other formats are translated to OTLP; the ledger goes on counting their items as they came.
//!
//! Records are joined by signal and tenant into batches; a batch becomes a request (decoded and compressed again where its
//! records came in another form than they go out). A request refused as a whole that may contain one bad record is read
//! again from the journal, record by record; a record that the peer does not take whole, that needs more memory than the
//! sink's own part, or that is translated event by event goes out in pieces, when nothing else is in flight.

mod answer;
mod batching;
mod json;
mod outbound_request;
mod oversize;
mod peer;
mod push;
mod response;
mod responses;
mod routed;
mod settings;
mod status;
mod translation;

pub(crate) use batching::wire_signal;
pub(crate) use peer::{GrpcAnswer, grpc_answer};
pub(crate) use push::BYTES as PUSH_BYTES;
pub use routed::{RoutedOtlp, RoutedStartError, Routing};
pub use settings::{Compression, IndexerAcknowledgement, Json, Settings, SplunkHec, Transport};

use crate::batch::{Batch as JoinedBatch, DropReason, joined_most};
use crate::concurrency_limit::AdaptationRule;
use crate::delivery::compressor::Compressor;
use crate::delivery::{
    Delivery, DeliveryReport, EndpointError, NextStep, OversizeOutcome, Pipeline, PipelineLimits,
    Preparation, Prepared, RecordRoute, RequestLane, RequestStatus, SinkProtocol, StartError, UnsentWork,
};
use crate::egress_budget::EgressBudget;
use crate::endpoints::{Endpoints, Reservation};
use crate::journal_consumer::{Record, SinkContext};
use crate::need::Need;
use crate::pipeline_stage::KeptBodies;
use crate::probe::Probe;
use crate::stop::StopSignal;
use answer::OtlpAnswer;
use batching::{BodyTreatment, Key};
use futures_util::future::BoxFuture;
use json::{Growth, OutputForm};
use outbound_request::OutboundRequest;
use oversize::SplitRequest;
use peer::{PREFIX, Peer};
use std::convert::Infallible;
use tidegate_arena::GROWTH_STEP;
use tidegate_journal::{Protocol, Signal};

/// Records that go out together: bodies behind [`PREFIX`].
type Batch = JoinedBatch<Key>;

/// Windows come in whole steps: the body as it came, decoded, and a piece; and a piece compressed.
const WORKING: usize = 4 * GROWTH_STEP;

/// The sink, attached to the journal and ready to run.
pub struct Otlp(Delivery<OtlpProtocol>);

/// The part of OTLP that the delivery engine does not know.
struct OtlpProtocol {
    settings: Settings,
    /// The progress of the record that goes out in pieces.
    cut: Option<SplitRequest>,
    /// The last record that the tap was shown before it was sent on its own: later attempts do not show it again.
    shown: Option<u64>,
    /// How much longer requests become in another form.
    growth: Growth,
}

impl Otlp {
    /// The memory of a sink with these settings beyond payload, in bytes: connections, and the state of encoders.
    pub fn bytes(settings: &Settings) -> usize {
        Compressor::bytes(settings.compression)
            + peer::bytes(settings)
            + settings.max_in_flight * Delivery::<OtlpProtocol>::IN_FLIGHT_BYTES
    }

    /// The memory for delivering a record of this protocol and signal; `None` if the sink does not accept it.
    ///
    /// A body is held as it came, decoded, and then decoded beside one piece of what goes out. The largest item (with
    /// what encloses it) is such a piece alone, and goes uncompressed where there is no room to compress it. The factors
    /// are those of the worst possible item, as tests beside the translations prove: JSON of empty names with the longest
    /// prefix, buckets that grow from one byte to ten.
    #[must_use]
    pub fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        let (more, factor) = match (protocol, signal) {
            // They cannot be cut, and are sent from where they were decoded.
            (Protocol::Otlp, Signal::Profiles) => (0, 0),
            (Protocol::Otlp, Signal::Traces | Signal::Logs | Signal::Metrics) => (0, 1),
            // Buckets between others, of which there is nothing in the body.
            (Protocol::RemoteWrite1 | Protocol::RemoteWrite2, Signal::Metrics) => (GROWTH_STEP, 12),
            (Protocol::Intake, _) => (GROWTH_STEP / 8, 10),
            (Protocol::Bulk, _) => (GROWTH_STEP / 8, 6),
            _ => return None,
        };
        Some(Need { working: WORKING + more, factor })
    }

    /// A request without items to each endpoint. The same for every sink on these settings, whatever its protocol.
    ///
    /// # Errors
    /// When an address or the TLS settings cannot be used.
    pub fn probes(settings: &Settings, signal: Signal) -> Result<Vec<Probe>, EndpointError> {
        settings.endpoints.iter().map(|uri| peer::probe(uri, settings, signal)).collect()
    }

    /// Attaches the sink to the journal.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        context: SinkContext<'_>,
        room: EgressBudget,
        mut settings: Settings,
        stop: StopSignal,
    ) -> Result<Otlp, StartError> {
        settings.max_in_flight = settings.max_in_flight.max(1);
        let peers: Result<Vec<_>, _> =
            settings.endpoints.iter().map(|uri| Peer::new(uri, &settings)).collect();
        let peers = Some(peers?).filter(|peers| !peers.is_empty()).ok_or(StartError::NoEndpoint)?;
        let endpoints =
            Endpoints::new(peers, AdaptationRule::Requests(settings.max_in_flight), settings.backoff)
                .showing_limits(context.health);
        let compressor = Compressor::new(settings.compression)?;
        let limits = PipelineLimits {
            max_request_bytes: settings.max_request_bytes,
            max_in_flight: settings.max_in_flight,
            linger: settings.linger,
            timeout: settings.timeout,
        };
        let report = DeliveryReport::new(&context);
        let mut consumer = context.attach()?;
        consumer.keep(settings.joined().map_or(KeptBodies::None, KeptBodies::Only));
        let protocol = OtlpProtocol { settings, cut: None, shown: None, growth: Growth::default() };
        Ok(Otlp(Delivery::new(protocol, consumer, (room, endpoints), report, compressor, limits, stop)))
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        self.0.run()
    }
}

impl SinkProtocol for OtlpProtocol {
    type Key = Key;
    type Peer = Peer;
    type Tools = Compressor;
    type Request = OutboundRequest;
    type More = Infallible;
    type Answer = OtlpAnswer;
    type Oversize = Record;

    const PREFIX: usize = PREFIX;

    fn longest_batch(part: usize) -> usize {
        joined_most(part)
    }

    fn route(&mut self, pipeline: &Pipeline<Self>, record: &Record) -> RecordRoute<Key> {
        self.route_of(record, pipeline.most())
    }

    fn unchanged(&mut self, batch: Batch) -> Result<OutboundRequest, Batch> {
        if batch.key.way == BodyTreatment::Join { Ok(OutboundRequest::joined(batch)) } else { Err(batch) }
    }

    fn prepare(
        &mut self,
        pipeline: &Pipeline<Self>,
        work: Preparation<Self>,
        mut compressor: Box<Compressor>,
    ) -> BoxFuture<'static, Prepared<Self>> {
        let room = pipeline.room.clone();
        let batch = match work {
            Preparation::Batch(batch) => batch,
            Preparation::More(none) => match none {},
        };
        // An item that is too long alone cannot be helped.
        let most = if batch.items > 1 { pipeline.most() } else { usize::MAX };
        let form = self.settings.form().map(|form| OutputForm { form, expected: batch.out_len, most });
        Box::pin(async move {
            let outcome = Box::pin(outbound_request::pack(batch, form, &mut compressor, &room)).await;
            (outcome.map_err(|(batch, why)| UnsentWork { work: Preparation::Batch(batch), why }), compressor)
        })
    }

    fn prepared(&mut self, pipeline: &mut Pipeline<Self>, outbound: OutboundRequest) {
        if let Some(original) = &outbound.original {
            let raw = original.len().saturating_sub(PREFIX);
            self.growth.learn(outbound.request.signal, raw, outbound.raw_len);
        }
        pipeline.send_next(outbound);
    }

    fn unprepared(&mut self, _: &mut Pipeline<Self>, more: Infallible, _: DropReason) {
        match more {}
    }

    fn stand(outbound: &OutboundRequest) -> RequestStatus {
        let bytes = outbound.request.frame.len();
        RequestStatus { bytes, lane: RequestLane::Main, is_suspect: false, not_before: None }
    }

    async fn send(peer: &Peer, outbound: &mut OutboundRequest) -> OtlpAnswer {
        peer.send(&outbound.request).await
    }

    fn answered(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        outbound: OutboundRequest,
        reservation: Reservation,
        answer: OtlpAnswer,
    ) -> NextStep<Self> {
        responses::answered(pipeline, outbound, reservation, answer)
    }

    fn record(record: &Record) -> &Record {
        record
    }

    async fn send_alone(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        _: &Record,
        record: &Record,
    ) -> OversizeOutcome {
        self.send_oversize(pipeline, record).await
    }
}
