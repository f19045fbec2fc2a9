//! Several endpoints of one peer, which take turns.
//!
//! One that fails is left alone for a while, then tried again by one request; if that succeeds it takes its
//! turns again. So one that is gone costs each backoff one attempt, and nothing else.

use crate::backoff::Backoff;
use crate::concurrency_limit::{AdaptationRule, ConcurrencyLimit, SentRequest};
use crate::egress_budget::EgressBudget;
use crate::health::Health;
use hyper::Uri;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a peer that has answered a request may take to read the rest of it, unless it has less for all of it, while
/// its memory is needed.
const PATIENCE: Duration = Duration::from_secs(1);

/// An endpoint that fails slowly is left alone for so many times as long as it took, where another works and waits
/// meanwhile; at most this long.
const SLOW_FACTOR: u32 = 10;
const LONGEST_SLOW: Duration = Duration::from_secs(300);

/// The peer of an endpoint.
pub(crate) trait Peer {
    /// Where it is.
    fn uri(&self) -> &Uri;

    /// Ends all connections; requests that are made later make others.
    fn hang_up(&self);

    /// Ends all connections, and waits until what they hold is given back.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// The endpoints, at least one.
pub(crate) struct Endpoints<P> {
    all: Vec<Endpoint<P>>,
    law: AdaptationRule,
    /// The index of the next endpoint.
    next: usize,
    /// Whether nothing else is sent while one of them is tried.
    in_turn: bool,
    /// Where the limits are shown.
    health: Option<Health>,
}

struct Endpoint<P> {
    peer: Arc<P>,
    limit: ConcurrencyLimit,
    /// Units under way.
    in_flight: usize,
    state: EndpointState,
    /// When it was left alone, or tried again: what was sent before says nothing of its state since.
    since: Instant,
    backoff: Backoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndpointState {
    Up,
    /// It failed: left alone until then.
    Left(Instant),
    /// One request is on its way to see whether it is back.
    Tried,
}

/// A slot at an endpoint, to be given back by what became of the request.
#[derive(Debug)]
pub(crate) struct Reservation {
    endpoint: usize,
    sent: SentRequest,
    delayed: Duration,
}

impl Reservation {
    /// The same for a request that was answered later by so much, for reasons other than the endpoint's load.
    pub(crate) fn delayed(self, by: Duration) -> Reservation {
        Reservation { delayed: by, ..self }
    }
}

/// An attempt's verdict on its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptResult {
    /// It works.
    Alive,
    /// It works, and has no room for all of it.
    Pressed,
    /// It works, and waited for something that has nothing to do with its load.
    Delayed,
    /// It does not take requests now, and says for how long or not.
    Failed(Option<Duration>),
}

impl<P: Peer> Endpoints<P> {
    pub(crate) fn new(
        peers: impl IntoIterator<Item = P>,
        law: AdaptationRule,
        backoff: (Duration, Duration),
    ) -> Endpoints<P> {
        let now = Instant::now();
        let endpoint = |peer| Endpoint {
            peer: Arc::new(peer),
            limit: ConcurrencyLimit::new(law, now),
            in_flight: 0,
            state: EndpointState::Up,
            since: now,
            backoff: Backoff::new(backoff.0, backoff.1),
        };
        Endpoints {
            all: peers.into_iter().map(endpoint).collect(),
            law,
            next: 0,
            in_turn: false,
            health: None,
        }
    }

    /// The same where nothing else is sent while one of them is tried: one that fails slowly is left alone for longer, so
    /// that it costs no more than a tenth of the time.
    pub(crate) fn in_turn(self) -> Endpoints<P> {
        Endpoints { in_turn: true, ..self }
    }

    /// The same, which shows the sum of its limits in `health`.
    pub(crate) fn showing_limits(self, health: &Health) -> Endpoints<P> {
        let endpoints = Endpoints { health: Some(health.clone()), ..self };
        endpoints.show_limits();
        endpoints
    }

    fn show_limits(&self) {
        if let Some(health) = &self.health {
            health.set_concurrency_limit(self.all.iter().map(|endpoint| endpoint.limit.requests()).sum());
        }
    }

    /// The next endpoint that takes a request of `bytes` bytes now.
    pub(crate) fn reserve(&mut self, bytes: usize, now: Instant) -> Option<(Reservation, Arc<P>)> {
        let units = self.law.units(bytes);
        let count = self.all.len();
        let mut turns = (0..count).map(|ahead| (self.next + ahead) % count);
        let index = turns.find(|index| self.all.get(*index).is_some_and(|one| one.takes(units, now)))?;
        self.next = (index + 1) % count;
        let endpoint = self.all.get_mut(index)?;
        if matches!(endpoint.state, EndpointState::Left(_)) {
            (endpoint.state, endpoint.since) = (EndpointState::Tried, now);
        }
        endpoint.in_flight += units;
        let sent = SentRequest { at: now, units, among: endpoint.in_flight, bytes };
        Some((Reservation { endpoint: index, sent, delayed: Duration::ZERO }, Arc::clone(&endpoint.peer)))
    }

    /// Records the result of a request. True if it makes the endpoint unavailable, and it was available before.
    pub(crate) fn give_back(
        &mut self,
        reservation: Reservation,
        verdict: AttemptResult,
        now: Instant,
    ) -> bool {
        let is_lost = self.record(reservation, verdict, now);
        self.show_limits();
        is_lost
    }

    fn record(&mut self, reservation: Reservation, verdict: AttemptResult, now: Instant) -> bool {
        let mut others = self.all.iter().enumerate().filter(|(index, _)| *index != reservation.endpoint);
        let took = now.saturating_duration_since(reservation.sent.at);
        let least = if self.in_turn && others.any(|(_, other)| other.takes(1, now)) {
            (took * SLOW_FACTOR).min(LONGEST_SLOW)
        } else {
            Duration::ZERO
        };
        let Some(endpoint) = self.all.get_mut(reservation.endpoint) else { return false };
        endpoint.in_flight -= reservation.sent.units;
        let current = reservation.sent.at >= endpoint.since;
        match verdict {
            AttemptResult::Alive | AttemptResult::Pressed | AttemptResult::Delayed => {
                match verdict {
                    AttemptResult::Pressed => endpoint.limit.failed(reservation.sent, now),
                    AttemptResult::Delayed => {}
                    _ => {
                        let at = reservation.sent.at + reservation.delayed;
                        endpoint.limit.answered(SentRequest { at, ..reservation.sent }, now);
                    }
                }
                if current {
                    endpoint.backoff.reset();
                    endpoint.state = EndpointState::Up;
                }
                false
            }
            AttemptResult::Failed(asked) => {
                endpoint.limit.failed(reservation.sent, now);
                let before = endpoint.state;
                match before {
                    // Those that were under way with the one that failed first are one failure with it.
                    EndpointState::Left(until) => {
                        endpoint.state = EndpointState::Left(until.max(now + asked.unwrap_or_default()));
                    }
                    EndpointState::Up | EndpointState::Tried if current => {
                        endpoint.state = EndpointState::Left(now + endpoint.backoff.wait(asked).max(least));
                        endpoint.since = now;
                    }
                    EndpointState::Up | EndpointState::Tried => {}
                }
                before == EndpointState::Up && current
            }
        }
    }

    /// Where a request was sent.
    pub(crate) fn uri(&self, reservation: &Reservation) -> Uri {
        self.all.get(reservation.endpoint).map(|endpoint| endpoint.peer.uri().clone()).unwrap_or_default()
    }

    /// Whether one of them takes a request now.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.all.iter().any(|endpoint| endpoint.takes(1, now))
    }

    /// Waits until one of them takes a request.
    pub(crate) async fn opens(&self) {
        while !self.is_open(Instant::now()) {
            match self.next_trial() {
                Some(at) => tokio::time::sleep_until(at).await,
                None => break,
            }
        }
    }

    /// Waits until no more than `own` bytes of `room` are held. Where a peer answers before it has read all of a request,
    /// the connection keeps what is left of it to send it: the peer has a while to read that, at most the `timeout` of a
    /// request, then the connection is closed.
    pub(crate) async fn let_go_to(&self, room: &EgressBudget, own: usize, timeout: Duration) {
        if tokio::time::timeout(PATIENCE.min(timeout), room.falls_to(own)).await.is_err() {
            self.hang_up();
            room.falls_to(own).await;
        }
    }

    /// Ends all connections; requests that are made later make others.
    pub(crate) fn hang_up(&self) {
        self.all.iter().for_each(|endpoint| endpoint.peer.hang_up());
    }

    /// Ends all connections, and waits until what they hold is given back.
    pub(crate) async fn close(&self) {
        for endpoint in &self.all {
            endpoint.peer.close().await;
        }
    }

    /// When one that is left alone is to be tried again, where none of the others works.
    pub(crate) fn all_left_until(&self) -> Option<Instant> {
        if self.all.iter().any(|endpoint| endpoint.state == EndpointState::Up) {
            return None;
        }
        self.next_trial()
    }

    /// When the first of those that are left alone is to be tried again.
    pub(crate) fn next_trial(&self) -> Option<Instant> {
        let left = |endpoint: &Endpoint<P>| match endpoint.state {
            EndpointState::Left(until) => Some(until),
            EndpointState::Up | EndpointState::Tried => None,
        };
        self.all.iter().filter_map(left).min()
    }
}

impl<P> Endpoint<P> {
    fn takes(&self, units: usize, now: Instant) -> bool {
        match self.state {
            EndpointState::Up => self.limit.allows(self.in_flight, units),
            EndpointState::Left(until) => until <= now,
            EndpointState::Tried => false,
        }
    }
}

#[cfg(test)]
mod tests;
