//! The workers: one single-threaded runtime per core, each on a thread of its own.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A worker's stack, in bytes: declared in the plan.
pub(crate) const STACK: usize = 256 << 10;

/// Stack of a thread, in bytes. Code that is not optimised takes several times the stack, such as 5 KiB for each level of
/// JSON that a pipeline parses; optimised code takes 400 bytes.
pub(crate) const THREAD_STACK: usize = if cfg!(debug_assertions) { 8 * STACK } else { STACK };

/// The threads that serve connections and sinks.
pub(crate) struct Workers {
    workers: Vec<Worker>,
}

struct Worker {
    handle: Handle,
    connections: Arc<AtomicUsize>,
    running: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

/// A connection's place on its worker; dropping it frees the place.
pub(crate) struct WorkerSlot {
    connections: Arc<AtomicUsize>,
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Relaxed);
    }
}

impl Workers {
    /// One worker for each core that this process may use.
    pub(crate) fn cores() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Starts `count` workers.
    ///
    /// # Errors
    /// When a thread or a runtime cannot be made.
    pub(crate) fn start(count: usize) -> io::Result<Workers> {
        let workers = (0..count.max(1)).map(Worker::start).collect::<io::Result<_>>()?;
        Ok(Workers { workers })
    }

    /// The runtime of worker `number`, counted round.
    pub(crate) fn worker(&self, number: usize) -> &Handle {
        &self.workers[number % self.workers.len()].handle
    }

    /// The worker with the fewest connections: its number, its runtime, and a place there.
    pub(crate) fn least_loaded(&self) -> (usize, &Handle, WorkerSlot) {
        let mut least = (0, &self.workers[0]);
        for (number, worker) in self.workers.iter().enumerate() {
            if worker.connections.load(Relaxed) < least.1.connections.load(Relaxed) {
                least = (number, worker);
            }
        }
        let (number, worker) = least;
        worker.connections.fetch_add(1, Relaxed);
        (number, &worker.handle, WorkerSlot { connections: Arc::clone(&worker.connections) })
    }

    /// The words for a worker whose thread has ended, if there is one.
    pub(crate) fn gone(&self) -> Option<String> {
        let gone = self.workers.iter().position(|worker| {
            let running = worker.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.as_ref().is_some_and(|(_, thread)| thread.is_finished())
        });
        gone.map(|number| format!("worker {number}"))
    }

    /// Ends the workers; tasks that still run are dropped.
    pub(crate) fn stop(&self) {
        for worker in &self.workers {
            let running = worker.running.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((stop, thread)) = running {
                let _ = stop.send(());
                if thread.join().is_err() {
                    tracing::error!("a worker thread ended with a panic");
                }
            }
        }
    }
}

impl Worker {
    fn start(number: usize) -> io::Result<Worker> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .thread_stack_size(THREAD_STACK)
            .thread_keep_alive(Duration::from_secs(10))
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .stack_size(THREAD_STACK)
            .spawn(move || {
                let _ = runtime.block_on(stopped);
                // Name resolution of a sink may hang in its blocking thread; do not hang with it.
                runtime.shutdown_timeout(Duration::from_millis(100));
            })?;
        Ok(Worker { handle, connections: Arc::default(), running: Mutex::new(Some((stop, thread))) })
    }
}
