//! Rates of one counter over the last minutes.

use std::collections::VecDeque;

/// How many points there are: five minutes, at an answer a second.
const POINTS: usize = 300;
/// The rate that is printed is the mean of so many points, so that it can be read.
const MEAN_OF: usize = 5;

/// What happened between two answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// So many seconds passed, by the gateway's own clock.
    Seconds(f64),
    /// The gateway is another process than before, so its counters began anew.
    Restart,
}

/// A monotonic counter, and how fast it rose.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// The last value; nothing before the first.
    last: Option<u64>,
    /// Per second; nothing where it is not known.
    points: VecDeque<Option<f64>>,
}

impl History {
    /// Notes the counter's value after `step`.
    pub(crate) fn note(&mut self, value: u64, step: Step) {
        if self.last.is_some() && step == Step::Seconds(0.0) {
            // Two answers of the same moment: the next one has the difference.
            return;
        }
        let before = self.last.replace(value);
        let (Some(before), Step::Seconds(seconds)) = (before, step) else { return self.push(None) };
        // Without answers for a while, the points of that while are missing, and do not move the others together.
        for _ in 1..(seconds.round() as usize).min(POINTS) {
            self.push(None);
        }
        self.push(value.checked_sub(before).map(|more| more as f64 / seconds));
    }

    fn push(&mut self, point: Option<f64>) {
        if self.points.len() >= POINTS {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    /// How fast it rises now, per second; nothing while that is not known.
    pub(crate) fn rate(&self) -> Option<f64> {
        let newest = self.points.iter().rev().take(MEAN_OF);
        // Up to the last restart or silence, which it knows nothing of.
        let known: Vec<f64> = newest.map_while(|point| *point).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// The newest points, at most `count`, the oldest first.
    pub(crate) fn newest(&self, count: usize) -> impl Iterator<Item = Option<f64>> {
        self.points.iter().skip(self.points.len().saturating_sub(count)).copied()
    }
}

#[cfg(test)]
mod tests {
    //! Promise: a rate is the difference of two counts over the time between them, and nothing is invented.

    use super::*;
    use proptest::prelude::*;

    fn history(values: &[(u64, Step)]) -> History {
        let mut history = History::default();
        values.iter().for_each(|(value, step)| history.note(*value, *step));
        history
    }

    #[test]
    fn rates_are_differences_over_time() {
        let second = Step::Seconds(1.0);
        assert_eq!(history(&[(100, second)]).rate(), None, "one count has no rate");
        assert_eq!(history(&[(100, second), (150, Step::Seconds(2.0))]).newest(1).next(), Some(Some(25.0)));
        assert_eq!(history(&[(0, second), (10, second), (40, second)]).rate(), Some(20.0));
    }

    #[test]
    fn only_the_last_points_count() {
        let mut history = history(&[(0, Step::Seconds(1.0)), (1_000, Step::Seconds(1.0))]);
        for _ in 0..MEAN_OF {
            history.note(1_000, Step::Seconds(1.0));
        }
        assert_eq!(history.rate(), Some(0.0));
    }

    /// A process that starts again has counters that begin with zero; that is neither a negative rate nor a burst.
    #[test]
    fn a_restart_leaves_a_gap() {
        let second = Step::Seconds(1.0);
        let mut history = history(&[(0, second), (500, second), (9_000, Step::Restart)]);
        assert_eq!(history.rate(), None);
        history.note(9_010, second);
        assert_eq!(history.rate(), Some(10.0));
        // Nor is a counter that falls without one.
        history.note(3, second);
        assert_eq!(history.rate(), None);
    }

    #[test]
    fn a_silence_keeps_its_place() {
        let history = history(&[(0, Step::Seconds(1.0)), (10, Step::Seconds(1.0)), (50, Step::Seconds(4.0))]);
        let points: Vec<_> = history.newest(5).collect();
        assert_eq!(points, [Some(10.0), None, None, None, Some(10.0)]);
    }

    proptest! {
        /// Whatever is answered: no more points than fit, and no rate that is not a number of events.
        #[test]
        fn holds_what_fits(values in prop::collection::vec((any::<u64>(), 0.0..1e9_f64), 0..20)) {
            let mut history = History::default();
            for (value, seconds) in values {
                history.note(value, Step::Seconds(seconds));
                prop_assert!(history.points.len() <= POINTS);
                prop_assert!(history.rate().is_none_or(|rate| rate >= 0.0));
            }
        }
    }
}
