//! Whether everything that must not end is still there.
//!
//! The rule: a sink that ends is started again by its supervisor, since its cursor is durable and nothing else
//! depends on it. Whatever else ends (a worker, an acceptor, the journal's writer, a thread of the pool, the
//! upkeep itself) takes the process with it, at once and with a message: what it served has no other end, and
//! a process that was killed is a case that the journal is made for, while one that half works is not.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// The watched tasks, each with a message for its end.
#[derive(Default)]
pub(crate) struct TaskWatch(Vec<Box<dyn Fn() -> Option<String> + Send>>);

impl TaskWatch {
    /// Has `gone` asked from now on: the words for what is gone, if it is.
    pub(crate) fn over(&mut self, gone: impl Fn() -> Option<String> + Send + 'static) {
        self.0.push(Box::new(gone));
    }

    /// The first that is gone.
    pub(crate) fn gone(&self) -> Option<String> {
        self.0.iter().find_map(|gone| gone())
    }
}

/// A thread that does something again and again until it is dropped.
pub(crate) struct PeriodicThread {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PeriodicThread {
    /// Calls `round` once each `pause` on a thread with this name and stack. When it panics, or says what is
    /// gone, `leave` is told, once.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn start(
        name: &str,
        stack: usize,
        pause: Duration,
        mut round: impl FnMut() -> Option<String> + Send + 'static,
        leave: impl FnOnce(&str) + Send + 'static,
    ) -> io::Result<PeriodicThread> {
        let over = Arc::new(AtomicBool::new(false));
        let (ordered, owner) = (Arc::clone(&over), name.to_owned());
        let run = move || {
            while !ordered.load(Relaxed) {
                match catch_unwind(AssertUnwindSafe(&mut round)) {
                    Ok(None) => std::thread::park_timeout(pause),
                    // Ordered meanwhile, what is gone was told to go.
                    Ok(Some(_)) if ordered.load(Relaxed) => {}
                    Ok(Some(gone)) => return leave(&gone),
                    Err(_panic) => return leave(&format!("the thread `{owner}`")),
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(run)?;
        Ok(PeriodicThread { over, thread: Some(thread) })
    }
}

impl Drop for PeriodicThread {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Its panic was caught and told.
            let _ended = thread.join();
        }
    }
}

/// Ends the process because `gone` is.
pub(crate) fn leave(gone: &str) {
    let message = format!(
        "{gone} ended unexpectedly (the log before this says why), and cannot be restarted within the process; exiting, so that the process supervisor restarts tidegate. Nothing acknowledged is lost"
    );
    if !crate::logging::is_json_only() {
        tracing::error!("{message}");
    }
    crate::output::error(&message);
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    //! Promise: what must not end is missed soon after it has, and what is stopped in order is not.

    use super::*;
    use std::sync::mpsc::{Receiver, sync_channel};

    const PAUSE: Duration = Duration::from_millis(1);

    fn rounds(round: impl FnMut() -> Option<String> + Send + 'static) -> (PeriodicThread, Receiver<String>) {
        let (tell, told) = sync_channel(1);
        let leave = move |gone: &str| tell.send(gone.to_owned()).unwrap();
        (PeriodicThread::start("looking", 64 << 10, PAUSE, round, leave).unwrap(), told)
    }

    #[test]
    fn an_ended_task_is_reported() {
        let (task, running) = sync_channel::<()>(0);
        let thread = std::thread::spawn(move || running.recv());
        let mut watch = TaskWatch::default();
        watch.over(|| None);
        watch.over(move || thread.is_finished().then(|| "the thread of the test".to_owned()));
        let (_rounds, told) = rounds(move || watch.gone());
        assert!(told.try_recv().is_err());
        drop(task);
        assert_eq!(told.recv().unwrap(), "the thread of the test");
    }

    #[test]
    fn a_panic_of_the_watcher_is_reported() {
        let (_rounds, told) = rounds(|| panic!("looking fails"));
        assert_eq!(told.recv().unwrap(), "the thread `looking`");
    }

    #[test]
    fn an_end_in_order_is_not() {
        let (rounds, told) = rounds(|| None);
        drop(rounds);
        assert!(told.recv().is_err(), "nobody is left to tell anything");
    }
}
