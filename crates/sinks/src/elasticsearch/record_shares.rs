//! The records that a outbound's documents are of: which document is whose, what became of them, and which of them wait
//! for an index that takes none now.
//!
//! A document has a number within its record, the same whenever the record is translated. So a few ranges say which
//! documents of a record wait, and those alone are made again.

use crate::losses::Losses;
use std::sync::Arc;
use tidegate_ledger::Dropped;

/// The most ranges of numbers that are remembered of a record and an index. Beyond them all of its documents for that
/// index are sent again.
const MOST_RANGES: usize = 8;

/// The state of one record's documents.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordShare {
    pub(super) sequence: u64,
    /// Items as the books count them.
    pub(super) items: u64,
    /// Documents that were made of them, and the items that those say.
    pub(super) documents: u64,
    pub(super) said: u64,
    /// Items of which there are no documents, where the translation counts them.
    pub(super) left_out: Option<u64>,
    /// Items that the sink is not configured to take.
    pub(super) passed: u64,
    /// Documents that were not wanted, and those that were too large.
    pub(super) rejected: u64,
    pub(super) too_large: u64,
    /// Documents that wait for their index.
    pub(super) waits: Vec<IndexWait>,
}

/// Documents of one record that wait for one index.
#[derive(Debug, Clone)]
pub(super) struct IndexWait {
    pub(super) index: Arc<str>,
    pub(super) documents: u64,
    /// Their numbers, ascending; nothing where there are too many ranges.
    ranges: Option<Vec<ItemRange>>,
}

/// Numbers of documents that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ItemRange {
    first: u64,
    count: u64,
}

/// Documents that follow each other in a outbound and in their record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutcomeRun {
    /// Of which of the outbound's records.
    pub(super) share: usize,
    /// The number of the first within its record.
    pub(super) first: u64,
    pub(super) count: u64,
}

/// Which document is whose, in the order of a outbound.
#[derive(Debug, Clone, Default)]
pub(super) struct OutcomeRuns(Vec<OutcomeRun>);

impl RecordShare {
    /// The items lost once everything else is done.
    pub(super) fn losses(&self) -> Losses {
        let items = self.items.saturating_sub(self.passed);
        let left_out = self.left_out.unwrap_or_else(|| items.saturating_sub(self.said));
        let said = items.saturating_sub(left_out);
        // Where documents are not items, as many of these are lost in proportion.
        let of = |lost: u64| match self.documents {
            0 => 0,
            documents => u64::try_from((u128::from(lost) * u128::from(said)).div_ceil(u128::from(documents)))
                .unwrap_or(u64::MAX),
        };
        let mut losses = Losses::of(Dropped::Untranslatable, left_out).and(Losses::passed_over(self.passed));
        losses.add(Dropped::Rejected, of(self.rejected));
        losses.add(Dropped::TooLarge, of(self.too_large));
        losses
    }

    /// Notes that a document waits for its index.
    pub(super) fn wait(&mut self, index: &Arc<str>, number: u64) {
        let at = self.waits.iter().position(|wait| wait.index == *index).unwrap_or_else(|| {
            self.waits.push(IndexWait { index: Arc::clone(index), documents: 0, ranges: Some(Vec::new()) });
            self.waits.len() - 1
        });
        let Some(wait) = self.waits.get_mut(at) else { return };
        wait.documents += 1;
        let Some(ranges) = &mut wait.ranges else { return };
        let is_room = ranges.len() < MOST_RANGES;
        match ranges.last_mut() {
            Some(last) if last.first + last.count == number => last.count += 1,
            // Each is met once, and mostly in order.
            _ if is_room => ranges.push(ItemRange { first: number, count: 1 }),
            _ => wait.ranges = None,
        }
    }

    /// Has everything that waits wait together, for want of memory to tell it apart: all of the record is sent again.
    pub(super) fn collapse(&mut self) {
        let documents = self.waits.iter().map(|wait| wait.documents).sum();
        self.waits = vec![IndexWait { index: Arc::from(""), documents, ranges: None }];
    }

    /// The documents that wait for an index, removed from the waiting ones.
    pub(super) fn take_wait(&mut self, index: &str) -> Option<IndexWait> {
        let at = self.waits.iter().position(|wait| *wait.index == *index)?;
        Some(self.waits.swap_remove(at))
    }

    pub(super) fn waits_for(&self, index: &str) -> Option<&IndexWait> {
        self.waits.iter().find(|wait| *wait.index == *index)
    }
}

impl IndexWait {
    /// Most bytes of one.
    pub(super) const BYTES: usize = size_of::<IndexWait>() + MOST_RANGES * size_of::<ItemRange>();

    /// Whether the document of this number waits, which is for the index `index`.
    pub(super) fn has(&self, number: u64, index: &[u8]) -> bool {
        match &self.ranges {
            Some(ranges) => {
                ranges.iter().any(|range| (range.first..range.first + range.count).contains(&number))
            }
            // Those without a name of their own are many indexes: what is there already makes no duplicate.
            None => self.index.is_empty() || self.index.as_bytes() == index,
        }
    }
}

impl OutcomeRuns {
    /// Adds documents at the end.
    pub(super) fn push(&mut self, share: usize, first: u64, count: u64) {
        match self.0.last_mut() {
            _ if count == 0 => {}
            Some(last) if last.share == share && last.first + last.count == first => last.count += count,
            _ => self.0.push(OutcomeRun { share, first, count }),
        }
    }

    /// The record and the number of each document.
    pub(super) fn each(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().flat_map(|run| (run.first..run.first + run.count).map(|number| (run.share, number)))
    }

    /// Takes away the first `count` documents.
    pub(super) fn skip(&mut self, mut count: u64) {
        let mut gone = 0;
        for run in &mut self.0 {
            let taken = count.min(run.count);
            (run.first, run.count) = (run.first + taken, run.count - taken);
            count -= taken;
            if run.count > 0 {
                break;
            }
            gone += 1;
        }
        self.0.drain(..gone);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|run| run.count).sum()
    }

    /// Whether it has the document of this number of the first record.
    pub(super) fn has(&self, number: u64) -> bool {
        self.0.iter().any(|run| (run.first..run.first + run.count).contains(&number))
    }

    /// Those of the first record from `number` on.
    pub(super) fn from(&self, number: u64) -> OutcomeRuns {
        let mut rest = OutcomeRuns::default();
        for run in &self.0 {
            let first = run.first.max(number);
            rest.push(run.share, first, (run.first + run.count).saturating_sub(first));
        }
        rest
    }

    /// All documents behind the first `skipped`.
    pub(super) fn behind(&self, skipped: u64) -> OutcomeRuns {
        let mut rest = self.clone();
        rest.skip(skipped);
        rest
    }

    pub(super) fn extend(&mut self, more: &OutcomeRuns) {
        more.0.iter().for_each(|run| self.push(run.share, run.first, run.count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_documents_are_kept_as_ranges_or_as_a_whole_index() {
        let index: Arc<str> = Arc::from("red");
        let mut share = RecordShare::default();
        (10..20).chain(30..33).for_each(|number| share.wait(&index, number));
        let wait = share.waits_for("red").unwrap();
        assert_eq!(wait.documents, 13);
        assert!((0..50).all(
            |number| wait.has(number, b"") == ((10..20).contains(&number) || (30..33).contains(&number))
        ));
        (0..200).for_each(|number| share.wait(&index, 100 + 2 * number));
        let wait = share.take_wait("red").unwrap();
        assert!(wait.has(5, b"red") && !wait.has(100, b"green"));
        assert!(share.waits.is_empty());
    }

    #[test]
    fn documents_are_told_apart_by_their_place() {
        let mut runs = OutcomeRuns::default();
        runs.push(0, 0, 3);
        runs.push(0, 3, 1);
        runs.push(1, 0, 2);
        assert_eq!(runs.0.len(), 2);
        runs.skip(2);
        assert_eq!(runs.each().collect::<Vec<_>>(), [(0, 2), (0, 3), (1, 0), (1, 1)]);
        assert_eq!((runs.behind(3).count(), runs.count()), (1, 4));
        runs.skip(9);
        assert_eq!(runs.count(), 0);
    }
}
