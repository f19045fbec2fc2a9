//! How many requests an endpoint is given at a time: additive increase, multiplicative decrease.
//!
//! The law, its constants and why are in `design/otlp.md`.

use std::time::Duration;
use tokio::time::Instant;

/// How many requests an endpoint gets at first.
const FIRST: f64 = 2.0;
/// What is left of the limit when answers take longer.
const SLOWER: f64 = 0.8;
/// What is left of it when a request fails.
const FAILED: f64 = 0.5;
/// How many times the lowest latency is still as usual.
const USUAL: u32 = 2;
/// What is never taken for slowness.
const NOISE: Duration = Duration::from_millis(20);
/// The slowest way that a body's length excuses, in bytes per millisecond.
const PACE: usize = 16 << 10;
/// The lowest latency is that of the last one or two of these.
const WINDOW: Duration = Duration::from_secs(15);

/// One endpoint's limit.
#[derive(Debug)]
pub(super) struct Limit {
    now: f64,
    most: f64,
    /// The lowest latency in the window before, and in this one.
    lowest: (Duration, Duration),
    window_ends: Instant,
    /// When it was lowered last: what was sent before that has had its say.
    lowered: Option<Instant>,
}

/// A request that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// How many were under way with it, itself among them.
    pub(super) among: usize,
    /// The length of its body, in bytes.
    pub(super) bytes: usize,
}

impl Limit {
    /// A limit that is never more than `most`, and never less than one.
    pub(super) fn new(most: usize, now: Instant) -> Limit {
        let most = most.clamp(1, 1 << 16) as f64;
        Limit {
            now: FIRST.min(most),
            most,
            lowest: (Duration::MAX, Duration::MAX),
            window_ends: now + WINDOW,
            lowered: None,
        }
    }

    /// Whether one more request may be sent where `in_flight` are under way.
    pub(super) fn allows(&self, in_flight: usize) -> bool {
        (in_flight as f64) + 1.0 <= self.now
    }

    /// The limit as it is now.
    #[cfg(test)]
    pub(super) fn now(&self) -> f64 {
        self.now
    }

    /// A request was answered, whatever the answer.
    pub(super) fn answered(&mut self, sent: Sent, now: Instant) {
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
        } else if sent.among as f64 + 1.0 > self.now {
            // By one for each time that all of the limit was answered, and only where it was made use of.
            self.now = (self.now + 1.0 / self.now).min(self.most);
        }
    }

    /// A request failed.
    pub(super) fn failed(&mut self, sent: Sent, now: Instant) {
        self.lower(FAILED, sent, now);
    }

    fn lower(&mut self, to: f64, sent: Sent, now: Instant) {
        if self.lowered.is_none_or(|lowered| sent.at >= lowered) {
            self.now = (self.now * to).max(1.0);
            self.lowered = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Has rounds of requests answered after `latency`, each as many as allowed; the limit after each.
    fn rounds(limit: &mut Limit, clock: &mut Instant, count: usize, latency: Duration) -> Vec<f64> {
        let mut after = Vec::new();
        for _ in 0..count {
            let mut in_flight = 0;
            while limit.allows(in_flight) {
                in_flight += 1;
            }
            let at = *clock;
            *clock += latency;
            (0..in_flight).for_each(|_| limit.answered(Sent { at, among: in_flight, bytes: 0 }, *clock));
            after.push(limit.now());
        }
        after
    }

    #[test]
    fn it_rises_by_about_one_each_round_up_to_the_most() {
        let mut clock = Instant::now();
        let mut limit = Limit::new(6, clock);
        let after = rounds(&mut limit, &mut clock, 10, 5 * MS);
        assert!(after.windows(2).all(|pair| pair[1] <= pair[0] + 1.0), "{after:?}");
        assert_eq!(limit.now(), 6.0);
        assert!(limit.allows(5) && !limit.allows(6));
    }

    #[test]
    fn it_falls_once_a_round_when_answers_take_longer_and_never_below_one() {
        let mut clock = Instant::now();
        let mut limit = Limit::new(8, clock);
        rounds(&mut limit, &mut clock, 20, 5 * MS);
        let after = rounds(&mut limit, &mut clock, 12, 100 * MS);
        assert!((after[0] - 8.0 * SLOWER).abs() < 1e-9, "{after:?}");
        assert_eq!(limit.now(), 1.0);
        assert!(limit.allows(0) && !limit.allows(1));
    }

    #[test]
    fn it_rises_again_when_the_longer_way_is_the_usual_one() {
        let mut clock = Instant::now();
        let mut limit = Limit::new(8, clock);
        rounds(&mut limit, &mut clock, 20, 5 * MS);
        rounds(&mut limit, &mut clock, 1000, 100 * MS);
        assert_eq!(limit.now(), 8.0);
    }

    #[test]
    fn a_failure_halves_it_and_those_sent_before_count_no_more() {
        let mut clock = Instant::now();
        let mut limit = Limit::new(8, clock);
        rounds(&mut limit, &mut clock, 20, 5 * MS);
        let sent = Sent { at: clock, among: 8, bytes: 0 };
        clock += MS;
        limit.failed(sent, clock);
        limit.failed(sent, clock);
        assert_eq!(limit.now(), 4.0);
        limit.failed(Sent { at: clock, ..sent }, clock + MS);
        assert_eq!(limit.now(), 2.0);
    }

    #[test]
    fn it_does_not_rise_where_it_is_not_made_use_of() {
        let mut clock = Instant::now();
        let mut limit = Limit::new(8, clock);
        for _ in 0..50 {
            let sent = Sent { at: clock, among: 1, bytes: 0 };
            clock += MS;
            limit.answered(sent, clock);
        }
        assert_eq!(limit.now(), FIRST);
    }

    /// A large body takes longer on its way, which says nothing of the peer.
    #[test]
    fn length_excuses_latency() {
        let mut clock = Instant::now();
        let mut limit = Limit::new(8, clock);
        rounds(&mut limit, &mut clock, 20, 5 * MS);
        let sent = Sent { at: clock, among: 8, bytes: 4 << 20 };
        limit.answered(sent, clock + 200 * MS);
        assert_eq!(limit.now(), 8.0);
    }
}
