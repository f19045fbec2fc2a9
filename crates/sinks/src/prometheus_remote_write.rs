//! The sink `prometheus_remote_write`: requests as they came, joined where that needs no decoding.
//!
//! Specifications: <https://prometheus.io/docs/specs/prw/remote_write_spec/> and
//! <https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/> (2.0-rc.4).
//!
//! Records of 1.0 that go out as 1.0 are joined as compressed bytes. Everything else (another version, more
//! than one lane, a body over the limits, joining 2.0) is *recoded*: decompressed, cut, translated and
//! compressed again. One batch of records is on its way at a time, so samples arrive in the order in which
//! they were accepted; with several lanes a batch becomes one request for each, series by hash.
//!
//! OTLP metrics are recoded too. The books count them in points, also where a point becomes many samples; what
//! remote write cannot say of them is dropped as untranslatable. Deltas can be added up; what they come to is kept in
//! memory, so after a restart counters begin again.
//!
//! Prometheus without native histograms refuses them with a 500, as if it were broken. It is told from what it says:
//! then they are left out, and counted as rejected.

mod batch;
mod exchange;
mod recode;
mod rotation;
mod settings;
mod snappy_passthrough;

pub use settings::{Naming, Prefer, Settings, Translation};

use crate::backoff::Backoff;
use crate::delivery::StartError;
use crate::egress_budget::EgressBudget;
use crate::http_peer::HttpPeer;
use crate::journal_consumer::{JournalConsumer, Record, SinkContext};
use crate::losses::Losses;
use crate::need::Need;
use crate::stop::StopSignal;
use batch::{Batch, BatchMode, BodyError, BodyFormat};
use exchange::{Exchange, RequestVerdict, Sum};
use hyper::Uri;
use recode::{RecodeProgress, RecodeStep, Recoder, To};
use rotation::Rotation;
use std::time::Duration;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_wire::otlp::prometheus::Deltas;
use tidegate_wire::remote_write::Version;
use tidegate_wire::snappy;

/// The sink, attached to the journal and ready to run.
pub struct RemoteWrite {
    consumer: JournalConsumer,
    room: EgressBudget,
    settings: Settings,
    exchange: Exchange,
    recoder: Recoder,
    /// How long the last batch was, in bytes.
    usual: usize,
    /// A record that was taken and did not fit into the last batch.
    held: Option<Record>,
    /// How many records are to be sent one by one, since a batch of them was rejected as a whole.
    singly: usize,
}

/// The result of a batch.
enum Sent {
    /// Every record of it is done, but for these.
    Done(Losses),
    /// To be read again and sent again after so long: record by record, or because it was too large to be held
    /// meanwhile.
    Again { after: Duration, singly: bool },
    /// The order to stop came first.
    Stopped,
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
        let peer = |uri: &Uri| {
            let Settings { headers, tls, timeout, lanes, .. } = &settings;
            HttpPeer::new(uri.clone(), headers.clone(), tls, *timeout, *lanes)
        };
        let peers: Result<Vec<_>, _> = settings.endpoints.iter().map(peer).collect();
        let peers = Some(peers?).filter(|peers| !peers.is_empty()).ok_or(StartError::NoEndpoint)?;
        let backoff = Backoff::new(settings.backoff.0, settings.backoff.1);
        let health = context.health.clone();
        let dead_letters = context.dead_letters.clone();
        let mut consumer = context.attach()?;
        // There is no way from its metricsets to series.
        consumer.pass_over_all_of(Protocol::Intake);
        let exchange = Exchange::new(
            consumer.name(),
            (Rotation::new(peers, &backoff), settings.tenant_header.clone()),
            health,
            dead_letters,
            stop,
            settings.timeout,
        );
        let recoder = Recoder::new(room.clone(), &settings);
        Ok(RemoteWrite { consumer, room, settings, exchange, recoder, usual: 0, held: None, singly: 0 })
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub async fn run(mut self) {
        while let Some(batch) = self.gather().await {
            let (last, records) = (batch.last(), batch.records());
            match self.send(batch).await {
                Sent::Done(losses) => {
                    self.singly = self.singly.saturating_sub(records);
                    self.consumer.settle(&last, losses);
                }
                Sent::Again { after, singly } => {
                    self.singly = if singly { records } else { self.singly };
                    self.held = None;
                    self.consumer.rewind();
                    if self.exchange.stop().or(tokio::time::sleep(after)).await.is_none() {
                        return;
                    }
                }
                Sent::Stopped => return,
            }
        }
    }

    /// The next batch: one record, and those after it that go the same way, until it is full or nothing
    /// more came for a while.
    async fn gather(&mut self) -> Option<Batch> {
        let stop = self.exchange.stop().clone();
        let (mut batch, mode) = loop {
            let first = match self.held.take() {
                Some(record) => record,
                None => stop.or(self.consumer.next()).await??,
            };
            let mode = self.mode(&first);
            // Only what is too large for an empty part is too large.
            stop.or(self.exchange.let_go(&self.room, 0)).await?;
            let loaded =
                Box::pin(Batch::of(first, mode, self.usual, &self.room, &mut self.consumer, &self.settings));
            match stop.or(loaded).await? {
                Ok(batch) => break (batch, mode),
                // The journal counts it, and goes on to the next.
                Err(BodyError::Damaged) => {}
                Err(BodyError::TooLarge) => {
                    let items = u64::from(first.meta.items);
                    self.too_large(first.meta.raw_len as usize, items);
                    self.consumer.settle(&first, Losses::of(Dropped::TooLarge, items));
                }
            }
        };
        let full_at = tokio::time::Instant::now() + self.settings.linger;
        while self.singly == 0 && !batch.is_full() {
            let Ok(next) = tokio::time::timeout_at(full_at, stop.or(self.consumer.next())).await else {
                break;
            };
            // Of a journal that was closed nothing more comes; what did come is still to be sent.
            let Some(record) = next? else { break };
            if self.mode(&record) != mode || !batch.add(&record, &mut self.consumer) {
                self.held = Some(record);
                break;
            }
        }
        self.usual = batch.len();
        Some(batch)
    }

    /// How a record goes out.
    fn mode(&self, record: &Record) -> BatchMode {
        let Some(from) = batch::form_of(record) else { return BatchMode::Alien };
        let wanted = match self.settings.prefer {
            Prefer::AsReceived => from.version(),
            Prefer::V1 => Version::V1,
            Prefer::V2 => Version::V2,
        };
        let to = if self.exchange.peer_is_v1() { Version::V1 } else { wanted };
        let within = record.meta.raw_len as usize <= self.settings.max_bytes
            && u64::from(record.meta.items) <= self.settings.max_items;
        let same = from == BodyFormat::RemoteWrite(Version::V1) && to == Version::V1;
        let passes = same && self.settings.lanes == 1 && within && !self.exchange.peer_has_no_histograms();
        if passes && record.meta.encoding == Encoding::Snappy {
            BatchMode::Pass
        } else {
            BatchMode::Recode { from, to }
        }
    }

    async fn send(&mut self, batch: Batch) -> Sent {
        match batch.mode() {
            // Nothing that this peer's protocol could say.
            BatchMode::Alien => Sent::Done(Losses::of(Dropped::Untranslatable, batch.items())),
            BatchMode::Pass => Box::pin(self.send_passing(batch)).await,
            BatchMode::Recode { from, to } => Box::pin(self.send_recoded(batch, from, to)).await,
        }
    }

    /// Says that items of a record are dropped for their size.
    fn too_large(&self, record_bytes: usize, items: u64) {
        tracing::warn!(
            sink = self.consumer.name(),
            record_bytes,
            items,
            most_bytes = self.room.most(),
            "dropping items that there is no memory to send; raise `memory`"
        );
    }

    async fn send_passing(&mut self, batch: Batch) -> Sent {
        let (meta, records, patient) = (*batch.meta(), batch.records(), !batch.is_large());
        let items = batch.items();
        let Some((request, _turn)) = batch.into_request() else {
            return Sent::Done(Losses::of(Dropped::Damaged, items));
        };
        let verdicts = self.exchange.deliver(std::slice::from_ref(&request), meta.tenant, patient).await;
        match verdicts.into_iter().next() {
            Some(RequestVerdict::Delivered) => Sent::Done(Losses::NONE),
            // Which record is at fault is found out by sending each alone.
            Some(RequestVerdict::Rejected(rejection)) if records > 1 && rejection.written == 0 => {
                Sent::Again { after: Duration::ZERO, singly: true }
            }
            Some(RequestVerdict::Rejected(rejection)) => {
                self.exchange.bury(&request, &rejection, &meta);
                Sent::Done(Losses::of(Dropped::Rejected, request.lost(rejection.written)))
            }
            Some(RequestVerdict::NotThisVersion | RequestVerdict::NoHistograms) => {
                Sent::Again { after: Duration::ZERO, singly: false }
            }
            Some(RequestVerdict::Later(after)) => Sent::Again { after, singly: false },
            Some(RequestVerdict::Stopped) | None => Sent::Stopped,
        }
    }

    async fn send_recoded(&mut self, mut batch: Batch, from: BodyFormat, to: Version) -> Sent {
        let stop = self.exchange.stop().clone();
        let mut losses = Losses::NONE;
        let histograms = !self.exchange.peer_has_no_histograms();
        if self.settings.tenant_header.is_some() {
            self.recoder.turn_to(&batch.meta().tenant);
        }
        let mut work = RecodeProgress::new(from, To { version: to, histograms });
        loop {
            let own = batch.held() + work.held();
            if stop.or(self.exchange.let_go(&self.room, own)).await.is_none() {
                return Sent::Stopped;
            }
            let step = Box::pin(self.recoder.next(&mut work, &mut batch, &mut self.consumer));
            let Some(step) = stop.or(step).await else { return Sent::Stopped };
            let (requests, untranslatable, unwanted) = match step {
                RecodeStep::Requests { requests, untranslatable, unwanted } => {
                    (requests, untranslatable, unwanted)
                }
                RecodeStep::Lost(reason, items) => {
                    if reason == Dropped::TooLarge {
                        self.too_large(batch.meta().raw_len as usize, items);
                    }
                    losses.add(reason, items);
                    tokio::task::yield_now().await;
                    continue;
                }
                RecodeStep::Finished => return Sent::Done(losses),
            };
            let verdicts = self.exchange.deliver(&requests, batch.meta().tenant, !batch.is_borrowing()).await;
            let wait = match Sum::of(&verdicts) {
                Sum::Stopped => return Sent::Stopped,
                Sum::OtherVersion => {
                    work.again_as(Version::V1);
                    Duration::ZERO
                }
                Sum::WithoutHistograms => {
                    work.again_without_histograms();
                    Duration::ZERO
                }
                Sum::Later(wait) => {
                    work.again();
                    wait
                }
                // Which record is at fault is found out by sending each alone.
                Sum::Final { rejected: true } if work.again_apart() => Duration::ZERO,
                Sum::Final { .. } => {
                    self.recoder.keep();
                    losses.add(Dropped::Untranslatable, untranslatable);
                    losses.add(Dropped::Rejected, unwanted);
                    for (request, verdict) in requests.iter().zip(&verdicts) {
                        if let RequestVerdict::Rejected(rejection) = verdict {
                            self.exchange.bury(request, rejection, batch.meta());
                            losses.add(Dropped::Rejected, request.lost(rejection.written));
                        }
                    }
                    Duration::ZERO
                }
            };
            // Nothing that was borrowed is held over a wait.
            drop(requests);
            batch.unload(&self.room);
            if !wait.is_zero() && stop.or(tokio::time::sleep(wait)).await.is_none() {
                return Sent::Stopped;
            }
        }
    }
}
