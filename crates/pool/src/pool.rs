//! The threads, and the queue before them.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use tidegate_arena::Reservation;
use tokio::sync::{Semaphore, oneshot};

/// A thread's stack, in bytes.
const STACK_BYTES: usize = 256 << 10;
/// The memory of a queued job, in bytes: its closure on the heap, its answer's channel, its slot in the queue. Bodies
/// are not included: they are payload.
const JOB_BYTES: usize = 1 << 10;

/// Runs work on threads of its own. A handle; clones are the same pool.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    queue: Mutex<Queue>,
    /// There is work, or there will be no more.
    changed: Condvar,
    /// As many permits as there may be more pieces of work here.
    places: Semaphore,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Invariant: at most as many pieces as the pool has places, for which there is room from the start.
struct Queue {
    pieces: VecDeque<Job>,
    closed: bool,
}

type Job = Box<dyn FnOnce() + Send>;

/// A piece of work did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It panicked; the text says with what.
    #[error("a panic: {0}")]
    Panicked(String),
    /// The pool was stopped before it was begun.
    #[error("the pool was stopped")]
    Stopped,
}

impl Pool {
    /// Starts `threads` threads, before which `places` pieces of work may wait.
    ///
    /// # Errors
    /// When a thread cannot be made.
    pub fn start(threads: usize, slots: usize) -> io::Result<Pool> {
        let most = threads + slots;
        let queue = Queue { pieces: VecDeque::with_capacity(most), closed: false };
        let pool = Pool(Arc::new(Inner {
            queue: Mutex::new(queue),
            changed: Condvar::new(),
            places: Semaphore::new(most),
            threads: Mutex::default(),
        }));
        for number in 0..threads {
            let inner = Arc::clone(&pool.0);
            let thread = Builder::new().name(format!("pool-{number}")).stack_size(STACK_BYTES);
            pool.threads().push(thread.spawn(move || inner.serve())?);
        }
        Ok(pool)
    }

    /// The memory of a pool of `threads` and `places`: its lines in the plan.
    pub fn declared(threads: usize, slots: usize) -> [Reservation; 2] {
        let line = |what, count: usize, each: usize| Reservation {
            owner: "pool",
            what,
            count: count as u64,
            each: each as u64,
            setting: None,
        };
        [
            line("stacks of the threads for large bodies", threads, STACK_BYTES),
            line("large bodies being checked, without their bytes", threads + slots, JOB_BYTES),
        ]
    }

    /// Runs `work` on one of the threads, and waits for what comes of it. Dropping the future takes the work
    /// back if it was not begun; if it was, it comes to its end unheard.
    ///
    /// # Errors
    /// [`JobError`].
    pub async fn run<T, W>(&self, work: W) -> Result<T, JobError>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let permit = self.0.places.acquire().await.map_err(|_closed| JobError::Stopped)?;
        let place = QueueSlot(Arc::clone(&self.0));
        permit.forget();
        let (tell, told) = oneshot::channel();
        self.0.push(Box::new(move || {
            let _place = place;
            if !tell.is_closed() {
                let outcome = catch_unwind(AssertUnwindSafe(work));
                // The caller may be gone by now.
                let _unheard = tell.send(outcome.map_err(|panic| JobError::Panicked(said(&*panic))));
            }
        }));
        told.await.unwrap_or(Err(JobError::Stopped))
    }

    /// Whether any of the threads has ended: as nothing but [`stop`](Self::stop) ends them, work would wait for
    /// ever.
    pub fn has_ended(&self) -> bool {
        self.threads().iter().any(JoinHandle::is_finished)
    }

    /// Refuses work from now on, also what was not begun, and waits for what was.
    pub fn stop(&self) {
        self.0.places.close();
        let dropped = {
            let mut queue = self.0.queue();
            queue.closed = true;
            std::mem::take(&mut queue.pieces)
        };
        self.0.changed.notify_all();
        drop(dropped);
        for thread in std::mem::take(&mut *self.threads()) {
            // Whatever panicked there was caught and told.
            let _ended = thread.join();
        }
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.0.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Queues a piece, for which there is a place. After the stop it is dropped, which its caller hears.
    fn push(&self, piece: Job) {
        let mut queue = self.queue();
        if !queue.closed {
            queue.pieces.push_back(piece);
            drop(queue);
            self.changed.notify_one();
        }
    }

    /// Does what is queued, until the stop.
    fn serve(&self) {
        while let Some(piece) = self.next() {
            // Its result may panic too when it is dropped because nobody wants it.
            let _done = catch_unwind(AssertUnwindSafe(piece));
        }
    }

    fn next(&self) -> Option<Job> {
        let queue = self.changed.wait_while(self.queue(), |queue| queue.pieces.is_empty() && !queue.closed);
        queue.unwrap_or_else(PoisonError::into_inner).pieces.pop_front()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece's place in the pool; dropping it lets the next one in.
struct QueueSlot(Arc<Inner>);

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.0.places.add_permits(1);
    }
}

/// The panic's message.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words").to_owned()
}

#[cfg(test)]
mod tests;
