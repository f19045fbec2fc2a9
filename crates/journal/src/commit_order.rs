//! The order in which groups are settled: as they were written.
//!
//! A group is acknowledged when its own sync and those of all earlier groups have succeeded. After a failure, all
//! groups written behind the failed one are refused with it, until the writer has rolled back to the end of the last
//! good one.

use crate::settings::DiskError;
use crate::sync::{Condvar, Mutex, lock};
use std::io;
use std::sync::PoisonError;

/// In which order groups are settled.
#[derive(Default)]
pub(crate) struct CommitOrder {
    state: Mutex<CommitTurns>,
    settled: Condvar,
}

#[derive(Default)]
struct CommitTurns {
    /// Groups written, and groups settled, ever.
    written: u64,
    settled: u64,
    /// The error, until the writer has recovered.
    broken: Option<DiskError>,
    /// A thread that wrote is gone: nothing is settled any more.
    ended: bool,
}

impl CommitOrder {
    pub(crate) fn register(&self) -> u64 {
        let mut state = lock(&self.state);
        state.written += 1;
        state.written - 1
    }

    /// Waits until every group before the one with this number is settled, and says what has failed.
    pub(crate) fn await_turn(&self, number: u64) -> Option<DiskError> {
        let mut state = lock(&self.state);
        while state.settled != number && !state.ended {
            state = self.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.ended { Some(DiskError::Failed(io::ErrorKind::Other)) } else { state.broken }
    }

    pub(crate) fn leave(&self, broken: Option<DiskError>) {
        let mut state = lock(&self.state);
        state.settled += 1;
        state.broken = broken;
        self.settled.notify_all();
    }

    /// Whether groups are on their way.
    pub(crate) fn is_busy(&self) -> bool {
        let state = lock(&self.state);
        state.settled != state.written
    }

    /// Waits until none is.
    pub(crate) fn drain(&self) {
        let mut state = lock(&self.state);
        while state.settled != state.written && !state.ended {
            state = self.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a group has failed since the writer went back the last time.
    pub(crate) fn has_failed(&self) -> bool {
        lock(&self.state).broken.is_some()
    }

    /// The writer has gone back to the end of the last good group.
    pub(crate) fn clear_failure(&self) {
        lock(&self.state).broken = None;
    }

    /// A thread that wrote is gone, and with it the turns of its groups.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.settled.notify_all();
    }
}
