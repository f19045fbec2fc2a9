//! The bounded queue from tasks to the I/O thread.

use crate::error::{AppendError, ReadError};
use crate::member::Body;
use crate::record::{Meta, Record};
use crate::state::{MemberState, lock};
use crate::totals::Totals;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tidegate_arena::Window;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// A task's request. Its place in the queue is free again when it is answered.
pub(crate) struct Request {
    pub(crate) member: Arc<MemberState>,
    pub(crate) work: Work,
    pub(crate) place: OwnedSemaphorePermit,
}

pub(crate) enum Work {
    Append(Append, AppendReply),
    /// The record at the cursor, or the one behind a record.
    Next(Option<Record>, oneshot::Sender<Result<Option<Record>, ReadError>>),
    Read(Record, Window, oneshot::Sender<Result<Window, ReadError>>),
    Forget(oneshot::Sender<Result<Totals, AppendError>>),
}

pub(crate) type AppendReply = oneshot::Sender<Result<(), AppendError>>;

/// A record before it is written.
pub(crate) struct Append {
    pub(crate) meta: Meta,
    pub(crate) body: Body,
    pub(crate) body_len: u32,
    /// CRC32C of note and body.
    pub(crate) crc: u32,
}

/// The logs were closed.
#[derive(Debug)]
pub(crate) struct Closed;

pub(crate) struct Queue {
    places: Arc<Semaphore>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    signals: Signals,
}

/// Orders to the I/O thread besides requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Signals {
    /// A cursor moved.
    pub(crate) moved: bool,
    /// Saving it may free space that an append was refused.
    pub(crate) urgent: bool,
    /// No more requests come.
    pub(crate) closed: bool,
}

impl Queue {
    pub(crate) fn new(places: usize) -> Queue {
        let state = State { requests: Vec::with_capacity(places), signals: Signals::default() };
        Queue { places: Arc::new(Semaphore::new(places)), state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Queues a request, waiting for a place.
    pub(crate) async fn submit(&self, member: &Arc<MemberState>, work: Work) -> Result<(), Closed> {
        let place = self.places.clone().acquire_owned().await.map_err(|_| Closed)?;
        let mut state = lock(&self.state);
        if state.signals.closed {
            return Err(Closed);
        }
        state.requests.push(Request { member: member.clone(), work, place });
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// A cursor moved.
    pub(crate) fn moved(&self, urgent: bool) {
        let mut state = lock(&self.state);
        let known = state.signals.moved && (state.signals.urgent || !urgent);
        state.signals.moved = true;
        state.signals.urgent |= urgent;
        drop(state);
        if !known {
            self.changed.notify_one();
        }
    }

    /// Ends the queue: what is in it is still worked on.
    pub(crate) fn close(&self) {
        lock(&self.state).signals.closed = true;
        self.places.close();
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).signals.closed
    }

    /// Refuses what is in a closed queue.
    pub(crate) fn abandon(&self) {
        let abandoned = std::mem::take(&mut lock(&self.state).requests);
        drop(abandoned);
    }

    /// Moves all requests to `into`, which is empty, waiting for one or for a signal; at most as long as `patience`, if
    /// there is one.
    pub(crate) fn take(&self, into: &mut Vec<Request>, patience: Option<Duration>) -> Signals {
        let idle = |state: &mut State| {
            let Signals { moved, urgent, closed } = state.signals;
            state.requests.is_empty() && !moved && !urgent && !closed
        };
        let state = lock(&self.state);
        let mut state = match patience {
            None => self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner),
            Some(Duration::ZERO) => state,
            Some(patience) => {
                let waited = self.changed.wait_timeout_while(state, patience, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        std::mem::swap(&mut state.requests, into);
        let signals = state.signals;
        (state.signals.moved, state.signals.urgent) = (false, false);
        signals
    }
}
