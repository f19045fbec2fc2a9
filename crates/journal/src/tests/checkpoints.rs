//! The promise: a checkpoint holds exactly when the batch that carries it is durable, outlives the batch, and costs a
//! journal without any nothing. Crashes are in `crashes.rs`.

use super::crashes::Driven;
use super::{PATIENCE, arena, batch, record, wait};
use crate::inspect::SavedCheckpoints;
use crate::writer::Writer;
use crate::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tidegate_arena::Arena;
use tidegate_files::folder::simulated::SimulatedFiles;

fn with(arena: &Arena, key: &[u8], value: &[u8]) -> Batch {
    let mut batch = batch(arena, 1, b"body");
    batch.checkpoints.set(key, value).unwrap();
    batch
}

fn value(journal: &Journal, key: &[u8]) -> Option<Vec<u8>> {
    journal.checkpoint(key).map(Into::into)
}

fn names(dir: &Path) -> Vec<String> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn checkpoints_survive_a_restart_and_their_records() {
    for durability in [Durability::Fsync, Durability::PageCache] {
        let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
        let settings = Settings { durability, segment_bytes: 4096, ..Settings::new(dir.path()) };
        let (journal, _) = Journal::open(settings.clone()).unwrap();
        let mut sink = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
        wait(journal.append(with(&arena, b"gone", b"1"))).unwrap();
        for number in 0..200u8 {
            wait(journal.append(with(&arena, b"file", &[number]))).unwrap();
            assert_eq!(value(&journal, b"file"), Some(vec![number]), "it holds when the batch is answered");
            let next = record(&mut sink).sequence;
            sink.commit(next);
        }
        let mut last = batch(&arena, 1, b"body");
        last.checkpoints.remove(b"gone").unwrap();
        last.checkpoints.set(b"other", &[9; 255]).unwrap();
        wait(journal.append(last)).unwrap();
        assert!(journal.checkpoint_bytes() > 260);
        assert!(journal.close(PATIENCE));
        drop((sink, journal));
        let saved = inspect::verify(dir.path()).unwrap();
        assert_eq!(saved.checkpoints, Some(SavedCheckpoints::Table { checkpoints: 2, sequence: 202 }));
        assert!(saved.is_sound());
        let (journal, recovery) = Journal::open(settings).unwrap();
        assert_eq!((recovery.checkpoints, recovery.lost_checkpoints), (2, false));
        assert_eq!(value(&journal, b"file"), Some(vec![199]));
        assert_eq!(value(&journal, b"other"), Some(vec![9; 255]));
        assert_eq!(value(&journal, b"gone"), None);
        assert!(journal.stats().segments < 3, "segments are deleted as ever");
    }
}

#[test]
fn a_journal_without_checkpoints_has_no_files_for_them() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let (journal, _) = Journal::open(Settings::new(dir.path())).unwrap();
    wait(journal.append(batch(&arena, 1, b"body"))).unwrap();
    journal.set_checkpoints(&Checkpoints::default());
    assert!(journal.close(PATIENCE));
    assert!(!names(dir.path()).iter().any(|name| name.starts_with("checkpoints")));
    assert_eq!((inspect::inspect(dir.path()).unwrap().checkpoints, journal.checkpoint_bytes()), (None, 0));
}

/// In memory nothing is acknowledged before the sinks have it, so neither are its checkpoints.
#[test]
fn in_memory_a_checkpoint_holds_when_every_sink_has_its_batch() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let settings = Settings { durability: Durability::Memory, ..Settings::new(dir.path()) };
    let (journal, _) = Journal::open(settings).unwrap();
    let mut sink = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut append = Box::pin(journal.append(with(&arena, b"file", b"1")));
    _ = append.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let next = record(&mut sink).sequence;
    assert_eq!(value(&journal, b"file"), None);
    sink.commit(next);
    wait(append).unwrap();
    assert_eq!(value(&journal, b"file"), Some(b"1".to_vec()));
    let mut without_record = Checkpoints::default();
    without_record.set(b"file", b"2").unwrap();
    journal.set_checkpoints(&without_record);
    assert_eq!(value(&journal, b"file"), Some(b"2".to_vec()));
    assert!(journal.close(PATIENCE));
    assert_eq!(names(dir.path()), Vec::<String>::new(), "no files are made");
}

#[test]
fn a_full_table_keeps_the_batches_and_forgets_new_keys() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let settings = Settings { checkpoints: 2, ..Settings::new(dir.path()) };
    let (journal, _) = Journal::open(settings).unwrap();
    for key in [b"a", b"b", b"c"] {
        wait(journal.append(with(&arena, key, b"1"))).unwrap();
    }
    wait(journal.append(with(&arena, b"a", b"2"))).unwrap();
    assert_eq!(value(&journal, b"a"), Some(b"2".to_vec()));
    assert_eq!(value(&journal, b"c"), None);
    let stats = journal.stats();
    assert_eq!((stats.checkpoints, stats.forgotten_checkpoints, stats.head), (2, 1, 4));
}

/// Checkpoints of a source that is gone leave the others as they are, and are gone after a restart.
#[test]
fn the_checkpoints_of_a_source_are_forgotten_together() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let settings = Settings { checkpoints: 3, ..Settings::new(dir.path()) };
    let (journal, _) = Journal::open(settings.clone()).unwrap();
    for key in [b"f1", b"f2", b"j1"] {
        wait(journal.append(with(&arena, key, b"1"))).unwrap();
    }
    assert_eq!((journal.count_checkpoints(b"f"), journal.count_checkpoints(b"x")), (2, 0));
    wait(journal.append(with(&arena, b"j2", b"1"))).unwrap();
    assert_eq!(value(&journal, b"j2"), None, "the table is full");
    journal.allow_checkpoints(2);
    wait(journal.append(with(&arena, b"j2", b"1"))).unwrap();
    assert_eq!(value(&journal, b"j2"), Some(b"1".to_vec()));
    assert_eq!(journal.forget_checkpoints(b"f"), 2);
    assert!(journal.close(PATIENCE));
    drop(journal);
    let (journal, recovery) = Journal::open(settings).unwrap();
    assert_eq!((recovery.checkpoints, journal.count_checkpoints(b"f")), (2, 0));
    assert_eq!(value(&journal, b"j1"), Some(b"1".to_vec()));
}

/// A source that is gone has filled the table: what another saves beside it is there after a crash, and after a life with a
/// lower limit.
#[test]
fn a_crash_takes_no_checkpoint_beyond_the_limit() {
    let driver = Driver::new();
    let open = |checkpoints| {
        let settings = Settings { checkpoints, ..driver.settings() };
        Journal::assemble(settings, Arc::new(driver.files.clone()), driver.clock.clone()).unwrap()
    };
    let append = |journal: &Journal, writer: &mut Writer, key: &[u8]| {
        let mut appending = journal.append(with(&driver.arena, key, b"1"));
        writer.step(Some(Duration::ZERO));
        let answer = Pin::new(&mut appending).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(answer, Poll::Ready(Ok(_))));
    };
    let (journal, mut writer, _) = open(3);
    [b"f1", b"f2", b"f3"].into_iter().for_each(|key| append(&journal, &mut writer, key));
    journal.close(Duration::ZERO);
    writer.finish();
    drop(journal);
    let (journal, mut writer, _) = open(1);
    journal.allow_checkpoints(3);
    append(&journal, &mut writer, b"j1");
    drop((journal, writer));
    driver.files.restart_process();
    let (journal, mut writer, recovery) = open(1);
    assert_eq!((value(&journal, b"j1"), recovery.checkpoints), (Some(b"1".to_vec()), 4));
    journal.close(Duration::ZERO);
    writer.finish();
    drop(journal);
    let (journal, _, recovery) = open(1);
    assert_eq!((value(&journal, b"j1"), recovery.checkpoints), (Some(b"1".to_vec()), 4));
}

/// A journal in simulated files whose writer is driven by the test.
struct Driver {
    files: SimulatedFiles,
    clock: Arc<Driven>,
    arena: Arena,
}

impl Driver {
    fn new() -> Driver {
        Driver { files: SimulatedFiles::new(7), clock: Arc::default(), arena: arena() }
    }

    fn settings(&self) -> Settings {
        Settings { segment_bytes: 4096, checkpoints: 4, queue: 8, ..Settings::new("/simulated") }
    }

    fn open(&self) -> (Journal, Writer, Recovery) {
        let opened = Journal::assemble(self.settings(), Arc::new(self.files.clone()), self.clock.clone());
        opened.expect("it always opens")
    }

    fn append(
        &self,
        (journal, writer): (&Journal, &mut Writer),
        number: u64,
    ) -> Result<Receipt, AppendError> {
        let mut appending = journal.append(with(&self.arena, b"file", &number.to_le_bytes()));
        writer.step(Some(Duration::ZERO));
        match Pin::new(&mut appending).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("everyone is answered"),
        }
    }

    /// A few segments with checkpoints, and files as they are on the disk then.
    fn filled(&self) -> BTreeMap<String, Vec<u8>> {
        let (journal, mut writer, _) = self.open();
        for number in 0..100 {
            self.append((&journal, &mut writer), number).unwrap();
        }
        self.files.contents()
    }
}

fn reopened(image: &BTreeMap<String, Vec<u8>>) -> (Option<u64>, Recovery) {
    let driver = Driver { files: SimulatedFiles::of(image), ..Driver::new() };
    let (journal, _, recovery) = driver.open();
    let value = journal.checkpoint(b"file").map(|value| u64::from_le_bytes((*value).try_into().unwrap()));
    (value, recovery)
}

#[test]
fn a_refused_batch_leaves_the_checkpoint_as_it_was() {
    let driver = Driver::new();
    let (journal, mut writer, _) = driver.open();
    driver.append((&journal, &mut writer), 1).unwrap();
    driver.files.set_faults(1000);
    assert!(driver.append((&journal, &mut writer), 2).is_err());
    assert_eq!(value(&journal, b"file"), Some(1u64.to_le_bytes().to_vec()));
    driver.files.set_faults(0);
    driver.clock.pass(Duration::from_secs(2));
    driver.append((&journal, &mut writer), 3).unwrap();
    assert_eq!(value(&journal, b"file"), Some(3u64.to_le_bytes().to_vec()));
}

#[test]
fn checkpoints_without_a_record_are_durable_within_a_second() {
    let driver = Driver::new();
    let (journal, mut writer, _) = driver.open();
    let mut checkpoints = Checkpoints::default();
    checkpoints.set(b"file", &5u64.to_le_bytes()).unwrap();
    journal.set_checkpoints(&checkpoints);
    assert!(journal.checkpoint(b"file").is_some());
    driver.clock.pass(Duration::from_millis(1100));
    writer.step(Some(Duration::ZERO));
    driver.files.stop();
    driver.files.restart_machine();
    assert_eq!(reopened(&driver.files.contents()).0, Some(5));
}

/// A full quota has every commit look for segments to delete.
#[test]
fn a_failed_save_is_not_repeated_at_every_commit() {
    let driver = Driver::new();
    let (journal, mut writer, _) = driver.open();
    driver.append((&journal, &mut writer), 1).unwrap();
    let mut checkpoints = Checkpoints::default();
    checkpoints.set(b"file", &5u64.to_le_bytes()).unwrap();
    journal.set_checkpoints(&checkpoints);
    let failed = journal.stats().write_errors;
    driver.files.set_faults(1000);
    for seconds in 1..=3 {
        driver.clock.pass(Duration::from_secs(1));
        for _ in 0..20 {
            writer.shared.starved.store(true, std::sync::atomic::Ordering::Relaxed);
            writer.maintain();
        }
        assert_eq!(journal.stats().write_errors - failed, seconds, "one try a second");
    }
    driver.files.set_faults(0);
    driver.clock.pass(Duration::from_secs(1));
    writer.maintain();
    assert_eq!(reopened(&driver.files.contents()).0, Some(5));
}

/// A life in which the table cannot be saved while segments come, then one that is killed in call number `calls` of the first
/// save. True when that came to its end.
fn save_until(driver: &Driver, calls: u64) -> bool {
    let (journal, mut writer, _) = driver.open();
    let mut sink = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    for number in 0..50 {
        driver.append((&journal, &mut writer), number).unwrap();
    }
    for name in ["checkpoints.0", "checkpoints.1"] {
        driver.files.fail_writes_of(name);
    }
    for number in 50..100 {
        driver.append((&journal, &mut writer), number).unwrap();
        if number == 60 {
            let mut appending = journal.append(with(&driver.arena, b"early", b"1"));
            writer.step(Some(Duration::ZERO));
            let answer = Pin::new(&mut appending).poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(answer, Poll::Ready(Ok(_))));
        }
    }
    while let Some(Event::Record(found)) = sink.next_blocking(Duration::ZERO).unwrap() {
        sink.commit(found.sequence);
    }
    drop((sink, journal, writer));
    driver.files.restart_process();
    let (_journal, mut writer, _) = driver.open();
    driver.files.stop_in(calls);
    writer.save_checkpoints(u64::MAX);
    let is_done = !driver.files.is_stopped();
    driver.files.stop();
    is_done
}

/// A table that only the page cache has must not be the reason for deleting the records that it covers.
#[test]
fn no_power_cut_while_opening_takes_a_table_with_its_records() {
    let mut save = 0;
    loop {
        let mut is_saved = false;
        let mut open = 0;
        loop {
            let driver = Driver::new();
            is_saved |= save_until(&driver, save);
            driver.files.restart_process();
            driver.files.stop_in(open);
            let opened =
                Journal::assemble(driver.settings(), Arc::new(driver.files.clone()), driver.clock.clone());
            let was_opened = opened.is_ok() && !driver.files.is_stopped();
            drop(opened);
            driver.files.stop();
            driver.files.restart_machine();
            let (journal, _, recovery) = driver.open();
            let found = (value(&journal, b"early"), recovery.lost_checkpoints);
            let expected = (Some(b"1".to_vec()), false);
            assert_eq!(found, expected, "stopped in call {save} of the save, {open} of the opening");
            open += 1;
            if was_opened {
                break;
            }
        }
        save += 1;
        if is_saved {
            break;
        }
    }
}

/// A sync that fails at opening leaves records of which nobody knows whether they are on the disk.
#[test]
fn checkpoints_that_cannot_be_made_durable_at_opening_do_not_hold() {
    let driver = Driver::new();
    let (journal, mut writer, _) = driver.open();
    for number in 0..3 {
        driver.append((&journal, &mut writer), number).unwrap();
    }
    let image = driver.files.contents();
    let calls = |files: &SimulatedFiles| {
        let driver = Driver { files: files.clone(), ..Driver::new() };
        let opened = Journal::assemble(driver.settings(), Arc::new(files.clone()), driver.clock.clone());
        opened.ok().map(|(journal, _, recovery)| {
            (value(&journal, b"file"), journal.stats().head, recovery.doubtful_checkpoints)
        })
    };
    assert_eq!(calls(&SimulatedFiles::of(&image)), Some((Some(2u64.to_le_bytes().to_vec()), 3, false)));
    let failing = SimulatedFiles::of(&image);
    failing.fail_writes_of(&segment_of(&image));
    let (found, head, is_doubtful) = calls(&failing).expect("it always opens");
    assert_eq!((found, head), (None, 3), "the records are read, and their source begins before them");
    assert!(is_doubtful);

    let driver = Driver { files: SimulatedFiles::of(&image), ..Driver::new() };
    driver.files.fail_writes_of(&segment_of(&image));
    let (_journal, mut writer, _) = driver.open();
    driver.clock.pass(Duration::from_millis(1100));
    writer.step(Some(Duration::ZERO));
    driver.files.stop();
    driver.files.restart_machine();
    let (value, recovery) = reopened(&driver.files.contents());
    assert_eq!((value, recovery.doubtful_checkpoints), (None, false), "they are not believed again");
}

/// The name of the only segment.
fn segment_of(image: &BTreeMap<String, Vec<u8>>) -> String {
    let names: Vec<&String> = image.keys().filter(|name| !name.starts_with("checkpoints")).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    names[0].clone()
}

/// The table is written to the file that does not hold the newest durable one.
#[test]
fn a_damaged_table_is_replaced_by_the_earlier_one_and_the_records_behind_it() {
    let image = Driver::new().filled();
    assert_eq!(reopened(&image).0, Some(99));
    for name in ["checkpoints.0", "checkpoints.1"] {
        let mut damaged = image.clone();
        damaged.get_mut(name).unwrap()[70] ^= 1;
        let (value, recovery) = reopened(&damaged);
        assert_eq!((value, recovery.lost_checkpoints), (Some(99), false), "{name}");
        damaged.remove(name);
        assert_eq!(reopened(&damaged).0, Some(99), "without {name}");
    }
}

#[test]
fn without_a_table_the_records_say_the_checkpoints() {
    let image = Driver::new().filled();
    let mut damaged = image.clone();
    let mut without = image;
    for name in ["checkpoints.0", "checkpoints.1"] {
        damaged.get_mut(name).unwrap().fill(0);
        without.remove(name);
    }
    for image in [damaged, without] {
        let (value, recovery) = reopened(&image);
        assert_eq!((value, recovery.checkpoints, recovery.lost_checkpoints), (Some(99), 1, true));
    }
}

/// The sequences that a saved table covers are not given to others: their notes would be taken for known.
#[test]
fn no_sequence_before_the_table_is_given_again() {
    let driver = Driver::new();
    let (journal, mut writer, _) = driver.open();
    for number in 0..3 {
        driver.append((&journal, &mut writer), number).unwrap();
    }
    journal.close(Duration::ZERO);
    writer.finish();
    let mut image = driver.files.contents();
    image.retain(|name, _| name.starts_with("checkpoints"));
    let driver = Driver { files: SimulatedFiles::of(&image), ..Driver::new() };
    let (journal, mut writer, recovery) = driver.open();
    assert_eq!((recovery.head, recovery.items), (3, 3));
    assert_eq!(driver.append((&journal, &mut writer), 7).unwrap().sequence, 3);
    drop((journal, writer));
    assert_eq!(reopened(&driver.files.contents()).0, Some(7));
}
