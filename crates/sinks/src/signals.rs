//! Which signals a sink takes.

use tidegate_journal::{Meta, Protocol, Signal, is_mixed};
use tidegate_wire::intake::{EventKind, EventKinds, events_from};
use tidegate_wire::otlp as wire;

/// How much of a body is looked at before others get their turn.
const TURN: usize = 128 << 10;

/// A set of signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signals(u8);

impl Signals {
    /// All of them.
    pub const ALL: Signals = Signals(u8::MAX);

    /// Whether `signal` is among them.
    #[must_use]
    pub fn contains(self, signal: Signal) -> bool {
        self.0 & bit(signal) != 0
    }

    /// Whether records of this protocol and signal can have items of one of them.
    #[must_use]
    pub fn take(self, protocol: Protocol, signal: Signal) -> bool {
        match is_mixed(protocol, signal) {
            true => Meta::MIXED.into_iter().any(|signal| self.contains(signal)),
            false => self.contains(signal),
        }
    }

    /// Which items of a record to take that is taken: all of them, where they are of one signal.
    pub(crate) fn within(self, meta: &Meta) -> Signals {
        match meta.is_mixed() && !Meta::MIXED.into_iter().all(|signal| self.contains(signal)) {
            true => self,
            false => Signals::ALL,
        }
    }

    /// The kinds of events of these signals.
    pub(crate) fn kinds(self) -> EventKinds {
        let is_taken = |signal: Option<wire::Signal>| match signal {
            Some(wire::Signal::Traces) => self.contains(Signal::Traces),
            Some(wire::Signal::Metrics) => self.contains(Signal::Metrics),
            Some(wire::Signal::Logs) => self.contains(Signal::Logs),
            Some(wire::Signal::Profiles) => self.contains(Signal::Profiles),
            None => true,
        };
        EventKind::ALL.into_iter().filter(|kind| is_taken(kind.signal())).collect()
    }

    /// How many events of the checked intake body `raw` are of other signals.
    pub(crate) async fn others(self, raw: &[u8]) -> u64 {
        let (mut others, mut at) = (0, 0);
        while self != Signals::ALL && at < raw.len() {
            let turn;
            (turn, at) = self.others_from(raw, at);
            others += turn;
            tokio::task::yield_now().await;
        }
        others
    }

    /// The same on a thread of its own.
    pub(crate) fn others_blocking(self, raw: &[u8]) -> u64 {
        let (mut others, mut at) = (0, 0);
        while self != Signals::ALL && at < raw.len() {
            let turn;
            (turn, at) = self.others_from(raw, at);
            others += turn;
        }
        others
    }

    /// How many there are in one turn from `at` on, and where that ends.
    fn others_from(self, raw: &[u8], at: usize) -> (u64, usize) {
        let (kinds, mut others) = (self.kinds(), 0);
        for (end, event) in events_from(raw, at) {
            others += u64::from(!kinds.contains(event.kind));
            if end >= at.saturating_add(TURN) {
                return (others, end);
            }
        }
        (others, raw.len())
    }
}

impl FromIterator<Signal> for Signals {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> Signals {
        Signals(signals.into_iter().fold(0, |all, signal| all | bit(signal)))
    }
}

fn bit(signal: Signal) -> u8 {
    1 << signal as u8
}
