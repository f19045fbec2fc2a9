//! The thread that works on files, so that no worker waits for a disk.

use super::FileError;
use crate::worker_thread::WorkerThread;
use std::io;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Its stack, in bytes.
pub const FILE_STACK_BYTES: usize = 256 << 10;
/// Work that may wait for it. Whoever comes then waits outside.
const QUEUE: usize = 64;

type Work = Box<dyn FnOnce() + Send>;

/// The thread, which does one thing after the other. Clones are the same. It ends with the last of them.
#[derive(Clone)]
pub(super) struct FileThread {
    queue: mpsc::Sender<Work>,
    thread: Arc<WorkerThread>,
}

impl FileThread {
    pub(super) fn start() -> io::Result<FileThread> {
        let (queue, mut work) = mpsc::channel::<Work>(QUEUE);
        let thread = std::thread::Builder::new().name("fleet-files".to_owned()).stack_size(FILE_STACK_BYTES);
        let thread = thread.spawn(move || {
            while let Some(work) = work.blocking_recv() {
                work();
            }
        })?;
        Ok(FileThread { queue, thread: Arc::new(WorkerThread::new(thread)) })
    }

    /// Has it do `work`, and waits for the outcome. The work is done also where nobody waits any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let (done, outcome) = oneshot::channel();
        let work: Work = Box::new(move || {
            // Whoever does not wait any more asks again.
            let _gone = done.send(work());
        });
        let ended = || FileError::Disk("the gateway stops".to_owned());
        self.queue.send(work).await.map_err(|_| ended())?;
        outcome.await.map_err(|_| ended())?
    }

    /// Whether it has ended although it must not.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.has_ended()
    }
}
