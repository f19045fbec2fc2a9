//! The promise: whatever happens to the bytes of a journal at rest, it opens, loses nothing outside the
//! damaged records, says what it skipped, and goes on. Tried at every byte of a small journal.

use super::crashes::Driven;
use super::{arena, batch};
use crate::record::{Header, key, salt_of};
use crate::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_files::folder::simulated::SimulatedFiles;

type Image = BTreeMap<String, Vec<u8>>;

/// A journal of a few segments, and where each record is: sequence, file, from, to.
struct Sample {
    image: Image,
    records: Vec<(u64, String, usize, usize)>,
    arena: Arena,
}

const ITEMS: u32 = 5;
const RECORDS: u64 = 16;
/// The checkpoint that every record sets to its number.
const KEY: &[u8] = b"f";

fn body_of(id: u64) -> Vec<u8> {
    let fill = (0..id * 397 % 1200).map(|at| (at * 7 + id) as u8);
    id.to_le_bytes().into_iter().chain(fill).collect()
}

fn id_of(body: &[u8]) -> u64 {
    let id = u64::from_le_bytes(body[..8].try_into().unwrap());
    assert_eq!(body, body_of(id), "a body is not as it was appended");
    id
}

fn settings() -> Settings {
    Settings { segment_bytes: 4096, quota: 1 << 30, queue: 8, checkpoints: 2, ..Settings::new("/simulated") }
}

fn open(files: &SimulatedFiles) -> (Journal, crate::writer::Writer, Recovery) {
    Journal::assemble(settings(), Arc::new(files.clone()), Arc::<Driven>::default()).expect("it always opens")
}

fn append(journal: &Journal, writer: &mut crate::writer::Writer, arena: &Arena, id: u64) -> Receipt {
    let mut batch = batch(arena, ITEMS, &body_of(id));
    batch.checkpoints.set(KEY, &[id as u8]).unwrap();
    let mut appending = journal.append(batch);
    writer.step(Some(Duration::ZERO));
    match std::pin::Pin::new(&mut appending).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(receipt)) => receipt,
        _ => panic!("it goes on after damage"),
    }
}

impl Sample {
    /// In files of its own.
    fn fresh() -> Sample {
        Sample::new(0)
    }

    /// In files that earlier segments were in.
    fn reused() -> Sample {
        let sample = Sample::new(3 * RECORDS);
        let last = sample.image.iter().rfind(|(name, _)| name.ends_with(".seg")).unwrap().1;
        let headers = (0..last.len()).step_by(8).filter_map(|at| Header::decode(&last[at..]));
        let sequences: Vec<u64> = headers.map(|header| header.sequence).collect();
        assert!(!sequences.is_sorted(), "behind its records there are earlier ones");
        sample
    }

    /// After `earlier` records that the sink has completed.
    fn new(earlier: u64) -> Sample {
        let (files, arena) = (SimulatedFiles::new(1), arena());
        let (journal, mut writer, _) = open(&files);
        let mut sink = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
        for id in 0..earlier {
            append(&journal, &mut writer, &arena, id);
        }
        for _ in 0..earlier {
            let next = sink.poll_next(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(Ok(Some(Event::Record(record)))) = next else { panic!("a record") };
            assert!(sink.commit(record.sequence));
        }
        for id in earlier..earlier + RECORDS - earlier / 12 {
            append(&journal, &mut writer, &arena, id);
        }
        drop((sink, writer));
        let mut image = files.contents();
        image.retain(|name, _| !name.ends_with(".spare"));
        let mut records = Vec::new();
        for (name, bytes) in image.iter().filter(|(name, _)| name.ends_with(".seg")) {
            let mut at = 0;
            let mut next = name.trim_end_matches(".seg").parse().unwrap();
            let own = |header: &Header, next| header.sequence == next;
            while let Some(header) = bytes.get(at..).and_then(Header::decode).filter(|h| own(h, next)) {
                records.push((header.sequence, name.clone(), at, at + header.size() as usize));
                at += header.size() as usize;
                next += 1;
            }
        }
        assert!(records.len() >= 8);
        assert!(image.len() >= 3, "several segments and a cursor");
        Sample { image, records, arena }
    }

    /// Opens a changed journal, and checks that all records are there that `untouched` says are.
    fn check(&self, image: &Image, what: &str, untouched: impl Fn(&str, usize, usize) -> bool) {
        let files = SimulatedFiles::of(image);
        let (journal, mut writer, recovery) = open(&files);
        self.check_checkpoint(image, &journal, what, &untouched);
        let fresh = append(&journal, &mut writer, &self.arena, 1000);
        assert!(fresh.sequence >= recovery.head, "{what}");
        let mut follower = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
        let begins = follower.position();
        let (mut found, mut lost_records, mut lost_items) = (BTreeMap::new(), 0, 0);
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(event) = follower.poll_next(&mut context) {
            match event.unwrap().unwrap() {
                Event::Record(record) => {
                    let mut window = self.arena.try_window(Share::Egress, 1).unwrap();
                    if follower.read_into(&mut window).is_ok() {
                        found.insert(record.sequence, id_of(&window));
                    }
                }
                Event::Damaged(gap) => {
                    lost_records += gap.records;
                    lost_items += gap.items;
                }
                Event::Dropped(_) => panic!("{what}: nothing is dropped"),
            }
        }
        for (sequence, file, from, to) in &self.records {
            if *sequence >= begins.sequence && untouched(file, *from, *to) {
                assert_eq!(found.get(sequence), Some(sequence), "{what}");
            }
        }
        assert_eq!(found.remove(&fresh.sequence), Some(1000), "{what}");
        assert!(found.iter().all(|(sequence, id)| sequence == id), "{what}");
        // The books balance: what is not delivered is reported, up to the last record that is known of.
        let stats = journal.stats();
        let delivered = found.len() as u64 + 1;
        assert_eq!(begins.sequence + delivered + lost_records, stats.head, "{what}");
        assert_eq!(begins.items + delivered * u64::from(ITEMS) + lost_items, stats.items, "{what}");
        // It also opens again, and nothing more is lost by that.
        drop((follower, journal, writer));
        let (journal, _, _) = open(&files);
        assert_eq!(journal.stats().items, stats.items, "{what}");
    }

    /// A checkpoint is never older than what can be read says, and never anything that was not set.
    fn check_checkpoint(
        &self,
        image: &Image,
        journal: &Journal,
        what: &str,
        untouched: &impl Fn(&str, usize, usize) -> bool,
    ) {
        let last = self.records.last().unwrap().0;
        let value = journal.checkpoint(KEY).map(|value| u64::from(value[0]));
        assert!(value.is_none_or(|value| value <= last), "{what}");
        let records = self.records.iter().filter(|(_, file, from, to)| untouched(file, *from, *to));
        let known = records.map(|(sequence, ..)| *sequence).max();
        let tables = self.image.iter().filter(|(name, _)| name.starts_with("checkpoints"));
        if tables.clone().any(|(name, bytes)| image.get(name) == Some(bytes)) {
            assert!(value >= known, "{what}: the checkpoint is {value:?} and the last record {known:?}");
        }
    }

    fn changed(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Image {
        let mut image = self.image.clone();
        change(image.get_mut(name).unwrap());
        image
    }

    fn names(&self) -> Vec<(String, usize)> {
        self.image.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect()
    }
}

#[test]
fn a_flipped_bit_costs_one_record_at_most() {
    for sample in [Sample::fresh(), Sample::reused()] {
        for (name, len) in sample.names() {
            for at in 0..len {
                let image = sample.changed(&name, |bytes| bytes[at] ^= 1 << (at % 8));
                let outside = |file: &str, from, to| file != name || at < from || at >= to;
                sample.check(&image, &format!("a bit of {name} at {at}"), outside);
            }
        }
    }
}

#[test]
fn a_truncated_file_loses_only_the_missing_records() {
    for sample in [Sample::fresh(), Sample::reused()] {
        for (name, len) in sample.names() {
            for at in 0..len {
                let image = sample.changed(&name, |bytes| bytes.truncate(at));
                let before = |file: &str, _, to| file != name || to <= at;
                sample.check(&image, &format!("{name} cut at {at}"), before);
            }
        }
    }
}

#[test]
fn a_tail_of_zeros_loses_only_the_covered_records() {
    for sample in [Sample::fresh(), Sample::reused()] {
        for (name, len) in sample.names() {
            for at in (0..len).step_by(4) {
                let image = sample.changed(&name, |bytes| bytes[at..].fill(0));
                let before = |file: &str, _, to| file != name || to <= at;
                sample.check(&image, &format!("{name} zero from {at}"), before);
            }
        }
    }
}

#[test]
fn noise_in_the_middle_loses_only_the_covered_records() {
    for sample in [Sample::fresh(), Sample::reused()] {
        for (name, len) in sample.names() {
            for at in (0..len).step_by(16) {
                let end = (at + 300).min(len);
                let image = sample.changed(&name, |bytes| {
                    bytes[at..end].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(37) ^ 0x5A);
                });
                let outside = |file: &str, from, to| file != name || end <= from || at >= to;
                sample.check(&image, &format!("noise in {name} at {at}"), outside);
            }
        }
    }
}

#[test]
fn a_missing_file_loses_only_its_records() {
    for sample in [Sample::fresh(), Sample::reused()] {
        for (name, _) in sample.names() {
            let mut image = sample.image.clone();
            image.remove(&name);
            sample.check(&image, &format!("{name} is gone"), |file, _, _| file != name);
        }
    }
}

#[test]
fn a_record_inside_a_body_is_not_read_as_a_record() {
    let (files, arena) = (SimulatedFiles::new(1), arena());
    let (journal, mut writer, _) = open(&files);
    drop(journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap());
    // A client sends what looks like a record; then the record around it is damaged.
    let mut body = vec![0u8; 512];
    for at in 0..8 {
        let header = Header::new(0x1234_5678, 0, 0, &super::meta(1_000_000), 0, 0);
        body[at * 64..at * 64 + 64].copy_from_slice(&header.encode());
    }
    let mut appending = journal.append(batch(&arena, ITEMS, &body));
    writer.step(Some(Duration::ZERO));
    assert!(std::pin::Pin::new(&mut appending).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    append(&journal, &mut writer, &arena, 1);
    let mut image = files.contents();
    image.get_mut("00000000000000000000.seg").unwrap()[20] ^= 1;
    let (journal, _, _) = open(&SimulatedFiles::of(&image));
    let mut follower = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut next = || match follower.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(Some(event))) => event,
        other => panic!("{other:?}"),
    };
    let gap = next();
    assert!(matches!(gap, Event::Damaged(Gap { records: 1, items: 5, .. })), "{gap:?}");
    assert!(matches!(next(), Event::Record(Record { sequence: 1, .. })));
}

/// A refused record gets no number; so an earlier segment may leave records in its file with numbers still to come.
#[test]
fn leftovers_of_an_earlier_segment_are_not_read_as_records() {
    let sample = Sample::fresh();
    let (next, name, _, end) = sample.records.last().unwrap();
    let salt = salt_of(Header::decode(&sample.image["00000000000000000000.seg"]).unwrap().key, 0);
    let meta = super::meta(ITEMS);
    let crc = crate::record::checksum(&meta.tenant, "", &[], &[]);
    let image = sample.changed(name, |bytes| {
        let left = Header::new(key(salt, 0), next + 1, u64::from(ITEMS) * (next + 1), &meta, 0, crc);
        bytes[*end..end + 64].copy_from_slice(&left.encode());
        bytes[end + 64..end + 68].copy_from_slice(b"acme");
    });
    let (journal, _, recovery) = open(&SimulatedFiles::of(&image));
    assert_eq!((recovery.head, recovery.damaged_records), (next + 1, 0));
    assert_eq!(journal.stats().head, next + 1);
    sample.check(&image, "a record of an earlier segment", |_, _, _| true);
}

/// A file that was given its new name, and to which nothing was written before the machine stopped.
#[test]
fn a_reused_file_without_a_record_of_its_own_is_no_damage() {
    let sample = Sample::fresh();
    let mut image = sample.image.clone();
    let earlier = image["00000000000000000000.seg"].clone();
    image.insert(format!("{RECORDS:020}.seg"), earlier);
    let (journal, _, recovery) = open(&SimulatedFiles::of(&image));
    assert_eq!((recovery.head, recovery.unreadable_segments, recovery.damaged_records), (RECORDS, 0, 0));
    assert_eq!(journal.stats().quarantined, 0);
    sample.check(&image, "a reused file without a record", |_, _, _| true);
}
