//! The thread that reads and marks dead letters while an order is followed, so that no worker waits for a disk.

use super::DeadLetterError;
use crate::gateway::workers::{STACK, THREAD_STACK};
use std::io;
use tidegate_arena::Charge;
use tidegate_journal::dead_letters::MOST_KEPT;
use tidegate_ledger::MAX_SINKS;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// Its memory: the stack, what is read ahead of both files, and the marks of all sinks. It is charged while the thread is there.
pub(super) const THREAD_BYTES: u64 =
    STACK as u64 + (64 << 10) + (MAX_SINKS * (MOST_KEPT + 1) * size_of::<u64>()) as u64;

type Work = Box<dyn FnOnce() + Send>;

/// The thread, which does one thing after the other. It ends with its handle, once it has done what it was given.
pub(super) struct LetterThread(mpsc::Sender<Work>);

impl LetterThread {
    /// Starts it. It keeps `held` until its end: the turn, and the charge of its memory.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(super) fn start(held: (OwnedSemaphorePermit, Charge)) -> io::Result<LetterThread> {
        let (queue, mut work) = mpsc::channel::<Work>(1);
        let thread = std::thread::Builder::new().name("dead-letters".to_owned()).stack_size(THREAD_STACK);
        thread.spawn(move || {
            while let Some(work) = work.blocking_recv() {
                work();
            }
            drop(held);
        })?;
        Ok(LetterThread(queue))
    }

    /// Has it do `work`, and waits for the outcome.
    ///
    /// # Errors
    /// When the thread is gone.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, DeadLetterError> {
        let (done, outcome) = oneshot::channel();
        let work: Work = Box::new(move || {
            // Nobody waits any more where the gateway is stopping.
            let _gone = done.send(work());
        });
        let gone = || DeadLetterError::Busy("the gateway is stopping".to_owned());
        self.0.send(work).await.map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())
    }
}
