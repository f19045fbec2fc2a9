//! A journal with the sink behind it.

use crate::node::Node;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::dead_letters::{self, DeadLetters};
use tidegate_journal::{
    Batch, Checkpoints, Durability, Encoding, Journal, Meta, Protocol, Signal, Tenant, WhenFull,
};
use tidegate_ledger::{Counts, Dropped, Ledger, SinkBalance};
use tidegate_meters::Registry;
use tidegate_sinks::{
    BorrowQueue, EgressBudget, Elasticsearch, ElasticsearchSettings, Health, Mapping, Product, Signals,
    SinkContext, SinkPipeline, StopSender, Tls,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const NAME: &str = "cluster";
/// Enough for everything to go the usual way.
pub(crate) const PART: usize = 4 << 20;

/// Everything on the near side of the node.
pub(crate) struct Rig {
    dir: tempfile::TempDir,
    pub(crate) arena: Arena,
    pub(crate) journal: Journal,
    ledger: Ledger,
    letters: DeadLetters,
    pub(crate) turn: Arc<BorrowQueue>,
    pub(crate) health: Health,
    part: usize,
    memory: u64,
    /// The sink's signals.
    pub(crate) signals: Signals,
    /// The tenant of the input.
    pub(crate) tenant: Tenant,
    /// The pipeline of sinks that are attached.
    pub(crate) pipeline: Option<SinkPipeline>,
    /// The number of the next document.
    next: u64,
}

impl Rig {
    /// With a sink that may hold `part` bytes.
    pub(crate) fn new(part: usize) -> Rig {
        Rig::of(part, 64 << 20, tempfile::tempdir().unwrap(), 0)
    }

    /// With a sink that can hold `most` bytes with its turn to borrow, and not much of its own.
    pub(crate) fn tight(most: u64) -> Rig {
        let part = 256 << 10;
        // Twice the part is the floor, of which one is the sink's; and there are 4 MiB for what is put in.
        Rig::of(part, most + part as u64 + (4 << 20), tempfile::tempdir().unwrap(), 0)
    }

    fn of(part: usize, memory: u64, dir: tempfile::TempDir, next: u64) -> Rig {
        let floors = Floors::NONE.with(Share::Egress, 2 * part as u64).with(Share::Ingest, 4 << 20);
        let arena = Arena::new(memory, floors, 16 << 20, 128, 64).unwrap();
        let settings = tidegate_journal::Settings {
            segment_bytes: 32 << 20,
            durability: Durability::PageCache,
            ..tidegate_journal::Settings::new(dir.path().join("journal"))
        };
        let (journal, recovery) = Journal::open(settings).unwrap();
        let ledger = Ledger::new(&Registry::new(1), recovery.items);
        let head = ledger.head();
        journal.observe(move |items| head.advance_to(items));
        let letters = DeadLetters::open(&dir.path().join("letters"), dead_letters::DEFAULT_MAX).unwrap();
        let (turn, health) = (Arc::default(), Health::default());
        let tenant = Tenant::NONE;
        let signals = Signals::ALL;
        Rig {
            dir,
            arena,
            journal,
            ledger,
            letters,
            turn,
            health,
            part,
            memory,
            signals,
            tenant,
            pipeline: None,
            next,
        }
    }

    /// The same after a restart of the process.
    pub(crate) fn restarted(self) -> Rig {
        let Rig { dir, arena, journal, ledger, letters, part, memory, signals, pipeline, next, .. } = self;
        assert!(journal.close(60 * SECOND));
        drop((arena, journal, ledger, letters));
        Rig { signals, pipeline, ..Rig::of(part, memory, dir, next) }
    }

    /// Puts the next `count` documents into the journal, each with `padding` bytes; `action` is what they begin with.
    pub(crate) async fn put(&mut self, encoding: Encoding, action: &str, count: u64, padding: usize) {
        let mut raw = String::new();
        for number in self.next..self.next + count {
            let pad = "x".repeat(padding);
            raw.push_str(&format!(
                "{}\n{{\"n\":{number},\"pad\":\"{pad}\"}}\n",
                action.replace("#", &number.to_string())
            ));
        }
        self.next += count;
        let body = match encoding {
            Encoding::Gzip => gzipped(raw.as_bytes()),
            _ => raw.as_bytes().to_vec(),
        };
        let meta = Meta {
            tenant: self.tenant,
            signal: Signal::Logs,
            protocol: Protocol::Bulk,
            encoding,
            items: u32::try_from(count).unwrap(),
            raw_len: u32::try_from(raw.len()).unwrap(),
            received_at_ns: 1,
        };
        self.append(meta, &body).await;
    }

    pub(crate) async fn append(&self, meta: Meta, body: &[u8]) {
        let mut window = self.arena.window(Share::Ingest, body.len()).await.unwrap();
        window.append(body).unwrap();
        let open = self.ledger.source("test").unwrap().open();
        let counts = Counts::of(tidegate_ledger::Signal::Logs, u64::from(meta.items), body.len() as u64);
        let handed_over = open.submit(counts);
        self.journal
            .append(Batch { meta, window, from: 0, len: body.len(), checkpoints: Checkpoints::default() })
            .await
            .unwrap();
        handed_over.accept();
    }

    /// A sink that is attached.
    pub(crate) fn sink(&self, settings: ElasticsearchSettings) -> (Elasticsearch, StopSender) {
        self.sink_of(NAME, self.signals, &self.health, settings)
    }

    /// A sink of this name for these signals, beside others.
    pub(crate) fn sink_of(
        &self,
        name: &str,
        signals: Signals,
        health: &Health,
        settings: ElasticsearchSettings,
    ) -> (Elasticsearch, StopSender) {
        let (stopper, stop) = StopSender::new();
        let room = EgressBudget::new(&self.arena, Share::Egress, self.part, &self.turn);
        let context = SinkContext {
            name,
            journal: &self.journal,
            ledger: &self.ledger,
            when_full: WhenFull::Block,
            health,
            signals,
            dead_letters: &self.letters,
            tap: None,
            pipeline: self.pipeline.as_ref(),
        };
        (Elasticsearch::start(context, room, settings, stop).unwrap(), stopper)
    }

    /// Sends all that is in the journal, which takes nothing more, and checks that nothing is held afterwards.
    pub(crate) async fn drain(&self, settings: ElasticsearchSettings) {
        assert!(self.journal.close(60 * SECOND));
        // For a closed journal nothing lingers: what is in it is joined, however slow the machine is.
        let (sink, _stopper) = self.sink(ElasticsearchSettings { linger: 60 * SECOND, ..settings });
        tokio::time::timeout(60 * SECOND, sink.run()).await.expect("everything is sent");
        let page = self.page();
        assert_eq!(page.queued, 0);
        let usage = self.arena.usage();
        let egress = usage.shares.into_iter().find(|known| known.share == Share::Egress).unwrap();
        assert_eq!(egress.used, 0, "all memory is given back");
        assert_eq!(self.health.activity().in_flight, 0);
    }

    /// The sink's entry in the books, after checking that they balance.
    pub(crate) fn page(&self) -> SinkBalance {
        let balance = self.ledger.balance();
        assert_eq!(balance.difference(), 0, "{balance:?}");
        balance.sinks.into_iter().find(|sink| sink.name == NAME).unwrap()
    }

    /// The dropped items in the books.
    pub(crate) fn dropped(&self) -> Vec<(Dropped, u64)> {
        self.page().dropped
    }

    /// The dead letters: the reason and the documents of each.
    pub(crate) fn letters(&self) -> Vec<(String, String)> {
        let mut letters = dead_letters::read(&self.dir.path().join("letters"), true).unwrap();
        let mut all = Vec::new();
        while let Some(letter) = letters.next() {
            let reason = letter.reason;
            all.push((reason, String::from_utf8(letters.body().unwrap()).unwrap()));
        }
        all
    }
}

/// The default settings of a sink for `node`.
pub(crate) fn settings(node: &Node) -> ElasticsearchSettings {
    ElasticsearchSettings {
        endpoints: vec![format!("http://{}/es", node.address).parse().unwrap()],
        flavour: Product::Elasticsearch,
        headers: Default::default(),
        tenant_header: None,
        tls: Tls::default(),
        gzip: None,
        mapping: Mapping::Otel,
        dataset: "generic".to_owned(),
        namespace: "default".to_owned(),
        index: None,
        ids: true,
        metric_ids: true,
        max_request_bytes: 1 << 20,
        max_in_flight: 4,
        linger: Duration::from_millis(10),
        timeout: 20 * SECOND,
        backoff: (Duration::from_millis(1), Duration::from_millis(20)),
    }
}

pub(crate) fn gzipped(raw: &[u8]) -> Vec<u8> {
    let mut encoder = tidegate_wire::gzip::Encoder::new(1).unwrap();
    encoder.reset();
    let mut out = vec![0; raw.len() + 1024];
    let (read, mut len) = encoder.step(raw, &mut out);
    assert_eq!(read, raw.len());
    loop {
        let (written, ended) = encoder.finish(&mut out[len..]);
        len += written;
        if ended {
            out.truncate(len);
            return out;
        }
    }
}
