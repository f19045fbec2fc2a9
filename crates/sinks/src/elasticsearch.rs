//! The sink `elasticsearch`: sends documents to Elasticsearch 8 and 9, and to OpenSearch, by `_bulk`.
//!
//! Records that came as documents go out as they came, with an `_id` where they had none; all others are translated
//! (`tidegate-elastic`). The decisions are in `design/elasticsearch.md`; what this sink shares with the others is in
//! `design/delivery.md`.
//!
//! Records are joined into batches; a batch becomes an outbound request of documents, of which one piece at a time is in
//! flight. The response tells the outcome of each document: documents that the cluster had no room for are retried alone,
//! rejected ones become dead letters, and those of an unavailable index wait for it while the others go on. Records that
//! need more memory than the sink's own part are sent piece by piece when nothing else is in flight.

mod answer;
mod bulk_response;
mod cluster;
mod document_source;
mod documents;
mod item_filter;
mod outbound_request;
mod oversize;
mod peer;
mod record_shares;
mod responses;
mod settings;
mod setup;
mod unavailable_indices;

pub use cluster::{Cluster, ClusterNodes};
pub use settings::Settings;
pub use setup::{SetupError, put_templates};

use crate::batch::{Batch as JoinedBatch, DropReason};
use crate::concurrency_limit::AdaptationRule;
use crate::delivery::compressor::Compressor;
use crate::delivery::{
    Delivery, DeliveryReport, EndpointError, NextStep, OversizeOutcome, Pipeline, PipelineLimits,
    Preparation, Prepared, RecordRoute, RequestLane, RequestStatus, SinkProtocol, StartError,
};
use crate::egress_budget::EgressBudget;
use crate::endpoints::{Endpoints, Reservation};
use crate::journal_consumer::{Record, SinkContext};
use crate::need::Need;
use crate::otlp::Compression;
use crate::probe::Probe;
use crate::stop::StopSignal;
use answer::BulkAnswer;
use document_source::DocumentSource;
use documents::{IdPrefix, is_spoken, outgoing_len};
use futures_util::future::BoxFuture;
use item_filter::ItemChoice;
use outbound_request::{MAX_DOCUMENTS, OutboundRequest, PendingWork, PreparationTools, prepare};
use oversize::{OversizeRecord, RecordProgress};
use peer::Node;
use responses::LETTER;
use std::sync::Arc;
use tidegate_arena::rounded;
use tidegate_elastic::documents::WORKING_BYTES;
use tidegate_journal::{Encoding, Protocol, Signal, Tenant};
use tokio::time::Instant;
use unavailable_indices::UnavailableIndices;

/// Records of one tenant that go out together.
type Batch = JoinedBatch<Tenant>;

/// The sink, attached to the journal and ready to run.
pub struct Elasticsearch(Delivery<BulkProtocol>);

/// The part of `_bulk` that the delivery engine does not know.
struct BulkProtocol {
    settings: Arc<Settings>,
    origin: IdPrefix,
    /// Where the journal ended when this began, if the sink had begun before: what was there may have been sent then, by
    /// one that did not live to note it.
    inherited: u64,
    /// Documents that wait for an index that takes none now.
    unavailable: UnavailableIndices,
    /// One past the last record that was handed out since everything was read again.
    reached: u64,
    /// The last error of a node about a request, and when it expires.
    fault: Option<(String, Instant)>,
    /// Something was accepted, which until then says that the nodes work.
    alive_until: Option<Instant>,
    /// The progress of the record that is sent when nothing else is in flight.
    progress: Option<Box<RecordProgress>>,
}

impl Elasticsearch {
    /// The memory of a sink with these settings beyond payload, in bytes: connections, encoders, and the state of
    /// documents in flight.
    pub fn bytes(settings: &Settings) -> usize {
        let each = Delivery::<BulkProtocol>::IN_FLIGHT_BYTES + size_of::<OutboundRequest>() + MAX_DOCUMENTS;
        Compressor::bytes(compression(settings))
            + peer::bytes(settings)
            + LETTER
            + WORKING_BYTES
            + UnavailableIndices::BYTES
            + DocumentSource::BYTES
            + 2 * settings.max_in_flight * each
    }

    /// The memory for delivering a record of this protocol and signal, if the sink accepts it.
    pub fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        documents::need(protocol, signal)
    }

    /// A request to each node that asks what it is.
    ///
    /// # Errors
    /// When an address cannot be used.
    pub fn probes(settings: &Settings) -> Result<Vec<Probe>, EndpointError> {
        settings.endpoints.iter().map(|uri| peer::probe(uri, settings)).collect()
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
    ) -> Result<Elasticsearch, StartError> {
        settings.max_in_flight = settings.max_in_flight.max(1);
        let peers: Result<Vec<_>, _> =
            settings.endpoints.iter().map(|uri| Node::new(uri, &settings)).collect();
        let peers = Some(peers?).filter(|peers| !peers.is_empty()).ok_or(StartError::NoEndpoint)?;
        // Of what is about a full request with this much memory.
        let step = settings.max_request_bytes.min(BulkProtocol::longest_batch(room.part()));
        let law = AdaptationRule::Bytes { steps: settings.max_in_flight, step };
        let endpoints = Endpoints::new(peers, law, settings.backoff).showing_limits(context.health);
        let origin = IdPrefix::new(context.journal.id(), context.name, context.pipeline);
        let tools =
            PreparationTools { compressor: Compressor::new(compression(&settings))?, origin: origin.clone() };
        let limits = PipelineLimits {
            max_request_bytes: settings.max_request_bytes,
            max_in_flight: settings.max_in_flight,
            linger: settings.linger,
            timeout: settings.timeout,
        };
        let had_begun = context.journal.sinks().iter().any(|name| name == context.name);
        let consumer = context.attach()?;
        context.health.held_up(Vec::new());
        let protocol = BulkProtocol {
            origin,
            inherited: if had_begun { context.journal.stats().head } else { 0 },
            unavailable: UnavailableIndices::new(settings.backoff),
            settings: Arc::new(settings),
            reached: 0,
            fault: None,
            alive_until: None,
            progress: None,
        };
        let report = DeliveryReport::new(&context);
        Ok(Elasticsearch(Delivery::new(protocol, consumer, (room, endpoints), report, tools, limits, stop)))
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        self.0.run()
    }
}

impl SinkProtocol for BulkProtocol {
    type Key = Tenant;
    type Peer = Node;
    type Tools = PreparationTools;
    type Request = Box<OutboundRequest>;
    type More = PendingWork;
    type Answer = BulkAnswer;
    type Oversize = OversizeRecord;

    const PREFIX: usize = 0;

    fn longest_batch(part: usize) -> usize {
        part / 6
    }

    fn knows(&mut self, record: &Record) -> bool {
        self.reached = self.reached.max(record.sequence + 1);
        self.unavailable.has(record.sequence)
    }

    fn route(&mut self, _: &Pipeline<Self>, record: &Record) -> RecordRoute<Tenant> {
        if !is_spoken(&record.meta) {
            return RecordRoute::Untranslatable;
        }
        RecordRoute::Batch {
            key: record.meta.tenant,
            out_len: outgoing_len(&record.meta, &self.settings),
            needed: self.needed(record),
            single: false,
        }
    }

    fn prepare(
        &mut self,
        pipeline: &Pipeline<Self>,
        work: Preparation<Self>,
        tools: Box<PreparationTools>,
    ) -> BoxFuture<'static, Prepared<Self>> {
        let pick = match work {
            Preparation::Batch(_) => self.unavailable.pick(),
            Preparation::More(_) => ItemChoice::All,
        };
        let (most, room) = (pipeline.most(), pipeline.room.clone());
        Box::pin(prepare(work, pick, most, tools, room, Arc::clone(&self.settings)))
    }

    fn prepared(&mut self, pipeline: &mut Pipeline<Self>, outbound: Box<OutboundRequest>) {
        if outbound.request.is_none() {
            // Nothing in it has a document, or all of them wait for their index.
            pipeline.released();
            self.settle(pipeline, *outbound);
        } else {
            pipeline.send_next(outbound);
        }
    }

    fn unprepared(&mut self, pipeline: &mut Pipeline<Self>, more: PendingWork, why: DropReason) {
        self.give_up_preparing(pipeline, more, why);
    }

    fn stand(outbound: &Box<OutboundRequest>) -> RequestStatus {
        RequestStatus {
            bytes: outbound.piece().len(),
            lane: if outbound.follows.is_some() { RequestLane::Side } else { RequestLane::Main },
            is_suspect: outbound.faults > 0,
            not_before: outbound.not_before,
        }
    }

    async fn send(peer: &Node, outbound: &mut Box<OutboundRequest>) -> BulkAnswer {
        // A request that was not prepared again is sent again uncompressed.
        let request = outbound.request.clone().unwrap_or_else(|| outbound.unpacked());
        outbound.not_before = None;
        // Once there is an answer, the rest of the request belongs to the connection.
        peer.send(&request).await
    }

    fn answered(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        outbound: Box<OutboundRequest>,
        reservation: Reservation,
        answer: BulkAnswer,
    ) -> NextStep<Self> {
        self.heard(pipeline, outbound, reservation, answer)
    }

    fn record(oversize: &OversizeRecord) -> &Record {
        &oversize.record
    }

    async fn send_alone(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        oversize: &OversizeRecord,
        record: &Record,
    ) -> OversizeOutcome {
        self.send_oversize(pipeline, oversize, record).await
    }

    fn resumes_at(&self, oversize: &OversizeRecord) -> Option<Instant> {
        let begun = self.progress.as_ref().filter(|known| known.sequence == oversize.record.sequence);
        begun.and_then(|known| known.not_before)
    }

    fn lost(&mut self, pipeline: &Pipeline<Self>, oversize: &OversizeRecord) {
        if oversize.follows.is_some() {
            self.unavailable.is_tried = false;
            self.unavailable.forget(oversize.record.sequence);
            self.show_held_up(pipeline);
        }
    }

    fn rewound(&mut self, instead_of: Option<OversizeRecord>) {
        if instead_of.is_some_and(|oversize| oversize.follows.is_some()) {
            self.unavailable.is_tried = false;
        }
        self.reached = 0;
    }

    async fn tend(&mut self, pipeline: &mut Pipeline<Self>) {
        if pipeline.is_flowing() && self.unavailable.next().is_some_and(|at| at <= Instant::now()) {
            Box::pin(self.follow_up(pipeline)).await;
        }
    }

    fn due(&self) -> Option<Instant> {
        self.unavailable.next()
    }

    fn is_finished(&self) -> bool {
        self.unavailable.is_empty()
    }
}

impl BulkProtocol {
    /// The budget for a record sent alone, in whole steps.
    fn needed(&self, record: &Record) -> usize {
        let out = outgoing_len(&record.meta, &self.settings);
        let raw = match record.meta.encoding {
            Encoding::Identity => 0,
            _ => rounded(record.meta.raw_len as usize + crate::decoding::END_SLACK),
        };
        rounded(record.body_len as usize) + raw + rounded(out) + rounded(out / 4)
    }
}

fn compression(settings: &Settings) -> Compression {
    settings.gzip.map_or(Compression::None, Compression::Gzip)
}
