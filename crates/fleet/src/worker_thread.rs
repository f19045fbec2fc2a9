//! A thread that ends when its queue is closed, and whose end is waited for with a deadline.

use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is looked whether the thread has ended.
const POLL: Duration = Duration::from_millis(2);

/// A running thread.
pub(crate) struct WorkerThread(Mutex<Option<JoinHandle<()>>>);

impl WorkerThread {
    pub(crate) fn new(thread: JoinHandle<()>) -> WorkerThread {
        WorkerThread(Mutex::new(Some(thread)))
    }

    /// Whether it has ended although nobody has waited for that.
    pub(crate) fn has_ended(&self) -> bool {
        let thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Waits for its end; false when that does not come in time.
    pub(crate) fn join(&self, deadline: Instant) -> bool {
        let Some(thread) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else { return true };
        while !thread.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(POLL);
        }
        // A panic there was reported by the watch over it.
        let _ended = thread.join();
        true
    }
}
