//! A journal with the sink behind it, and what each receiver should have taken.

use crate::messages::{RequestV1, Series};
use crate::receiver::{Receiver, Samples};
use prost::Message;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::dead_letters::{self, DeadLetters};
use tidegate_journal::{
    Batch, Checkpoints, Durability, Encoding, Journal, Meta, Protocol, Signal, Tenant, WhenFull,
};
use tidegate_ledger::{Counts, Ledger, SinkBalance};
use tidegate_members::Entry;
use tidegate_meters::Registry;
use tidegate_ring::{Endpoint, Ring, SeriesHasher};
use tidegate_sinks::{
    BorrowQueue, EgressBudget, Health, MemberReport, Prefer, RemoteWriteSettings, ShardBy,
    ShardedRemoteWrite, Sharding, Signals, SinkContext, SinkPipeline, StopSender,
};
use tidegate_tap::Tap;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
const NAME: &str = "receivers";
/// Enough for everything to go the usual way.
pub(crate) const PART: usize = 8 << 20;
const INGEST: u64 = 16 << 20;

/// Everything on the near side of the receivers.
pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) arena: Arena,
    pub(crate) journal: Journal,
    pub(crate) ledger: Ledger,
    letters: DeadLetters,
    pub(crate) turn: Arc<BorrowQueue>,
    pub(crate) health: Health,
    tap: Tap,
    part: usize,
    total: u64,
    /// The steps before the sink.
    pub(crate) pipeline: Option<SinkPipeline>,
    /// The times of the samples put in, by tenant and number of the series.
    put: BTreeMap<(String, u64), Vec<i64>>,
    /// All items put in.
    pub(crate) items: u64,
}

impl Rig {
    /// With a sink that may hold `part` bytes.
    pub(crate) fn new(part: usize) -> Rig {
        Rig::of((part, 64 << 20), tempfile::tempdir().unwrap())
    }

    fn of((part, total): (usize, u64), dir: tempfile::TempDir) -> Rig {
        let floors = Floors::NONE.with(Share::Egress, 2 * part as u64).with(Share::Ingest, INGEST);
        let arena = Arena::new(total, floors, 8 << 20, 256, 64).unwrap();
        let settings = tidegate_journal::Settings {
            segment_bytes: 16 << 20,
            durability: Durability::PageCache,
            ..tidegate_journal::Settings::new(dir.path().join("journal"))
        };
        let (journal, recovery) = Journal::open(settings).unwrap();
        let ledger = Ledger::new(&Registry::new(1), recovery.items);
        let head = ledger.head();
        journal.observe(move |items| head.advance_to(items));
        let letters = DeadLetters::open(&dir.path().join("letters"), dead_letters::DEFAULT_MAX).unwrap();
        let (turn, health, tap) = (Arc::default(), Health::default(), Tap::new(arena.clone()));
        let (pipeline, put, items) = (None, BTreeMap::new(), 0);
        Rig { dir, arena, journal, ledger, letters, turn, health, tap, part, total, pipeline, put, items }
    }

    /// The same after a restart of the process.
    pub(crate) fn restarted(self) -> Rig {
        let Rig { dir, arena, journal, ledger, letters, tap, health, part, total, put, items, .. } = self;
        assert!(journal.close(60 * SECOND));
        drop((arena, journal, ledger, letters, tap, health));
        Rig { put, items, ..Rig::of((part, total), dir) }
    }

    /// Puts a request with a sample at `time` of each of these series into the journal.
    pub(crate) async fn put(&mut self, tenant: Option<&str>, numbers: Range<u64>, time: i64) {
        let series: Vec<_> = numbers.clone().map(|number| Series::numbered(number, &[time])).collect();
        for number in numbers {
            let tenant = tenant.unwrap_or_default().to_owned();
            self.put.entry((tenant, number)).or_default().push(time);
        }
        self.put_series(tenant, series).await;
    }

    /// Puts a request of 1.0 with these series into the journal. The receivers' samples are not compared with them.
    pub(crate) async fn put_series(&mut self, tenant: Option<&str>, series: Vec<Series>) {
        let items = series.iter().map(Series::items).sum();
        let raw = RequestV1 { series, metadata: Vec::new() }.encode_to_vec();
        self.append(tenant, Protocol::RemoteWrite1, &raw, items).await;
    }

    /// Appends a body as a source does: compressed, where remote write has it so.
    pub(crate) async fn append(&mut self, tenant: Option<&str>, protocol: Protocol, raw: &[u8], items: u64) {
        self.items += items;
        let (encoding, body) = match protocol {
            Protocol::Otlp => (Encoding::Identity, raw.to_vec()),
            _ => (Encoding::Snappy, snap::raw::Encoder::new().compress_vec(raw).unwrap()),
        };
        let meta = Meta {
            tenant: tenant.map_or(Tenant::NONE, |tenant| Tenant::new(tenant).unwrap()),
            signal: Signal::Metrics,
            protocol,
            encoding,
            items: u32::try_from(items).unwrap(),
            raw_len: u32::try_from(raw.len()).unwrap(),
            received_at_ns: 1,
        };
        let mut window = self.arena.window(Share::Ingest, body.len()).await.unwrap();
        window.append(&body).unwrap();
        let open = self.ledger.source("test").unwrap().open();
        let submitted = open.submit(Counts::of(tidegate_ledger::Signal::Metrics, items, body.len() as u64));
        let batch = Batch { meta, window, from: 0, len: body.len(), checkpoints: Checkpoints::default() };
        self.journal.append(batch).await.unwrap();
        submitted.accept();
    }

    /// Runs the sink beside `script`, and stops it behind that.
    pub(crate) async fn run<T>(
        &mut self,
        settings: &SinkSettings,
        script: impl AsyncFnOnce(&mut Rig) -> T,
    ) -> T {
        let (sink, stopper) = self.sink(settings);
        let script = async {
            let output = script(self).await;
            stopper.stop();
            output
        };
        let both = async { tokio::join!(sink.run(), script) };
        let ((), output) = tokio::time::timeout(90 * SECOND, both).await.expect("the sink ends");
        self.page();
        assert_eq!(self.held(), 0, "all memory is given back");
        output
    }

    /// A sink that is attached.
    pub(crate) fn sink(&self, settings: &SinkSettings) -> (ShardedRemoteWrite, StopSender) {
        let (stopper, stop) = StopSender::new();
        let room = EgressBudget::new(&self.arena, Share::Egress, self.part, &self.turn);
        let context = SinkContext {
            name: NAME,
            journal: &self.journal,
            ledger: &self.ledger,
            when_full: WhenFull::Block,
            health: &self.health,
            signals: Signals::ALL,
            dead_letters: &self.letters,
            tap: Some(&self.tap),
            pipeline: self.pipeline.as_ref(),
        };
        (ShardedRemoteWrite::start(context, room, settings.clone(), stop).unwrap(), stopper)
    }

    /// The sink's entry in the books, after checking that they balance.
    pub(crate) fn page(&self) -> SinkBalance {
        let balance = self.ledger.balance();
        assert_eq!(balance.difference(), 0, "{balance:?}");
        balance.sinks.into_iter().find(|sink| sink.name == NAME).unwrap()
    }

    /// Waits until nothing is queued.
    pub(crate) async fn settled(&self) {
        until("everything is settled", || self.page().queued == 0).await;
    }

    /// How a receiver is doing.
    pub(crate) fn report(&self, receiver: &Receiver) -> MemberReport {
        let members = self.health.members();
        members.into_iter().find(|report| report.address == receiver.url()).unwrap()
    }

    /// Bytes that the sink holds.
    pub(crate) fn held(&self) -> u64 {
        self.egress().used
    }

    /// The most bytes that the sink has held.
    pub(crate) fn peak(&self) -> u64 {
        self.egress().peak
    }

    fn egress(&self) -> tidegate_arena::ShareUse {
        let usage = self.arena.usage();
        usage.shares.into_iter().find(|known| known.share == Share::Egress).unwrap()
    }

    /// The samples that the ring of these receivers gives to one of them.
    pub(crate) fn expected(&self, ring: &Placement, receiver: &Receiver) -> Samples {
        let mine = |number| ring.owners(&Series::numbered(number, &[])).contains(&receiver.url());
        let put = self.put.iter().filter(|((_, number), _)| mine(*number));
        put.map(|(key, times)| (key.clone(), times.clone())).collect()
    }

    /// Waits until each of these receivers took all that is its, in order.
    pub(crate) async fn arrived(&self, ring: &Placement, receivers: impl IntoIterator<Item = &Receiver>) {
        for receiver in receivers {
            let expected = self.expected(ring, receiver);
            until("a receiver takes all that is its", || receiver.samples() == expected).await;
        }
    }
}

/// Where series belong.
pub(crate) struct Placement {
    ring: Ring,
    urls: Vec<String>,
    shard_by: ShardBy,
}

impl Placement {
    pub(crate) fn of<'r>(
        receivers: impl IntoIterator<Item = &'r Receiver>,
        replicas: usize,
        shard_by: ShardBy,
    ) -> Placement {
        let mut urls: Vec<_> = receivers.into_iter().map(Receiver::url).collect();
        urls.sort();
        let endpoints: Vec<_> = urls.iter().map(Endpoint::new).collect();
        Placement { ring: Ring::ketama(&endpoints, replicas).unwrap(), urls, shard_by }
    }

    /// The receivers that a series belongs to, the first replica first.
    pub(crate) fn owners(&self, series: &Series) -> Vec<String> {
        let is_hashed = |name: &String| match &self.shard_by {
            ShardBy::All => true,
            ShardBy::Labels(names) => names.contains(name),
            ShardBy::Without(names) => !names.contains(name),
        };
        let mut labels: Vec<_> = series.labels.iter().filter(|label| is_hashed(&label.name)).collect();
        if labels.is_empty() {
            labels = series.labels.iter().collect();
        }
        let mut hasher = SeriesHasher::new();
        labels.iter().for_each(|label| hasher.label(label.name.as_bytes(), label.value.as_bytes()));
        let members = self.ring.members(hasher.finish());
        members.iter().map(|member| self.urls[usize::from(*member)].clone()).collect()
    }
}

/// Waits for an event that only its effects show.
pub(crate) async fn until(event: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(40 * SECOND, waiting).await.unwrap_or_else(|_| panic!("waited in vain: {event}"));
}

pub(crate) type SinkSettings = (RemoteWriteSettings, Sharding);

/// The default settings for these receivers, with logs in the rig's folder.
pub(crate) fn settings(rig: &Rig, receivers: &[Receiver], replicas: usize) -> SinkSettings {
    let entries = receivers.iter().map(|receiver| Entry::Literal(receiver.url())).collect();
    let handoff = tidegate_handoff::Settings {
        durability: tidegate_handoff::Durability::PageCache,
        members: 16,
        ..tidegate_handoff::Settings::new(rig.dir.path().join("handoff"))
    };
    let members = tidegate_members::Settings {
        entries,
        file: None,
        check: |_| Ok(()),
        max_members: 16,
        interval: 30 * SECOND,
        name_servers: Vec::new(),
    };
    let sharding = Sharding { shard_by: ShardBy::All, replicas, members, patience: 30 * SECOND, handoff };
    let settings = RemoteWriteSettings {
        endpoints: Vec::new(),
        tls: Default::default(),
        headers: Default::default(),
        tenant_header: None,
        prefer: Prefer::AsReceived,
        lanes: 1,
        max_bytes: 1 << 20,
        max_items: 20_000,
        linger: Duration::from_millis(20),
        timeout: 30 * SECOND,
        backoff: (Duration::from_millis(1), Duration::from_millis(20)),
        otlp: Default::default(),
    };
    (settings, sharding)
}
