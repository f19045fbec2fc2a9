//! The promise: a journal that cannot write says so, with a reason and a delay, and goes on by itself when it
//! can; nobody is dropped who did not allow it, and what is dropped is counted.

use super::crashes::Driven;
use super::{arena, batch, meta};
use crate::writer::Writer;
use crate::*;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_files::folder::simulated::SimulatedFiles;

struct Rig {
    files: SimulatedFiles,
    clock: Arc<Driven>,
    arena: Arena,
    journal: Journal,
    writer: Writer,
}

impl Rig {
    /// Segments of 4 KiB, each with room for three of the batches that [`append`](Self::append) appends.
    fn new(quota: u64, durability: Durability) -> Rig {
        Rig::with(4096, quota, durability)
    }

    fn with(segment_bytes: u64, quota: u64, durability: Durability) -> Rig {
        Rig::of(Settings { segment_bytes, quota, durability, ..Settings::new("/simulated") })
    }

    fn of(settings: Settings) -> Rig {
        let (files, clock) = (SimulatedFiles::new(1), Arc::<Driven>::default());
        let settings = Settings { queue: 8, ..settings };
        let assembled = Journal::assemble(settings, Arc::new(files.clone()), clock.clone());
        let (journal, writer, _) = assembled.unwrap();
        Rig { files, clock, arena: arena(), journal, writer }
    }

    fn append(&mut self) -> Result<Receipt, AppendError> {
        self.append_of(1200)
    }

    fn append_of(&mut self, bytes: usize) -> Result<Receipt, AppendError> {
        let mut appending = pin!(self.journal.append(batch(&self.arena, 10, &vec![1; bytes])));
        self.writer.step(Some(Duration::ZERO));
        match appending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("everyone is answered"),
        }
    }

    fn later(&mut self, time: Duration) {
        self.clock.pass(time);
        self.writer.step(Some(Duration::ZERO));
    }
}

fn next(follower: &mut Follower) -> Option<Event> {
    match follower.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(event) => event.unwrap(),
        Poll::Pending => None,
    }
}

fn complete_all(follower: &mut Follower) {
    while let Some(event) = next(follower) {
        if let Event::Record(record) = event {
            assert!(follower.commit(record.sequence));
        }
    }
}

fn trouble(outcome: Result<Receipt, AppendError>) -> DiskError {
    match outcome {
        Err(AppendError::Disk { trouble, retry_after }) => {
            assert!((1..=60).contains(&retry_after.as_secs()), "{retry_after:?}");
            trouble
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_quota_blocks_until_a_sink_moves_on() {
    let mut rig = Rig::new(4 * 4096, Durability::Fsync);
    let mut sink = rig.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    let appended = (0..).take_while(|_| rig.append().is_ok()).count();
    assert_eq!(appended, 12);
    assert_eq!(trouble(rig.append()), DiskError::Quota);
    assert!(rig.journal.stats().starved);
    assert!(rig.journal.append_error().is_some());
    // Completing what is in the oldest segment is enough, and no time has to pass.
    for _ in 0..3 {
        let Some(Event::Record(record)) = next(&mut sink) else { panic!("a record") };
        sink.commit(record.sequence);
    }
    rig.writer.step(Some(Duration::ZERO));
    assert!(rig.append().is_ok());
    assert!(!rig.journal.stats().starved);
    assert!(rig.journal.stats().bytes <= 4 * 4096);
}

#[test]
fn with_no_sink_everything_is_kept_until_the_quota() {
    let mut rig = Rig::new(4 * 4096, Durability::Fsync);
    let appended = (0..).take_while(|_| rig.append().is_ok()).count();
    assert_eq!(appended, 12);
    rig.later(Duration::from_secs(5));
    assert_eq!(trouble(rig.append()), DiskError::Quota);
    let mut sink = rig.journal.follow("late", StartAt::Oldest, WhenFull::Block).unwrap();
    complete_all(&mut sink);
    assert_eq!(sink.position().items, 120);
    rig.later(Duration::from_secs(1));
    assert!(rig.append().is_ok());
}

#[test]
fn a_drop_oldest_sink_is_moved_on_and_learns_its_losses() {
    let mut rig = Rig::new(4 * 4096, Durability::Fsync);
    let mut sink = rig.journal.follow("sink", StartAt::Oldest, WhenFull::DropOldest).unwrap();
    rig.append().unwrap();
    rig.append().unwrap();
    // The first record is in flight, the second is completed before it, the others are not taken.
    let (Some(Event::Record(first)), Some(Event::Record(second))) = (next(&mut sink), next(&mut sink)) else {
        panic!("two records")
    };
    assert!(sink.commit(second.sequence));
    for _ in 0..14 {
        assert!(rig.append().is_ok(), "it never blocks");
    }
    assert_eq!(next(&mut sink), Some(Event::Dropped(Gap { records: 5, items: 50, bytes: 0 })));
    assert!(!sink.commit(first.sequence), "it was counted as dropped already");
    complete_all(&mut sink);
    let position = sink.position();
    assert_eq!((position.items, position.dropped, position.in_flight), (160, 50, 0));
}

#[test]
fn one_sink_that_blocks_is_enough() {
    let mut rig = Rig::new(4 * 4096, Durability::Fsync);
    let _loose = rig.journal.follow("loose", StartAt::Oldest, WhenFull::DropOldest).unwrap();
    let _strict = rig.journal.follow("strict", StartAt::Oldest, WhenFull::Block).unwrap();
    let appended = (0..).take_while(|_| rig.append().is_ok()).count();
    assert_eq!(appended, 12);
    assert_eq!(rig.journal.stats().sinks[0].position.dropped, 0);
}

#[test]
fn a_sink_that_is_gone_holds_its_data_until_it_is_forgotten() {
    let mut rig = Rig::new(4 * 4096, Durability::Fsync);
    drop(rig.journal.follow("gone", StartAt::Oldest, WhenFull::DropOldest).unwrap());
    let mut sink = rig.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    while rig.append().is_ok() {}
    complete_all(&mut sink);
    rig.later(Duration::from_secs(2));
    assert_eq!(trouble(rig.append()), DiskError::Quota);
    assert!(!rig.journal.forget("sink").unwrap(), "one that is followed is not forgotten");
    assert!(rig.journal.forget("gone").unwrap());
    rig.later(Duration::from_secs(2));
    assert!(rig.append().is_ok());
    assert_eq!(rig.journal.sinks(), ["sink"]);
}

#[test]
fn a_full_disk_refuses_and_goes_on_by_itself() {
    let mut rig = Rig::new(1 << 30, Durability::Fsync);
    let mut sink = rig.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    rig.files.set_room(16384 + 2 * 4096);
    let appended = (0..).take_while(|_| rig.append().is_ok()).count();
    assert_eq!(appended, 6);
    assert_eq!(trouble(rig.append()), DiskError::Full);
    rig.files.set_room(1 << 20);
    // At most one try a second, and that one finds the room.
    assert_eq!(trouble(rig.append()), DiskError::Full);
    rig.clock.pass(Duration::from_secs(1));
    assert_eq!(rig.append().unwrap().sequence, 6);
    complete_all(&mut sink);
    assert_eq!(sink.position().items, 70);
}

#[test]
fn the_queue_and_a_batch_that_can_never_fit_are_refused() {
    let rig = Rig::new(1 << 20, Durability::Fsync);
    let mut context = Context::from_waker(Waker::noop());
    let kept: Vec<_> = (0..8).map(|_| rig.journal.append(batch(&rig.arena, 1, b"x"))).collect();
    let mut busy = pin!(rig.journal.append(batch(&rig.arena, 1, b"x")));
    assert_eq!(busy.as_mut().poll(&mut context), Poll::Ready(Err(AppendError::Busy)));
    drop(kept);
    let window = rig.arena.try_window(Share::Ingest, 1).unwrap();
    let outside =
        Batch { meta: meta(1), window, from: 1, len: usize::MAX, checkpoints: Checkpoints::default() };
    let mut unfit = pin!(rig.journal.append(outside));
    assert_eq!(unfit.as_mut().poll(&mut context), Poll::Ready(Err(AppendError::Unfit)));
}

#[test]
fn records_beyond_those_in_flight_wait_for_completion() {
    let mut rig = Rig::new(1 << 30, Durability::PageCache);
    let mut sink = rig.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    for _ in 0..MAX_IN_FLIGHT + 3 {
        rig.append().unwrap();
    }
    let taken = std::iter::from_fn(|| next(&mut sink)).count();
    assert_eq!(taken, MAX_IN_FLIGHT);
    assert_eq!(sink.position().in_flight, MAX_IN_FLIGHT);
    assert!(sink.commit(1));
    assert_eq!(next(&mut sink), None, "the oldest is what holds it up");
    assert!(sink.commit(0));
    assert_eq!(std::iter::from_fn(|| next(&mut sink)).count(), 2);
}

#[test]
fn in_memory_an_append_is_acknowledged_when_every_sink_has_it() {
    let mut rig = Rig::new(1 << 30, Durability::Memory);
    let mut context = Context::from_waker(Waker::noop());
    let mut one = rig.journal.follow("one", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut two = rig.journal.follow("two", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut first = pin!(rig.journal.append(batch(&rig.arena, 10, b"first")));
    let mut second = pin!(rig.journal.append(batch(&rig.arena, 10, b"second")));
    rig.writer.step(Some(Duration::ZERO));
    for sink in [&mut one, &mut two] {
        for expected in [&b"first"[..], b"second"] {
            assert!(matches!(next(sink), Some(Event::Record(_))));
            let mut window = rig.arena.try_window(Share::Egress, 1).unwrap();
            sink.read_into(&mut window).unwrap();
            assert_eq!(*window, *expected);
        }
    }
    one.commit(1);
    one.commit(0);
    two.commit(0);
    rig.writer.step(Some(Duration::ZERO));
    let receipt = Receipt { sequence: 0, items_before: 0 };
    assert_eq!(first.as_mut().poll(&mut context), Poll::Ready(Ok(receipt)));
    assert!(second.as_mut().poll(&mut context).is_pending());
    two.commit(1);
    rig.writer.step(Some(Duration::ZERO));
    assert!(second.as_mut().poll(&mut context).is_ready());
    assert_eq!(rig.arena.usage().shares[Share::Ingest as usize].used, 0, "the windows are given back");
    assert!(rig.files.contents().is_empty(), "nothing touches the disk");
}

#[test]
fn consumed_segments_are_written_over_within_the_quota() {
    let mut rig = Rig::new(1 << 20, Durability::Fsync);
    let mut sink = rig.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    for _ in 0..30 {
        rig.append().unwrap();
    }
    complete_all(&mut sink);
    rig.later(Duration::from_secs(2));
    let spares = |rig: &Rig| rig.files.contents().keys().filter(|name| name.ends_with(".spare")).count();
    assert_eq!(spares(&rig), 2, "a few are kept, the others are deleted");
    assert!(rig.journal.stats().bytes >= 3 * 3072, "and what they take is counted");
    for _ in 0..4 {
        rig.append().unwrap();
    }
    assert!(spares(&rig) < 2, "they become segments again");
    for _ in 0..30 {
        rig.append().unwrap();
        complete_all(&mut sink);
    }
    assert_eq!(sink.position().damaged, 0);
    assert!(rig.journal.stats().bytes <= 4 * 4096, "and no more come");
}

#[test]
fn a_body_that_was_written_over_while_the_quota_took_it_is_dropped_not_damaged() {
    // Longer than what is read ahead.
    let mut rig = Rig::with(64 << 10, 256 << 10, Durability::Fsync);
    let mut sink = rig.journal.follow("sink", StartAt::Oldest, WhenFull::DropOldest).unwrap();
    rig.append_of(30_000).unwrap();
    let Some(Event::Record(first)) = next(&mut sink) else { panic!("a record") };
    for _ in 0..40 {
        rig.append_of(25_000).unwrap();
    }
    let mut window = rig.arena.try_window(Share::Egress, 1).unwrap();
    assert!(matches!(sink.read_into(&mut window), Err(ReadError::Damaged)));
    assert!(matches!(next(&mut sink), Some(Event::Dropped(_))));
    assert!(!sink.commit(first.sequence));
    assert_eq!((rig.journal.stats().damaged_records, sink.position().damaged), (0, 0));
}

/// A journal in memory that holds at most four batches of 4 KiB.
fn in_memory() -> Rig {
    let mut rig = Rig::new(1 << 30, Durability::Memory);
    let settings = Settings {
        held_bytes: 16 << 10,
        queue: 8,
        durability: Durability::Memory,
        ..Settings::new("/simulated")
    };
    let assembled = Journal::assemble(settings, Arc::new(rig.files.clone()), rig.clock.clone());
    (rig.journal, rig.writer, _) = assembled.unwrap();
    rig
}

/// Appends until that is refused, and gives what waits for its acknowledgement.
fn fill<'a>(
    rig: &Rig,
    journal: &'a Journal,
    writer: &mut Writer,
) -> Vec<std::pin::Pin<Box<AppendFuture<'a>>>> {
    let mut waiting = Vec::new();
    loop {
        let mut appending = Box::pin(journal.append(batch(&rig.arena, 10, &[1; 1200])));
        writer.step(Some(Duration::ZERO));
        match appending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => waiting.push(appending),
            Poll::Ready(refused) => {
                assert_eq!(trouble(refused), DiskError::Quota);
                return waiting;
            }
        }
    }
}

#[test]
fn in_memory_a_sink_that_stalls_is_answered_with_refusals_and_no_more_memory() {
    let mut rig = in_memory();
    let journal = rig.journal.clone();
    let mut quick = journal.follow("quick", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut stalled = journal.follow("stalled", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut writer = std::mem::replace(&mut rig.writer, in_memory().writer);
    let mut waiting = fill(&rig, &journal, &mut writer);
    assert_eq!(waiting.len(), 4);
    assert!(rig.arena.usage().shares[Share::Ingest as usize].used <= 16 << 10);
    complete_all(&mut quick);
    writer.step(Some(Duration::ZERO));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.iter_mut().all(|appending| appending.as_mut().poll(&mut context).is_pending()));
    // As soon as the slowest has one, that one is acknowledged, and there is room for another.
    let Some(Event::Record(record)) = next(&mut stalled) else { panic!("a record") };
    assert!(stalled.commit(record.sequence));
    writer.step(Some(Duration::ZERO));
    let answered = waiting.iter_mut().map(|appending| appending.as_mut().poll(&mut context).is_ready());
    assert_eq!(answered.collect::<Vec<_>>(), [true, false, false, false]);
    assert_eq!(fill(&rig, &journal, &mut writer).len(), 1);
}

#[test]
fn in_memory_a_sink_that_is_forgotten_holds_nothing_up() {
    let mut rig = in_memory();
    let journal = rig.journal.clone();
    let mut sink = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    drop(journal.follow("gone", StartAt::Oldest, WhenFull::Block).unwrap());
    let mut writer = std::mem::replace(&mut rig.writer, in_memory().writer);
    let mut waiting = fill(&rig, &journal, &mut writer);
    complete_all(&mut sink);
    assert!(journal.forget("gone").unwrap());
    writer.step(Some(Duration::ZERO));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.iter_mut().all(|appending| appending.as_mut().poll(&mut context).is_ready()));
    assert_eq!(rig.arena.usage().shares[Share::Ingest as usize].used, 0);
}

#[test]
fn in_memory_without_sinks_appends_wait_and_oversize_ones_are_refused() {
    let mut rig = in_memory();
    let journal = rig.journal.clone();
    let mut writer = std::mem::replace(&mut rig.writer, in_memory().writer);
    let mut waiting = fill(&rig, &journal, &mut writer);
    let mut huge = pin!(journal.append(batch(&rig.arena, 1, &[0; 40 << 10])));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(huge.as_mut().poll(&mut context), Poll::Ready(Err(AppendError::Unfit)));
    let mut late = journal.follow("late", StartAt::Oldest, WhenFull::Block).unwrap();
    complete_all(&mut late);
    assert_eq!(late.position().items, 40);
    writer.step(Some(Duration::ZERO));
    assert!(waiting.iter_mut().all(|appending| appending.as_mut().poll(&mut context).is_ready()));
}

/// Segments that every sink has had stay for a while, hold nothing up, and are not handed to a sink that comes later.
#[test]
fn consumed_segments_are_kept_and_give_way() {
    let quota = 6 * 4096;
    let mut rig = Rig::of(Settings {
        segment_bytes: 4096,
        quota,
        keep: Duration::from_secs(60),
        ..Settings::new("/simulated")
    });
    // Of the same moment as the batches.
    rig.clock.pass(Duration::from_nanos(meta(1).received_at_ns));
    let mut sink = rig.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    (0..7).for_each(|_| assert!(rig.append().is_ok()));
    complete_all(&mut sink);
    rig.later(Duration::from_secs(30));
    let stats = rig.journal.stats();
    // A segment that is ended takes what was written to it.
    assert_eq!((stats.segments, stats.kept, stats.bytes), (3, 2 * 3816, 4096));
    let mut late = rig.journal.follow("late", StartAt::Oldest, WhenFull::Block).unwrap();
    assert!(matches!(next(&mut late), Some(Event::Record(Record { sequence: 6, .. }))));
    late.commit(6);
    for _ in 0..40 {
        rig.append().unwrap();
        complete_all(&mut sink);
        complete_all(&mut late);
        let stats = rig.journal.stats();
        assert!(stats.bytes + stats.kept <= quota);
    }
    assert!(rig.journal.stats().kept >= 3 * 3816);
    rig.later(Duration::from_secs(31));
    let stats = rig.journal.stats();
    assert_eq!((stats.segments, stats.kept), (1, 0), "their time is over");
}

/// A journal that was full of what a sink lacked goes on as soon as the sink has had it, kept or not.
#[test]
fn a_full_journal_goes_on_over_what_would_be_kept() {
    let keep = Duration::from_secs(3600);
    let mut rig =
        Rig::of(Settings { segment_bytes: 4096, quota: 4 * 4096, keep, ..Settings::new("/simulated") });
    rig.clock.pass(Duration::from_nanos(meta(1).received_at_ns));
    let mut sink = rig.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    while rig.append().is_ok() {}
    complete_all(&mut sink);
    rig.later(Duration::from_secs(1));
    assert!(rig.append().is_ok());
}
