//! The places from which a restart may read again.
//!
//! A reader that begins at a record decides as before about all traces that were met first behind it. So the records before a
//! checkpoint can go once every trace that was met before it is decided, and the reader behind has passed the records in which
//! that was known. With the checkpoint go the counters of rates as they were before the first decision about a trace that was met
//! behind it: the restart makes that decision again, and all that follow.

use crate::rates::Rates;
use std::collections::VecDeque;

/// The most checkpoints at a time.
const MOST: usize = 64;

/// The checkpoints that may still be used, oldest first.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    all: VecDeque<Checkpoint>,
    /// So many of the first are closed.
    closed: usize,
    /// The first record behind the last that was begun.
    newest: Option<u64>,
}

/// A place in the journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint {
    /// The first record behind it.
    pub(crate) sequence: u64,
    /// The clock there, in milliseconds since 1970: traces that were met before it were met earlier.
    at_ms: u64,
    /// The record before which all of those were decided.
    decided_before: u64,
    /// The counters then.
    pub(crate) rates: Rates,
}

impl Checkpoints {
    /// The bytes that they take.
    pub(crate) const BYTES: usize = MOST * size_of::<Checkpoint>();

    pub(crate) fn new() -> Checkpoints {
        Checkpoints { all: VecDeque::with_capacity(MOST), closed: 0, newest: None }
    }

    /// Begins one before the record `sequence`, where the last is older than `distance_ms`.
    pub(crate) fn begin(&mut self, sequence: u64, at_ms: u64, distance_ms: u64) {
        let is_near = |last: &Checkpoint| at_ms < last.at_ms.saturating_add(distance_ms);
        if self.all.back().is_some_and(is_near) {
            return;
        }
        if self.all.len() == MOST {
            self.thin_out();
        }
        if self.all.len() < MOST {
            let open = Checkpoint { sequence, at_ms, decided_before: u64::MAX, rates: Rates::default() };
            self.all.push_back(open);
            self.newest = Some(sequence);
        }
    }

    /// Forgets every second one, but not the first, which may be used next: the reader behind takes its time, and they need not be close
    /// together.
    fn thin_out(&mut self) {
        let (mut number, mut closed) = (0, 0);
        self.all.retain(|_| {
            number += 1;
            let stays = number % 2 == 1;
            closed += usize::from(stays && number <= self.closed);
            stays
        });
        self.closed = closed;
    }

    /// Whether there is one before the record `sequence`.
    pub(crate) fn has(&self, sequence: u64) -> bool {
        self.all.binary_search_by_key(&sequence, |checkpoint| checkpoint.sequence).is_ok()
    }

    /// The first record behind the last that was begun.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Closes those before which no undecided trace was met: the oldest of them was met at `oldest_ms`.
    pub(crate) fn close(&mut self, oldest_ms: Option<u64>, before: u64, rates: &Rates) {
        while let Some(open) = self.all.get_mut(self.closed)
            && oldest_ms.is_none_or(|oldest| oldest >= open.at_ms)
        {
            (open.decided_before, open.rates) = (before, *rates);
            self.closed += 1;
        }
    }

    /// Forgets all: the clock was set back.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.closed = 0;
    }

    /// The last one that a restart may begin at when the reader behind has passed all records before `sequence`; those before it are
    /// forgotten.
    pub(crate) fn pass(&mut self, sequence: u64) -> Option<Checkpoint> {
        let mut last = None;
        while self.closed > 0
            && let Some(first) = self.all.front().filter(|first| first.decided_before <= sequence)
        {
            last = Some(*first);
            self.all.pop_front();
            self.closed -= 1;
        }
        last
    }
}
