//! How long a journal takes to open, and what memory that takes, by what is queued in it.
//!
//! `cargo bench -p tidegate-journal --bench open -- GIB` (1 where nothing is said). The folder is made where
//! `TMPDIR` says, and removed.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench, which says what it measures"
)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::{
    Batch, Checkpoints, Durability, Encoding, Event, Journal, Meta, Protocol, Settings, Signal, StartAt,
    Tenant, WhenFull,
};

/// Small enough that there are many.
const BODY: usize = 16 << 10;

fn append(journal: &Journal, batch: Batch) {
    let mut appending = pin!(journal.append(batch));
    while appending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        std::thread::yield_now();
    }
}

/// The most memory that was resident so far, in KiB, as the kernel says it.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() {
    let gib: u64 = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(1);
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { durability: Durability::PageCache, ..Settings::new(dir.path()) };
    let arena = Arena::new(8 << 20, Floors::NONE, 1 << 20, 8, 8).unwrap();
    let meta = Meta {
        tenant: Tenant::NONE,
        signal: Signal::Metrics,
        protocol: Protocol::RemoteWrite1,
        encoding: Encoding::Snappy,
        items: 2000,
        raw_len: 600_000,
        received_at_ns: 0,
    };
    let (journal, _) = Journal::open(settings.clone()).unwrap();
    drop(journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap());
    let records = (gib << 30) / BODY as u64;
    for _ in 0..records {
        let mut window = arena.try_window(Share::Ingest, BODY).unwrap();
        window.append(&[7; BODY]).unwrap();
        append(&journal, Batch { meta, window, from: 0, len: BODY, checkpoints: Checkpoints::default() });
    }
    journal.close(Duration::from_secs(60));
    drop(journal);
    let (before, begun) = (peak_kib(), Instant::now());
    let (journal, recovery) = Journal::open(settings).unwrap();
    let opened = begun.elapsed();
    println!(
        "{gib} GiB in {} segments: open after {opened:.2?}, {} KiB more memory",
        recovery.segments,
        peak_kib() - before
    );
    let mut sink = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut window = arena.try_window(Share::Egress, BODY).unwrap();
    for _ in 0..records {
        let Some(Event::Record(record)) = sink.next_blocking(Duration::from_secs(1)).unwrap() else {
            panic!("a record")
        };
        window.clear();
        sink.read_into(&mut window).unwrap();
        assert!(sink.commit(record.sequence));
    }
    println!(
        "read back after {:.2?}, {} KiB more memory than before opening",
        begun.elapsed(),
        peak_kib() - before
    );
}
