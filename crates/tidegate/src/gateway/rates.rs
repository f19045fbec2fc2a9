//! How fast items come and go, and the journal fills: over the last two minutes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_journal::Stats;

/// How far samples are apart.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// How many there are: a lake, which finishes a file a minute, is seen twice.
const SAMPLES: usize = 25;
/// Less than this says nothing about a rate.
const LEAST: Duration = Duration::from_secs(10);

/// The rates of a running gateway.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<VecDeque<Sample>>);

#[derive(Debug)]
struct Sample {
    at: Duration,
    /// Items of all records, ever.
    items: u64,
    /// Check-ins of agents since the start.
    check_ins: u64,
    /// Bytes that the sink which is furthest behind has not completed.
    queued_bytes: u64,
    /// The items before each cursor.
    sinks: Vec<(String, u64)>,
}

impl Rates {
    /// Notes the journal's numbers and the fleet's check-ins at `at`, a time since the start. To be called about once a second.
    pub(crate) fn note(&self, at: Duration, stats: &Stats, check_ins: u64) {
        let mut samples = self.samples();
        if samples.back().is_some_and(|last| at.saturating_sub(last.at) < SAMPLE_INTERVAL) {
            return;
        }
        if samples.len() >= SAMPLES {
            samples.pop_front();
        }
        let sinks = stats.sinks.iter().map(|sink| (sink.name.clone(), sink.position.items));
        let queued_bytes = stats.sinks.iter().map(|sink| sink.lag_bytes).max().unwrap_or(0);
        samples.push_back(Sample { at, items: stats.items, check_ins, queued_bytes, sinks: sinks.collect() });
    }

    /// Items appended a second.
    pub(crate) fn arriving(&self) -> Option<f64> {
        self.rate(|sample| Some(sample.items))
    }

    /// Check-ins of agents a second.
    pub(crate) fn check_ins(&self) -> Option<f64> {
        self.rate(|sample| Some(sample.check_ins))
    }

    /// Items a second that the cursor of `sink` passed.
    pub(crate) fn leaving(&self, sink: &str) -> Option<f64> {
        self.rate(|sample| sample.sinks.iter().find(|(name, _)| name == sink).map(|(_, items)| *items))
    }

    /// When a journal that may take `quota` bytes is full, should this go on; nothing when it does not fill.
    pub(crate) fn full_in(&self, quota: u64) -> Option<Duration> {
        let samples = self.samples();
        let (first, last) = (samples.front()?, samples.back()?);
        let span = last.at.saturating_sub(first.at);
        let more = last.queued_bytes.checked_sub(first.queued_bytes).filter(|more| *more > 0)?;
        if span < LEAST {
            return None;
        }
        let left = quota.saturating_sub(last.queued_bytes);
        Duration::try_from_secs_f64(left as f64 / more as f64 * span.as_secs_f64()).ok()
    }

    fn rate(&self, of: impl Fn(&Sample) -> Option<u64>) -> Option<f64> {
        let samples = self.samples();
        // A sink that was added meanwhile is looked at from then on.
        let (first, before) = samples.iter().find_map(|sample| Some((sample.at, of(sample)?)))?;
        let last = samples.back()?;
        let span = last.at.saturating_sub(first);
        (span >= LEAST).then(|| of(last).map(|now| now.saturating_sub(before) as f64 / span.as_secs_f64()))?
    }

    fn samples(&self) -> MutexGuard<'_, VecDeque<Sample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    //! Promise: rates are those of the last two minutes, and nothing is said before something is known.

    use super::*;
    use tidegate_journal::{CursorPosition, SinkStats};

    fn stats(items: u64, done: u64, lag_bytes: u64) -> Stats {
        let position = CursorPosition {
            sequence: 0,
            items: done,
            born: 0,
            dropped: 0,
            damaged: 0,
            in_flight: 0,
            ahead: 0,
        };
        let sink = SinkStats {
            name: "up".to_owned(),
            position,
            followed: true,
            lag_records: 1,
            lag_items: items - done,
            lag_bytes,
            lag_age: None,
            write_errors: 0,
        };
        Stats { items, sinks: vec![sink], ..Stats::default() }
    }

    #[test]
    fn rates_follow_recent_events() {
        let rates = Rates::default();
        let second = Duration::from_secs(1);
        for at in 0..9_u32 {
            rates.note(second * at, &stats(u64::from(at) * 100, 0, 0), 0);
        }
        assert_eq!((rates.arriving(), rates.full_in(1000)), (None, None));
        for at in 9..500_u32 {
            let at64 = u64::from(at);
            rates.note(second * at, &stats(at64 * 100, at64 * 60, at64 * 10), at64 * 7);
        }
        assert_eq!(rates.arriving(), Some(100.0));
        assert_eq!(rates.leaving("up"), Some(60.0));
        assert_eq!(rates.check_ins(), Some(7.0));
        assert_eq!(rates.leaving("down"), None);
        // 495 seconds of ten bytes are there.
        assert_eq!(rates.full_in(4950 + 600), Some(Duration::from_secs(60)));
        assert_eq!(rates.full_in(10), Some(Duration::ZERO));
        // It stands still.
        for at in 500..700_u32 {
            rates.note(second * at, &stats(50_000, 50_000, 0), 0);
        }
        assert_eq!((rates.arriving(), rates.full_in(1000)), (Some(0.0), None));
    }
}
