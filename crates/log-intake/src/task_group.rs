//! The tasks of a source: started on a worker, watched, and waited for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::runtime::Handle;

/// The tasks of one source. Clones are the same group.
///
/// Two kinds of tasks: those that must not end before the source is stopped, such as a reader or the receiver of a
/// socket, and those that end by themselves, such as a connection.
#[derive(Clone, Default)]
pub struct TaskGroup(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    /// The first that ended although it must not.
    lost: Option<&'static str>,
    is_stopping: bool,
}

/// A task of a group that something else runs. It is counted out when this is dropped.
pub struct RunningTask {
    _running: Running,
}

/// Counts a task out when it ends, by a panic too.
struct Running {
    group: TaskGroup,
    /// The name of one that must not end.
    name: Option<&'static str>,
}

impl TaskGroup {
    /// A group without tasks.
    #[must_use]
    pub fn new() -> TaskGroup {
        TaskGroup::default()
    }

    /// Runs a task that may end at any time.
    pub fn spawn(&self, worker: &Handle, task: impl Future<Output = ()> + Send + 'static) {
        self.run(worker, None, task);
    }

    /// Runs a task that must not end before the source is stopped. `name` says what it is, such as `the receiver of a
    /// socket`.
    pub fn spawn_watched(
        &self,
        worker: &Handle,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.run(worker, Some(name), task);
    }

    /// Counts a task that something else runs, until the guard is dropped.
    #[must_use]
    pub fn count(&self) -> RunningTask {
        self.state().running += 1;
        RunningTask { _running: Running { group: self.clone(), name: None } }
    }

    /// The name of the first watched task that ended before [`wait`](Self::wait).
    #[must_use]
    pub fn lost(&self) -> Option<&'static str> {
        self.state().lost
    }

    /// How many tasks run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.state().running
    }

    /// Waits until all tasks have ended, at most until `deadline`; says whether they have. Not for a task: it blocks its
    /// thread.
    #[must_use]
    pub fn wait(&self, deadline: Instant) -> bool {
        let mut state = self.state();
        state.is_stopping = true;
        while state.running > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.0.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Expects the ends of tasks from now on: none is [lost](Self::lost).
    pub fn expect_ends(&self) {
        self.state().is_stopping = true;
    }

    fn run(
        &self,
        worker: &Handle,
        name: Option<&'static str>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.state().running += 1;
        let running = Running { group: self.clone(), name };
        worker.spawn(async move {
            let _running = running;
            task.await;
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.group.state();
        state.running -= 1;
        if !state.is_stopping {
            state.lost = state.lost.or(self.name);
        }
        drop(state);
        self.group.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::oneshot;

    const SOON: Duration = Duration::from_secs(30);

    /// A watched task that ends is known by its name, also when it panics; one that ends after the stop is not.
    #[tokio::test]
    async fn a_lost_task_is_named() {
        let (group, worker) = (TaskGroup::new(), Handle::current());
        let (end, ended) = oneshot::channel::<()>();
        group.spawn(&worker, async {});
        group.spawn_watched(&worker, "the reader", async move {
            let _ended = ended.await;
        });
        while group.running() > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(group.lost(), None);
        drop(end);
        while group.running() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(group.lost(), Some("the reader"));

        let group = TaskGroup::new();
        group.spawn_watched(&worker, "the other", async { panic!("ends") });
        while group.running() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(group.lost(), Some("the other"));
    }

    /// The wait ends with the last task, or at its deadline.
    #[tokio::test]
    async fn waits_for_all() {
        let (group, worker) = (TaskGroup::new(), Handle::current());
        let (end, ended) = oneshot::channel::<()>();
        group.spawn_watched(&worker, "the reader", async move {
            let _ended = ended.await;
        });
        assert!(!group.wait(Instant::now()));
        let waiting = group.clone();
        let waited = std::thread::spawn(move || waiting.wait(Instant::now() + SOON));
        drop(end);
        while group.running() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(waited.join().unwrap());
        assert_eq!(group.lost(), None);
    }
}
