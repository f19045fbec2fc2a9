//! Promise: what a connection of HTTP/2 keeps for streams that it once had is charged for as long as it keeps it, and
//! let go where others lack it. In a program of its own, since the heap is one for all.

#![allow(clippy::unwrap_used, clippy::large_futures, reason = "tests")]

#[allow(dead_code, reason = "others use more of it")]
#[path = "../otlp/rig.rs"]
mod rig;
#[allow(dead_code, reason = "others use more of it")]
#[path = "../support/wire.rs"]
mod wire;

use rig::{CONNECTIONS, Rig, settings};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tidegate_arena::Share;
use tidegate_arena::heap::{CountingAllocator, heap};
use tidegate_http1::Settings;
use tidegate_sources::Http2;
use wire::Answers;

#[global_allocator]
static HEAP: CountingAllocator<std::alloc::System> = CountingAllocator::new(std::alloc::System);

const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
/// The server's stream limit, which is also the protocol's recommendation.
const STREAMS: usize = 64;
const RECOMMENDED: usize = 100;

/// A client without a heap to speak of.
struct Client {
    stream: TcpStream,
    next: u32,
    call: Vec<u8>,
}

impl Client {
    fn new(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        (&stream).write_all(&[wire::PREFACE, &wire::SETTINGS].concat()).unwrap();
        // Empty resources, without scopes.
        Client { stream, next: 1, call: wire::call(LOGS, &[0x0a, 0].repeat(20)) }
    }

    /// Makes calls, so many of them at a time, of which so many are refused for being too many.
    fn call(&mut self, together: usize, refused: usize) {
        let (first, head) = (self.next, wire::first_frame(&self.call));
        let mut answers = Answers::default();
        let number = |at: usize| first + 2 * u32::try_from(at).unwrap();
        for (part, to) in [(0..head, together), (head..self.call.len(), together - refused)] {
            for at in 0..to {
                wire::renumber(&mut self.call, number(at));
                self.stream.write_all(&self.call[part.clone()]).unwrap();
            }
            while answers.reset < refused {
                self.read(&mut answers);
            }
        }
        while answers.ended < together {
            self.read(&mut answers);
        }
        assert_eq!(answers.reset, refused);
        self.next = number(together);
    }

    fn read(&mut self, answers: &mut Answers) {
        let mut piece = [0; 4096];
        let read = self.stream.read(&mut piece).unwrap();
        answers.follow(&piece[..read]).unwrap();
    }
}

fn used(rig: &Rig) -> u64 {
    rig.arena.usage().shares.iter().map(|share| share.used).sum()
}

/// The live memory at rest: after as many turns as connections have, and with no charge in flight.
async fn settled(rig: &Rig) -> (u64, u64) {
    let look = || (heap().live, used(rig));
    let (mut last, mut same) = (look(), 0);
    while same < 200 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let now = look();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

async fn on_clients(mut clients: Vec<Client>, call: impl Fn(&mut Client) + Send + 'static) -> Vec<Client> {
    let calling = move || {
        clients.iter_mut().for_each(call);
        clients
    };
    tokio::task::spawn_blocking(calling).await.unwrap()
}

#[tokio::test]
async fn codec_memory_of_streams_is_charged_and_released() {
    // A goodbye is not waited for as long as usual.
    let rig = Rig::with(1 << 30, Settings { write: Duration::from_millis(500), ..settings() });
    rig.serve(async |address| {
        let open = |count: usize| async move {
            let connecting = move || (0..count).map(|_| Client::new(address)).collect::<Vec<_>>();
            tokio::task::spawn_blocking(connecting).await.unwrap()
        };
        let closed = async || {
            while rig.http2.open() > 0 {
                tokio::task::yield_now().await;
            }
            settled(&rig).await
        };
        // Allocated once.
        drop(on_clients(open(1).await, |client| client.call(RECOMMENDED, RECOMMENDED - STREAMS)).await);
        let (empty, _) = closed().await;
        let clients = on_clients(open(CONNECTIONS).await, |client| client.call(1, 0)).await;
        let (fresh, used) = settled(&rig).await;
        assert_eq!(used, 0, "a call at a time is paid for by the places");
        let clients = on_clients(clients, |client| {
            client.call(RECOMMENDED, RECOMMENDED - STREAMS);
            for _ in 0..40 {
                client.call(STREAMS, 0);
            }
        });
        let clients = clients.await;
        let (grown, charged) = settled(&rig).await;
        drop(clients);
        // The journal has grown besides, which stays.
        let (without, _) = closed().await;
        let each = |bytes: u64| bytes / CONNECTIONS as u64;
        let (before, after) = (each(fresh - empty), each(grown.saturating_sub(without)));
        println!(
            "{before} bytes live for a connection, {after} after {STREAMS} streams at a time, {} charged",
            each(charged)
        );
        assert!(after > before, "the codec keeps something, or this measures nothing");
        assert!(
            after <= before + each(charged),
            "{after} bytes, {before} before, and {} are charged",
            each(charged)
        );

        // While nobody lacks memory such connections stay; then they are told to go.
        let clients = on_clients(open(CONNECTIONS).await, |client| client.call(STREAMS, 0)).await;
        let most = rig.arena.free(Share::Ingest);
        let held = rig.arena.try_charge(Share::Ingest, most).unwrap();
        while rig.http2.open() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(held);
        on_clients(clients, |client| {
            let (mut answers, mut piece) = (Answers::default(), [0; 4096]);
            let ended = loop {
                let read = client.stream.read(&mut piece).unwrap();
                if let Err(ended) = answers.follow(&piece[..read]) {
                    break ended;
                }
            };
            assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionAborted, "GOAWAY comes before the end");
        })
        .await;
        // One that has not grown waits for as long as it likes.
        let clients = on_clients(open(1).await, |client| client.call(1, 0)).await;
        let held = rig.arena.try_charge(Share::Ingest, rig.arena.free(Share::Ingest)).unwrap();
        tokio::time::sleep(Duration::from_millis(5500)).await;
        assert_eq!(rig.http2.open(), 1);
        drop((held, clients));
    })
    .await;
    assert_eq!(Http2::PLACES, 16, "what a connection that has not grown keeps is measured by `idle_http2`");
}
