//! Invariant: the low-water mark is the first record that is neither completed, damaged nor dropped, and
//! every item before it is counted as exactly one of the three. Model: one state for each record.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const RECORDS: u64 = 200;

#[derive(Debug, Clone)]
enum Step {
    HandOut,
    Gap(u64),
    Complete(usize),
    Each(usize, usize),
    Through(usize),
    GiveUp,
    Jump(u64),
    Rewind,
    Restart,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Queued,
    InFlight,
    Completed,
    Damaged,
    Dropped,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => Just(Step::HandOut),
        1 => (1u64..6).prop_map(Step::Gap),
        6 => any::<usize>().prop_map(Step::Complete),
        3 => (any::<usize>(), 1usize..6).prop_map(|(pick, count)| Step::Each(pick, count)),
        3 => any::<usize>().prop_map(Step::Through),
        1 => Just(Step::GiveUp),
        1 => (1u64..12).prop_map(Step::Jump),
        1 => Just(Step::Rewind),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..120)
}

fn items(sequence: u64) -> u64 {
    sequence % 5
}

fn before(sequence: u64) -> u64 {
    (0..sequence).map(items).sum()
}

/// When a record was received: a second after the one before it.
fn at(sequence: u64) -> u64 {
    (1_700_000_000 + sequence) * 1_000_000_000
}

/// Of some records.
fn items_of(sequences: &[u64]) -> CompletedItems {
    let sum = |addressed: bool| {
        let of = sequences.iter().filter(|sequence| !addressed || is_addressed(**sequence));
        of.map(|sequence| items(*sequence)).sum()
    };
    CompletedItems { items: sum(false), addressed: sum(true) }
}

/// Which records are for the sink alone.
fn is_addressed(sequence: u64) -> bool {
    sequence % 5 > 2
}

struct Model {
    cursor: Cursor,
    fates: Vec<Fate>,
    /// Where the sink reads.
    next: u64,
    completed: u64,
    dropped: u64,
    in_order: bool,
    /// The cursor's sum of addressed items when each record was handed out last.
    addressed: HashMap<u64, u64>,
    /// The quota took records while one entry stood for many.
    is_cut: bool,
}

impl Model {
    fn low(&self) -> u64 {
        let open = |fate: &Fate| matches!(fate, Fate::Queued | Fate::InFlight);
        let low = self.fates.iter().position(open).unwrap_or(self.fates.len()) as u64;
        // Completions from before a restart count once the sink has passed them.
        low.min(self.next.max(self.cursor.low))
    }

    fn in_flight(&self) -> Vec<u64> {
        (0..RECORDS).filter(|sequence| self.fates[*sequence as usize] == Fate::InFlight).collect()
    }

    fn read_again(&mut self) {
        self.next = self.cursor.low;
        for (sequence, fate) in self.fates.iter_mut().enumerate() {
            // A gap beyond the low-water mark is met, and told, again.
            if *fate == Fate::InFlight || (*fate == Fate::Damaged && sequence as u64 >= self.next) {
                *fate = Fate::Queued;
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::HandOut if self.next < RECORDS && self.cursor.has_room() => {
                let sequence = self.next;
                self.next += 1;
                let fate = &mut self.fates[sequence as usize];
                let done = self.cursor.hand_out(
                    sequence,
                    items(sequence),
                    (before(self.next), 8 * self.next),
                    at(sequence),
                    is_addressed(sequence),
                );
                self.addressed.insert(sequence, self.cursor.addressed());
                let passed = sequence < self.cursor.low;
                assert_eq!(done, passed || *fate == Fate::Completed, "what is done is not handed out");
                if !done {
                    *fate = Fate::InFlight;
                }
            }
            Step::Gap(records) if self.next + records < RECORDS && self.cursor.has_room() => {
                let (from, to) = (self.next, self.next + records);
                let told = before(to) - before(from);
                let Some(delivered) = self.cursor.pass((from, to), told, before(to), 8 * to) else {
                    assert!(from < self.cursor.low, "only what was dropped meanwhile is not passed");
                    self.next = self.cursor.low;
                    return;
                };
                self.next = to;
                let fates = &mut self.fates[from as usize..to as usize];
                let known = (from..to).zip(fates.iter()).filter(|(_, fate)| **fate == Fate::Completed);
                assert_eq!(delivered.items, known.map(|(sequence, _)| items(sequence)).sum::<u64>());
                for fate in fates.iter_mut().filter(|fate| **fate != Fate::Completed) {
                    *fate = Fate::Damaged;
                }
            }
            Step::Complete(pick) if !self.in_order => {
                let in_flight = self.in_flight();
                let Some(sequence) = in_flight.get(pick % in_flight.len().max(1)).copied() else { return };
                assert!(self.cursor.complete(sequence));
                assert!(!self.cursor.complete(sequence), "a record is completed once");
                self.fates[sequence as usize] = Fate::Completed;
                self.completed += items(sequence);
            }
            Step::Each(pick, count) if !self.in_order => {
                let in_flight = self.in_flight();
                let each = in_flight.iter().skip(pick % in_flight.len().max(1)).step_by(2).take(count);
                let each: Vec<u64> = each.copied().collect();
                // Twice is once, and what was dropped meanwhile is nothing.
                let twice: Vec<u64> =
                    self.cursor.low.checked_sub(1).into_iter().chain(each.clone()).collect();
                let completed = self.cursor.complete_each(each.iter().copied().chain(twice));
                assert_eq!(completed, items_of(&each));
                self.completed += completed.items;
                each.iter().for_each(|sequence| self.fates[*sequence as usize] = Fate::Completed);
            }
            Step::Through(pick) => {
                let in_flight = self.in_flight();
                let Some(last) = in_flight.get(pick % in_flight.len().max(1)).copied() else { return };
                let completed = self.cursor.complete_through(
                    last,
                    (before(last + 1), 8 * (last + 1)),
                    at(last),
                    self.addressed[&last],
                );
                let through: Vec<u64> =
                    in_flight.iter().copied().filter(|sequence| *sequence <= last).collect();
                let expected = items_of(&through);
                assert_eq!(completed.items, expected.items);
                // Where the quota took a part of an entry, items that it took may count as well.
                match self.is_cut {
                    true => assert!((expected.addressed..=expected.items).contains(&completed.addressed)),
                    false => assert_eq!(completed.addressed, expected.addressed),
                }
                self.completed += completed.items;
                for sequence in through {
                    self.fates[sequence as usize] = Fate::Completed;
                }
            }
            Step::GiveUp => {
                let Some(last) = self.next.checked_sub(1) else { return };
                if self.fates[last as usize] == Fate::InFlight {
                    self.cursor.give_up(last, items(last), before(last), 8 * last);
                    self.fates[last as usize] = Fate::Damaged;
                }
            }
            Step::Jump(records) => {
                self.is_cut |= self.in_order;
                // Not into a gap that is not passed yet: that this is no loss is another test's.
                let to = (self.cursor.low + records).min(RECORDS);
                if to < self.next && self.fates[to as usize] == Fate::Damaged {
                    return;
                }
                let passed = self.cursor.jump(to, before(to), 8 * to);
                let lost = |fate: &Fate| matches!(fate, Fate::Queued | Fate::InFlight);
                let fates = self.fates[..to as usize].iter_mut().enumerate().filter(|(_, fate)| lost(fate));
                let (mut records, mut sum) = (0, 0);
                for (sequence, fate) in fates {
                    *fate = Fate::Dropped;
                    records += 1;
                    sum += items(sequence as u64);
                }
                assert_eq!(passed, SkippedRecords { records, items: sum });
                // The sink learns of it only after it has looked for the next record once more.
                self.dropped += sum;
            }
            Step::Rewind => {
                self.cursor.rewind();
                self.read_again();
            }
            Step::Restart => {
                let written = RestoredCursor::decode(&self.cursor.encode(7, 1)).unwrap();
                let mut cursor = written.cursor.clone();
                let known = (cursor.low..written.known_to()).filter(|sequence| written.completed(*sequence));
                cursor.restore(known.map(|sequence| (sequence, items(sequence))).collect());
                cursor.set_in_order(self.in_order);
                cursor.bytes = self.cursor.bytes;
                self.cursor = cursor;
                self.read_again();
            }
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn every_item_is_counted_once(steps in steps(), in_order in any::<bool>()) {
        let mut cursor = Cursor::new(0, 0, 0);
        cursor.set_in_order(in_order);
        let fates = vec![Fate::Queued; RECORDS as usize];
        let mut model = Model { cursor, fates, next: 0, completed: 0, dropped: 0, in_order, addressed: HashMap::new(), is_cut: false };
        for step in &steps {
            model.step(step);
            prop_assert_eq!(model.cursor.low, model.low(), "after {:?}", step);
            prop_assert_eq!(model.cursor.items, before(model.cursor.low));
            prop_assert_eq!(model.cursor.bytes, 8 * model.cursor.low);
            prop_assert_eq!(model.cursor.dropped, model.dropped);
            let damaged = (0..model.cursor.low).filter(|s| model.fates[*s as usize] == Fate::Damaged);
            prop_assert_eq!(model.cursor.damaged, damaged.map(items).sum::<u64>());
            let ahead = (model.cursor.low..RECORDS).filter(|s| model.fates[*s as usize] == Fate::Completed);
            let ahead: u64 = ahead.map(items).sum();
            prop_assert_eq!(model.cursor.ahead(), ahead);
            prop_assert_eq!(
                model.completed + model.cursor.dropped + model.cursor.damaged,
                model.cursor.items + ahead
            );
            prop_assert!(model.cursor.flight.len() <= MAX_IN_FLIGHT + 1);
            // The age of what is not completed: exact where the sink has taken that record by itself.
            let (received, low) = (model.cursor.received_at_ns(), model.cursor.low);
            prop_assert!(received <= at(low));
            if !in_order && model.fates.get(low as usize) == Some(&Fate::InFlight) {
                prop_assert_eq!(received, at(low));
            }
        }
    }

    /// No flipped bit is taken for a cursor.
    #[test]
    fn a_damaged_cursor_is_not_believed(flip in 0..(ENCODED_LEN - 4) * 8) {
        let mut bytes = Cursor::new(3, 4, 5).encode(6, 7);
        prop_assert!(RestoredCursor::decode(&bytes).is_some());
        bytes[flip / 8] ^= 1 << (flip % 8);
        prop_assert!(RestoredCursor::decode(&bytes).is_none());
    }
}
