//! Requests that wait for a member, in order. What they hold is charged, so their number needs no bound of its own.

use crate::thanos_receive::request::SealedRequest;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Requests on their way to a member.
#[derive(Debug, Default)]
pub(in crate::thanos_receive) struct MemberQueue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<SealedRequest>,
    /// Bytes of those that wait.
    bytes: usize,
    is_closed: bool,
}

impl MemberQueue {
    /// Adds a request.
    pub(in crate::thanos_receive) fn push(&self, request: SealedRequest) {
        let mut state = self.lock();
        state.bytes += request.frame.len();
        state.waiting.push_back(request);
        drop(state);
        self.changed.notify_one();
    }

    /// The next request, when there is one; nothing when the queue is closed and empty. Dropping the future loses nothing.
    pub(super) async fn next(&self) -> Option<SealedRequest> {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    /// As [`next`](Self::next), where that is known now.
    fn try_next(&self) -> Option<Option<SealedRequest>> {
        let mut state = self.lock();
        match state.waiting.pop_front() {
            Some(request) => {
                state.bytes -= request.frame.len();
                Some(Some(request))
            }
            None => state.is_closed.then_some(None),
        }
    }

    /// Bytes of the requests that wait.
    pub(in crate::thanos_receive) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    pub(in crate::thanos_receive) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Lets go of all requests: they are sent again after a restart.
    pub(in crate::thanos_receive) fn clear(&self) {
        let mut state = self.lock();
        state.waiting.clear();
        state.bytes = 0;
    }

    /// Nothing more is added.
    pub(in crate::thanos_receive) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
