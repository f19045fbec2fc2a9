//! The threads that write: they take turns at writing, and while one waits for the disk another writes.

use super::WriteGroup;
use super::{BeginOutcome, Writer};
use crate::queue::WriterTurn;
use crate::settings::Durability;
use crate::settings::RETRY_INTERVAL_NS;
use crate::shared::Shared;
use crate::sync::{Mutex, lock};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

/// How far apart groups begin of which the last had more than one batch.
const GROUP_INTERVAL: Duration = Duration::from_millis(2);
/// A writing thread's stack, in bytes.
pub(crate) const STACK_BYTES: usize = 256 << 10;

impl Writer {
    /// Works until the queue is closed and empty: on this thread, and on as many more as are of use.
    pub(crate) fn run(self) {
        let shared = self.shared.clone();
        let desk = Mutex::new(self);
        let (at, with) = (&desk, &shared);
        thread::scope(|scope| {
            for hand in 1..shared.settings.durability.writer_threads() {
                let thread = thread::Builder::new().name(format!("journal-{hand}")).stack_size(STACK_BYTES);
                if let Err(error) = thread.spawn_scoped(scope, move || work(at, with, hand)) {
                    tracing::warn!(%error, "the journal has one thread less to write with");
                }
            }
            work(at, with, 0);
        });
        desk.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
    }
}

fn work(desk: &Mutex<Writer>, shared: &Arc<Shared>, hand: usize) {
    let _watch = EndOnPanic(shared);
    let mut flight = WriteGroup::new(shared.clone(), hand);
    while shared.queue.turn(Some(Duration::from_nanos(RETRY_INTERVAL_NS))) == WriterTurn::Open {
        let mut writer = lock(desk);
        writer.maintain();
        writer.pace();
        writer.take_queued();
        loop {
            match writer.begin(&mut flight) {
                BeginOutcome::Idle => break,
                BeginOutcome::Blocked => shared.order.drain(),
                // The rest goes to another segment, which is begun when this one is durable.
                BeginOutcome::Written if writer.has_more() => {
                    flight.sync();
                    flight.settle();
                }
                BeginOutcome::Written => break,
            }
        }
        drop(writer);
        let number = shared.queue.release(flight.outcomes.len());
        flight.sync();
        flight.settle();
        shared.queue.group_done(number);
    }
}

impl Writer {
    /// Where several append at once, begins groups at a distance of [`GROUP_INTERVAL`], in which more of them come. A disk
    /// that syncs in a tenth of that would else be asked to for every batch or two, and its driver would take the
    /// processor from those who check the next ones. Who appends alone never waits.
    fn pace(&mut self) {
        let now = || self.shared.clock.monotonic_ns();
        let synced = self.shared.settings.durability == Durability::Fsync;
        if synced && self.last_group > 1 {
            let since = Duration::from_nanos(now().saturating_sub(self.begun_ns));
            thread::sleep(GROUP_INTERVAL.saturating_sub(since));
        }
        self.begun_ns = now();
    }
}

#[cfg(all(test, not(loom)))]
impl Writer {
    /// One turn, and everything that comes of it, on the caller's thread.
    pub(crate) fn step(&mut self, patience: Option<Duration>) -> WriterTurn {
        self.step_with(&mut WriteGroup::new(self.shared.clone(), 0), patience)
    }

    pub(crate) fn step_with(&mut self, flight: &mut WriteGroup, patience: Option<Duration>) -> WriterTurn {
        let arrival = self.shared.queue.turn(patience);
        self.maintain();
        self.take_queued();
        while self.begin(flight) == BeginOutcome::Written {
            flight.sync();
            flight.settle();
        }
        self.shared.queue.release(0);
        arrival
    }
}

/// Ends the others when one panics: they would wait for its turn for ever, and nobody would know.
struct EndOnPanic<'a>(&'a Shared);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.order.end();
            self.0.queue.close();
            self.0.queue.release(0);
        }
    }
}
