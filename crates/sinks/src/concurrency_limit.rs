//! How much an endpoint is given at a time: additive increase, multiplicative decrease.
//!
//! The law, its constants and why are in `design/otlp.md`. What is counted are requests, or their bytes.

use std::time::Duration;
use tokio::time::Instant;

/// How many steps an endpoint gets at first.
const FIRST: f64 = 2.0;
/// The factor on the limit when answers become slower.
const SLOWER: f64 = 0.8;
/// The factor on the limit when a request fails.
const FAILED: f64 = 0.5;
/// How many times the lowest latency is still as usual.
const USUAL: u32 = 2;
/// A latency that never counts as slow.
const NOISE: Duration = Duration::from_millis(20);
/// The slowest way that a body's length excuses, in bytes per millisecond.
const PACE: usize = 16 << 10;
/// The lowest latency is that of the last one or two of these.
const WINDOW: Duration = Duration::from_secs(15);

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdaptationRule {
    /// Requests, of which there are at most so many.
    Requests(usize),
    /// Bytes of requests: at most so many steps of so many bytes.
    Bytes {
        /// How many.
        steps: usize,
        /// About as long as a request is.
        step: usize,
    },
}

/// One endpoint's limit.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimit {
    /// Of units.
    now: f64,
    most: f64,
    step: f64,
    /// The lowest latency in the window before, and in this one.
    lowest: (Duration, Duration),
    window_ends: Instant,
    /// When it was lowered last: what was sent before that has had its say.
    lowered: Option<Instant>,
}

/// A request that was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentRequest {
    pub(crate) at: Instant,
    /// How many units it has.
    pub(crate) units: usize,
    /// How many units were under way with it, its own among them.
    pub(crate) among: usize,
    /// The length of its body, in bytes.
    pub(crate) bytes: usize,
}

impl AdaptationRule {
    /// How many units a request of `bytes` bytes has.
    pub(crate) fn units(self, bytes: usize) -> usize {
        match self {
            AdaptationRule::Requests(_) => 1,
            AdaptationRule::Bytes { .. } => bytes.max(1),
        }
    }
}

impl ConcurrencyLimit {
    /// A limit that is never more than `law` has, and never less than a step.
    pub(crate) fn new(law: AdaptationRule, now: Instant) -> ConcurrencyLimit {
        let (steps, step) = match law {
            AdaptationRule::Requests(most) => (most, 1),
            AdaptationRule::Bytes { steps, step } => (steps, step.max(1)),
        };
        let (steps, step) = (steps.clamp(1, 1 << 16) as f64, step as f64);
        let most = steps * step;
        ConcurrencyLimit {
            now: (FIRST * step).min(most),
            most,
            step,
            lowest: (Duration::MAX, Duration::MAX),
            window_ends: now + WINDOW,
            lowered: None,
        }
    }

    /// Whether `more` units may be sent where `in_flight` are under way. One request always may.
    pub(crate) fn allows(&self, in_flight: usize, more: usize) -> bool {
        in_flight == 0 || (in_flight as f64) + (more as f64) <= self.now
    }

    /// The limit as it is now.
    #[cfg(test)]
    pub(crate) fn now(&self) -> f64 {
        self.now
    }

    /// The limit in steps: about as many requests.
    pub(crate) fn requests(&self) -> f64 {
        self.now / self.step
    }

    /// A request was answered, whatever the answer.
    pub(crate) fn answered(&mut self, sent: SentRequest, now: Instant) {
        let latency = now.saturating_duration_since(sent.at);
        if now >= self.window_ends {
            self.lowest = (self.lowest.1, Duration::MAX);
            self.window_ends = now + WINDOW;
        }
        self.lowest.1 = self.lowest.1.min(latency);
        let lowest = self.lowest.0.min(self.lowest.1);
        let excuse = Duration::from_millis((sent.bytes / PACE) as u64);
        if latency > lowest.saturating_mul(USUAL) + NOISE + excuse {
            self.lower(SLOWER, sent, now);
        } else if sent.among as f64 + self.step > self.now {
            // By a step for each time that all of the limit was answered, and only where it was made use of.
            self.now = (self.now + self.step * sent.units as f64 / self.now).min(self.most);
        }
    }

    /// A request failed.
    pub(crate) fn failed(&mut self, sent: SentRequest, now: Instant) {
        self.lower(FAILED, sent, now);
    }

    fn lower(&mut self, to: f64, sent: SentRequest, now: Instant) {
        if self.lowered.is_none_or(|lowered| sent.at >= lowered) {
            self.now = (self.now * to).max(self.step);
            self.lowered = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Has rounds of requests answered after `latency`, each as many as allowed; the limit after each.
    fn rounds(
        limit: &mut ConcurrencyLimit,
        clock: &mut Instant,
        count: usize,
        latency: Duration,
    ) -> Vec<f64> {
        let mut after = Vec::new();
        for _ in 0..count {
            let mut in_flight = 0;
            while limit.allows(in_flight, 1) {
                in_flight += 1;
            }
            let at = *clock;
            *clock += latency;
            (0..in_flight).for_each(|_| {
                limit.answered(SentRequest { at, units: 1, among: in_flight, bytes: 0 }, *clock)
            });
            after.push(limit.now());
        }
        after
    }

    #[test]
    fn it_rises_by_about_one_each_round_up_to_the_most() {
        let mut clock = Instant::now();
        let mut limit = ConcurrencyLimit::new(AdaptationRule::Requests(6), clock);
        let after = rounds(&mut limit, &mut clock, 10, 5 * MS);
        assert!(after.windows(2).all(|pair| pair[1] <= pair[0] + 1.0), "{after:?}");
        assert_eq!(limit.now(), 6.0);
        assert!(limit.allows(5, 1) && !limit.allows(6, 1));
    }

    #[test]
    fn it_falls_once_a_round_when_answers_take_longer_and_never_below_one() {
        let mut clock = Instant::now();
        let mut limit = ConcurrencyLimit::new(AdaptationRule::Requests(8), clock);
        rounds(&mut limit, &mut clock, 20, 5 * MS);
        let after = rounds(&mut limit, &mut clock, 12, 100 * MS);
        assert!((after[0] - 8.0 * SLOWER).abs() < 1e-9, "{after:?}");
        assert_eq!(limit.now(), 1.0);
        assert!(limit.allows(0, 1) && !limit.allows(1, 1));
    }

    #[test]
    fn it_rises_again_when_the_longer_way_is_the_usual_one() {
        let mut clock = Instant::now();
        let mut limit = ConcurrencyLimit::new(AdaptationRule::Requests(8), clock);
        rounds(&mut limit, &mut clock, 20, 5 * MS);
        rounds(&mut limit, &mut clock, 1000, 100 * MS);
        assert_eq!(limit.now(), 8.0);
    }

    #[test]
    fn a_failure_halves_the_limit_once_per_round() {
        let mut clock = Instant::now();
        let mut limit = ConcurrencyLimit::new(AdaptationRule::Requests(8), clock);
        rounds(&mut limit, &mut clock, 20, 5 * MS);
        let sent = SentRequest { at: clock, units: 1, among: 8, bytes: 0 };
        clock += MS;
        limit.failed(sent, clock);
        limit.failed(sent, clock);
        assert_eq!(limit.now(), 4.0);
        limit.failed(SentRequest { at: clock, ..sent }, clock + MS);
        assert_eq!(limit.now(), 2.0);
    }

    #[test]
    fn it_does_not_rise_where_it_is_not_made_use_of() {
        let mut clock = Instant::now();
        let mut limit = ConcurrencyLimit::new(AdaptationRule::Requests(8), clock);
        for _ in 0..50 {
            let sent = SentRequest { at: clock, units: 1, among: 1, bytes: 0 };
            clock += MS;
            limit.answered(sent, clock);
        }
        assert_eq!(limit.now(), FIRST);
    }

    /// A large body takes longer on its way, which says nothing of the peer.
    #[test]
    fn length_excuses_latency() {
        let mut clock = Instant::now();
        let mut limit = ConcurrencyLimit::new(AdaptationRule::Requests(8), clock);
        rounds(&mut limit, &mut clock, 20, 5 * MS);
        let sent = SentRequest { at: clock, units: 1, among: 8, bytes: 4 << 20 };
        limit.answered(sent, clock + 200 * MS);
        assert_eq!(limit.now(), 8.0);
    }

    /// Of bytes the law is the same: as much more, by and by, as a step.
    #[test]
    fn bytes_rise_by_a_step_and_fall_by_a_part() {
        const MIB: usize = 1 << 20;
        let mut clock = Instant::now();
        let mut limit = ConcurrencyLimit::new(AdaptationRule::Bytes { steps: 4, step: MIB }, clock);
        assert!(limit.allows(0, 100 * MIB) && limit.allows(MIB, MIB) && !limit.allows(MIB, MIB + 1));
        for _ in 0..100 {
            let sent = SentRequest { at: clock, units: MIB / 4, among: limit.now() as usize, bytes: MIB / 4 };
            let before = limit.now();
            clock += 5 * MS;
            limit.answered(sent, clock);
            assert!(limit.now() - before <= (MIB / 4) as f64);
        }
        assert!(limit.allows(3 * MIB, MIB) && !limit.allows(3 * MIB, MIB + 1));
        limit.failed(SentRequest { at: clock, units: MIB, among: MIB, bytes: MIB }, clock);
        assert!(limit.allows(MIB, MIB) && !limit.allows(2 * MIB, 1));
    }
}
