//! The signal to end: idle connections close, requests in progress are answered first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The signal to end, and its listeners. A handle; clones are the same signal.
///
/// Every idle connection waits in its list, behind one lock: one signal per worker keeps that lock from
/// being shared between threads.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    begun: AtomicBool,
    notify: Notify,
}

impl Shutdown {
    /// A signal that has not been given.
    pub fn new() -> Shutdown {
        Shutdown::default()
    }

    /// Gives the signal. There is no way back.
    pub fn begin(&self) {
        self.inner.begun.store(true, Ordering::Release);
        self.inner.notify.notify_waiters();
    }

    /// Whether the signal has been given.
    pub fn has_begun(&self) -> bool {
        self.inner.begun.load(Ordering::Acquire)
    }

    /// Resolves when the signal is given, or has been.
    pub async fn begun(&self) {
        let notified = self.notified();
        if !self.has_begun() {
            notified.await;
        }
    }

    /// Resolves when the signal is given after this call; check [`has_begun`](Self::has_begun) besides.
    pub(crate) fn notified(&self) -> Notified<'_> {
        self.inner.notify.notified()
    }
}
