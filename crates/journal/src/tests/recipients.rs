//! Promise: a record for one sink is that sink's alone, and every other one passes it and loses nothing.

use super::*;
use crate::inspect::inspect;

/// The records that a sink sees, completed one by one; and of their items those that were for it alone.
fn take(follower: &mut Follower, count: usize) -> (Vec<Recipient>, u64) {
    let (mut seen, mut addressed) = (Vec::new(), 0);
    for _ in 0..count {
        let record = record(follower);
        seen.push(record.recipient);
        follower.commit_each([record.sequence], |completed| {
            addressed += completed.addressed;
            [0; CURSOR_METADATA_LEN]
        });
    }
    (seen, addressed)
}

#[test]
fn a_record_for_one_sink_is_for_no_other() {
    for durability in [Durability::PageCache, Durability::Memory] {
        let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
        let settings = Settings { durability, ..Settings::new(dir.path()) };
        let (journal, _) = Journal::open(settings).unwrap();
        let mut followers =
            ["loki", "lake"].map(|name| journal.follow(name, StartAt::Oldest, WhenFull::Block).unwrap());
        let mut appends = [
            Box::pin(journal.append(batch(&arena, 5, b"for all"))),
            Box::pin(journal.append(batch(&arena, 7, b"for loki").to_sink("loki").unwrap())),
            Box::pin(journal.append(batch(&arena, 11, b"for the lake").to_sink("lake").unwrap())),
        ];
        let [all, this, another] = [Recipient::All, Recipient::This, Recipient::Another];
        let [loki, lake] = &mut followers;
        assert_eq!(take(loki, 3), (vec![all, this, another], 7));
        assert_eq!(take(lake, 3), (vec![all, another, this], 11));
        for append in &mut appends {
            wait(append).unwrap();
        }
        assert_eq!(arena.usage().shares[Share::Ingest as usize].used, 0, "windows are given back");
    }
}

/// In order, any number of records are completed at once, and the items for this sink are counted to the record.
#[test]
fn items_for_one_sink_are_counted_in_order_too() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let settings = Settings { durability: Durability::PageCache, ..Settings::new(dir.path()) };
    let (journal, _) = Journal::open(settings).unwrap();
    let mut follower = journal.follow("lake", StartAt::Oldest, WhenFull::Block).unwrap();
    follower.in_order();
    for items in 1..=6 {
        let batch = batch(&arena, items, b"a body");
        let batch = if items % 3 == 0 { batch } else { batch.to_sink("lake").unwrap() };
        wait(journal.append(batch)).unwrap();
    }
    let records: Vec<Record> = (0..6).map(|_| record(&mut follower)).collect();
    let mut counted = Vec::new();
    for last in [0, 3, 5] {
        follower.commit_through(&records[last], |completed| {
            counted.push((completed.items, completed.addressed));
            [0; CURSOR_METADATA_LEN]
        });
    }
    assert_eq!(counted, [(1, 1), (2 + 3 + 4, 2 + 4), (5 + 6, 5)]);
}

#[test]
fn a_recipient_is_read_back_after_a_restart() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    {
        let (journal, _) = Journal::open(Settings::new(dir.path())).unwrap();
        let mut batch = batch(&arena, 3, b"with both");
        batch.checkpoints.set(b"file", b"offset").unwrap();
        wait(journal.append(batch.to_sink("loki").unwrap())).unwrap();
    }
    let (journal, _) = Journal::open(Settings::new(dir.path())).unwrap();
    assert_eq!(journal.checkpoint(b"file").as_deref(), Some(&b"offset"[..]));
    let mut loki = journal.follow("loki", StartAt::Oldest, WhenFull::Block).unwrap();
    assert_eq!(record(&mut loki).recipient, Recipient::This);
    assert_eq!(*body(&mut loki, &arena), *b"with both");
    assert!(journal.is_followed("loki") && !journal.is_followed("lake"));

    let inspection = inspect(dir.path()).unwrap();
    let mut bodies = inspection.bodies(&inspection.segments[0]).unwrap();
    assert_eq!(bodies.next_head().unwrap().0, 0);
    assert_eq!(bodies.recipient(), Some("loki"));
}

#[test]
fn a_recipient_that_no_sink_can_have_is_refused() {
    let arena = arena();
    for name in ["", "../loki", &"a".repeat(65)] {
        assert_eq!(batch(&arena, 1, b"x").to_sink(name).err(), Some(AppendError::Unfit));
    }
}
