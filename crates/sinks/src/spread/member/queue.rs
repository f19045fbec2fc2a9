//! Requests that wait for a member, in order. What they hold is charged, so their number needs no bound of its own.

use crate::spread::request::SealedRequest;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Requests on their way to a member.
#[derive(Debug)]
pub(in crate::spread) struct MemberQueue<F> {
    state: Mutex<State<F>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<F> {
    waiting: VecDeque<SealedRequest<F>>,
    /// Bytes of those that wait.
    bytes: usize,
    is_closed: bool,
}

impl<F> Default for MemberQueue<F> {
    fn default() -> MemberQueue<F> {
        let state = State { waiting: VecDeque::new(), bytes: 0, is_closed: false };
        MemberQueue { state: Mutex::new(state), changed: Notify::new() }
    }
}

impl<F> MemberQueue<F> {
    /// Adds a request.
    pub(in crate::spread) fn push(&self, request: SealedRequest<F>) {
        let mut state = self.lock();
        state.bytes += request.body.len();
        state.waiting.push_back(request);
        drop(state);
        self.changed.notify_one();
    }

    /// The next request, when there is one; nothing when the queue is closed and empty. Dropping the future loses nothing.
    pub(super) async fn next(&self) -> Option<SealedRequest<F>> {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    /// As [`next`](Self::next), where that is known now.
    fn try_next(&self) -> Option<Option<SealedRequest<F>>> {
        let mut state = self.lock();
        match state.waiting.pop_front() {
            Some(request) => {
                state.bytes -= request.body.len();
                Some(Some(request))
            }
            None => state.is_closed.then_some(None),
        }
    }

    /// Bytes of the requests that wait.
    pub(in crate::spread) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    pub(in crate::spread) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Lets go of all requests: they are sent again after a restart.
    pub(in crate::spread) fn clear(&self) {
        let mut state = self.lock();
        state.waiting.clear();
        state.bytes = 0;
    }

    /// Nothing more is added.
    pub(in crate::spread) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
