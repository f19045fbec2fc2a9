//! What a sink could not deliver.

use tidegate_ledger::Dropped;

/// Items that were not delivered, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Losses([u64; Dropped::COUNT]);

impl Losses {
    /// Everything was delivered.
    pub(crate) const NONE: Losses = Losses([0; Dropped::COUNT]);

    /// `items` for one reason.
    pub(crate) fn of(reason: Dropped, items: u64) -> Losses {
        let mut losses = Losses::NONE;
        losses.add(reason, items);
        losses
    }

    /// Adds `items` for `reason`.
    pub(crate) fn add(&mut self, reason: Dropped, items: u64) {
        for (known, sum) in Dropped::ALL.iter().zip(&mut self.0) {
            *sum = sum.saturating_add(if *known == reason { items } else { 0 });
        }
    }

    /// Adds all of `other`.
    #[must_use]
    pub(crate) fn and(mut self, other: Losses) -> Losses {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
        self
    }

    /// The same without those of `reason`.
    #[must_use]
    pub(crate) fn but(mut self, reason: Dropped) -> Losses {
        for (known, sum) in Dropped::ALL.iter().zip(&mut self.0) {
            *sum = if *known == reason { 0 } else { *sum };
        }
        self
    }

    /// Each reason with its items.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Dropped, u64)> {
        Dropped::ALL.iter().copied().zip(self.0).filter(|(_, items)| *items > 0)
    }

    /// The same, of at most `items` in all; and what of those was not lost.
    #[must_use]
    pub(crate) fn within(mut self, items: u64) -> (Losses, u64) {
        let mut left = items;
        for lost in &mut self.0 {
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
    }
}
