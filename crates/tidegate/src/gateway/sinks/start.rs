//! How a sink is started, now and by its supervisor, and where it runs.

use crate::Failure;
use crate::gateway::workers::THREAD_STACK;
use std::path::PathBuf;
use std::pin::Pin;
use tidegate_arena::Arena;
use tidegate_journal::dead_letters::DeadLetters;
use tidegate_journal::{Journal, WhenFull};
use tidegate_ledger::Ledger;
use tidegate_sinks::{EgressBudget, Health, Signals, SinkContext, SinkPipeline, StopSignal, Supervisor};
use tidegate_tap::Tap;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A sink's environment: the same at every start.
pub(crate) struct SinkEnvironment {
    pub(super) name: String,
    /// Of which kind it is: what its thread is called, if it has one.
    pub(super) kind: &'static str,
    pub(super) signals: Signals,
    pub(super) when_full: WhenFull,
    pub(super) data: PathBuf,
    /// The bytes of the lake writer's slice.
    pub(super) slice: u64,
    pub(super) arena: Arena,
    pub(super) journal: Journal,
    pub(super) ledger: Ledger,
    pub(super) dead_letters: DeadLetters,
    pub(super) tap: Tap,
    /// The pipeline that records pass through.
    pub(super) pipeline: Option<SinkPipeline>,
    pub(super) health: Health,
    pub(super) stop: StopSignal,
    /// The same for every start: what the one before may still hold counts.
    pub(super) room: EgressBudget,
    /// The worker on which it runs, or waits.
    pub(super) runtime: Handle,
}

impl SinkEnvironment {
    pub(super) fn context(&self) -> SinkContext<'_> {
        SinkContext {
            name: &self.name,
            journal: &self.journal,
            ledger: &self.ledger,
            when_full: self.when_full,
            health: &self.health,
            signals: self.signals,
            dead_letters: &self.dead_letters,
            tap: Some(&self.tap),
            pipeline: self.pipeline.as_ref(),
        }
    }
}

/// Starts a sink, each time that it is called.
type Start<T> = Box<dyn Fn(&SinkEnvironment) -> Result<T, String> + Send + Sync>;
type Sending = Pin<Box<dyn Future<Output = ()> + Send>>;
type Writing = Box<dyn FnOnce() + Send>;

/// How a sink is started, by where it runs.
pub(crate) enum Starter {
    /// As a task of a worker.
    Task(Start<Sending>),
    /// On a thread of its own, since it blocks.
    Thread(Start<Writing>),
}

/// A sink with its supervisor.
pub(super) enum Task {
    Worker(JoinHandle<()>),
    Thread(std::thread::JoinHandle<()>),
}

impl Starter {
    pub(super) fn task<F>(
        start: impl Fn(&SinkEnvironment) -> Result<F, String> + Send + Sync + 'static,
    ) -> Starter
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Starter::Task(Box::new(move |wiring| Ok(Box::pin(start(wiring)?))))
    }

    pub(super) fn thread<F>(
        start: impl Fn(&SinkEnvironment) -> Result<F, String> + Send + Sync + 'static,
    ) -> Starter
    where
        F: FnOnce() + Send + 'static,
    {
        Starter::Thread(Box::new(move |wiring| Ok(Box::new(start(wiring)?))))
    }

    /// Threads beside the workers: of the stack that is [`THREAD_STACK`].
    pub(crate) fn threads(&self) -> u64 {
        match self {
            Starter::Task(_) => 0,
            Starter::Thread(_) => 1,
        }
    }

    /// Starts the sink under a supervisor.
    ///
    /// # Errors
    /// When it cannot be started now; unless its `predecessor` is still there, which is waited for.
    pub(super) fn run(self, wiring: SinkEnvironment, predecessor: bool) -> Result<Task, Failure> {
        let supervisor = Supervisor::new(&wiring.name, wiring.health.clone(), wiring.stop.clone());
        let runtime = wiring.runtime.clone();
        match self {
            Starter::Task(start) => {
                let first = first(start(&wiring), predecessor)?;
                let run = async move { supervisor.run(first, || start(&wiring)).await };
                Ok(Task::Worker(runtime.spawn(run)))
            }
            Starter::Thread(start) => {
                let first = first(start(&wiring), predecessor)?;
                let thread =
                    std::thread::Builder::new().name(wiring.kind.to_owned()).stack_size(THREAD_STACK);
                let run = move || supervisor.run_blocking(&runtime, first, || start(&wiring));
                Ok(Task::Thread(thread.spawn(run)?))
            }
        }
    }
}

/// The first start, if it is one.
fn first<T>(started: Result<T, String>, predecessor: bool) -> Result<Option<T>, Failure> {
    match started {
        Ok(sink) => Ok(Some(sink)),
        Err(_) if predecessor => Ok(None),
        Err(error) => Err(Failure(error)),
    }
}

impl Task {
    pub(super) fn is_finished(&self) -> bool {
        match self {
            Task::Worker(task) => task.is_finished(),
            Task::Thread(thread) => thread.is_finished(),
        }
    }
}
