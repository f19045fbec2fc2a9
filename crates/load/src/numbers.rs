/// A set of sample numbers, kept as ranges: a series that arrives in order takes one range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberSet {
    /// Half-open, ascending, never touching.
    ranges: Vec<(u64, u64)>,
}

/// A set that falls into more ranges than this takes no more new ones.
const MAX_RANGES: usize = 65_536;

impl NumberSet {
    /// Adds `from..to`; says how many of them were not in the set before.
    pub fn insert(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        // The ranges that overlap or touch the new one become one with it.
        let first = self.ranges.partition_point(|range| range.1 < from);
        let last = self.ranges.partition_point(|range| range.0 <= to);
        let known = self.within(from, to);
        if first == last && self.ranges.len() >= MAX_RANGES {
            return 0;
        }
        let merged = self.ranges[first..last].iter().fold((from, to), |m, r| (m.0.min(r.0), m.1.max(r.1)));
        self.ranges.splice(first..last, [merged]);
        to - from - known
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (from, to) in &other.ranges {
            self.insert(*from, *to);
        }
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(from, to)| to - from).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many of `from..to` are in the set.
    pub fn within(&self, from: u64, to: u64) -> u64 {
        let first = self.ranges.partition_point(|range| range.1 <= from);
        let overlapping = self.ranges[first..].iter().take_while(|range| range.0 < to);
        overlapping.map(|range| range.1.min(to) - range.0.max(from)).sum()
    }

    /// The ranges, half-open, ascending.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// The first number that is in this set and not in `other`, and how many there are.
    pub fn missing_from(&self, other: &Self) -> Option<(u64, u64)> {
        let missing = |range: &&(u64, u64)| range.1 - range.0 - other.within(range.0, range.1);
        let count: u64 = self.ranges.iter().map(|range| missing(&range)).sum();
        let (from, to) = *self.ranges.iter().find(|range| missing(range) > 0)?;
        let at = other.ranges.iter().find(|range| range.0 <= from && from < range.1).map_or(from, |r| r.1);
        debug_assert!(at < to);
        Some((at, count))
    }
}
