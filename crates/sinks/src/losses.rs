//! Accounts for undelivered items.

use tidegate_ledger::Dropped;

/// Items that were not delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// By reason.
    dropped: [u64; Dropped::COUNT],
    /// Of records that were taken for the sake of others: the sink is not configured to take these.
    passed: u64,
    /// They are kept on disk for a member of the sink's ring.
    handed_off: u64,
}

impl Losses {
    /// Everything was delivered.
    pub(crate) const NONE: Losses = Losses { dropped: [0; Dropped::COUNT], passed: 0, handed_off: 0 };

    /// `items` for one reason.
    pub(crate) fn of(reason: Dropped, items: u64) -> Losses {
        let mut losses = Losses::NONE;
        losses.add(reason, items);
        losses
    }

    /// `items` that the sink is not configured to take.
    pub(crate) fn passed_over(items: u64) -> Losses {
        Losses { passed: items, ..Losses::NONE }
    }

    /// Items that the sink is not configured to take.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Items that are kept on disk for a member of the sink's ring.
    pub(crate) fn handed_off(&self) -> u64 {
        self.handed_off
    }

    /// Adds `items` that are kept on disk for a member of the sink's ring.
    pub(crate) fn add_handed_off(&mut self, items: u64) {
        self.handed_off = self.handed_off.saturating_add(items);
    }

    /// Adds `items` for `reason`.
    pub(crate) fn add(&mut self, reason: Dropped, items: u64) {
        for (known, sum) in Dropped::ALL.iter().zip(&mut self.dropped) {
            *sum = sum.saturating_add(if *known == reason { items } else { 0 });
        }
    }

    /// Adds all of `other`.
    #[must_use]
    pub(crate) fn and(mut self, other: Losses) -> Losses {
        for (sum, more) in self.dropped.iter_mut().zip(other.dropped) {
            *sum = sum.saturating_add(more);
        }
        self.passed = self.passed.saturating_add(other.passed);
        self.handed_off = self.handed_off.saturating_add(other.handed_off);
        self
    }

    /// The same without those of `reason`.
    #[must_use]
    pub(crate) fn but(mut self, reason: Dropped) -> Losses {
        for (known, sum) in Dropped::ALL.iter().zip(&mut self.dropped) {
            *sum = if *known == reason { 0 } else { *sum };
        }
        self
    }

    /// Each reason with the items that were dropped for it.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Dropped, u64)> {
        Dropped::ALL.iter().copied().zip(self.dropped).filter(|(_, items)| *items > 0)
    }

    /// The same, of at most `items` in all; and what of those was not lost.
    #[must_use]
    pub(crate) fn within(mut self, items: u64) -> (Losses, u64) {
        let mut left = items;
        for lost in [&mut self.passed, &mut self.handed_off].into_iter().chain(&mut self.dropped) {
            *lost = left.min(*lost);
            left -= *lost;
        }
        (self, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_lost_than_there_was() {
        let losses = Losses::of(Dropped::Rejected, 5).and(Losses::of(Dropped::TooLarge, 3));
        assert_eq!(losses.within(10), (losses, 2));
        let (fewer, left) = losses.within(6);
        assert_eq!(fewer.entries().collect::<Vec<_>>(), [(Dropped::Rejected, 5), (Dropped::TooLarge, 1)]);
        assert_eq!(left, 0);
        let (fewer, left) = losses.and(Losses::passed_over(4)).within(6);
        assert_eq!(fewer.entries().collect::<Vec<_>>(), [(Dropped::Rejected, 2)]);
        assert_eq!((fewer.passed(), left), (4, 0));
    }
}
