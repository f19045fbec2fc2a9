//! A listener on loopback with a journal behind it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tidegate_admission::access::BulkActions;
use tidegate_admission::{BulkDefaults, Gate, GateRules};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_http1::{Server, Settings, Shutdown};
use tidegate_journal::{Durability, Event, Follower, Journal, Meta, StartAt, WhenFull};
use tidegate_ledger::{Ledger, Refusal, Source, SourceBalance};
use tidegate_meters::{Buckets, Histogram, Registry};
use tidegate_pool::Pool;
use tidegate_sources::{
    AgentSettings, ApmLimits, BulkDestination, ConnectionSlots, ElasticApm, Elasticsearch,
    ElasticsearchSettings, Http, Http2, HttpLogs, Ingest, Loki, Otlp, RemoteWrite,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The most bytes of a body.
pub(crate) const MAX_BODY: usize = 6 << 20;
/// How long a request may wait for memory.
const MEMORY_WAIT: Duration = Duration::from_millis(30);
const TOTAL: u64 = 16 << 20;
/// Connections of HTTP/2.
pub(crate) const CONNECTIONS: usize = 4;

pub(crate) struct Rig {
    pub(crate) arena: Arena,
    pub(crate) journal: Journal,
    pub(crate) gate: Gate,
    pub(crate) http2: Http2,
    pub(crate) shutdown: Shutdown,
    ledger: Ledger,
    ingest: Arc<Ingest>,
    pool: Pool,
    _dir: tempfile::TempDir,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.pool.stop();
    }
}

pub(crate) fn settings() -> Settings {
    Settings { memory_wait: MEMORY_WAIT, ..Settings::default() }
}

fn elastic_apm(books: Source, arena: &Arena, pool: &Pool) -> ElasticApm {
    let limits = ApmLimits { max_body: MAX_BODY, max_event: 300 << 10, rum: Some(10) };
    let settings = AgentSettings {
        service: "shop".to_owned(),
        environment: String::new(),
        settings: vec![("transaction_sample_rate".to_owned(), "0.5".to_owned())],
    };
    ElasticApm::new(books, arena.clone(), pool.clone(), limits, "8.19.0", vec![settings]).unwrap()
}

fn elasticsearch(
    books: Source,
    arena: &Arena,
    pool: &Pool,
    destination: Option<BulkDestination>,
) -> Elasticsearch {
    let settings = ElasticsearchSettings {
        prefix: "/elasticsearch".to_owned(),
        version: "8.19.0".to_owned(),
        max_body: MAX_BODY,
        destination,
    };
    Elasticsearch::new(books, arena.clone(), pool.clone(), settings)
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with(1 << 30, settings())
    }

    /// Before a journal that may take `quota` bytes.
    pub(crate) fn with(quota: u64, settings: Settings) -> Rig {
        Rig::ruled(quota, settings, |_| GateRules::default())
    }

    /// The same, with rules.
    pub(crate) fn ruled(quota: u64, settings: Settings, rules: impl FnOnce(&Ledger) -> GateRules) -> Rig {
        Rig::of(TOTAL, quota, settings, rules)
    }

    /// With so much memory, where senders may do everything over `_bulk`.
    pub(crate) fn sized(total: u64) -> Rig {
        Rig::of(total, 1 << 30, settings(), |_| {
            let rules = GateRules::default();
            rules.bulk.store(Arc::new(BulkDefaults { open: BulkActions::ALL, ..BulkDefaults::default() }));
            rules
        })
    }

    fn of(total: u64, quota: u64, settings: Settings, rules: impl FnOnce(&Ledger) -> GateRules) -> Rig {
        Rig::before(total, quota, settings, rules, |_| None)
    }

    /// The same, where `destination` answers a `_bulk`.
    pub(crate) fn before(
        total: u64,
        quota: u64,
        settings: Settings,
        rules: impl FnOnce(&Ledger) -> GateRules,
        destination: impl FnOnce(&Arena) -> Option<BulkDestination>,
    ) -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let floors = Floors::NONE.with(Share::Ingest, 1 << 20).with(Share::Decode, 1 << 20);
        let arena = Arena::new(total, floors, 8 << 20, 64, 64).unwrap();
        let journalled = tidegate_journal::Settings {
            quota,
            durability: Durability::PageCache,
            ..tidegate_journal::Settings::new(dir.path())
        };
        let (journal, recovery) = Journal::open(journalled).unwrap();
        let ledger = Ledger::new(&Registry::new(1), recovery.items);
        let head = ledger.head();
        journal.observe(move |items| head.advance_to(items));
        let gate = Gate::with_rules(arena.clone(), journal.clone(), MEMORY_WAIT, None, rules(&ledger));
        let source = |name| ledger.source(name).unwrap();
        let pool = Pool::start(1, 64).unwrap();
        let books = source("prometheus_remote_write");
        let remote_write = RemoteWrite::new(books, arena.clone(), pool.clone(), MAX_BODY);
        let durations = Histogram::new(Buckets::durations(), 1);
        let http = Http::new(gate.clone(), source("http"), durations)
            // First here, and last in the table: its prefix might be empty.
            .with(elasticsearch(source("elasticsearch"), &arena, &pool, destination(&arena)))
            .with(HttpLogs::new(
                source("http"),
                arena.clone(),
                pool.clone(),
                "/ingest/logs".to_owned(),
                MAX_BODY,
            ))
            .with(Loki::new(source("loki"), arena.clone(), pool.clone(), MAX_BODY))
            .with(Arc::new(remote_write))
            .with(Arc::new(Otlp::new(source("otlp"), arena.clone(), pool.clone(), MAX_BODY)))
            .with(Arc::new(elastic_apm(source("elastic_apm"), &arena, &pool)));
        let shutdown = Shutdown::new();
        let http1 = Server::new(http.clone(), settings, arena.clone(), shutdown.clone());
        let http2 =
            Http2::new(http, settings, arena.clone(), ConnectionSlots::new(CONNECTIONS * Http2::PLACES));
        let ingest = Arc::new(Ingest::new(http1, http2.clone(), settings, shutdown.clone()));
        Rig { arena, journal, gate, http2, shutdown, ledger, ingest, pool, _dir: dir }
    }

    /// Runs `client` against the listener.
    pub(crate) async fn serve<T>(&self, client: impl AsyncFnOnce(SocketAddr) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut connections = JoinSet::new();
        let accept = async {
            loop {
                let (stream, _peer) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let ingest = Arc::clone(&self.ingest);
                connections.spawn(async move { ingest.serve(stream).await });
            }
        };
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(20 * SECOND, client(address)) => outcome.expect("an answer comes"),
            () = accept => unreachable!("it accepts for ever"),
        };
        // The clients are gone, so their connections end.
        let ended = async { while connections.join_next().await.is_some_and(|ended| ended.is_ok()) {} };
        tokio::time::timeout(20 * SECOND, ended).await.expect("connections end");
        outcome
    }

    /// Whatever goes to the pool from now on is refused.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn stop_pool(&self) {
        self.pool.stop();
    }

    /// A page of the books.
    pub(crate) fn source(&self, name: &str) -> Source {
        self.ledger.source(name).unwrap()
    }

    /// OTLP's entry in the books, after checking that they balance, nothing is open and all memory is free again.
    pub(crate) fn books(&self) -> SourceBalance {
        self.books_of("otlp")
    }

    /// Whether nothing is under way: no request, and no record on its way to the journal.
    #[allow(dead_code, reason = "fuzzing needs it")]
    pub(crate) fn is_settled(&self) -> bool {
        let balance = self.ledger.balance();
        let used = self.arena.usage().shares.iter().any(|share| share.used > 0);
        balance.difference() == 0 && balance.sources.iter().all(|source| source.open == 0) && !used
    }

    pub(crate) fn books_of(&self, name: &str) -> SourceBalance {
        let balance = self.ledger.balance();
        assert_eq!(balance.difference(), 0, "{balance:?}");
        let mut sources = balance.sources.into_iter();
        assert!(sources.clone().all(|source| source.open == 0));
        let usage = self.arena.usage();
        assert!(usage.shares.iter().all(|share| share.used == 0), "{usage:?}");
        sources.find(|source| source.name == name).unwrap()
    }

    /// That exactly one request was refused so far, for this reason, and nothing was accepted; and that it is known who sent it.
    pub(crate) fn assert_refused(&self, reason: Refusal, what: &str) {
        let books = self.books();
        assert_eq!((books.accepted, books.refused), (0, vec![(reason, 1)]), "{what}");
        assert_eq!(self.journal.stats().head, 0, "{what}");
        let mut peers = Vec::new();
        self.ledger.recent_refusals(|refusal| peers.push(refusal.peer.map(|peer| peer.ip())));
        // Of a client that is gone nobody asks any more.
        let known = (reason != Refusal::Abandoned).then_some(Ipv4Addr::LOCALHOST.into());
        assert_eq!(peers, [known], "{what}");
    }

    /// The next record of the journal, with its body.
    pub(crate) async fn journalled(&self, follower: &mut Follower) -> (Meta, Vec<u8>) {
        let Ok(Some(Event::Record(record))) = follower.next().await else { panic!("there is no record") };
        let mut window = self.arena.window(Share::Egress, record.body_len as usize).await.unwrap();
        follower.read_into(&mut window).unwrap();
        (record.meta, window.to_vec())
    }

    pub(crate) fn follow(&self) -> Follower {
        self.journal.follow("test", StartAt::Oldest, WhenFull::Block).unwrap()
    }
}
