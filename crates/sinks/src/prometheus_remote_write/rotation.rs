//! The endpoints of a receiver take turns, a round of requests each; one that fails is left alone for a while.

use crate::backoff::Backoff;
use crate::http_peer::HttpPeer;
use std::time::Duration;
use tokio::time::Instant;

/// An endpoint that fails slowly is left alone for so many times as long as its round took, where another works: so that it
/// costs no more than a tenth of the time, and at most this long.
const TIMES: u32 = 10;
const LONGEST: Duration = Duration::from_secs(300);

/// The endpoints, at least one.
pub(super) struct Rotation<P = HttpPeer> {
    all: Vec<Endpoint<P>>,
    /// The index of the next endpoint.
    next: usize,
}

struct Endpoint<P> {
    peer: P,
    backoff: Backoff,
    /// It failed: left alone until then.
    left_until: Option<Instant>,
    /// When its last round began.
    begun: Option<Instant>,
}

/// An endpoint of the rotation, for one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RotationTurn(usize);

impl<P> Rotation<P> {
    pub(super) fn new(peers: Vec<P>, backoff: &Backoff) -> Rotation<P> {
        let endpoint = |peer| Endpoint { peer, backoff: backoff.clone(), left_until: None, begun: None };
        Rotation { all: peers.into_iter().map(endpoint).collect(), next: 0 }
    }

    /// The endpoint of the next round: the next that works, or the one that is left alone for the shortest time.
    pub(super) fn turn(&mut self, now: Instant) -> RotationTurn {
        let count = self.all.len().max(1);
        let left = |at: &usize| self.all.get(*at).map(|one| one.left_until.filter(|until| *until > now));
        let turn = (0..count).map(|ahead| (self.next + ahead) % count).min_by_key(left).unwrap_or(0);
        self.next = (turn + 1) % count;
        if let Some(endpoint) = self.all.get_mut(turn) {
            endpoint.begun = Some(now);
        }
        RotationTurn(turn)
    }

    /// The peer at this endpoint.
    pub(super) fn peer(&self, turn: RotationTurn) -> Option<&P> {
        self.all.get(turn.0).map(|endpoint| &endpoint.peer)
    }

    /// All peers.
    pub(super) fn peers(&self) -> impl Iterator<Item = &P> {
        self.all.iter().map(|endpoint| &endpoint.peer)
    }

    /// An endpoint works.
    pub(super) fn works(&mut self, turn: RotationTurn) {
        if let Some(endpoint) = self.all.get_mut(turn.0) {
            endpoint.backoff.reset();
            endpoint.left_until = None;
        }
    }

    /// An endpoint failed, the first time in this round or not. How long until a round is worth trying: not at all where
    /// another endpoint works.
    pub(super) fn failed(
        &mut self,
        turn: RotationTurn,
        first: bool,
        asked: Option<Duration>,
        now: Instant,
    ) -> Duration {
        let mut others = self.all.iter().enumerate().filter(|(at, _)| *at != turn.0);
        let another_works = others.any(|(_, other)| other.left_until.is_none_or(|until| until <= now));
        if let Some(endpoint) = self.all.get_mut(turn.0) {
            // One step of the backoff for all requests of a round.
            let wait = if first { endpoint.backoff.wait(asked) } else { asked.unwrap_or_default() };
            let took = endpoint.begun.map_or(Duration::ZERO, |begun| now.saturating_duration_since(begun));
            let wait = if another_works { wait.max((took * TIMES).min(LONGEST)) } else { wait };
            let before = endpoint.left_until.filter(|_| !first);
            endpoint.left_until = Some(before.unwrap_or(now).max(now + wait));
        }
        let wait = |endpoint: &Endpoint<P>| {
            endpoint.left_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
        };
        self.all.iter().map(wait).min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn rotation(peers: &[u8]) -> Rotation<u8> {
        Rotation::new(peers.to_vec(), &Backoff::new(100 * MS, 100 * MS))
    }

    /// One that fails costs no wait while another works, and gets its turns back.
    #[test]
    fn endpoints_take_turns_and_one_that_fails_is_left_alone() {
        let mut rotation = rotation(&[0, 1]);
        let now = Instant::now();
        let turns: Vec<RotationTurn> = (0..3).map(|_| rotation.turn(now)).collect();
        assert_eq!(turns, [RotationTurn(0), RotationTurn(1), RotationTurn(0)]);
        assert_eq!(rotation.failed(RotationTurn(1), true, None, now), Duration::ZERO);
        assert_eq!([(); 2].map(|()| rotation.turn(now)), [RotationTurn(0), RotationTurn(0)]);
        let later = now + 101 * MS;
        assert_eq!(rotation.turn(later), RotationTurn(1));
        rotation.works(RotationTurn(1));
        assert_eq!(rotation.turn(now), RotationTurn(0));
    }

    /// One that fails only after a timeout does not get every other round.
    #[test]
    fn one_that_fails_slowly_is_left_alone_for_longer() {
        let mut rotation = rotation(&[0, 1]);
        let now = Instant::now();
        assert_eq!(rotation.turn(now), RotationTurn(0));
        let late = now + 30_000 * MS;
        assert_eq!(rotation.failed(RotationTurn(0), true, None, late), Duration::ZERO);
        assert_eq!([(); 2].map(|()| rotation.turn(late + 299_000 * MS)), [RotationTurn(1), RotationTurn(1)]);
        assert_eq!(rotation.turn(late + 301_000 * MS), RotationTurn(0));
    }

    /// When all of them fail, the one that is left alone for the shortest time is tried after that time.
    #[test]
    fn when_all_fail_the_first_that_may_be_tried_is() {
        let mut rotation = rotation(&[0, 1]);
        let now = Instant::now();
        rotation.failed(RotationTurn(0), true, Some(10_000 * MS), now);
        let wait = rotation.failed(RotationTurn(1), true, None, now);
        assert!(wait > Duration::ZERO && wait <= 100 * MS, "{wait:?}");
        assert_eq!(rotation.turn(now), RotationTurn(1));
        assert!(rotation.failed(RotationTurn(1), false, Some(5_000 * MS), now) >= 5_000 * MS);
    }
}
