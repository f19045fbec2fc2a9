//! The journal as a whole, on real files.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use crate::*;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share, Window};

mod allocations;
mod checkpoints;
mod crashes;
mod damage;
mod lag;
mod overlap;
mod pressure;
mod recipients;

/// Long enough for anything that is going to happen at all.
const PATIENCE: Duration = Duration::from_secs(20);

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

pub(crate) fn arena() -> Arena {
    Arena::new(64 << 20, Floors::NONE, 1 << 20, 256, 16).unwrap()
}

pub(crate) fn meta(items: u32) -> Meta {
    Meta {
        tenant: Tenant::new("acme").unwrap(),
        signal: Signal::Metrics,
        protocol: Protocol::RemoteWrite1,
        encoding: Encoding::Snappy,
        items,
        raw_len: 4 * items,
        received_at_ns: 1_700_000_000_000_000_000,
    }
}

/// A batch of `items` items, with something of the request before its body.
pub(crate) fn batch(arena: &Arena, items: u32, body: &[u8]) -> Batch {
    let mut window = arena.try_window(Share::Ingest, body.len() + 3).unwrap();
    window.append(b"POS").unwrap();
    window.append(body).unwrap();
    Batch { meta: meta(items), window, from: 3, len: body.len(), checkpoints: Checkpoints::default() }
}

fn record(follower: &mut Follower) -> Record {
    match follower.next_blocking(PATIENCE).unwrap() {
        Some(Event::Record(record)) => record,
        other => panic!("a record was expected, not {other:?}"),
    }
}

fn body(follower: &mut Follower, arena: &Arena) -> Window {
    let mut window = arena.try_window(Share::Egress, 1).unwrap();
    follower.read_into(&mut window).unwrap();
    window
}

#[test]
fn acknowledged_records_are_read_in_order_and_bit_for_bit() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let (journal, recovery) = Journal::open(Settings::new(dir.path())).unwrap();
    assert_eq!(recovery.head, 0);
    let mut follower = journal.follow("lake", StartAt::Oldest, WhenFull::Block).unwrap();
    for (sequence, size) in [0usize, 1, 7, 8, 100, 5000, 40_000, 300_000].into_iter().enumerate() {
        let bytes = vec![size as u8; size];
        let receipt = wait(journal.append(batch(&arena, 10, &bytes))).unwrap();
        assert_eq!(receipt, Receipt { sequence: sequence as u64, items_before: 10 * sequence as u64 });
        let read = record(&mut follower);
        assert_eq!((read.sequence, read.meta), (sequence as u64, meta(10)));
        assert_eq!(*body(&mut follower, &arena), bytes);
        assert!(follower.commit(read.sequence));
        assert!(!follower.commit(read.sequence), "a record is completed once");
    }
    assert_eq!(journal.stats().items, 80);
    assert_eq!(journal.stats().sinks[0].lag_records, 0);
    assert_eq!(arena.usage().shares[Share::Ingest as usize].used, 0, "windows are given back");
}

/// Times in the journal are those of its order: of a record that was overtaken, and of one that comes behind a promise.
#[test]
fn receive_times_do_not_decrease() {
    for durability in [Durability::PageCache, Durability::Memory] {
        let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
        let settings = Settings { durability, ..Settings::new(dir.path()) };
        let (journal, _) = Journal::open(settings).unwrap();
        let mut follower = journal.follow("up", StartAt::Oldest, WhenFull::Block).unwrap();
        let mut read = |seconds: u64| {
            let mut batch = batch(&arena, 1, b"x");
            batch.meta.received_at_ns = seconds * 1_000_000_000;
            let append = journal.append(batch);
            let record = record(&mut follower);
            assert!(follower.commit(record.sequence));
            wait(append).unwrap();
            record.meta.received_at_ns / 1_000_000_000
        };
        assert_eq!([100, 99, 101].map(&mut read), [100, 100, 101]);
        assert_eq!(journal.advance_clock(104_000_000_000), 3);
        assert_eq!([102, 105, 90].map(&mut read), [104, 105, 105]);
        assert_eq!(journal.advance_clock(0), 6);
    }
}

#[test]
fn an_uncompleted_record_can_be_reread_beside_the_next_ones() {
    for durability in [Durability::PageCache, Durability::Memory] {
        let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
        let settings = Settings { durability, segment_bytes: 64 << 10, ..Settings::new(dir.path()) };
        let (journal, _) = Journal::open(settings).unwrap();
        let mut follower = journal.follow("up", StartAt::Oldest, WhenFull::Block).unwrap();
        // Several segments of them. Kept in memory, they are only acknowledged when they are completed.
        let mut appends: Vec<_> =
            (0..40u8).map(|item| Box::pin(journal.append(batch(&arena, 1, &vec![item; 10_000])))).collect();
        for append in &mut appends {
            _ = append.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        let read: Vec<Record> = (0..30).map(|_| record(&mut follower)).collect();
        for done in [0, 1, 5, 17] {
            assert!(follower.commit(done));
        }
        for again in [29, 2, 16, 6, 2] {
            let recalled = follower.recall(again).unwrap().unwrap();
            assert_eq!(recalled, read[usize::try_from(again).unwrap()]);
            let mut window = arena.try_window(Share::Egress, 1).unwrap();
            follower.read_recalled(&mut window).unwrap();
            assert_eq!(*window, vec![again as u8; 10_000]);
        }
        for gone in [0, 17, 30, 400] {
            assert_eq!(follower.recall(gone).unwrap(), None);
        }
        assert_eq!(record(&mut follower).sequence, 30, "what comes next is the same");
    }
}

#[test]
fn a_restart_resumes_at_the_cursor_and_keeps_out_of_order_completions() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let settings = Settings { durability: Durability::PageCache, ..Settings::new(dir.path()) };
    let (journal, _) = Journal::open(settings.clone()).unwrap();
    for item in 0..6u8 {
        wait(journal.append(batch(&arena, 1, &[item]))).unwrap();
    }
    let mut follower = journal.follow("up", StartAt::Oldest, WhenFull::Block).unwrap();
    for _ in 0..5 {
        record(&mut follower);
    }
    for done in [0, 2, 4] {
        assert!(follower.commit_with(done, &[7; CURSOR_METADATA_LEN]));
    }
    drop(follower);
    assert!(journal.close(PATIENCE));
    assert_eq!(wait(journal.append(batch(&arena, 1, b"late"))), Err(AppendError::Closed));
    drop(journal);

    let (journal, recovery) = Journal::open(settings).unwrap();
    assert_eq!((recovery.head, recovery.items, recovery.tail_records), (6, 6, 6));
    assert_eq!(wait(journal.append(batch(&arena, 1, &[6]))).unwrap().sequence, 6);
    let mut follower = journal.follow("up", StartAt::Oldest, WhenFull::Block).unwrap();
    assert_eq!(follower.metadata(), [7; CURSOR_METADATA_LEN]);
    assert_eq!(follower.position().sequence, 1);
    let left: Vec<u64> = (0..4).map(|_| record(&mut follower).sequence).collect();
    assert_eq!(left, [1, 3, 5, 6]);
}

#[test]
fn a_second_instance_is_refused_with_the_owners_process_id() {
    let dir = tempfile::tempdir().unwrap();
    let (_journal, _) = Journal::open(Settings::new(dir.path())).unwrap();
    let refused = Journal::open(Settings::new(dir.path())).err().unwrap().to_string();
    assert!(refused.contains(&format!("in use by process {}", std::process::id())), "{refused}");
}

#[test]
fn segments_that_every_sink_is_past_are_deleted() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let settings = Settings { segment_bytes: 8192, ..Settings::new(dir.path()) };
    let (journal, _) = Journal::open(settings).unwrap();
    let mut quick = journal.follow("quick", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut slow = journal.follow("slow", StartAt::Oldest, WhenFull::Block).unwrap();
    for item in 0..20u8 {
        wait(journal.append(batch(&arena, 1, &[item; 3000]))).unwrap();
        let read = record(&mut quick).sequence;
        quick.commit(read);
    }
    assert_eq!(journal.stats().segments, 10);
    for _ in 0..20 {
        let read = record(&mut slow).sequence;
        slow.commit(read);
    }
    assert!(journal.close(PATIENCE));
    // The last stays: it says where the numbers go on.
    assert_eq!(journal.stats().segments, 1);
}

#[test]
fn a_record_larger_than_a_segment_gets_one_of_its_own() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let settings = Settings { segment_bytes: 4096, ..Settings::new(dir.path()) };
    let (journal, _) = Journal::open(settings).unwrap();
    let mut follower = journal.follow("lake", StartAt::Oldest, WhenFull::Block).unwrap();
    for size in [10, 500_000, 10] {
        wait(journal.append(batch(&arena, 1, &vec![1; size]))).unwrap();
        record(&mut follower);
        assert_eq!(body(&mut follower, &arena).len(), size);
    }
    assert_eq!(journal.stats().segments, 3);
}

#[test]
fn concurrent_appends_are_all_answered_and_read() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let settings = Settings { segment_bytes: 64 << 10, ..Settings::new(dir.path()) };
    let (journal, _) = Journal::open(settings).unwrap();
    let mut follower = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (journal, arena) = (&journal, &arena);
            scope.spawn(move || {
                for number in 0..100u64 {
                    let body = [thread.to_le_bytes(), number.to_le_bytes()].concat();
                    wait(journal.append(batch(arena, 1, &body))).unwrap();
                }
            });
        }
        let mut seen = [0u64; 8];
        for sequence in 0..800 {
            let read = record(&mut follower);
            assert_eq!((read.sequence, read.items_before), (sequence, sequence));
            let body = body(&mut follower, &arena);
            let (thread, number) = body.split_at(8);
            let seen = &mut seen[thread[0] as usize];
            assert_eq!(number, seen.to_le_bytes(), "each one's batches stay in order");
            *seen += 1;
            follower.commit(sequence);
        }
    });
    let stats = journal.stats();
    assert!(stats.syncs < 400, "batches that arrive together are synced together: {}", stats.syncs);
    assert_eq!(inspect::verify(dir.path()).unwrap().missing_records, 0);
    assert!(inspect::verify(dir.path()).unwrap().is_sound());
}

#[test]
fn inspecting_a_journal_changes_nothing_and_reports_damage() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let (journal, _) = Journal::open(Settings::new(dir.path())).unwrap();
    drop(journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap());
    for number in 0..5u8 {
        wait(journal.append(batch(&arena, 2, &[number; 50]))).unwrap();
    }
    let inspection = inspect::inspect(dir.path()).unwrap();
    assert_eq!(inspection.segments.len(), 1);
    assert!(matches!(&inspection.cursors[..], [(name, Some(_))] if name == "sink"));
    let records: Vec<_> = inspection.records(&inspection.segments[0]).unwrap().collect();
    assert_eq!(records.iter().map(|record| record.sequence).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(records.iter().all(|record| record.whole && record.meta == Some(meta(2))));
    assert!(journal.close(PATIENCE));
    drop(journal);
    let segment = dir.path().join(&inspection.segments[0].name);
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[records[2].offset as usize + 80] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let report = inspect::verify(dir.path()).unwrap();
    assert_eq!((report.records, report.missing_records, report.missing_items), (4, 1, 2));
    assert!(!report.is_sound() && report.places.len() == 1, "{report:?}");
}

#[test]
fn declared_memory_is_small_and_grows_with_the_settings() {
    let settings = Settings { queue: 64, followers: 2, ..Settings::new("journal") };
    let bytes =
        |settings: &Settings| settings.overhead().iter().map(|declared| declared.bytes()).sum::<u64>();
    assert!(bytes(&settings) < 768 << 10, "{}", bytes(&settings));
    assert!(bytes(&Settings { queue: 1024, ..settings.clone() }) > bytes(&settings));
    assert!(bytes(&Settings { followers: 3, ..settings.clone() }) > bytes(&settings));
}
