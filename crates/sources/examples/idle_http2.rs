//! Measures what idle connections of gRPC cost: `cargo run --release -p tidegate-sources --example idle_http2 -- 1000 0 1`.
//!
//! The clients live in a child process, so that only the server's side is counted. Each connection makes as many
//! calls as the third number says, with messages of as many bytes as the second says, as many of them at a time as the
//! fourth says, and stays open.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, clippy::large_futures)]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/support/wire.rs"]
mod wire;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tidegate_admission::Gate;
use tidegate_arena::heap::{CountingAllocator, Jemalloc, heap};
use tidegate_arena::{Arena, Floors};
use tidegate_http1::{Server, Settings, Shutdown};
use tidegate_journal::{Durability, Journal};
use tidegate_ledger::Ledger;
use tidegate_meters::{Buckets, Histogram, Registry};
use tidegate_pool::Pool;
use tidegate_sources::{ConnectionSlots, Http, Http2, Ingest, Otlp, RemoteWrite};
use tokio::net::TcpListener;

#[global_allocator]
static HEAP: CountingAllocator<Jemalloc> = CountingAllocator::new(tidegate_arena::heap::JEMALLOC);

const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("clients"), Some(address)) => {
            let mut number = || arguments.next().unwrap().parse().unwrap();
            clients(address.parse().unwrap(), number(), number(), number(), number())
        }
        (connections, bytes) => serve(
            connections.map_or(1000, |count| count.parse().unwrap()),
            bytes.map_or(0, |bytes| bytes.parse().unwrap()),
            arguments.next().map_or(1, |calls| calls.parse().unwrap()),
            arguments.next().map_or(1, |together| together.parse().unwrap()),
        ),
    }
}

fn ingest(dir: &std::path::Path) -> (Arc<Ingest>, Arena) {
    let arena = Arena::new(64 << 20, Floors::NONE, 32 << 20, 256, 256).unwrap();
    let settings = tidegate_journal::Settings {
        durability: Durability::PageCache,
        ..tidegate_journal::Settings::new(dir)
    };
    let (journal, recovery) = Journal::open(settings).unwrap();
    let ledger = Ledger::new(&Registry::new(1), recovery.items);
    let gate = Gate::new(arena.clone(), journal, Duration::from_secs(1));
    let pool = Pool::start(1, 1).unwrap();
    let source = |name| ledger.source(name).unwrap();
    let remote_write = RemoteWrite::new(source("remote_write"), arena.clone(), pool.clone(), 1 << 20);
    let http = Http::new(gate, source("http"), Histogram::new(Buckets::durations(), 1))
        .with(Arc::new(remote_write))
        .with(Arc::new(Otlp::new(source("otlp"), arena.clone(), pool, 1 << 20)));
    let (settings, shutdown) = (Settings::default(), Shutdown::new());
    let http1 = Server::new(http.clone(), settings, arena.clone(), shutdown.clone());
    let http2 = Http2::new(http, settings, arena.clone(), ConnectionSlots::new(usize::MAX));
    (Arc::new(Ingest::new(http1, http2, settings, shutdown)), arena)
}

fn serve(connections: usize, bytes: usize, calls: usize, together: usize) {
    let dir = std::env::temp_dir().join(format!("tidegate-idle-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ingest, arena) = ingest(&dir);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let child = |connections: usize| {
            let program = std::env::current_exe().unwrap();
            let mut command = Command::new(program);
            command.args(["clients", &address.to_string()]);
            command.args([connections, bytes, calls, together].map(|number| number.to_string()));
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        };
        let accept = async |connections: usize| {
            for _ in 0..connections {
                let (stream, _peer) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let ingest = Arc::clone(&ingest);
                tokio::spawn(async move { ingest.serve(stream).await });
            }
        };
        // The first hundred pay for what is made once.
        let mut warm = child(100);
        accept(100).await;
        answered(&mut warm, &arena).await;
        let (resident_before, heap_before) = (resident(), heap().live);
        let mut clients = child(connections);
        accept(connections).await;
        answered(&mut clients, &arena).await;
        let per = |bytes: u64| bytes as f64 / connections as f64;
        println!("connections                 {connections}");
        println!("heap per connection         {:.0} bytes", per(heap().live - heap_before));
        println!("resident per connection     {:.0} bytes", per(resident() - resident_before));
        for mut child in [warm, clients] {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    });
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Waits until the child says that every connection has its answer, and what is idle has been given back.
async fn answered(child: &mut Child, arena: &Arena) {
    let mut output = child.stdout.take().unwrap();
    tokio::task::spawn_blocking(move || output.read_exact(&mut [0])).await.unwrap().unwrap();
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        arena.tick();
    }
}

/// The child: opens the connections, makes a call on each, says so, and holds them until its input ends.
fn clients(address: SocketAddr, connections: usize, bytes: usize, calls: usize, together: usize) {
    // Empty resources, without scopes.
    let message = [0x0a, 0].repeat(bytes / 2);
    // It is sent without a look at the windows, so it has to fit the first one.
    assert!(message.len() < 65_000, "a message of at most 65,000 bytes");
    let mut call = wire::call(LOGS, &message);
    let held: Vec<TcpStream> = (0..connections)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.write_all(&[wire::PREFACE, &wire::SETTINGS].concat()).unwrap();
            let mut first = 0;
            while first < calls {
                let some = together.min(calls - first);
                // All heads first, so that so many streams are open at a time.
                let head = wire::first_frame(&call);
                for part in [0..head, head..call.len()] {
                    for number in first..first + some {
                        // Odd numbers are the client's.
                        wire::renumber(&mut call, u32::try_from(2 * number + 1).unwrap());
                        stream.write_all(&call[part.clone()]).unwrap();
                    }
                }
                let mut answers = wire::Answers::default();
                while answers.ended < some {
                    let mut piece = [0; 4096];
                    let read = stream.read(&mut piece).unwrap();
                    answers.follow(&piece[..read]).unwrap();
                }
                first += some;
            }
            stream
        })
        .collect();
    std::io::stdout().write_all(b".").unwrap();
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    drop(held);
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
