//! A server on loopback with a journal behind it, and a client.

use std::sync::Arc;
use std::time::Duration;
use tidegate_admission::tenancy::Tenancy;
use tidegate_admission::{Gate, GateRules};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_http1::{Server, Settings, Shutdown};
use tidegate_journal::{Durability, Event, Follower, Journal, Meta, StartAt, WhenFull};
use tidegate_ledger::{Ledger, Refusal, Source, SourceBalance};
use tidegate_load::remote_write::Version;
use tidegate_load::{Connection, Response, Target};
use tidegate_meters::{Buckets, Histogram, Registry};
use tidegate_pool::Pool;
use tidegate_sources::{Http, Otlp, RemoteWrite, ThanosReceive};
use tokio::net::TcpListener;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The most bytes that a body may decompress to.
pub(crate) const MAX_BODY: usize = 6 << 20;
/// How long a request may wait for memory.
const MEMORY_WAIT: Duration = Duration::from_millis(30);
const TOTAL: u64 = 16 << 20;

pub(crate) struct Rig {
    pub(crate) arena: Arena,
    pub(crate) journal: Journal,
    pub(crate) gate: Gate,
    ledger: Ledger,
    http: Http,
    pool: Pool,
    _dir: tempfile::TempDir,
}

/// An answer as it came, with the head.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.pool.stop();
    }
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with_quota(1 << 30)
    }

    /// Before a journal that may take `quota` bytes.
    pub(crate) fn with_quota(quota: u64) -> Rig {
        Rig::with_rules(quota, |_| GateRules::default())
    }

    /// The same, with rules.
    pub(crate) fn with_rules(quota: u64, rules: impl FnOnce(&Ledger) -> GateRules) -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let floors = Floors::NONE.with(Share::Ingest, 1 << 20).with(Share::Decode, 1 << 20);
        let arena = Arena::new(TOTAL, floors, 8 << 20, 64, 64).unwrap();
        let settings = tidegate_journal::Settings {
            quota,
            durability: Durability::PageCache,
            ..tidegate_journal::Settings::new(dir.path())
        };
        let (journal, recovery) = Journal::open(settings).unwrap();
        let ledger = Ledger::new(&Registry::new(1), recovery.items);
        let head = ledger.head();
        journal.observe(move |items| head.advance_to(items));
        let gate = Gate::with_rules(arena.clone(), journal.clone(), MEMORY_WAIT, None, rules(&ledger));
        let pool = Pool::start(1, 1).unwrap();
        let books = ledger.source("prometheus_remote_write").unwrap();
        let source = RemoteWrite::new(books, arena.clone(), pool.clone(), MAX_BODY);
        let durations = Histogram::new(Buckets::durations(), 1);
        let otlp = Otlp::new(ledger.source("otlp").unwrap(), arena.clone(), pool.clone(), MAX_BODY);
        let http = Http::new(gate.clone(), ledger.source("http").unwrap(), durations);
        let http = http.with(Arc::new(source)).with(Arc::new(otlp));
        Rig { arena, journal, gate, ledger, http, pool, _dir: dir }
    }

    /// Serves what Thanos Receive serves, with tenants by these rules.
    pub(crate) fn with_thanos_receive(mut self, settings: &ThanosReceive, tenancy: Tenancy) -> Rig {
        self.http = self.http.thanos_receive(settings, tenancy);
        self
    }

    pub(crate) fn source(&self, name: &str) -> Source {
        self.ledger.source(name).unwrap()
    }

    /// Runs `client` against the server.
    pub(crate) async fn serve<T>(&self, client: impl AsyncFnOnce(Target) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target::remote_write(listener.local_addr().unwrap());
        let settings = Settings { memory_wait: MEMORY_WAIT, ..Settings::default() };
        let server = Server::new(self.http.clone(), settings, self.arena.clone(), Shutdown::new());
        let mut connections = tokio::task::JoinSet::new();
        let accept = async {
            loop {
                let (stream, peer) = listener.accept().await.unwrap();
                connections.spawn(server.serve(stream, peer));
            }
        };
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(20 * SECOND, client(target)) => outcome.expect("an answer comes"),
            () = accept => unreachable!("it accepts for ever"),
        };
        // The clients are gone, so their connections end.
        while connections.join_next().await.is_some() {}
        outcome
    }

    /// Sends a body as remote write and gives the answer.
    pub(crate) async fn write(&self, version: Version, body: &[u8]) -> Response {
        self.serve(async |target| {
            let mut connection = Connection::open(&target, 20 * SECOND).await.unwrap();
            connection.write(&target, version, body, 20 * SECOND).await.unwrap()
        })
        .await
    }

    /// Sends any request and gives the answer. `head` is the request line and headers, without the lengths.
    pub(crate) async fn send(&self, head: &str, body: &[u8]) -> Answer {
        let head = format!("{head}Host: test\r\nContent-Length: {}\r\n\r\n", body.len());
        self.send_raw([head.as_bytes(), body].concat()).await
    }

    /// Sends these bytes and gives the first answer.
    pub(crate) async fn send_raw(&self, bytes: Vec<u8>) -> Answer {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        self.serve(async |target| {
            let mut stream = tokio::net::TcpStream::connect(&target.authority).await.unwrap();
            // A refusal may come before all is sent.
            let _refused = stream.write_all(&bytes).await;
            let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
            let body_from = loop {
                let read = stream.read(&mut piece).await.unwrap();
                assert!(read > 0, "closed without an answer: {:?}", String::from_utf8_lossy(&answer));
                answer.extend_from_slice(&piece[..read]);
                if let Some(end) = answer.windows(4).position(|end| end == b"\r\n\r\n") {
                    break end + 4;
                }
            };
            let length = header(&String::from_utf8_lossy(&answer), "content-length")
                .map_or(0, |length| length.parse::<usize>().unwrap());
            while answer.len() < body_from + length {
                let read = stream.read(&mut piece).await.unwrap();
                assert!(read > 0);
                answer.extend_from_slice(&piece[..read]);
            }
            let text = String::from_utf8(answer).unwrap();
            let status = text.split(' ').nth(1).unwrap().parse().unwrap();
            Answer { status, text }
        })
        .await
    }

    /// Remote write's entry in the books, after checking that they balance, nothing is open and all memory is free
    /// again.
    pub(crate) fn books(&self) -> SourceBalance {
        self.books_of("prometheus_remote_write")
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

    /// That exactly one request was refused so far, for this reason, and nothing was accepted.
    pub(crate) fn assert_refused(&self, reason: Refusal, what: &str) {
        let books = self.books();
        assert_eq!((books.accepted, books.refused), (0, vec![(reason, 1)]), "{what}");
    }

    /// The next record of the journal, with its body.
    pub(crate) async fn journaled(&self, follower: &mut Follower) -> (Meta, Vec<u8>) {
        let Ok(Some(Event::Record(record))) = follower.next().await else { panic!("there is no record") };
        let mut window = self.arena.window(Share::Egress, record.body_len as usize).await.unwrap();
        follower.read_into(&mut window).unwrap();
        (record.meta, window.to_vec())
    }

    pub(crate) fn follow(&self) -> Follower {
        self.journal.follow("test", StartAt::Oldest, WhenFull::Block).unwrap()
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.text, name)
    }

    /// The bytes after the head.
    pub(crate) fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").unwrap().1
    }
}

fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let head = text.split("\r\n\r\n").next()?;
    head.lines().skip(1).find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
