//! A journal's folder, whatever is in its segments and cursors: it opens, gives what can be read and says what cannot, and
//! takes the next record.
#![no_main]

#[path = "../src/folder.rs"]
mod folder;

use folder::Folder;
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, park_timeout};
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::{
    Batch, Checkpoints, Durability, Encoding, Event, Journal, Meta, Protocol, Settings, Signal, StartAt,
    Tenant, WhenFull, inspect,
};

const PATIENCE: Duration = Duration::from_secs(10);
const BODIES: [&[u8]; 3] = [b"a", b"the second, which is longer", b"the third"];

fn settings(dir: &Path) -> Settings {
    Settings {
        segment_bytes: 4 << 10,
        quota: 64 << 10,
        durability: Durability::PageCache,
        queue: 8,
        followers: 4,
        ..Settings::new(dir)
    }
}

fn arena() -> &'static Arena {
    static ARENA: OnceLock<Arena> = OnceLock::new();
    ARENA.get_or_init(|| Arena::new(8 << 20, Floors::NONE, 1 << 20, 16, 16).expect("an arena"))
}

/// Appends these bodies; gives up on one that the journal does not take.
fn append(journal: &Journal, bodies: &[&[u8]]) {
    for body in bodies {
        let mut window = arena().try_window(Share::Ingest, body.len()).expect("a window");
        window.append(body).expect("room");
        let meta = Meta {
            tenant: Tenant::new("shop").unwrap_or(Tenant::NONE),
            signal: Signal::Logs,
            protocol: Protocol::Otlp,
            encoding: Encoding::Identity,
            items: 2,
            raw_len: body.len() as u32,
            received_at_ns: 1,
        };
        let batch = Batch { meta, window, from: 0, len: body.len(), checkpoints: Checkpoints::default() };
        let _taken = wait(journal.append(batch));
    }
}

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future that a thread of the journal wakes.
fn wait<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        park_timeout(PATIENCE);
    }
}

/// A journal as one leaves it: three records, one of which a sink has.
fn template() -> &'static Vec<(String, Vec<u8>)> {
    static FILES: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let folder = Folder::empty();
        let (journal, _) = Journal::open(settings(folder.path())).expect("an empty folder opens");
        let mut follower = journal.follow("sink", StartAt::Oldest, WhenFull::Block).expect("a cursor");
        append(&journal, &BODIES);
        if let Ok(Some(Event::Record(record))) = follower.next_blocking(PATIENCE) {
            follower.commit(record.sequence);
        }
        drop(follower);
        journal.close(PATIENCE);
        folder.files()
    })
}

fuzz_target!(|input: &[u8]| {
    let folder = Folder::of(template(), input);
    let _report = inspect::verify(folder.path());
    // It always opens.
    let (journal, _recovery) = Journal::open(settings(folder.path())).expect("a damaged journal opens");
    append(&journal, &[b"one more"]);
    if let Ok(mut follower) = journal.follow("sink", StartAt::Oldest, WhenFull::Block) {
        for _ in 0..100 {
            let Ok(Some(event)) = follower.next_blocking(Duration::ZERO) else { break };
            let Event::Record(record) = event else { continue };
            let Ok(mut window) = arena().try_window(Share::Egress, record.body_len as usize) else {
                continue;
            };
            if follower.read_into(&mut window).is_ok() {
                assert!(window.len() == record.body_len as usize);
            }
        }
    }
    journal.close(PATIENCE);
});
