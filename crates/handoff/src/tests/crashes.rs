//! The promise: whatever stops the machine and whenever, every acknowledged record is delivered afterwards, in order and bit
//! for bit, unless it was completed; nothing is delivered that nobody appended; the counts add up; and the folder opens.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tidegate_files::folder::simulated::Random;

const MEMBERS: [&str; 3] = ["a:1", "b:1", "c:1"];

/// The body number `id`: anyone can tell whether it is as it was appended.
fn body_of(id: u64) -> Vec<u8> {
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

fn id_of(body: &[u8]) -> u64 {
    let id = u64::from_le_bytes(*body.first_chunk().unwrap());
    assert_eq!(body, body_of(id), "a body is not as it was appended");
    id
}

#[derive(Default)]
struct Expected {
    /// Acknowledged and not completed: must be delivered.
    owed: BTreeSet<u64>,
    /// The records of the log, as far as this process knows.
    queue: VecDeque<u64>,
    /// How many records were damaged when the folder was opened and its logs were read.
    damaged: u64,
    /// How many were dropped for the quota since then.
    dropped: u64,
    /// Bytes on the disk then: leftovers of failed writes may be more than the quota.
    disk_bytes: u64,
}

struct Model {
    rig: Rig,
    dice: Random,
    appended: u64,
    members: BTreeMap<&'static str, Expected>,
    /// Damage is expected: a power cut may leave a hole in what was not acknowledged.
    power: bool,
    /// There is a small quota, and this happens when it is used up.
    when_full: Option<WhenFull>,
}

impl Model {
    fn new(seed: u64, durability: Durability, when_full: Option<WhenFull>) -> Model {
        let (quota, total_quota) =
            if when_full.is_some() { (20 << 10, 50 << 10) } else { (1 << 30, 1 << 30) };
        let how = when_full.unwrap_or(WhenFull::Block);
        let settings = Settings { durability, quota, total_quota, when_full: how, ..small() };
        let rig = Rig::with(settings, SimulatedFiles::new(seed));
        let members = MEMBERS.map(|member| (member, Expected::default())).into();
        let power = durability == Durability::Fsync;
        Model { rig, dice: Random::new(seed.rotate_left(32)), appended: 0, members, power, when_full }
    }

    /// Several appends to several members at once.
    fn append(&mut self) {
        let mut ids = Vec::new();
        for _ in 0..=self.dice.below(6) {
            ids.push((MEMBERS[self.dice.below(3) as usize], self.appended));
            self.appended += 1;
        }
        let logs: Vec<MemberLog> = ids.iter().map(|(member, _)| self.rig.log(member)).collect();
        let appends = logs.iter().zip(&ids).map(|(log, (_, id))| {
            Box::pin(log.append(meta(1 + (*id % 7) as u32), body(body_of(*id))))
                as Pin<Box<dyn Future<Output = _>>>
        });
        let outcomes = self.rig.all(appends.collect());
        for ((member, id), outcome) in ids.into_iter().zip(outcomes) {
            let expected = self.members.get_mut(member).unwrap();
            match outcome {
                Ok(()) => {
                    expected.owed.insert(id);
                    expected.queue.push_back(id);
                }
                Err(AppendError::Disk { .. }) => {}
                Err(AppendError::Quota | AppendError::TotalQuota) if self.when_full.is_some() => {}
                Err(error) => panic!("{error}"),
            }
        }
        for (member, expected) in &mut self.members {
            // The oldest go, and each is counted.
            let stats = self.rig.stats(member);
            let dropped = (stats.dropped.records - expected.dropped) as usize;
            expected.dropped = stats.dropped.records;
            assert!(dropped == 0 || self.when_full == Some(WhenFull::DropOldest));
            for id in expected.queue.drain(..dropped) {
                expected.owed.remove(&id);
            }
            assert!(self.when_full.is_none() || stats.disk_bytes <= expected.disk_bytes.max(20 << 10));
        }
    }

    fn forget(&mut self) {
        let member = MEMBERS[self.dice.below(3) as usize];
        let log = self.rig.log(member);
        let expected = self.members.get_mut(member).unwrap();
        if let Ok(forgotten) = self.rig.wait(log.forget()) {
            assert_eq!(forgotten.records, expected.queue.len() as u64);
        }
        (expected.owed, expected.queue) = Default::default();
    }

    /// Delivers a few records of a member, some of them read ahead.
    fn deliver(&mut self) {
        let member = MEMBERS[self.dice.below(3) as usize];
        let log = self.rig.log(member);
        let ahead = 1 + self.dice.below(4) as usize;
        let mut records: Vec<Record> = self.rig.next(member).into_iter().collect();
        while let Some(last) = records.last().filter(|_| records.len() < ahead) {
            let Some(record) = self.rig.wait(log.after(last)).unwrap() else { break };
            records.push(record);
        }
        let expected = self.members.get_mut(member).unwrap();
        assert_eq!(records.is_empty(), expected.queue.is_empty(), "{member}");
        for (record, id) in records.iter().zip(&expected.queue) {
            assert_eq!(id_of(&self.rig.read(member, record).unwrap()), *id, "{member}");
        }
        let done = self.dice.below(records.len() as u64 + 1) as usize;
        if let Some(record) = done.checked_sub(1).and_then(|last| records.get(last)) {
            assert_eq!(log.complete(record).records, done as u64);
            for id in expected.queue.drain(..done) {
                expected.owed.remove(&id);
            }
        }
        assert_eq!(
            self.rig.stats(member).damaged.records,
            expected.damaged,
            "damage appears by crashes only"
        );
    }

    /// Opens the folder again and compares what is there with what must be.
    fn restart(&mut self, power_cut: bool) {
        self.rig.open = None;
        self.rig.files.set_faults(0);
        match power_cut {
            true => self.rig.files.restart_machine(),
            false => self.rig.files.restart_process(),
        }
        let recovery = self.rig.reopen();
        assert!(!recovery.lost_cursors);
        for (member, expected) in &mut self.members {
            let mut found = found(&mut self.rig, member, self.power);
            assert!(found.is_sorted_by(|a, b| a < b), "{member}: {found:?}");
            if self.when_full == Some(WhenFull::DropOldest) {
                // Those dropped while the machine stopped.
                expected.owed.retain(|id| found.first().is_some_and(|first| id >= first));
            }
            let missing: Vec<&u64> = expected.owed.iter().filter(|id| !found.contains(id)).collect();
            assert!(missing.is_empty(), "{member} lost {missing:?}, has {found:?}");
            assert!(found.iter().all(|id| *id < self.appended));
            // What was completed on the way to damage is not owed any more.
            let waiting = self.rig.log(member).backlog().records as usize;
            for id in found.drain(..found.len() - waiting) {
                expected.owed.remove(&id);
            }
            expected.queue = found.into();
            expected.damaged = self.rig.stats(member).damaged.records;
            expected.dropped = 0;
            expected.disk_bytes = self.rig.stats(member).disk_bytes;
        }
        self.clear_suspension();
    }

    fn clear_suspension(&mut self) {
        self.rig.pass(Duration::from_secs(2));
        self.rig.turn();
    }

    fn step(&mut self, faults: u64) {
        match self.dice.below(20) {
            0..8 => self.append(),
            8..15 => self.deliver(),
            15 if self.dice.chance(200) => self.forget(),
            15 => self.clear_suspension(),
            16 => self.rig.files.set_faults(if self.dice.chance(500) { faults } else { 0 }),
            17 if self.power => self.crash(true),
            18 => self.crash(false),
            _ => {
                self.rig.files.set_faults(0);
                self.clear_suspension();
                self.rig.close();
                self.restart(false);
            }
        }
    }

    /// Stops in the middle of some call.
    fn crash(&mut self, power_cut: bool) {
        let calls = self.dice.below(12);
        self.rig.files.stop_in(calls);
        self.append();
        self.restart(power_cut);
    }
}

/// Everything in a member's log. Where `power` was cut there may be damage: part of a group that nobody was told is durable.
/// It is crossed by completing what is before it.
fn found(rig: &mut Rig, member: &str, power: bool) -> Vec<u64> {
    let log = rig.log(member);
    let mut found = Vec::new();
    let (mut last, mut end): (Option<Record>, u64) = (None, 0);
    loop {
        let next = match &last {
            Some(last) => rig.wait(log.after(last)).unwrap(),
            None => rig.wait(log.next()).unwrap(),
        };
        if last.is_none() {
            end = next.map_or(0, |record| record.sequence + log.backlog().records);
        }
        match next.map(|record| (record, rig.read(member, &record))) {
            None if last.is_none_or(|last| last.sequence + 1 == end) => return found,
            Some((record, Ok(bytes))) => {
                found.push(id_of(&bytes));
                last = Some(record);
            }
            None | Some((_, Err(ReadError::Damaged))) => {
                assert!(power, "{member} is damaged");
                if let Some(last) = last.take() {
                    log.complete(&last);
                }
            }
            Some((_, Err(error))) => panic!("{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sequence of appends, deliveries, disk errors, kills and power cuts loses nothing that was acknowledged.
    #[test]
    fn acknowledged_records_survive(seed in any::<u64>(), steps in 1..60usize, faults in prop::sample::select(vec![30, 150, 400])) {
        let mut model = Model::new(seed, Durability::Fsync, None);
        for _ in 0..steps {
            model.step(faults);
        }
        model.restart(true);
    }

    /// Neither does a quota, whatever happens when it is used up: of the dropped ones each is counted.
    #[test]
    fn quotas_lose_only_what_they_count(seed in any::<u64>(), steps in 1..60usize, faults in prop::sample::select(vec![30, 150, 400]), drops in any::<bool>()) {
        let when_full = if drops { WhenFull::DropOldest } else { WhenFull::Block };
        let mut model = Model::new(seed, Durability::Fsync, Some(when_full));
        for _ in 0..steps {
            model.step(faults);
        }
        model.restart(true);
    }

    /// Without syncs they survive the end of the process.
    #[test]
    fn acknowledged_records_survive_kills(seed in any::<u64>(), steps in 1..60usize) {
        let mut model = Model::new(seed, Durability::PageCache, None);
        for _ in 0..steps {
            model.step(0);
        }
        model.restart(false);
    }
}

/// The last write, cut off or garbled at every byte: what was acknowledged before stays, the rest goes.
#[test]
fn a_write_torn_at_any_byte_is_cut_off() {
    let mut rig = Rig::new(small());
    for number in 0..3u8 {
        rig.append("a:1", 1, vec![number; 40]).unwrap();
    }
    let whole = rig.files.contents();
    let name = rig.segments().remove(0);
    rig.append("a:1", 1, [3; 40]).unwrap();
    let written = rig.files.contents();
    let (from, to) = (whole[&name].len(), written[&name].len());
    for at in from..to {
        for garbled in [false, true] {
            let mut contents = written.clone();
            let bytes = contents.get_mut(&name).unwrap();
            match garbled {
                false => bytes.truncate(at),
                true => bytes[at] ^= 0x55,
            }
            // The zeros that fill a record up to its multiple of 8 belong to nothing.
            let in_padding = garbled && at >= from + crate::record::HEADER + 4 + 40;
            let mut rig = Rig::with(small(), SimulatedFiles::of(&contents));
            assert_eq!(rig.files.contents()[&name].len(), if in_padding { to } else { from }, "{at}");
            let expected = if in_padding { 4 } else { 3 };
            let taken = rig.take_all("a:1");
            assert_eq!(taken, (0..expected).map(|number| vec![number; 40]).collect::<Vec<_>>(), "{at}");
            assert_eq!(rig.stats("a:1").damaged, Totals::ZERO);
            rig.append("a:1", 1, [9; 40]).unwrap();
            rig.reopen();
            assert_eq!(rig.take_all("a:1").last(), Some(&vec![9; 40]));
        }
    }
}
