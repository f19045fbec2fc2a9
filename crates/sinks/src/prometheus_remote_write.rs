//! The sink `prometheus_remote_write`: requests as they came, joined where that needs no decoding.
//!
//! Specifications: <https://prometheus.io/docs/specs/prw/remote_write_spec/> and
//! <https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/> (2.0-rc.4).
//!
//! Records of 1.0 that go out as 1.0 are joined as compressed bytes. Everything else (another version, more
//! than one lane, a body over the limits, joining 2.0) is *recoded*: decompressed, cut, translated and
//! compressed again. One batch of records is on its way at a time, so samples arrive in the order in which
//! they were accepted; with several lanes a batch becomes one request for each, series by hash. What this sink shares
//! with the others, the order among it, is in `design/delivery.md`.
//!
//! OTLP metrics are recoded too. The books count them in points, also where a point becomes many samples; what
//! remote write cannot say of them is dropped as untranslatable. Deltas can be added up; what they come to is kept in
//! memory, so after a restart counters begin again.
//!
//! Prometheus without native histograms refuses them with a 500, as if it were broken. It is told from what it says:
//! then they are left out, and counted as rejected.

mod batching;
mod outbound_request;
mod oversize;
mod peer;
mod recode;
mod responses;
mod settings;
mod sharded;
mod snappy_passthrough;

pub(crate) use recode::{Relabeling, share_of};
pub use settings::{Naming, Prefer, Settings, Translation};
pub use sharded::{ShardBy, ShardedRemoteWrite, ShardedStartError, Sharding};

use crate::batch::{BatchLimits, DropReason};
use crate::concurrency_limit::AdaptationRule;
use crate::delivery::{
    Delivery, DeliveryReport, NextStep, OversizeOutcome, Pipeline, PipelineLimits, Preparation, Prepared,
    RecordRoute, RequestLane, RequestStatus, SinkProtocol, StartError, UnsentWork,
};
use crate::egress_budget::EgressBudget;
use crate::endpoints::{Endpoints, Reservation};
use crate::http_peer::{HttpAnswer, NoAnswer};
use crate::journal_consumer::{Record, SinkContext};
use crate::need::Need;
use crate::probe::Probe;
use crate::stop::StopSignal;
use batching::{Batch, BatchMode, Key};
use futures_util::future::{BoxFuture, join_all};
use outbound_request::{OutboundRequest, Recoding};
use peer::Receiver;
use recode::{Recoder, To};
use responses::KnownPeer;
use snappy_passthrough::PREAMBLE;
use tidegate_journal::{Protocol, Signal};
use tidegate_wire::otlp::prometheus::Deltas;
use tidegate_wire::remote_write::Version;
use tidegate_wire::snappy;

/// The sink, attached to the journal and ready to run.
pub struct RemoteWrite(Delivery<RemoteWriteProtocol>);

/// The part of remote write that the delivery engine does not know.
struct RemoteWriteProtocol {
    settings: Settings,
    known: KnownPeer,
    /// The progress of the record that goes out on its own.
    cut: Option<Recoding>,
    /// The last record that the tap was shown before it was sent on its own: later attempts do not show it again.
    shown: Option<u64>,
}

impl RemoteWrite {
    /// Bytes that each lane takes beyond payload, at each endpoint: buffers of its connection, and the recoder's tables.
    pub const LANE_BYTES: usize = 2 * crate::http_peer::CONNECTION_BUFFER + snappy::Encoder::BYTES;

    /// Bytes that the roots take which TLS trusts, for each endpoint that speaks it.
    pub const ROOTS_BYTES: usize = crate::delivery::client::ROOT_STORE_BYTES;

    /// Bytes that adding up deltas of so many series takes.
    #[must_use]
    pub const fn delta_bytes(series: usize) -> usize {
        Deltas::bytes_for(series)
    }

    /// The memory for delivering a record of this protocol and signal; `None` if the sink does not accept it.
    ///
    /// A series is cut between its samples where it is too large for one request, so what counts is a series' labels
    /// with one of its items: as it is, with symbols of its own, without histograms, without exemplars that stand alone,
    /// those, and compressed. A point of OTLP is not cut: its labels are written anew, once for each of its buckets.
    #[must_use]
    pub const fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        match (protocol, signal) {
            (Protocol::RemoteWrite1 | Protocol::RemoteWrite2, _) => {
                Some(Need { working: 512 << 10, factor: 6 })
            }
            (Protocol::Otlp, Signal::Metrics) => Some(Need { working: 768 << 10, factor: 8 }),
            _ => None,
        }
    }

    /// An empty request to each endpoint.
    #[must_use]
    pub fn probes(settings: &Settings) -> Vec<Probe> {
        settings.endpoints.iter().map(|uri| peer::probe(uri, settings)).collect()
    }

    /// Attaches the sink to the journal.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        context: SinkContext<'_>,
        room: EgressBudget,
        settings: Settings,
        stop: StopSignal,
    ) -> Result<RemoteWrite, StartError> {
        let peers: Result<Vec<_>, _> =
            settings.endpoints.iter().map(|uri| Receiver::new(uri, &settings)).collect();
        let peers = Some(peers?).filter(|peers| !peers.is_empty()).ok_or(StartError::NoEndpoint)?;
        let endpoints = Endpoints::new(peers, AdaptationRule::Requests(1), settings.backoff).in_turn();
        let limits = PipelineLimits {
            max_request_bytes: settings.max_bytes,
            max_in_flight: 1,
            linger: settings.linger,
            timeout: settings.timeout,
        };
        let report = DeliveryReport::new(&context);
        let mut consumer = context.attach()?;
        // There is no way from its metricsets to series.
        consumer.pass_over_all_of(Protocol::Intake);
        let recoder = Recoder::new(room.clone(), &settings, context.pipeline);
        let protocol = RemoteWriteProtocol { settings, known: KnownPeer::default(), cut: None, shown: None };
        Ok(RemoteWrite(Delivery::new(protocol, consumer, (room, endpoints), report, recoder, limits, stop)))
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        self.0.run()
    }
}

impl SinkProtocol for RemoteWriteProtocol {
    type Key = Key;
    type Peer = Receiver;
    type Tools = Recoder;
    type Request = OutboundRequest;
    type More = Recoding;
    type Answer = Vec<Result<HttpAnswer, NoAnswer>>;
    type Oversize = Record;

    const PREFIX: usize = PREAMBLE;
    const ORDERED: bool = true;

    fn longest_batch(_part: usize) -> usize {
        usize::MAX
    }

    fn limits(&self, pipeline: &Pipeline<Self>, key: &Key, usual: BatchLimits) -> BatchLimits {
        self.limits_of(key.mode, pipeline.room.part(), usual)
    }

    fn route(&mut self, pipeline: &Pipeline<Self>, record: &Record) -> RecordRoute<Key> {
        self.route_of(record, pipeline.most(), pipeline.room.part())
    }

    fn unchanged(&mut self, batch: Batch) -> Result<OutboundRequest, Batch> {
        if batch.key.mode == BatchMode::Pass { OutboundRequest::joined(batch) } else { Err(batch) }
    }

    fn prepare(
        &mut self,
        pipeline: &Pipeline<Self>,
        work: Preparation<Self>,
        mut recoder: Box<Recoder>,
    ) -> BoxFuture<'static, Prepared<Self>> {
        let most = pipeline.most();
        let to = match &work {
            Preparation::Batch(batch) => self.to(batch.key.mode),
            Preparation::More(_) => self.to(BatchMode::Pass),
        };
        Box::pin(async move {
            let begun = match work {
                Preparation::Batch(batch) => recoder.begin(batch, to).await,
                Preparation::More(more) => Ok(more),
            };
            let outcome = match begun {
                Ok(work) => Ok(recoder.next(work, most).await),
                Err((batch, why)) => Err(UnsentWork { work: Preparation::Batch(batch), why }),
            };
            (outcome, recoder)
        })
    }

    fn prepared(&mut self, pipeline: &mut Pipeline<Self>, outbound: OutboundRequest) {
        if outbound.lanes.is_empty() {
            // Nothing of it is left that can be sent.
            pipeline.released();
            self.settle(pipeline, outbound.records);
        } else {
            pipeline.send_next(outbound);
        }
    }

    fn unprepared(&mut self, pipeline: &mut Pipeline<Self>, more: Recoding, why: DropReason) {
        let Recoding { mut records, .. } = more;
        records.lose_the_rest(why.reason());
        self.settle(pipeline, records);
    }

    fn held(more: &Recoding) -> usize {
        more.progress.held()
    }

    fn has_more(_outbound: &OutboundRequest) -> bool {
        // Nothing is read ahead: what the quota takes from a sink that is behind would be sent all the same.
        true
    }

    fn requests(outbound: &OutboundRequest) -> u64 {
        outbound.open().count() as u64
    }

    fn stand(outbound: &OutboundRequest) -> RequestStatus {
        let bytes = outbound.lanes.iter().map(|lane| lane.request.body.len()).sum();
        RequestStatus { bytes, lane: RequestLane::Main, is_suspect: false, not_before: None }
    }

    async fn send(peer: &Receiver, outbound: &mut OutboundRequest) -> Self::Answer {
        let tenant = outbound.records.meta.tenant;
        join_all(outbound.open().map(|request| peer.send(request, &tenant))).await
    }

    fn answered(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        outbound: OutboundRequest,
        reservation: Reservation,
        answers: Self::Answer,
    ) -> NextStep<Self> {
        self.heard(pipeline, outbound, reservation, answers)
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

impl RemoteWriteProtocol {
    /// The encoding of a batch, from what is known of the peer.
    fn to(&self, mode: BatchMode) -> To {
        let wanted = match mode {
            BatchMode::Pass => Version::V1,
            BatchMode::Recode { to, .. } => to,
        };
        To { version: self.known.version(wanted), histograms: self.known.takes_histograms() }
    }
}
