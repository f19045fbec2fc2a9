use super::*;
use proptest::prelude::*;
use tidegate_files::folder::simulated::Random;

/// Twelve records in four segments of three, the first two completed, on disk.
fn filled() -> Rig {
    let mut rig = Rig::new(small());
    for number in 0..12u8 {
        rig.append("a:1", 2, vec![number; 1000]).unwrap();
    }
    for _ in 0..2 {
        rig.take("a:1");
    }
    rig.close();
    rig
}

/// Changes a file of a closed folder and opens it again.
fn damage(rig: &mut Rig, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Recovery {
    let mut contents = rig.files.contents();
    change(contents.get_mut(name).unwrap());
    rig.files = SimulatedFiles::of(&contents);
    rig.reopen()
}

fn remove(rig: &mut Rig, names: &[&str]) -> Recovery {
    let mut contents = rig.files.contents();
    contents.retain(|name, _| !names.contains(&&**name));
    rig.files = SimulatedFiles::of(&contents);
    rig.reopen()
}

fn numbers(bodies: Vec<Vec<u8>>) -> Vec<u8> {
    assert!(bodies.iter().all(|body| body.len() == 1000 && body.iter().all(|byte| *byte == body[0])));
    bodies.into_iter().map(|body| body[0]).collect()
}

fn damaged_files(rig: &Rig) -> usize {
    rig.files.contents().keys().filter(|name| name.ends_with(".damaged")).count()
}

/// Wherever a byte flips, only the records that it is in are lost, each counted, and the segment is set aside.
#[test]
fn a_flipped_byte_costs_one_record() {
    let segment = filled().segments().remove(1);
    let record = 512 + 1072;
    for at in [0, 100, 511, 512, 520, 575, 576, 590, record, record + 70, record + 1071 - 1, 2 * record] {
        let mut rig = filled();
        damage(&mut rig, &segment, |bytes| bytes[at] ^= 0x10);
        let taken = numbers(rig.take_all("a:1"));
        let stats = rig.stats("a:1");
        assert_eq!(taken.len() as u64 + stats.damaged.records, 10, "at {at}: {taken:?}");
        assert!(stats.damaged.records <= 1, "at {at}: {taken:?}");
        assert_eq!(stats.damaged.items, 2 * stats.damaged.records);
        rig.pass(Duration::from_secs(1));
        rig.turn();
        assert_eq!(damaged_files(&rig) as u64, stats.damaged.records, "at {at}");
        assert_eq!(rig.segments().len(), 0);
    }
}

#[test]
fn damage_is_crossed_when_all_before_it_is_completed() {
    let mut rig = filled();
    let segment = rig.segments().remove(1);
    damage(&mut rig, &segment, |bytes| bytes[512 + 1072 + 3] ^= 1);
    let log = rig.log("a:1");
    let mut records = vec![rig.next("a:1").unwrap()];
    while let Some(record) = rig.wait(log.after(records.last().unwrap())).unwrap() {
        records.push(record);
    }
    assert_eq!(records.iter().map(|record| record.sequence).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(rig.stats("a:1").damaged, Totals::ZERO);
    log.complete(&records[1]);
    assert_eq!(rig.next("a:1").unwrap().sequence, 5);
    assert_eq!(rig.stats("a:1").damaged.records, 1);
}

#[test]
fn a_missing_segment_is_counted_as_damage() {
    for (missing, left) in [
        (0, vec![3, 4, 5, 6, 7, 8, 9, 10, 11]),
        (1, vec![2, 6, 7, 8, 9, 10, 11]),
        (3, vec![2, 3, 4, 5, 6, 7, 8]),
    ] {
        let mut rig = filled();
        let segment = rig.segments().remove(missing);
        remove(&mut rig, &[&segment]);
        rig.append("a:1", 2, [12; 1000]).unwrap();
        let left: Vec<u8> = left.into_iter().chain([12]).collect();
        assert_eq!(numbers(rig.take_all("a:1")), left);
        assert_eq!(rig.stats("a:1").damaged.records, 11 - left.len() as u64);
    }
}

#[test]
fn all_segments_missing_are_counted_as_damage() {
    let mut rig = filled();
    let segments = rig.segments();
    remove(&mut rig, &segments.iter().map(|name| &**name).collect::<Vec<_>>());
    assert_eq!(rig.take("a:1"), None);
    assert_eq!(rig.stats("a:1").damaged.records, 10);
    rig.append("a:1", 2, [1; 1000]).unwrap();
    assert_eq!(numbers(rig.take_all("a:1")), [1]);
}

/// The last segment is lost and another one cannot be read: what is appended later does not get the number of either.
#[test]
fn a_lost_segments_number_is_not_used_again() {
    let mut rig = filled();
    let segments = rig.segments();
    let mut contents = rig.files.contents();
    contents.retain(|name, _| !name.ends_with(".seg") || *name == segments[2]);
    contents.get_mut(&segments[2]).unwrap().fill(0xEE);
    rig.files = SimulatedFiles::of(&contents);
    assert_eq!(rig.reopen().unreadable_segments, 1);
    rig.append("a:1", 2, [12; 1000]).unwrap();
    assert_eq!(numbers(rig.take_all("a:1")), [12]);
    assert_eq!(rig.stats("a:1").damaged.records, 10);
}

#[test]
fn without_cursors_delivery_begins_at_the_oldest_record() {
    let mut rig = filled();
    let recovery = remove(&mut rig, &crate::cursors::NAMES);
    assert!(!recovery.lost_cursors, "a folder without cursors may be one that was never saved");
    assert_eq!(numbers(rig.take_all("a:1")), (0..12).collect::<Vec<u8>>());

    let mut rig = filled();
    let mut contents = rig.files.contents();
    for name in crate::cursors::NAMES {
        contents.get_mut(name).unwrap()[20] ^= 1;
    }
    rig.files = SimulatedFiles::of(&contents);
    assert!(rig.reopen().lost_cursors);
    assert_eq!(numbers(rig.take_all("a:1")), (0..12).collect::<Vec<u8>>());
}

/// One damaged save is an older cursor, never a lost record.
#[test]
fn one_damaged_save_delivers_again() {
    for name in crate::cursors::NAMES {
        let mut rig = filled();
        damage(&mut rig, name, |bytes| bytes[30] ^= 1);
        let taken = numbers(rig.take_all("a:1"));
        assert!(taken.ends_with(&(2..12).collect::<Vec<u8>>()), "{taken:?}");
    }
}

#[test]
fn segments_of_nobody_are_set_aside() {
    let mut rig = filled();
    let mut contents = rig.files.contents();
    for name in crate::cursors::NAMES {
        contents.remove(name);
    }
    for (name, bytes) in &mut contents {
        if name.ends_with(".seg") {
            bytes[..512].fill(0xEE);
        }
    }
    rig.files = SimulatedFiles::of(&contents);
    assert_eq!(rig.reopen().unreadable_segments, 4);
    assert_eq!((rig.segments().len(), damaged_files(&rig)), (0, 4));
}

/// A client cannot place records of its own behind damage: it does not know the key.
#[test]
fn bodies_are_not_taken_for_records() {
    let mut rig = Rig::new(small());
    rig.append("b:1", 1, [1; 100]).unwrap();
    let name = rig.segments().remove(0);
    let record = rig.files.contents()[&name][512..].to_vec();
    let mut forged = record.clone();
    forged[8..16].copy_from_slice(&77u64.to_le_bytes());
    let sum = crc32c::crc32c(&forged[..60]);
    forged[60..64].copy_from_slice(&sum.to_le_bytes());
    // Aligned as a record would be.
    let forged = [vec![0; 4], forged].concat();
    rig.append("a:1", 1, forged).unwrap();
    rig.append("a:1", 1, [2; 1000]).unwrap();
    let name = rig.segments().remove(0);
    damage(&mut rig, &name, |bytes| bytes[512] ^= 1);
    assert_eq!(numbers(rig.take_all("a:1")), [2]);
}

/// A file that says it is of a later log of the member, and holds nothing of one, deletes nothing.
#[test]
fn a_forged_segment_does_not_replace_a_log() {
    let mut rig = filled();
    let mut contents = rig.files.contents();
    let forged = crate::segment::file_name(&crate::address::file_prefix("a:1"), 77 << 32);
    contents.insert(forged, vec![0xEE; 900]);
    rig.files = SimulatedFiles::of(&contents);
    assert_eq!(rig.reopen().unreadable_segments, 1);
    assert_eq!(numbers(rig.take_all("a:1")), (2..12).collect::<Vec<u8>>());
}

#[test]
fn garbage_in_the_folder_is_left_alone() {
    let mut rig = filled();
    let mut contents = rig.files.contents();
    for name in ["notes.txt", "lost+found", "a_1-0.00000000000000000001.segment"] {
        contents.insert(name.into(), b"precious".to_vec());
    }
    rig.files = SimulatedFiles::of(&contents);
    rig.reopen();
    assert_eq!(rig.take_all("a:1").len(), 10);
    assert_eq!(rig.files.contents().values().filter(|bytes| *bytes == b"precious").count(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the files hold, the folder opens, what is delivered is what was appended, and appending goes on.
    #[test]
    fn any_garbage_opens(seed in any::<u64>(), changes in 1..8usize) {
        let mut rig = filled();
        let mut dice = Random::new(seed);
        let mut contents = rig.files.contents();
        for _ in 0..changes {
            let names: Vec<String> = contents.keys().cloned().collect();
            let Some(name) = names.get(dice.below(names.len() as u64) as usize) else { break };
            let bytes = contents.get_mut(name).unwrap();
            let (at, len) = (dice.below(bytes.len() as u64 + 1) as usize, dice.below(2000) as usize);
            let end = (at + len).min(bytes.len());
            match dice.below(6) {
                0 => bytes.truncate(at),
                1 => bytes[at..end].fill(0),
                2 => bytes[at..end].iter_mut().for_each(|byte| *byte = dice.roll() as u8),
                3 => bytes.extend((0..len).map(|_| dice.roll() as u8)),
                4 => { bytes.drain(at..end); }
                _ => { contents.remove(name); }
            }
        }
        rig.files = SimulatedFiles::of(&contents);
        rig.reopen();
        rig.append("a:1", 2, [12; 1000]).unwrap();
        let taken = numbers(rig.take_all("a:1"));
        rig.stats("a:1");
        prop_assert!(taken.is_sorted_by(|a, b| a < b), "{taken:?}");
        prop_assert_eq!(taken.last(), Some(&12));
        rig.pass(Duration::from_secs(1));
        rig.turn();
        prop_assert_eq!(rig.segments().len(), 0);
    }
}
