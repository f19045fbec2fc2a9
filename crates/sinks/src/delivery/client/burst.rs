//! Frames that a connection writes at once leave the machine together.
//!
//! A body goes out in frames of HTTP/2 of 16 KiB, as long as receivers take them, and each frame is written by a call of its own. Left to
//! itself, the kernel sends each on its way alone: that costs more than all else about it. So while the task of a connection runs, what
//! it writes is held back up to a full segment (`TCP_CORK`), and what is left goes out when the task waits: nothing ever waits in
//! the socket for what comes later.

use rustix::net::sockopt::set_tcp_cork;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;

/// Shorter writes go out by themselves.
const WORTHWHILE: usize = 16 << 10;

thread_local! {
    /// Whether the task of a connection runs.
    static IS_POLLING: Cell<bool> = const { Cell::new(false) };
    /// The socket that holds back what the running task writes.
    static CORKED: RefCell<Option<Arc<OwnedFd>>> = const { RefCell::new(None) };
}

/// A socket that may hold back what is written to it.
#[derive(Debug)]
pub(super) struct BurstSocket(Option<Arc<OwnedFd>>);

impl BurstSocket {
    /// The socket of a connection. Where it has no second descriptor, it holds nothing back.
    pub(super) fn of(socket: &impl AsFd) -> BurstSocket {
        BurstSocket(socket.as_fd().try_clone_to_owned().ok().map(Arc::new))
    }

    /// Has the socket hold back what is written until the running task waits, if so many bytes are worth it.
    pub(super) fn writes(&self, bytes: usize) {
        let Some(socket) = self.0.as_ref().filter(|_| bytes >= WORTHWHILE && IS_POLLING.get()) else {
            return;
        };
        CORKED.with_borrow_mut(|held| {
            if held.is_none() && set_tcp_cork(socket, true).is_ok() {
                *held = Some(Arc::clone(socket));
            }
        });
    }
}

/// Runs the task of a connection. What it writes is on its way whenever it waits.
pub(super) async fn in_bursts<F: Future>(task: F) -> F::Output {
    let mut task = pin!(task);
    poll_fn(|context| {
        let _burst = Burst::begin();
        task.as_mut().poll(context)
    })
    .await
}

/// The time in which a task runs; it ends also where the task panics.
struct Burst;

impl Burst {
    fn begin() -> Burst {
        IS_POLLING.set(true);
        Burst
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        IS_POLLING.set(false);
        if let Some(socket) = CORKED.take() {
            // A socket that was closed meanwhile has nothing to send.
            let _closed = set_tcp_cork(&socket, false);
        }
    }
}

#[cfg(test)]
mod tests;
