//! Which signals a sink takes.

use tidegate_journal::Signal;

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
}

impl FromIterator<Signal> for Signals {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> Signals {
        Signals(signals.into_iter().fold(0, |all, signal| all | bit(signal)))
    }
}

fn bit(signal: Signal) -> u8 {
    1 << signal as u8
}
