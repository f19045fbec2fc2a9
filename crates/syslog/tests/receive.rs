//! Connections and datagrams into a real journal: every message is in the books once, half messages end, and what was read
//! before the end is appended.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_admission::Gate;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::{Durability, Journal, Settings};
use tidegate_ledger::{Ledger, Refusal};
use tidegate_log_intake::{ConnectionService as _, LogIntake, Shutdown, TaskGroup};
use tidegate_meters::Registry;
use tidegate_syslog::{
    DatagramReceiver, DatagramSocket, Format, Framing, HalfMessages, ParseSettings, StreamReceiver,
    StreamSettings, Zone,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(60);

struct Rig {
    intake: LogIntake,
    ledger: Ledger,
    arena: Arena,
    tasks: TaskGroup,
    _dir: tempfile::TempDir,
}

fn rig() -> Rig {
    let dir = tempfile::tempdir().unwrap();
    let arena = Arena::new(8 << 20, Floors::NONE.with(Share::Ingest, 1 << 20), 4 << 20, 64, 64).unwrap();
    let settings = Settings { durability: Durability::PageCache, ..Settings::new(dir.path()) };
    let (journal, recovery) = Journal::open(settings).unwrap();
    let ledger = Ledger::new(&Registry::new(1), recovery.items);
    let head = ledger.head();
    journal.observe(move |items| head.advance_to(items));
    let gate = Gate::new(arena.clone(), journal, SOON);
    let books = ledger.source("syslog").unwrap();
    let intake = LogIntake::new((gate, arena.clone()), books, None, 1 << 20, Shutdown::new());
    Rig { intake, ledger, arena, tasks: TaskGroup::new(), _dir: dir }
}

fn parse() -> ParseSettings {
    ParseSettings { format: Format::Auto, zone: Zone::UTC, is_local: false }
}

impl Rig {
    fn items(&self) -> u64 {
        self.ledger.source("syslog").unwrap().items()
    }

    fn refused_items(&self) -> Vec<(Refusal, u64)> {
        self.ledger.balance().sources[0].items_refused.clone()
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Rig) -> bool) {
        let deadline = Instant::now() + SOON;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "{what}: {} items, {:?}", self.items(), self.refused_items());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Accepts connections, whose half messages may take `message_timeout`.
    async fn listen(&self, message_timeout: Duration) -> SocketAddr {
        self.listen_with(message_timeout, HalfMessages::new(self.arena.clone())).await
    }

    /// The same with this memory for half messages.
    async fn listen_with(&self, message_timeout: Duration, half: HalfMessages) -> SocketAddr {
        let settings = StreamSettings {
            parse: parse(),
            framing: Framing::Auto,
            max_message: 2000,
            message_timeout,
            idle_timeout: None,
            transport: "tcp",
        };
        let receiver = StreamReceiver::new(self.intake.clone(), settings, half, self.tasks.clone());
        let receiver = Arc::new(receiver);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        self.spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let serving = receiver.serve(Box::new(stream), Some(peer));
                #[expect(clippy::disallowed_methods, reason = "the test's own task")]
                tokio::spawn(serving);
            }
        });
        address
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        #[expect(clippy::disallowed_methods, reason = "the test's own task")]
        tokio::spawn(task);
    }

    /// Ends it; the books balance, and all memory is free.
    async fn end(self) {
        self.intake.shutdown().begin();
        let tasks = self.tasks.clone();
        self.until("the tasks to end", |_| tasks.running() == 0).await;
        let balance = self.ledger.balance();
        assert_eq!(balance.difference(), 0, "{balance:?}");
        assert!(self.arena.usage().shares.iter().all(|share| share.used == 0));
    }
}

/// Messages in both framings, cut anywhere, over several connections.
#[tokio::test]
async fn connections_are_read_to_their_end() {
    let rig = rig();
    let address = rig.listen(SOON).await;
    for connection in 0..5_usize {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut bytes = Vec::new();
        for number in 0..2000 {
            let message = format!("<13>1 - host app - - - line {number}");
            match number % 2 {
                0 => bytes.extend(format!("{message}\n").into_bytes()),
                _ => bytes.extend(format!("{} {message}", message.len()).into_bytes()),
            }
        }
        for piece in bytes.chunks(1000 + 777 * connection) {
            stream.write_all(piece).await.unwrap();
        }
    }
    rig.until("all messages", |rig| rig.items() >= 10_000).await;
    assert_eq!((rig.items(), rig.refused_items()), (10_000, vec![]));
    rig.end().await;
}

/// A half message ends its connection, a wrong count does at once, and an idle connection stays and holds nothing.
#[tokio::test]
async fn half_messages_end() {
    let rig = rig();
    let address = rig.listen(Duration::from_millis(200)).await;
    let idle = TcpStream::connect(address).await.unwrap();
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"<13>whole\n900 <13>half").await.unwrap();
    let mut wrong = TcpStream::connect(address).await.unwrap();
    wrong.write_all(b"1000000000000 <13>x").await.unwrap();
    let ended = |rig: &Rig| rig.refused_items().len() == 2;
    rig.until("both to be refused", ended).await;
    assert_eq!(rig.refused_items(), [(Refusal::Malformed, 1), (Refusal::Timeout, 1)]);
    assert_eq!((rig.items(), rig.tasks.running()), (1, 1));
    assert!(rig.arena.usage().shares.iter().all(|share| share.used == 0), "idle connections hold nothing");
    drop(idle);
    rig.end().await;
}

/// `logger` over UDP and through a Unix socket; what was received before the end is appended.
#[tokio::test]
async fn datagrams_are_received() {
    let rig = rig();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let unix = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    udp.set_nonblocking(true).unwrap();
    unix.set_nonblocking(true).unwrap();
    let port = udp.local_addr().unwrap().port().to_string();
    for socket in [DatagramSocket::Udp(udp), DatagramSocket::Unix(unix)] {
        let receiver = DatagramReceiver::new(rig.intake.clone(), parse(), 8192);
        rig.tasks.spawn_watched(&tokio::runtime::Handle::current(), "the receiver", async move {
            receiver.run(socket).await.unwrap();
        });
    }
    let lines = dir.path().join("lines");
    std::fs::write(&lines, (0..100).map(|number| format!("line {number}\n")).collect::<String>()).unwrap();
    let lines = lines.to_str().unwrap();
    let over_udp = ["--server", "127.0.0.1", "--port", &port, "--udp", "--rfc5424", "--file", lines];
    let over_unix = ["--socket", path.to_str().unwrap(), "--file", lines];
    for arguments in [&over_udp[..], &over_unix[..]] {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let logger = tokio::task::spawn_blocking(move || {
            std::process::Command::new("logger").args(arguments).status().unwrap()
        });
        assert!(logger.await.unwrap().success());
    }
    rig.until("all datagrams", |rig| rig.items() >= 200).await;
    assert_eq!((rig.items(), rig.refused_items(), rig.tasks.lost()), (200, vec![], None));
    rig.tasks.expect_ends();
    rig.end().await;
}

/// Half messages that wait for memory leave buffers to others: whole messages arrive, and what is too much is refused at once.
#[tokio::test]
async fn waiting_half_messages_leave_buffers_to_others() {
    const HALF: usize = 1900;
    let rig = rig();
    let arena = Arena::new(64 << 10, Floors::NONE.with(Share::Ingest, 64 << 10), 64 << 10, 4, 4).unwrap();
    let kept = (32 << 10) / HALF;
    let address = rig.listen_with(SOON, HalfMessages::new(arena)).await;
    let mut half = Vec::new();
    for _ in 0..kept + 12 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("1999 {:x<1$}", "<13>", HALF - 5).as_bytes()).await.unwrap();
        half.push(stream);
    }
    rig.until("all but four to be refused", |rig| rig.refused_items() == [(Refusal::Memory, 8)]).await;
    let mut whole = TcpStream::connect(address).await.unwrap();
    whole.write_all(b"<13>whole\n").await.unwrap();
    rig.until("the whole message", |rig| rig.items() == 1).await;
    rig.end().await;
}
