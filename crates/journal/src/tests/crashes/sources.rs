//! Sources with checkpoints, beside the journal: what they sent, and what its checkpoints must be after a crash.

use crate::*;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_files::folder::simulated::Random;

/// Keys below this are files: read in order, each part sent with a batch that says where it ends. The others are set to
/// anything, with records and without.
const FILES: u8 = 4;
const KEYS: u8 = 7;

#[derive(Clone, Copy)]
struct Change {
    key: u8,
    /// Where the part of the file begins.
    from: u64,
    /// The new value; `None` removes the checkpoint.
    to: Option<u64>,
}

type Table = BTreeMap<u8, u64>;

pub(super) struct Sources {
    dice: Random,
    /// The changes that each batch carries, by its number.
    carried: BTreeMap<u64, Vec<Change>>,
    /// Files with a batch under way.
    waiting: BTreeSet<u8>,
    /// Changes without a record since the last restart, and the journal's head at each.
    set: Vec<(u64, Change)>,
    /// How many of them are durable.
    saved: usize,
    /// The journal's head and its checkpoints after the last restart.
    head: u64,
    restored: Table,
    /// The checkpoints that held in its stead, where the journal could not make its records durable: they are in force again if
    /// no table was saved with others.
    gone_back: Option<Table>,
    /// The journal's head whenever sources went back.
    went_back_at: Vec<u64>,
    /// Every record with checkpoints that is durable: sequence and batch.
    durable: BTreeMap<u64, u64>,
    /// Where each file's next part begins.
    offsets: Table,
}

fn value_of(number: u64) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    value.resize(8 + (number % 40) as usize, 7);
    value
}

fn apply(table: &mut Table, change: &Change) {
    match change.to {
        Some(to) => table.insert(change.key, to),
        None => table.remove(&change.key),
    };
}

fn table_of(journal: &Journal) -> Table {
    let mut table = Table::new();
    journal.each_checkpoint(|key, value| {
        let number = u64::from_le_bytes(value[..8].try_into().unwrap());
        assert_eq!(value, value_of(number), "a value is as it was set");
        table.insert(key[0], number);
    });
    table
}

impl Sources {
    pub(super) fn new(seed: u64) -> Sources {
        Sources {
            dice: Random::new(seed.rotate_left(16)),
            carried: BTreeMap::new(),
            waiting: BTreeSet::new(),
            set: Vec::new(),
            saved: 0,
            head: 0,
            restored: Table::new(),
            gone_back: None,
            went_back_at: Vec::new(),
            durable: BTreeMap::new(),
            offsets: Table::new(),
        }
    }

    fn change_of(&mut self, key: u8) -> Change {
        let from = self.offsets.get(&key).copied().unwrap_or(0);
        match key {
            0..FILES => Change { key, from, to: Some(from + 1 + self.dice.below(100)) },
            _ => Change { key, from, to: (!self.dice.chance(300)).then(|| self.dice.roll()) },
        }
    }

    /// The checkpoints of the batch number `id`.
    pub(super) fn fill(&mut self, id: u64) -> Checkpoints {
        let mut checkpoints = Checkpoints::default();
        let keys: BTreeSet<u8> =
            (0..self.dice.below(4)).map(|_| self.dice.below(u64::from(KEYS)) as u8).collect();
        for key in keys {
            if key < FILES && !self.waiting.insert(key) {
                continue;
            }
            let change = self.change_of(key);
            enter(&mut checkpoints, change);
            self.carried.entry(id).or_default().push(change);
        }
        checkpoints
    }

    /// The journal holds its records, and not their checkpoints: sources go on from earlier ones.
    pub(super) fn go_back(&mut self, journal: &Journal) {
        let found = table_of(journal);
        for (key, offset) in self.offsets.iter().filter(|(key, _)| **key < FILES) {
            assert!(found.get(key).copied().unwrap_or(0) <= *offset, "file {key} is skipped");
        }
        self.went_back_at.push(journal.stats().head);
        self.head = journal.stats().head;
        self.offsets = found.clone();
        self.gone_back = Some(found);
    }

    /// A file goes on where an acknowledged batch ended, and sends the same again after a refusal.
    pub(super) fn answered(&mut self, journal: &Journal, id: u64, acknowledged: bool) {
        for change in self.carried.get(&id).into_iter().flatten().filter(|change| change.key < FILES) {
            self.waiting.remove(&change.key);
            if let (true, Some(to)) = (acknowledged, change.to) {
                self.offsets.insert(change.key, to);
                assert_eq!(journal.checkpoint(&[change.key]).as_deref(), Some(&*value_of(to)));
            }
        }
    }

    /// Changes something without a record, now and then.
    pub(super) fn set(&mut self, journal: &Journal) {
        if self.dice.chance(200) {
            let key = FILES + self.dice.below(u64::from(KEYS - FILES)) as u8;
            let change = self.change_of(key);
            let mut checkpoints = Checkpoints::default();
            enter(&mut checkpoints, change);
            journal.set_checkpoints(&checkpoints);
            self.set.push((journal.stats().head, change));
        }
    }

    pub(super) fn all_saved(&mut self) {
        self.saved = self.set.len();
    }

    /// The journal was opened and holds `records`, or its sinks have completed them.
    pub(super) fn check(&mut self, journal: &Journal, records: &BTreeMap<u64, u64>) {
        let found = table_of(journal);
        let fresh = records.range(self.head..).filter(|(_, id)| self.carried.contains_key(id));
        let fresh: Vec<(u64, u64)> = fresh.map(|(sequence, id)| (*sequence, *id)).collect();
        let expected = |base: &Table, survived: usize| {
            let mut table = base.clone();
            let mut set = self.set[..survived].iter().peekable();
            for (sequence, id) in &fresh {
                while let Some((_, change)) = set.next_if(|(head, _)| head <= sequence) {
                    apply(&mut table, change);
                }
                self.carried[id].iter().for_each(|change| apply(&mut table, change));
            }
            set.for_each(|(_, change)| apply(&mut table, change));
            table
        };
        let survived = self.saved..=self.set.len();
        let bases = std::iter::once(&self.restored).chain(&self.gone_back);
        let possible: Vec<Table> =
            bases.flat_map(|base| survived.clone().map(|survived| expected(base, survived))).collect();
        assert!(possible.contains(&found), "{found:?} is none of {possible:?}, from {:?}", self.restored);
        self.durable.extend(fresh);
        self.check_files(&found);
        self.gone_back = None;
        self.head = journal.stats().head;
        self.offsets = found.clone();
        self.restored = found;
        self.waiting.clear();
        self.set.clear();
        self.saved = 0;
    }

    /// Every part of a file up to its checkpoint is in one record, and in more only where its source has gone back.
    fn check_files(&self, found: &Table) {
        for key in 0..FILES {
            let changes = self.durable.iter().flat_map(|(sequence, id)| {
                self.carried[id].iter().filter(|change| change.key == key).map(|change| (*sequence, change))
            });
            let went_back =
                |from: u64, to: u64| self.went_back_at.iter().any(|head| (from..=to).contains(head));
            let (mut end, mut next, mut ends) = (0, 0, BTreeSet::from([0]));
            for (sequence, change) in changes {
                let again = went_back(next, sequence) && ends.contains(&change.from);
                assert!(change.from == end || again, "a part of file {key} is lost or sent twice");
                (end, next) = (change.to.unwrap(), sequence + 1);
                ends.insert(end);
            }
            let offset = found.get(&key).copied().unwrap_or(0);
            let again = went_back(next, u64::MAX) && ends.contains(&offset);
            assert!(offset == end || again, "the checkpoint of file {key} is {offset} instead of {end}");
        }
    }
}

fn enter(checkpoints: &mut Checkpoints, change: Change) {
    let entered = match change.to {
        Some(to) => checkpoints.set(&[change.key], &value_of(to)),
        None => checkpoints.remove(&[change.key]),
    };
    entered.unwrap();
}
