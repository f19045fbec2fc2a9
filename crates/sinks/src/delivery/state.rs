//! The states of a delivery: one type for each question that the engine asks.

use crate::journal_consumer::Record;
use std::time::Duration;
use tokio::time::Instant;

/// How long a peer that found a request too large gets smaller ones before it is asked again.
const SIZE_PROBE_INTERVAL: Duration = Duration::from_secs(600);
/// No peer is believed to find less than this too large: nothing shorter is cut for it, and later requests are not made
/// shorter than this.
pub(crate) const MIN_REQUEST_SIZE: usize = 64 << 10;

/// The next records that the engine reads from the journal.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of it for each sink")]
pub(super) enum ReadMode {
    /// The next record.
    Next,
    /// Nothing: this record waits until no more than `held` bytes are held.
    Waiting { record: Record, held: usize },
    /// Nothing: the journal was closed, and everything in it was read.
    Ended,
}

/// The action once nothing is in flight. Until then nothing is read.
pub(super) enum DrainAction<O> {
    /// Nothing: reading goes on.
    None,
    /// A record is sent on its own.
    Alone(O),
    /// Everything unsettled is read again: a rewind brings back what would have been sent on its own, too.
    Rewind { instead_of: Option<O> },
}

impl<O> DrainAction<O> {
    pub(super) fn is_none(&self) -> bool {
        matches!(self, DrainAction::None)
    }

    /// Has a record sent on its own, unless everything is read again anyway. Whether it is.
    pub(super) fn alone(&mut self, oversize: O) -> bool {
        let is_free = self.is_none();
        if is_free {
            *self = DrainAction::Alone(oversize);
        }
        is_free
    }

    /// Has everything unsettled read again.
    pub(super) fn rewind(&mut self) {
        *self = match std::mem::replace(self, DrainAction::None) {
            DrainAction::None => DrainAction::Rewind { instead_of: None },
            DrainAction::Alone(oversize) => DrainAction::Rewind { instead_of: Some(oversize) },
            rewind => rewind,
        };
    }

    /// The record that is sent on its own now.
    pub(super) fn take_alone(&mut self) -> Option<O> {
        match std::mem::replace(self, DrainAction::None) {
            DrainAction::Alone(oversize) => Some(oversize),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Whether everything is read again now, and what is not sent on its own for that.
    pub(super) fn take_rewind(&mut self) -> Option<Option<O>> {
        match std::mem::replace(self, DrainAction::None) {
            DrainAction::Rewind { instead_of } => Some(instead_of),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Whether asking for memory is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryState {
    /// Nothing was refused since something was given back.
    Available,
    /// Something did not fit beside what is held: it waits until some of that is given back.
    Exhausted,
}

/// The one request on the side lane.
pub(super) enum SideLane<R> {
    Free,
    /// To be sent.
    Ready(R),
    InFlight,
}

/// Records that are read again because something went wrong with their batch.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Records before this one go out one by one.
    before: u64,
    /// The record that needs the turn to borrow.
    borrower: Option<u64>,
}

/// How a record is treated when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It is joined with others.
    Joined,
    /// It goes out in a request of its own.
    Single,
    /// It goes out when nothing else is in flight, with the turn to borrow.
    Alone,
}

impl Suspects {
    /// Every record up to `last` goes out one by one.
    pub(super) fn up_to(&mut self, last: u64) {
        self.before = self.before.max(last + 1);
    }

    /// This record needs the turn to borrow.
    pub(super) fn borrows(&mut self, sequence: u64) {
        self.borrower = Some(sequence);
    }

    pub(super) fn treatment(&self, sequence: u64) -> Treatment {
        if self.borrower == Some(sequence) {
            Treatment::Alone
        } else if sequence < self.before {
            Treatment::Single
        } else {
            Treatment::Joined
        }
    }
}

/// The longest request: as configured, or as the peer is known to take it.
#[derive(Debug)]
pub(super) struct RequestSize {
    configured: usize,
    /// Half of what the peer found too large, and until when that is believed.
    learned: Option<(usize, Instant)>,
}

impl RequestSize {
    pub(super) fn new(configured: usize) -> RequestSize {
        RequestSize { configured, learned: None }
    }

    pub(super) fn most(&self) -> usize {
        let learned = self.learned.filter(|(_, until)| Instant::now() < *until).map(|(most, _)| most);
        self.configured.min(learned.unwrap_or(usize::MAX))
    }

    /// The peer found a request of `bytes` bytes too large.
    pub(super) fn too_large(&mut self, bytes: usize) {
        if bytes > MIN_REQUEST_SIZE {
            self.learned = Some(((bytes / 2).max(MIN_REQUEST_SIZE), Instant::now() + SIZE_PROBE_INTERVAL));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rewind brings back what would have been sent on its own, and nothing takes its place.
    #[test]
    fn a_rewind_goes_before_a_record_on_its_own() {
        let mut drain = DrainAction::None;
        assert!(drain.alone(1) && !drain.alone(2));
        drain.rewind();
        assert!(!drain.alone(3));
        drain.rewind();
        assert_eq!((drain.take_alone(), drain.take_rewind()), (None, Some(Some(1))));
        assert!(drain.is_none() && drain.take_rewind().is_none());
    }

    #[test]
    fn a_record_that_needs_borrowed_memory_is_sent_alone() {
        let mut suspects = Suspects::default();
        assert_eq!(suspects.treatment(7), Treatment::Joined);
        suspects.up_to(7);
        suspects.up_to(3);
        suspects.borrows(5);
        let treatments = [4, 5, 7, 8].map(|sequence| suspects.treatment(sequence));
        assert_eq!(treatments, [Treatment::Single, Treatment::Alone, Treatment::Single, Treatment::Joined]);
    }

    /// A peer's verdict on a short request does not apply to longer ones, and expires.
    #[tokio::test(start_paused = true)]
    async fn requests_are_halved_for_ten_minutes_but_never_below_the_smallest() {
        let mut size = RequestSize::new(1 << 20);
        size.too_large(MIN_REQUEST_SIZE);
        assert_eq!(size.most(), 1 << 20);
        size.too_large(1 << 20);
        assert_eq!(size.most(), 1 << 19);
        size.too_large(MIN_REQUEST_SIZE + 1);
        assert_eq!(size.most(), MIN_REQUEST_SIZE);
        tokio::time::advance(SIZE_PROBE_INTERVAL).await;
        assert_eq!(size.most(), 1 << 20);
    }
}
