//! Shows what a sink reads to whoever looks.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_arena::Window;
use tidegate_journal::{Follower, Meta, ReadError};
use tidegate_tap::{Tap, TapPoint};

/// The follower, which shows the bodies that are read to whoever looks.
pub(crate) struct TapState {
    pub(super) follower: Follower,
    tap: Option<Tap>,
    /// One more than the sequence of the record that was shown last: it may be read again before it goes on.
    shown: AtomicU64,
}

impl TapState {
    pub(super) fn new(follower: Follower, tap: Option<Tap>) -> TapState {
        TapState { follower, tap, shown: AtomicU64::new(0) }
    }

    /// As [`Follower::read_into`]; and whoever looks sees what was read.
    pub(crate) fn read_into(&mut self, window: &mut Window) -> Result<(), ReadError> {
        let begin = window.len();
        self.follower.read_into(window)?;
        if let Some(record) = self.follower.current() {
            self.show(record.sequence, &record.meta, window.get(begin..));
        }
        Ok(())
    }

    /// Shows a record to whoever looks, once where it comes several times in a row.
    pub(super) fn show(&self, sequence: u64, meta: &Meta, body: Option<&[u8]>) {
        let Some(tap) = self.tap.as_ref().filter(|tap| tap.is_open()) else { return };
        if self.shown.swap(sequence.wrapping_add(1), Relaxed) != sequence.wrapping_add(1) {
            tap.offer(TapPoint::Sink(self.follower.name()), meta, body);
        }
    }
}

impl Deref for TapState {
    type Target = Follower;

    fn deref(&self) -> &Follower {
        &self.follower
    }
}

impl DerefMut for TapState {
    fn deref_mut(&mut self) -> &mut Follower {
        &mut self.follower
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_arena::{Arena, Floors};
    use tidegate_journal::{Encoding, Journal, Protocol, Settings, Signal, StartAt, Tenant, WhenFull};
    use tidegate_tap::TapFilter;

    /// A record that is read again, since there was no memory for what is made of it, is shown once; after others, it is shown anew.
    #[tokio::test]
    async fn a_record_that_is_read_twice_is_shown_once() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(Settings::new(dir.path())).unwrap();
        let tap = Tap::new(Arena::new(8 << 20, Floors::NONE, 1 << 20, 8, 8).unwrap());
        let look = TapFilter::from_query("id=a&sink=lake").unwrap();
        let look = tap.open(look).await.unwrap_or_else(|_| panic!("there is room for a look"));
        let follower = journal.follow("lake", StartAt::Oldest, WhenFull::Block).unwrap();
        let state = TapState::new(follower, Some(tap.clone()));
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Logs,
            protocol: Protocol::Otlp,
            encoding: Encoding::Identity,
            items: 1,
            raw_len: 0,
            received_at_ns: 1,
        };
        for (sequence, waiting) in [(0, 1), (0, 1), (1, 2), (1, 2), (0, 3)] {
            state.show(sequence, &meta, Some(&[]));
            assert_eq!(look.waiting(), waiting, "{sequence}");
        }
    }
}
