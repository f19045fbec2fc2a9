//! Promises: a wait for memory has an end; every refusal says when to return if that helps; the verdict on a
//! request is in the books once.

mod anonymous;
mod append_slots;
mod decode_buffer;
mod enter;
mod recipient;
mod source_pipeline;

use super::*;
use crate::permit::Permit;
use tidegate_arena::Floors;
use tidegate_journal::{
    Batch, Checkpoints, Durability, Encoding, Event, Follower, Meta, Protocol, Settings, Signal, StartAt,
    Tenant, WhenFull,
};
use tidegate_ledger::{Counts, Ledger, OpenRequest, Refusal, Source};
use tidegate_limit::Moment;
use tidegate_meters::Registry;
use tokio::time::Instant;

const WAIT: Duration = Duration::from_secs(5);
const TOTAL: u64 = 4 << 20;

pub(in crate::gate) struct Rig {
    arena: Arena,
    journal: Journal,
    pub(in crate::gate) gate: Gate,
    ledger: Ledger,
    pub(in crate::gate) source: Source,
    _dir: tempfile::TempDir,
}

/// A gate before a journal that may take `quota` bytes.
pub(in crate::gate) fn rig(quota: u64) -> Rig {
    rig_with(quota, |_, _| GateRules::default())
}

/// The same, with rules for its one source.
pub(in crate::gate) fn rig_with(quota: u64, rules: impl FnOnce(&Ledger, &Source) -> GateRules) -> Rig {
    rig_of(quota, 1024, rules)
}

/// The same, where `queue` bodies can wait for the disk at a time.
fn rig_of(quota: u64, queue: usize, rules: impl FnOnce(&Ledger, &Source) -> GateRules) -> Rig {
    let dir = tempfile::tempdir().unwrap();
    let floors = Floors::NONE.with(Share::Ingest, 1 << 20).with(Share::Decode, 1 << 20);
    let arena = Arena::new(TOTAL, floors, 4 << 20, 64, 64).unwrap();
    let settings = Settings { quota, queue, durability: Durability::PageCache, ..Settings::new(dir.path()) };
    let (journal, recovery) = Journal::open(settings).unwrap();
    let ledger = Ledger::new(&Registry::new(1), recovery.items);
    let head = ledger.head();
    journal.observe(move |items| head.advance_to(items));
    let source = ledger.source("test").unwrap();
    let gate = Gate::with_rules(arena.clone(), journal.clone(), WAIT, None, rules(&ledger, &source));
    Rig { arena, journal, gate, ledger, source, _dir: dir }
}

impl Rig {
    /// Appends a body of `len` bytes with three items.
    async fn append(&self, len: usize) -> Result<(), Rejection> {
        self.append_as(self.source.open(), len).await
    }

    async fn append_as(&self, open: OpenRequest, len: usize) -> Result<(), Rejection> {
        let mut window = self.arena.window(Share::Ingest, len).await.unwrap();
        window.advance(len);
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Metrics,
            protocol: Protocol::RemoteWrite1,
            encoding: Encoding::Snappy,
            items: 3,
            raw_len: 1,
            received_at_ns: 1,
        };
        let counts = Counts::of(tidegate_ledger::Signal::Metrics, 3, len as u64);
        self.gate
            .append(
                &Permit::default(),
                open,
                counts,
                Batch { meta, window, from: 0, len, checkpoints: Checkpoints::default() },
            )
            .await
    }

    /// Accepted requests, and refused ones by reason; the books balance and all memory is free.
    fn assert_books(&self) -> (u64, Vec<(Refusal, u64)>) {
        let mut balance = self.ledger.balance();
        assert_eq!(balance.difference(), 0, "{balance:?}");
        assert!(balance.at_rest());
        assert!(self.arena.usage().shares.iter().all(|share| share.used == 0));
        let source = balance.sources.remove(0);
        (source.accepted, source.refused)
    }

    fn follow(&self) -> Follower {
        self.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap()
    }
}

/// Everything that decode could have, less `but`.
fn take_all_but(rig: &Rig, but: u64) -> tidegate_arena::Charge {
    rig.arena.try_charge(Share::Decode, rig.arena.ceiling(Share::Decode) - but).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_memory_has_an_end() {
    let rig = rig(1 << 30);
    let _held = take_all_but(&rig, 4096);
    let asked = Instant::now();
    let refused = rig.gate.decode_buffer(&Permit::default(), 1 << 20, false).await.err().unwrap();
    assert_eq!((refused.reason, asked.elapsed()), (Refusal::Memory, WAIT));
    assert!(refused.retry_after.is_some_and(|seconds| seconds > 0));
    assert!(rig.gate.decode_buffer(&Permit::default(), 4096, true).await.is_ok(), "what fits does not wait");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_request_gets_freed_memory() {
    let rig = rig(1 << 30);
    let held = take_all_but(&rig, 0);
    let asked = Instant::now();
    // Polled after the request, which waits by then.
    let frees = async { drop(held) };
    let permit = Permit::default();
    let (room, ()) = tokio::join!(biased; rig.gate.decode_buffer(&permit, 1 << 20, true), frees);
    assert!(room.is_ok());
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_oversize_body_is_refused_at_once_without_a_retry_delay() {
    let rig = rig(1 << 30);
    let asked = Instant::now();
    let refused =
        rig.gate.decode_buffer(&Permit::default(), rig.gate.most_decoded() + 1, false).await.err().unwrap();
    assert_eq!((refused.reason, refused.retry_after), (Refusal::TooLarge, None));
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

/// A body that was checked before the bounds became tighter is refused and not journalled: no sink could deliver it.
#[tokio::test]
async fn a_checked_body_is_measured_again_when_it_is_appended() {
    let rig = rig(1 << 30);
    let all = |most: usize| Deliverable::new(|_, _| SizeLimit { most, ..SizeLimit::NONE });
    rig.gate.set_deliverable(all(2000));
    let size = Size { kept: 1000, decoded: 1, item: 0 };
    rig.gate.check_deliverable(Protocol::RemoteWrite1, Signal::Metrics, size).unwrap();
    rig.gate.set_deliverable(all(1000));
    assert_eq!(rig.append(1000).await.unwrap_err().reason, Refusal::TooLarge);
    rig.gate.set_deliverable(rig.gate.deliverable().or(&all(2000)));
    rig.append(1000).await.unwrap();
    assert_eq!(rig.assert_books(), (1, vec![(Refusal::TooLarge, 1)]));
}

#[tokio::test]
async fn appended_batches_are_counted_as_accepted() {
    let rig = rig(1 << 30);
    assert_eq!(rig.gate.check_open(), Ok(()));
    for _ in 0..10 {
        rig.append(1000).await.unwrap();
    }
    assert_eq!(rig.assert_books(), (10, vec![]));
}

#[tokio::test]
async fn a_stopping_gate_refuses_with_a_retry_delay() {
    let rig = rig(1 << 30);
    rig.gate.stop();
    assert!(rig.gate.is_stopping());
    let refused = rig.gate.check_open().err().unwrap();
    assert_eq!(refused.reason, Refusal::Shutdown);
    assert!(refused.retry_after.is_some());
    // Requests admitted earlier are still served, until the journal is closed.
    rig.append(1000).await.unwrap();
    assert!(rig.journal.close(WAIT));
    let refused = rig.append(1000).await.err().unwrap();
    assert_eq!(refused.reason, Refusal::Shutdown);
    assert!(refused.retry_after.is_some());
    assert_eq!(rig.assert_books(), (1, vec![(Refusal::Shutdown, 1)]));
}

#[tokio::test]
async fn a_full_journal_refuses_with_a_retry_delay_until_there_is_space() {
    let rig = rig(256 << 10);
    let mut follower = rig.follow();
    let mut accepted = 0;
    let refused = loop {
        match rig.append(10_000).await {
            Ok(()) => accepted += 1,
            Err(refused) => break refused,
        }
        assert!(accepted < 100, "the quota holds");
    };
    assert_eq!(refused.reason, Refusal::Disk);
    assert!(refused.retry_after.is_some_and(|seconds| (1..=90).contains(&seconds)));
    let early = rig.gate.check_open().err().unwrap();
    assert_eq!(early.reason, Refusal::Disk, "the next one is refused before it sends its body");
    assert!(early.retry_after.is_some());

    for _ in 0..accepted {
        let Ok(Some(Event::Record(record))) = follower.next().await else { panic!("a record is missing") };
        follower.commit(record.sequence);
    }
    while rig.gate.check_open().is_err() {
        tokio::task::yield_now().await;
    }
    rig.append(10_000).await.unwrap();
    assert_eq!(rig.assert_books(), (accepted + 1, vec![(Refusal::Disk, 1)]));
}

#[tokio::test]
async fn a_batch_larger_than_the_quota_is_refused_without_a_retry_delay() {
    let rig = rig(256 << 10);
    let refused = rig.append(300 << 10).await.err().unwrap();
    assert_eq!((refused.reason, refused.retry_after), (Refusal::TooLarge, None));
    assert_eq!(rig.assert_books(), (0, vec![(Refusal::TooLarge, 1)]));
}

#[test]
fn the_delay_for_memory_follows_how_fast_it_becomes_free() {
    let rig = rig(1 << 30);
    let _held = rig.arena.try_charge(Share::Ingest, 1 << 20).unwrap();
    for _ in 0..40 {
        rig.gate.0.memory.record(100 << 10);
        rig.gate.tick();
    }
    // A mebibyte at 100 KiB a second.
    assert!((10..=17).contains(&rig.gate.memory_delay()));
}
