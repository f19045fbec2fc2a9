//! A journal with a sink behind it, and a model of what was put in.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::dead_letters::{self, DeadLetters};
use tidegate_journal::{
    Batch, Checkpoints, Durability, Encoding, Journal, Meta, Protocol, Signal, Tenant, WhenFull,
};
use tidegate_ledger::{Counts, Dropped, Ledger, SinkBalance};
use tidegate_load::remote_write::{self, RequestExtras, Version, compress};
use tidegate_load::{
    AcknowledgedSamples, Arrivals, Check, Comparison, SeriesModel, Timeline, VerifyingReceiver, compare,
};
use tidegate_meters::Registry;
use tidegate_sinks::{
    BorrowQueue, EgressBudget, Health, Prefer, RemoteWrite, RemoteWriteSettings, Signals, SinkContext,
    StopSender, Translation,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The name of the sink in these tests.
pub(crate) const NAME: &str = "upstream";
const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 15_000 };

/// The recorded requests.
const INGEST: usize = 4 << 20;

/// Everything on the near side of the peer.
pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) arena: Arena,
    pub(crate) journal: Journal,
    pub(crate) ledger: Ledger,
    pub(crate) letters: DeadLetters,
    pub(crate) turn: Arc<BorrowQueue>,
    pub(crate) health: Health,
    /// The sink's signals.
    pub(crate) signals: Signals,
    pub(crate) part: usize,
    when_full: WhenFull,
    pub(crate) model: SeriesModel,
    pub(crate) acked: AcknowledgedSamples,
    /// Each series' next sample.
    next: Vec<u64>,
}

impl Rig {
    /// With `series` series, and a sink that may hold `part` bytes.
    pub(crate) fn new(series: usize, part: usize) -> Rig {
        let dir = tempfile::tempdir().unwrap();
        Rig::of(SeriesModel::with_histograms(7, series, TIMELINE, 10), part, dir, 1 << 30)
    }

    /// The same with a journal that may take `quota` bytes, and a sink that does this when it is full.
    pub(crate) fn with_quota(self, quota: u64, when_full: WhenFull) -> Rig {
        let dir = tempfile::tempdir().unwrap();
        Rig { when_full, ..Rig::of(self.model, self.part, dir, quota) }
    }

    /// The same where the sink can hold `most` bytes at most, all that is borrowed included.
    pub(crate) fn holding(self, most: usize) -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let total = (most + self.part + INGEST) as u64;
        Rig::sized(self.model, self.part, dir, 1 << 30, total)
    }

    fn of(model: SeriesModel, part: usize, dir: tempfile::TempDir, quota: u64) -> Rig {
        Rig::sized(model, part, dir, quota, 32 << 20)
    }

    fn sized(model: SeriesModel, part: usize, dir: tempfile::TempDir, quota: u64, total: u64) -> Rig {
        let floors = Floors::NONE.with(Share::Egress, 2 * part as u64).with(Share::Ingest, INGEST as u64);
        let arena = Arena::new(total, floors, 8 << 20, 256, 64).unwrap();
        let settings = tidegate_journal::Settings {
            segment_bytes: 4 << 20,
            durability: Durability::PageCache,
            quota,
            ..tidegate_journal::Settings::new(dir.path().join("journal"))
        };
        let (journal, recovery) = Journal::open(settings).unwrap();
        let ledger = Ledger::new(&Registry::new(1), recovery.items);
        let head = ledger.head();
        journal.observe(move |items| head.advance_to(items));
        let letters = DeadLetters::open(&dir.path().join("letters"), dead_letters::DEFAULT_MAX).unwrap();
        let (acked, next) = (AcknowledgedSamples::none(model.len()), vec![0; model.len()]);
        Rig {
            dir,
            arena,
            journal,
            ledger,
            letters,
            turn: Arc::default(),
            health: Health::default(),
            signals: Signals::ALL,
            part,
            when_full: WhenFull::Block,
            model,
            acked,
            next,
        }
    }

    /// The same after a restart on the files in `dir`: copies of those here.
    pub(crate) fn restarted_in(self, dir: tempfile::TempDir) -> Rig {
        let Rig { part, model, acked, next, .. } = self;
        Rig { acked, next, ..Rig::of(model, part, dir, 1 << 30) }
    }

    /// The same after a restart of the process.
    pub(crate) fn restarted(self) -> Rig {
        self.restarted_after(|| {})
    }

    /// The same after a restart of the process; `meanwhile` happens between.
    pub(crate) fn restarted_after(self, meanwhile: impl FnOnce()) -> Rig {
        let Rig { dir, arena, journal, ledger, letters, part, model, acked, next, .. } = self;
        assert!(journal.close(60 * SECOND));
        drop((arena, journal, ledger, letters));
        meanwhile();
        Rig { acked, next, ..Rig::of(model, part, dir, 1 << 30) }
    }

    pub(crate) fn letters_dir(&self) -> PathBuf {
        self.dir.path().join("letters")
    }

    /// Puts the next `samples` of each of these series into the journal, as one request.
    pub(crate) async fn put(&mut self, version: Version, series: Range<usize>, samples: u64) {
        self.put_with(version, series, samples, RequestExtras::default()).await;
    }

    /// As [`put`](Self::put), with more than samples.
    pub(crate) async fn put_with(
        &mut self,
        version: Version,
        series: Range<usize>,
        samples: u64,
        extras: RequestExtras,
    ) {
        self.put_in(Encoding::Snappy, version, series, samples, extras).await;
    }

    /// The same in this encoding: a body that a pipeline has changed is not compressed.
    pub(crate) async fn put_in(
        &mut self,
        encoding: Encoding,
        version: Version,
        series: Range<usize>,
        samples: u64,
        extras: RequestExtras,
    ) {
        let first = self.next[series.start];
        self.next[series.clone()].fill(first + samples);
        self.acked.add(series.clone(), first, first + samples);
        let batch = remote_write::SampleBatch {
            extras,
            ..remote_write::SampleBatch::of(&self.model, self.model.range(series), first, samples)
        };
        let mut raw = Vec::new();
        batch.encode(version, &mut raw);
        let mut body = Vec::new();
        compress(&raw, &mut body);
        let totals = remote_write::decode(version, &body, raw.len(), &mut |_| {}).unwrap();
        let items = totals.samples + totals.histograms + totals.exemplars + totals.metadata;
        let body = if encoding == Encoding::Identity { &raw } else { &body };
        let protocol = match version {
            Version::V1 => Protocol::RemoteWrite1,
            Version::V2 => Protocol::RemoteWrite2,
        };
        self.append_in(encoding, Signal::Metrics, protocol, body, raw.len(), items).await;
    }

    /// Appends a body as a source does.
    pub(crate) async fn append(&self, version: Version, body: &[u8], raw_len: usize, items: u64) {
        let protocol = match version {
            Version::V1 => Protocol::RemoteWrite1,
            Version::V2 => Protocol::RemoteWrite2,
        };
        self.append_as(protocol, body, raw_len, items).await;
    }

    pub(crate) async fn append_as(&self, protocol: Protocol, body: &[u8], raw_len: usize, items: u64) {
        self.append_of(Signal::Metrics, protocol, body, raw_len, items).await;
    }

    pub(crate) async fn append_of(
        &self,
        signal: Signal,
        protocol: Protocol,
        body: &[u8],
        raw_len: usize,
        items: u64,
    ) {
        self.append_in(Encoding::Snappy, signal, protocol, body, raw_len, items).await;
    }

    pub(crate) async fn append_in(
        &self,
        encoding: Encoding,
        signal: Signal,
        protocol: Protocol,
        body: &[u8],
        raw_len: usize,
        items: u64,
    ) {
        let meta = Meta {
            tenant: Tenant::NONE,
            signal,
            protocol,
            encoding,
            items: u32::try_from(items).unwrap(),
            raw_len: u32::try_from(raw_len).unwrap(),
            received_at_ns: 1,
        };
        let mut window = self.arena.window(Share::Ingest, body.len()).await.unwrap();
        window.append(body).unwrap();
        let open = self.ledger.source("test").unwrap().open();
        let counts = Counts::of(tidegate_ledger::Signal::Metrics, items, body.len() as u64);
        let handed_over = open.submit(counts);
        self.journal
            .append(Batch { meta, window, from: 0, len: body.len(), checkpoints: Checkpoints::default() })
            .await
            .unwrap();
        handed_over.accept();
    }

    /// A sink that sends to `peer`, attached.
    pub(crate) fn sink(&self, settings: RemoteWriteSettings) -> (RemoteWrite, StopSender) {
        self.sink_called(NAME, settings)
    }

    /// Another one, beside the one that the books are checked of.
    pub(crate) fn sink_called(&self, name: &str, settings: RemoteWriteSettings) -> (RemoteWrite, StopSender) {
        let (stopper, stop) = StopSender::new();
        let room = EgressBudget::new(&self.arena, Share::Egress, self.part, &self.turn);
        (RemoteWrite::start(self.context(name), room, settings, stop).unwrap(), stopper)
    }

    /// The environment of the sink `name`.
    pub(crate) fn context<'a>(&'a self, name: &'a str) -> SinkContext<'a> {
        SinkContext {
            name,
            journal: &self.journal,
            ledger: &self.ledger,
            when_full: self.when_full,
            health: &self.health,
            signals: self.signals,
            dead_letters: &self.letters,
            tap: None,
            pipeline: None,
        }
    }

    /// Sends all that is in the journal, which takes nothing more, and checks that nothing is held afterwards.
    pub(crate) async fn drain(&self, settings: RemoteWriteSettings) {
        assert!(self.journal.close(60 * SECOND));
        let held = self.held();
        // For a closed journal nothing lingers: what is in it is joined, however slow the machine is.
        let (sink, _stopper) = self.sink(RemoteWriteSettings { linger: 60 * SECOND, ..settings });
        tokio::time::timeout(60 * SECOND, sink.run()).await.expect("everything is sent");
        self.assert_closed(0);
        assert_eq!(self.held(), held, "all memory is given back");
    }

    /// That the books close and `queued` items wait; what they say of the sink.
    pub(crate) fn assert_closed(&self, queued: u64) -> SinkBalance {
        let sink = self.page();
        assert_eq!(sink.queued, queued, "{sink:?}");
        sink
    }

    /// The sink's entry in the books, after checking that they balance.
    pub(crate) fn page(&self) -> SinkBalance {
        let balance = self.ledger.balance();
        assert_eq!(balance.difference(), 0, "{balance:?}");
        balance.sinks.into_iter().find(|sink| sink.name == NAME).unwrap()
    }

    /// The dropped items in the books.
    pub(crate) fn dropped(&self) -> Vec<(Dropped, u64)> {
        self.assert_closed(0).dropped
    }

    /// Bytes that the sink holds.
    pub(crate) fn held(&self) -> u64 {
        let usage = self.arena.usage();
        usage.shares.iter().find(|known| known.share == Share::Egress).unwrap().used
    }

    /// The most bytes that the sink has held.
    pub(crate) fn peak(&self) -> u64 {
        let usage = self.arena.usage();
        usage.shares.iter().find(|known| known.share == Share::Egress).unwrap().peak
    }

    /// Compares the input with the received items.
    pub(crate) fn compare(&self, arrived: &Arrivals) -> Comparison {
        assert_eq!(arrived.malformed, 0, "{:?}", arrived.faults);
        compare(&self.model, &self.acked, arrived)
    }

    /// That all arrived, in order and unchanged, and nothing twice.
    pub(crate) fn assert_exact(&self, arrived: &Arrivals) {
        let verdict = self.compare(arrived);
        let expected = Comparison { acked: self.acked.samples(), ..Comparison::default() };
        assert_eq!(verdict, expected);
    }
}

/// A peer that looks at everything.
pub(crate) fn peer(behaviour: tidegate_load::Behaviour) -> Arc<VerifyingReceiver> {
    Arc::new(VerifyingReceiver::start(behaviour, Check::Timed(TIMELINE)).unwrap())
}

/// The default settings of a sink for `peer`.
pub(crate) fn settings(peer: &VerifyingReceiver) -> RemoteWriteSettings {
    RemoteWriteSettings {
        endpoints: vec![peer.target().to_string().parse().unwrap()],
        tls: Default::default(),
        headers: Default::default(),
        tenant_header: None,
        prefer: Prefer::AsReceived,
        lanes: 1,
        max_bytes: 8 << 20,
        max_items: 20_000,
        linger: Duration::from_millis(20),
        timeout: 20 * SECOND,
        backoff: (Duration::from_millis(1), Duration::from_millis(20)),
        otlp: Translation::default(),
    }
}

/// Waits on a thread of its own until `enough` of what arrived at `peer`.
pub(crate) async fn arrival(
    peer: &Arc<VerifyingReceiver>,
    enough: impl FnMut(&Arrivals) -> bool + Send + 'static,
) {
    let peer = Arc::clone(peer);
    let came = tokio::task::spawn_blocking(move || peer.wait_for(20 * SECOND, enough)).await.unwrap();
    assert!(came, "waited in vain");
}

/// Orders `peer` to behave in another way.
pub(crate) async fn order(peer: &Arc<VerifyingReceiver>, behaviour: tidegate_load::Behaviour) {
    let peer = Arc::clone(peer);
    tokio::task::spawn_blocking(move || peer.set(behaviour)).await.unwrap();
}

/// Answers so far with this status.
pub(crate) fn answers(arrived: &Arrivals, status: u16) -> u64 {
    arrived.requests.get(&status).copied().unwrap_or(0)
}
