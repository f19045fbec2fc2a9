//! Several endpoints of one peer, which take turns.
//!
//! One that fails is left alone for a while, then tried again by one request; if that succeeds it takes its
//! turns again. So one that is gone costs each backoff one attempt, and nothing else.

use super::limit::{Limit, Sent};
use super::peer::Peer;
use crate::backoff::Backoff;
use hyper::Uri;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The endpoints, at least one.
pub(super) struct Endpoints {
    all: Vec<Endpoint>,
    /// Whose turn it is.
    next: usize,
}

struct Endpoint {
    peer: Arc<Peer>,
    limit: Limit,
    in_flight: usize,
    state: State,
    /// When it was left alone, or tried again: what was sent before says nothing of its state since.
    since: Instant,
    backoff: Backoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    /// It failed: left alone until then.
    Left(Instant),
    /// One request is on its way to see whether it is back.
    Tried,
}

/// A place at an endpoint, to be given back by what became of the request.
#[derive(Debug)]
pub(super) struct Place {
    endpoint: usize,
    sent: Sent,
}

/// What an attempt says of its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It works.
    Alive,
    /// It does not take requests now, and says for how long or not.
    Failed(Option<Duration>),
}

impl Endpoints {
    pub(super) fn new(
        peers: impl IntoIterator<Item = Peer>,
        max_in_flight: usize,
        backoff: (Duration, Duration),
    ) -> Endpoints {
        let now = Instant::now();
        let endpoint = |peer| Endpoint {
            peer: Arc::new(peer),
            limit: Limit::new(max_in_flight, now),
            in_flight: 0,
            state: State::Up,
            since: now,
            backoff: Backoff::new(backoff.0, backoff.1),
        };
        Endpoints { all: peers.into_iter().map(endpoint).collect(), next: 0 }
    }

    /// The next endpoint that takes a request of `bytes` bytes now.
    pub(super) fn place(&mut self, bytes: usize, now: Instant) -> Option<(Place, Arc<Peer>)> {
        let count = self.all.len();
        let mut turns = (0..count).map(|ahead| (self.next + ahead) % count);
        let index = turns.find(|index| self.all.get(*index).is_some_and(|one| one.takes(now)))?;
        self.next = (index + 1) % count;
        let endpoint = self.all.get_mut(index)?;
        if matches!(endpoint.state, State::Left(_)) {
            (endpoint.state, endpoint.since) = (State::Tried, now);
        }
        endpoint.in_flight += 1;
        let sent = Sent { at: now, among: endpoint.in_flight, bytes };
        Some((Place { endpoint: index, sent }, Arc::clone(&endpoint.peer)))
    }

    /// What became of a request. True when the endpoint is left alone because of it, and was not before.
    pub(super) fn give_back(&mut self, place: Place, verdict: Verdict, now: Instant) -> bool {
        let Some(endpoint) = self.all.get_mut(place.endpoint) else { return false };
        endpoint.in_flight -= 1;
        let current = place.sent.at >= endpoint.since;
        match verdict {
            Verdict::Alive => {
                endpoint.limit.answered(place.sent, now);
                if current {
                    endpoint.backoff.reset();
                    endpoint.state = State::Up;
                }
                false
            }
            Verdict::Failed(asked) => {
                endpoint.limit.failed(place.sent, now);
                let before = endpoint.state;
                match before {
                    // Those that were under way with the one that failed first are one failure with it.
                    State::Left(until) => {
                        endpoint.state = State::Left(until.max(now + asked.unwrap_or_default()));
                    }
                    State::Up | State::Tried if current => {
                        endpoint.state = State::Left(now + endpoint.backoff.wait(asked));
                        endpoint.since = now;
                    }
                    State::Up | State::Tried => {}
                }
                before == State::Up && current
            }
        }
    }

    /// Where a request was sent.
    pub(super) fn uri(&self, place: &Place) -> Uri {
        self.all.get(place.endpoint).map(|endpoint| endpoint.peer.uri().clone()).unwrap_or_default()
    }

    /// Whether one of them takes a request now.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.all.iter().any(|endpoint| endpoint.takes(now))
    }

    /// Ends all connections; requests that are made later make others.
    pub(super) fn hang_up(&self) {
        self.all.iter().for_each(|endpoint| endpoint.peer.hang_up());
    }

    /// Ends all connections, and waits until what they hold is given back.
    pub(super) async fn close(&self) {
        for endpoint in &self.all {
            endpoint.peer.close().await;
        }
    }

    /// When one that is left alone is to be tried again, where none of the others works.
    pub(super) fn all_left_until(&self) -> Option<Instant> {
        if self.all.iter().any(|endpoint| endpoint.state == State::Up) {
            return None;
        }
        self.next_trial()
    }

    /// When the first of those that are left alone is to be tried again.
    pub(super) fn next_trial(&self) -> Option<Instant> {
        let left = |endpoint: &Endpoint| match endpoint.state {
            State::Left(until) => Some(until),
            State::Up | State::Tried => None,
        };
        self.all.iter().filter_map(left).min()
    }
}

impl Endpoint {
    fn takes(&self, now: Instant) -> bool {
        match self.state {
            State::Up => self.limit.allows(self.in_flight),
            State::Left(until) => until <= now,
            State::Tried => false,
        }
    }
}

#[cfg(test)]
mod tests;
