//! Which points of a request are translated.

use std::ops::Range;

/// A part of a request: some of its points, counted over all of it; and how far the walk has come.
#[derive(Debug, Clone)]
pub(super) struct PointRange {
    requested: Range<u64>,
    next: u64,
}

impl PointRange {
    /// Every point.
    pub(super) const WHOLE: Range<u64> = 0..u64::MAX;

    /// These points, for a walk that begins behind the first `passed` ones.
    pub(super) fn new(wanted: Range<u64>, passed: u64) -> Self {
        Self { requested: wanted, next: passed }
    }

    /// How many points were passed.
    pub(super) fn passed(&self) -> u64 {
        self.next
    }

    pub(super) fn is_whole(&self) -> bool {
        self.requested == Self::WHOLE
    }

    /// Whether nothing that comes is wanted.
    pub(super) fn is_over(&self) -> bool {
        self.next >= self.requested.end
    }

    /// Whether a point behind all that are wanted was passed: whatever comes is not wanted, nor the last.
    pub(super) fn is_passed(&self) -> bool {
        self.next > self.requested.end
    }

    /// How many points were passed, up to the last that is wanted.
    pub(super) fn reached(&self) -> u64 {
        self.next.min(self.requested.end)
    }

    /// Whether any of the next `points` is wanted.
    pub(super) fn reaches(&self, points: u64) -> bool {
        self.clone().pass(points) > 0
    }

    /// Goes past the next `points`; says how many of them are wanted.
    pub(super) fn pass(&mut self, points: u64) -> u64 {
        let from = self.next;
        self.next = from.saturating_add(points);
        self.next.min(self.requested.end).saturating_sub(from.max(self.requested.start))
    }

    /// Whether the point that was passed last is wanted.
    pub(super) fn has_last(&self) -> bool {
        self.requested.start < self.next && self.next <= self.requested.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passing_items_counts_those_within_the_range() {
        let mut part = PointRange::new(3..7, 0);
        assert!(!part.reaches(3));
        assert_eq!((part.pass(2), part.has_last()), (0, false));
        assert!(part.reaches(2));
        assert_eq!((part.pass(3), part.has_last()), (2, true));
        assert_eq!((part.pass(2), part.has_last(), part.is_over()), (2, true, true));
        assert_eq!((part.pass(9), part.has_last()), (0, false));
        let mut whole = PointRange::new(PointRange::WHOLE, 0);
        assert_eq!((whole.pass(5), whole.is_whole(), whole.is_over()), (5, true, false));
    }
}
