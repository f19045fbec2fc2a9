//! A journal with the sink behind it, and the numbers of the items that were put in.

use crate::bodies::{encoded, request};
use crate::peer::Peer;
use std::net::SocketAddr;
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
use tidegate_meters::Registry;
use tidegate_pipeline::{Definition, ErrorMode, Pipeline, StepDefinition, StepKind};
use tidegate_sinks::{
    BorrowQueue, Compression, EgressBudget, Health, Otlp, OtlpSettings, PipelineMeters, Signals, SinkContext,
    SinkPipeline, StepMeters, StopSender, Tls, Transport,
};
use tidegate_tap::Tap;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const NAME: &str = "upstream";
/// Enough for everything to go the usual way.
pub(crate) const PART: usize = 4 << 20;
/// The floor of what is put in.
const INGEST: u64 = 4 << 20;
pub(crate) const BOTH: [Transport; 2] = [Transport::Http, Transport::Grpc];

/// Everything on the near side of the peer.
pub(crate) struct Rig {
    dir: tempfile::TempDir,
    pub(crate) arena: Arena,
    pub(crate) journal: Journal,
    pub(crate) ledger: Ledger,
    letters: DeadLetters,
    pub(crate) turn: Arc<BorrowQueue>,
    pub(crate) health: Health,
    /// The tap of the sink.
    pub(crate) tap: Tap,
    part: usize,
    total: u64,
    /// The sink's signals.
    pub(crate) signals: Signals,
    /// The sink's pipeline.
    pub(crate) pipeline: Option<SinkPipeline>,
    /// The tenant of the input.
    pub(crate) tenant: Tenant,
    /// The number of the next item.
    pub(crate) next: u64,
}

impl Rig {
    /// With a sink that may hold `part` bytes.
    pub(crate) fn new(part: usize) -> Rig {
        Rig::of((part, 64 << 20), tempfile::tempdir().unwrap(), 0)
    }

    /// With a sink that may hold `part` bytes, and with its turn `most`.
    pub(crate) fn narrow(part: usize, most: u64) -> Rig {
        // Its ceiling is all but the floor of ingest, and another sink has as large a part.
        Rig::of((part, most + part as u64 + INGEST), tempfile::tempdir().unwrap(), 0)
    }

    fn of((part, total): (usize, u64), dir: tempfile::TempDir, next: u64) -> Rig {
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
        let (turn, health) = (Arc::default(), Health::default());
        let tenant = Tenant::NONE;
        let (signals, tap) = (Signals::ALL, Tap::new(arena.clone()));
        Rig {
            dir,
            arena,
            journal,
            ledger,
            letters,
            turn,
            health,
            tap,
            part,
            total,
            signals,
            pipeline: None,
            tenant,
            next,
        }
    }

    /// The same after a restart of the process.
    pub(crate) fn restarted(self) -> Rig {
        let Rig { dir, arena, journal, ledger, letters, part, total, signals, next, .. } = self;
        assert!(journal.close(60 * SECOND));
        drop((arena, journal, ledger, letters));
        Rig { signals, ..Rig::of((part, total), dir, next) }
    }

    pub(crate) fn letters_dir(&self) -> PathBuf {
        self.dir.path().join("letters")
    }

    /// Puts a request with the next `items` items of this signal into the journal; their numbers.
    pub(crate) async fn put(&mut self, signal: Signal, encoding: Encoding, items: u64) -> Range<u64> {
        self.put_padded(signal, encoding, items, 100).await
    }

    /// As [`put`](Self::put), with so many bytes in each item.
    pub(crate) async fn put_padded(
        &mut self,
        signal: Signal,
        encoding: Encoding,
        items: u64,
        padding: usize,
    ) -> Range<u64> {
        let numbers = self.next..self.next + items;
        self.next = numbers.end;
        let raw = request(signal, numbers.clone(), padding);
        self.append(signal, Protocol::Otlp, encoding, &encoded(encoding, &raw), raw.len(), items).await;
        numbers
    }

    /// Appends a body as a source does.
    pub(crate) async fn append(
        &self,
        signal: Signal,
        protocol: Protocol,
        encoding: Encoding,
        body: &[u8],
        raw_len: usize,
        items: u64,
    ) {
        let meta = Meta {
            tenant: self.tenant,
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
        let counts = Counts::of(tidegate_ledger::Signal::Traces, items, body.len() as u64);
        let handed_over = open.submit(counts);
        self.journal
            .append(Batch { meta, window, from: 0, len: body.len(), checkpoints: Checkpoints::default() })
            .await
            .unwrap();
        handed_over.accept();
    }

    /// A sink that is attached.
    pub(crate) fn sink(&self, settings: OtlpSettings) -> (Otlp, StopSender) {
        self.sink_of(NAME, self.signals, &self.health, settings)
    }

    /// A sink of this name for these signals, beside others.
    pub(crate) fn sink_of(
        &self,
        name: &str,
        signals: Signals,
        health: &Health,
        settings: OtlpSettings,
    ) -> (Otlp, StopSender) {
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
            tap: Some(&self.tap),
            pipeline: self.pipeline.as_ref(),
        };
        (Otlp::start(context, room, settings, stop).unwrap(), stopper)
    }

    /// Sends all that is in the journal, which takes nothing more, and checks that nothing is held afterwards.
    pub(crate) async fn drain(&self, settings: OtlpSettings) {
        assert!(self.journal.close(60 * SECOND));
        // For a closed journal nothing lingers: what is in it is joined, however slow the machine is.
        let (sink, _stopper) = self.sink(OtlpSettings { linger: 60 * SECOND, ..settings });
        tokio::time::timeout(60 * SECOND, sink.run()).await.expect("everything is sent");
        assert_eq!(self.page().queued, 0);
        assert_eq!(self.held(), 0, "all memory is given back");
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

    /// That each item was taken by one of these peers, and by one only.
    pub(crate) fn assert_exact(&self, peers: &[&Peer]) {
        self.assert_but(peers, 0..0);
    }

    /// The same but for these items, which none has taken.
    pub(crate) fn assert_but(&self, peers: &[&Peer], missing: Range<u64>) {
        let mut taken = vec![0; self.next as usize];
        for peer in peers {
            peer.taken().into_iter().for_each(|(number, times)| taken[number as usize] += times);
        }
        for (number, times) in taken.into_iter().enumerate() {
            let expected = usize::from(!missing.contains(&(number as u64)));
            assert_eq!(times, expected, "item {number} of {}", self.next);
        }
    }
}

/// A pipeline of one statement.
pub(crate) fn pipeline(statement: &str) -> SinkPipeline {
    let kind = StepKind::Edit(vec![statement.to_owned()]);
    let steps = vec![StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }];
    let meters = StepMeters::new(String::new(), String::new(), vec![statement.to_owned()]);
    SinkPipeline {
        pipeline: Arc::new(Pipeline::compile(&Definition { steps }).unwrap().0),
        routing: 0,
        silent: vec![],
        meters: PipelineMeters::new(vec![meters]),
        capacities: vec![],
        earlier: vec![],
        sampling: None,
    }
}

/// The default settings of a sink for `peer`.
pub(crate) fn settings(peer: &Peer, transport: Transport) -> OtlpSettings {
    OtlpSettings { endpoints: vec![peer.url()], ..settings_for(([127, 0, 0, 1], 0).into(), transport) }
}

/// The same for a peer at this address.
pub(crate) fn settings_for(address: SocketAddr, transport: Transport) -> OtlpSettings {
    OtlpSettings {
        endpoints: vec![format!("http://{address}").parse().unwrap()],
        transport,
        splunk_hec: Default::default(),
        compression: Compression::None,
        join_members: false,
        headers: Default::default(),
        tenant_header: None,
        tls: Tls::default(),
        max_request_bytes: OtlpSettings::MAX_REQUEST_BYTES,
        max_in_flight: 4,
        linger: Duration::from_millis(20),
        timeout: 20 * SECOND,
        backoff: (Duration::from_millis(1), Duration::from_millis(20)),
        labels: Default::default(),
    }
}
