//! Callers on several threads, as the gateway's workers are, and a driver on another.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::Value;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_bulk::{
    Bulk, BulkSubmitError, Settings, Target, Transport, TransportError, TransportRequest, TransportResponse,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

const THREADS: u64 = 4;
const TASKS: u64 = 8;
const ITEMS: u64 = 300;

/// Carries out what it is sent, after a while, and notes what was written to each document.
#[derive(Default)]
struct Noting(Mutex<HashMap<String, Vec<u64>>>);

impl Noting {
    fn note(&self, lines: &[Value]) {
        let mut written = self.0.lock().unwrap();
        for pair in lines.chunks(2) {
            let id = pair[0]["index"]["_id"].as_str().unwrap().to_owned();
            written.entry(id).or_default().push(pair[1]["n"].as_u64().unwrap());
        }
    }
}

impl Transport for Noting {
    async fn send(
        &self,
        request: TransportRequest,
        answer: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<TransportResponse, TransportError> {
        for _ in 0..request.items % 7 {
            yield_now().await;
        }
        let lines = request.body.as_ref().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        self.note(&lines);
        let text =
            format!("{{\"items\":[{}]}}", vec!["{\"index\":{\"status\":200}}"; lines.len() / 2].join(","));
        for piece in text.as_bytes().chunks(100) {
            let _ = answer(piece);
            yield_now().await;
        }
        Ok(TransportResponse { status: 200, ..TransportResponse::default() })
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// One task: writes to a document that all threads have and to one of its own, and leaves every fifth item.
async fn caller(bulk: Bulk, name: u64) -> u64 {
    let own = format!("own-{name}");
    let mut answered = 0;
    for number in 0..ITEMS {
        let n = name * ITEMS + number;
        let id = if number % 3 == 0 { "shared" } else { &own };
        match bulk.index(Target::new("i", id), format!("{{\"n\":{n}}}").as_bytes()) {
            Ok(ticket) if number % 5 == 0 => {
                yield_now().await;
                drop(ticket);
            }
            Ok(ticket) => {
                assert_eq!(ticket.await.unwrap().status, 200);
                answered += 1;
            }
            Err(refused) => assert!(matches!(refused, BulkSubmitError::Full { .. })),
        }
    }
    answered
}

/// Everybody who stays is answered once, each document is written in the order of its one writer (and of each of
/// its several), and nothing is left.
#[test]
fn threads_share_an_engine() {
    let arena = Arena::new(4 << 20, Floors::NONE, 1 << 20, 64, 16).unwrap();
    let settings = Settings::new(Share::Forward, 4 << 20);
    let interval = Duration::from_micros(200);
    let (bulk, driver) =
        Bulk::new(Settings { slots: 64, batch_items: 16, linger: interval, ..settings }, arena.clone());
    let server = Noting::default();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let answered: u64 = std::thread::scope(|scope| {
        scope.spawn(|| runtime().block_on(driver.run(&server, async move { drop(stopped.await) })));
        let callers = |thread: u64| {
            let bulk = bulk.clone();
            scope.spawn(move || {
                let tasks = (0..TASKS).map(|task| caller(bulk.clone(), thread * TASKS + task));
                runtime().block_on(futures_util::future::join_all(tasks)).into_iter().sum::<u64>()
            })
        };
        let threads: Vec<_> = (0..THREADS).map(callers).collect();
        let answered = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        drop(stop);
        answered
    });
    let written = server.0.lock().unwrap();
    assert!(written.values().map(Vec::len).sum::<usize>() as u64 >= answered);
    for (id, numbers) in written.iter() {
        for writer in 0..THREADS * TASKS {
            let of_writer = numbers.iter().filter(|n| **n / ITEMS == writer);
            assert!(of_writer.is_sorted_by(|a, b| a < b), "document {id} was written as {numbers:?}");
        }
    }
    assert_eq!(bulk.depth(), 0);
    assert!(arena.usage().shares.iter().all(|share| share.used == 0));
    assert!(answered > THREADS * TASKS * ITEMS / 2, "{answered}");
}
