//! The promise: whatever stops the machine and whenever, every acknowledged record is there afterwards, in
//! its place, bit for bit; nothing is there that nobody appended; the numbers add up; and it opens.

mod sources;

use super::{arena, meta};
use crate::sync::lock;
use crate::writer::{BeginOutcome, WriteGroup, Writer};
use crate::*;
use proptest::prelude::*;
use sources::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_files::folder::simulated::{Random, SimulatedFiles};

#[derive(Default)]
pub(super) struct Driven(AtomicU64);

impl Driven {
    pub(super) fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Clock for Driven {
    fn monotonic_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_ns(&self) -> u64 {
        // Not before the records of the tests are received.
        let received_at_ns = meta(1).received_at_ns;
        let now_ns = self.monotonic_ns();
        if now_ns < received_at_ns { received_at_ns + now_ns } else { now_ns }
    }
}

/// The body number `id`: anyone can tell whether it is as it was appended.
pub(super) fn body_of(id: u64) -> Vec<u8> {
    let mut dice = Random::new(id);
    let len = match dice.below(4) {
        0 => dice.below(16),
        1 | 2 => dice.below(300),
        _ => dice.below(5000),
    };
    let mut body = id.to_le_bytes().to_vec();
    body.extend((0..len).map(|_| dice.roll() as u8));
    body
}

fn items_of(id: u64) -> u32 {
    (id % 7) as u32
}

pub(super) fn id_of(body: &[u8]) -> u64 {
    let id = u64::from_le_bytes(body[..8].try_into().unwrap());
    assert_eq!(body, body_of(id), "a body is not as it was appended");
    id
}

/// The invariants, kept beside the journal.
struct Model {
    files: SimulatedFiles,
    clock: Arc<Driven>,
    arena: Arena,
    dice: Random,
    durability: Durability,
    /// Somebody who completes nothing, so that nothing is deleted.
    keeper: bool,
    /// A restart keeps records beyond the acknowledged ones, unless a sync had failed before: then the kernel may
    /// hold pages that it considers written although they are not.
    found_stays: bool,
    appended: u64,
    /// Acknowledged, or found after a restart: sequence and body.
    there: BTreeMap<u64, u64>,
    completed: BTreeSet<u64>,
    /// The sink completes records in order only.
    in_order: bool,
    /// Sources that keep checkpoints, if there are any.
    sources: Option<Sources>,
}

impl Model {
    fn new(seed: u64, durability: Durability, keeper: bool, found_stays: bool) -> Model {
        Model {
            files: SimulatedFiles::new(seed),
            clock: Arc::default(),
            arena: arena(),
            dice: Random::new(seed.rotate_left(32)),
            durability,
            keeper,
            found_stays,
            appended: 0,
            there: BTreeMap::new(),
            completed: BTreeSet::new(),
            in_order: false,
            sources: None,
        }
    }

    fn open(&mut self) -> Option<(Journal, Writer, Recovery)> {
        let settings = Settings {
            segment_bytes: 4096 << self.dice.below(3),
            quota: 1 << 30,
            queue: 32,
            checkpoints: 64,
            durability: self.durability,
            ..Settings::new("/simulated")
        };
        let opened = Journal::assemble(settings, Arc::new(self.files.clone()), self.clock.clone());
        opened.ok()
    }

    /// Appends a few batches: queues them, and gives their tickets.
    fn submit<'a>(&mut self, journal: &'a Journal) -> Vec<(u64, AppendFuture<'a>)> {
        let ids: Vec<u64> = (0..1 + self.dice.below(6)).map(|more| self.appended + more).collect();
        self.appended += ids.len() as u64;
        let mut pending = Vec::new();
        for id in ids {
            let body = body_of(id);
            let mut window = self.arena.try_window(Share::Ingest, body.len()).unwrap();
            window.append(&body).unwrap();
            let checkpoints = self.sources.as_mut().map(|sources| sources.fill(id)).unwrap_or_default();
            let meta = meta(items_of(id));
            let batch = Batch { meta, window, from: 0, len: body.len(), checkpoints };
            pending.push((id, journal.append(batch)));
        }
        pending
    }

    /// Appends some batches and notes which are acknowledged: a group at a time, or two on their way at once.
    fn append(&mut self, journal: &Journal, writer: &mut Writer) {
        let mut pending = self.submit(journal);
        if self.durability == Durability::Fsync && self.dice.chance(700) {
            pending.extend(self.overlap(journal, writer));
        } else {
            writer.step(Some(Duration::ZERO));
        }
        let mut context = Context::from_waker(Waker::noop());
        for (id, mut appending) in pending {
            let answer = std::pin::Pin::new(&mut appending).poll(&mut context);
            if let (Some(sources), Poll::Ready(answer)) = (&mut self.sources, &answer) {
                sources.answered(journal, id, answer.is_ok());
            }
            match answer {
                Poll::Ready(Ok(receipt)) => {
                    let other = self.there.insert(receipt.sequence, id);
                    assert_eq!(other, None, "a number is given to one record only");
                }
                Poll::Ready(Err(refused)) => assert!(matches!(refused, AppendError::Disk { .. })),
                Poll::Pending => panic!("everyone is answered"),
            }
        }
    }

    /// Two threads each sync their own group, in any order, and settle it in turn.
    fn overlap<'a>(&mut self, journal: &'a Journal, writer: &mut Writer) -> Vec<(u64, AppendFuture<'a>)> {
        let [mut one, mut other] = [0, 1].map(|hand| WriteGroup::new(writer.shared.clone(), hand));
        let mut pending = Vec::new();
        for _ in 0..3 {
            writer.take_queued();
            while writer.begin(&mut one) == BeginOutcome::Written && writer.has_more() {
                one.sync();
                one.settle();
            }
            pending.extend(self.submit(journal));
            if let Some(sources) = &mut self.sources {
                // The table is saved while a group is on its way: without that group's checkpoints.
                sources.set(journal);
                self.clock.pass(Duration::from_millis(1500));
                writer.maintain();
            }
            writer.take_queued();
            loop {
                match writer.begin(&mut other) {
                    BeginOutcome::Idle => break,
                    BeginOutcome::Blocked => {
                        one.sync();
                        one.settle();
                    }
                    BeginOutcome::Written => {
                        if self.dice.chance(500) {
                            other.sync();
                            one.sync();
                        } else {
                            one.sync();
                            other.sync();
                        }
                        one.settle();
                        other.settle();
                    }
                }
            }
            one.sync();
            one.settle();
        }
        pending
    }

    /// Reads on as the sink `fast` and completes some of it, in any order.
    fn deliver(&mut self, follower: &mut Follower) {
        let mut context = Context::from_waker(Waker::noop());
        let mut taken = Vec::new();
        for _ in 0..self.dice.below(12) {
            match follower.poll_next(&mut context) {
                Poll::Ready(Ok(Some(Event::Record(record)))) => taken.push(record),
                Poll::Ready(Ok(Some(_))) => {}
                _ => break,
            }
        }
        if self.in_order {
            let done = self.dice.below(taken.len() as u64 + 1) as usize;
            if let Some(last) = done.checked_sub(1).map(|last| taken[last]) {
                let book = |completed: CompletedRecords| [completed.position as u8; CURSOR_METADATA_LEN];
                follower.commit_through(&last, book);
                self.completed.extend(taken[..done].iter().map(|record| record.sequence));
            }
            // A record taken and not completed would be in flight forever.
            follower.rewind();
            return;
        }
        while !taken.is_empty() {
            let done = taken.swap_remove(self.dice.below(taken.len() as u64) as usize).sequence;
            if self.dice.chance(850) {
                assert!(follower.commit(done));
                self.completed.insert(done);
            }
        }
    }

    /// One life of the process, until the machine stops or everything is done.
    fn live(&mut self) {
        let Some((journal, mut writer, recovery)) = self.open() else { return };
        if let (Some(sources), true) = (&mut self.sources, recovery.doubtful_checkpoints) {
            sources.go_back(&journal);
        }
        let keeper = self.keeper.then(|| journal.follow("keeper", StartAt::Oldest, WhenFull::Block));
        let Ok(mut fast) = journal.follow("fast", StartAt::Oldest, WhenFull::Block) else { return };
        if matches!(keeper, Some(Err(_))) {
            return;
        }
        if self.in_order {
            fast.in_order();
        }
        for _ in 0..self.dice.below(12) {
            match self.dice.below(8) {
                0..4 => self.append(&journal, &mut writer),
                4..6 => self.deliver(&mut fast),
                6 => {
                    self.clock.pass(Duration::from_millis(1500));
                    writer.step(Some(Duration::ZERO));
                }
                _ => fast.rewind(),
            }
            if let Some(sources) = &mut self.sources {
                sources.set(&journal);
            }
            self.note_saved(&writer);
        }
        if self.dice.chance(300) {
            journal.close(Duration::ZERO);
            writer.finish();
            self.note_saved(&writer);
        }
    }

    /// Notes that checkpoints set without a record are durable, when they are.
    fn note_saved(&mut self, writer: &Writer) {
        let saved = !lock(&writer.shared.index).checkpoints.unsaved;
        if let (Some(sources), true, false) = (&mut self.sources, saved, self.files.is_stopped()) {
            sources.all_saved();
        }
    }

    /// Everything that must be there is there, and what else is there was appended.
    fn check(&mut self) {
        let (journal, _writer, recovery) = self.open().expect("it always opens");
        let mut records = self.there.clone();
        if self.keeper {
            let mut keeper = journal.follow("keeper", StartAt::Oldest, WhenFull::Block).unwrap();
            let (found, missing_items) = self.read(&mut keeper);
            for (sequence, id) in &self.there {
                assert_eq!(found.get(sequence), Some(id), "record {sequence} was acknowledged");
            }
            let items: u64 = found.values().map(|id| u64::from(items_of(*id))).sum();
            assert_eq!(items + missing_items, journal.stats().items, "the books balance");
            records.extend(&found);
            if self.found_stays {
                self.there = found;
            }
        }
        let mut fast = journal.follow("fast", StartAt::Oldest, WhenFull::Block).unwrap();
        let (found, _) = self.read(&mut fast);
        for (sequence, id) in &self.there {
            let there = found.get(sequence) == Some(id) || self.completed.contains(sequence);
            assert!(there, "record {sequence} is neither completed nor delivered again");
        }
        records.extend(&found);
        if self.found_stays {
            self.there.extend(found);
        }
        if let Some(sources) = &mut self.sources {
            assert!(!recovery.lost_checkpoints);
            sources.check(&journal, &records);
        }
    }

    /// Reads everything that a sink has not completed: bodies by sequence, and the items of gaps.
    fn read(&mut self, follower: &mut Follower) -> (BTreeMap<u64, u64>, u64) {
        let mut context = Context::from_waker(Waker::noop());
        let (mut found, mut missing) = (BTreeMap::new(), 0);
        loop {
            match follower.poll_next(&mut context) {
                Poll::Ready(Ok(Some(Event::Record(record)))) => {
                    let mut window = self.arena.try_window(Share::Egress, 1).unwrap();
                    if follower.read_into(&mut window).is_err() {
                        continue;
                    }
                    let id = id_of(&window);
                    assert!(id < self.appended, "a record that nobody appended");
                    assert_eq!(record.meta, meta(items_of(id)));
                    assert!(found.last_key_value().is_none_or(|(last, _)| *last < record.sequence));
                    found.insert(record.sequence, id);
                }
                Poll::Ready(Ok(Some(Event::Damaged(gap) | Event::Dropped(gap)))) => missing += gap.items,
                Poll::Ready(other) => panic!("{other:?}"),
                Poll::Pending => return (found, missing),
            }
        }
    }
}

fn lives(seed: u64, durability: Durability, kind: [bool; 2], faults: u64) {
    live_with(seed, durability, kind, faults, None);
}

fn lives_with_sources(seed: u64, durability: Durability, kind: [bool; 2], faults: u64) {
    live_with(seed, durability, kind, faults, Some(Sources::new(seed)));
}

fn live_with(
    seed: u64,
    durability: Durability,
    [keeper, in_order]: [bool; 2],
    faults: u64,
    sources: Option<Sources>,
) {
    let mut model = Model::new(seed, durability, keeper, faults == 0);
    (model.in_order, model.sources) = (in_order, sources);
    for _ in 0..1 + model.dice.below(5) {
        model.files.set_faults(faults);
        if model.dice.chance(700) {
            let calls = model.dice.below(60);
            model.files.stop_in(calls);
        }
        model.live();
        model.files.stop();
        model.files.set_faults(0);
        if durability == Durability::Fsync && model.dice.chance(500) {
            model.files.restart_machine();
        } else {
            model.files.restart_process();
        }
        // Sometimes it does not even get through opening.
        if model.dice.chance(200) {
            let calls = model.dice.below(20);
            model.files.stop_in(calls);
            drop(model.open());
            model.files.stop();
            if durability == Durability::Fsync && model.dice.chance(500) {
                model.files.restart_machine();
            } else {
                model.files.restart_process();
            }
        }
        model.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_crash_loses_nothing_acknowledged(seed in any::<u64>(), kind in any::<[bool; 2]>()) {
        lives(seed, Durability::Fsync, kind, 0);
    }

    #[test]
    fn a_failing_disk_loses_nothing_acknowledged(seed in any::<u64>(), kind in any::<[bool; 2]>()) {
        lives(seed, Durability::Fsync, kind, 60);
    }

    #[test]
    fn the_page_cache_survives_a_killed_process(seed in any::<u64>(), kind in any::<[bool; 2]>()) {
        lives(seed, Durability::PageCache, kind, 0);
    }

    /// After any crash, a checkpoint is what the last durable record that names it says, or a later change without a
    /// record: never of a record that is gone, and older than an acknowledged one only where the journal says so at opening. So a
    /// source that goes on from it has sent each part of what it reads once, or again where it was told to.
    #[test]
    fn a_crash_keeps_checkpoints_with_their_records(
        seed in any::<u64>(), kind in any::<[bool; 2]>(), page_cache in any::<bool>(),
    ) {
        let durability = if page_cache { Durability::PageCache } else { Durability::Fsync };
        lives_with_sources(seed, durability, kind, 0);
    }

    #[test]
    fn a_failing_disk_keeps_checkpoints_with_their_records(seed in any::<u64>(), kind in any::<[bool; 2]>()) {
        lives_with_sources(seed, Durability::Fsync, kind, 60);
    }
}

/// Seeds that once found something: an empty segment that came back, a cursor taken for durable that could
/// not be written, a gap over records that were completed, a lost cursor that was gone before it was made
/// anew, a sink that had opened a segment before anything in it was published, a file that was a segment and
/// to be written over at once.
#[test]
fn seeds_that_once_failed_pass() {
    lives(3349671046615075207, Durability::PageCache, [true, false], 0);
    for (seed, keeper) in [
        (12734097219383216278, false),
        (4963723418893004779, false),
        (288154445761571296, false),
        (8162575170309433656, true),
    ] {
        lives(seed, Durability::Fsync, [keeper, false], 60);
    }
    lives(6167360124974085842, Durability::Fsync, [true, true], 60);
    lives(16674201449189444702, Durability::Fsync, [true, false], 60);
    lives(8514037139824817285, Durability::Fsync, [false, false], 60);
}
