//! All that it takes to start one sink: kept by its supervisor, to start it again.

use super::{Parts, settings};
use crate::Failure;
use std::path::PathBuf;
use std::pin::Pin;
use tidegate_arena::{Arena, Share};
use tidegate_config::{LakeSink, Sink};
use tidegate_files::Access;
use tidegate_journal::dead_letters::DeadLetters;
use tidegate_journal::{Journal, Signal, WhenFull};
use tidegate_ledger::Ledger;
use tidegate_sinks::{
    Elasticsearch, Health, Lake, Otlp, RemoteWrite, Room, Sinkable, Stop, Supervisor, blackhole,
};
use tidegate_tap::Tap;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// The stack of a lake's thread, in bytes: as the plan declares.
const LAKE_STACK: usize = crate::gateway::workers::STACK;

/// All that it takes to start one sink.
pub(super) struct Recipe {
    pub(super) name: String,
    pub(super) sink: Sink,
    pub(super) data: PathBuf,
    pub(super) when_full: WhenFull,
    pub(super) parts: Parts,
    pub(super) arena: Arena,
    pub(super) journal: Journal,
    pub(super) ledger: Ledger,
    pub(super) dead_letters: DeadLetters,
    pub(super) tap: Tap,
    pub(super) health: Health,
    pub(super) stop: Stop,
    /// The same for every start: what the one before may still hold counts.
    pub(super) room: Room,
    /// The worker on which it runs, or waits.
    pub(super) runtime: Handle,
}

/// Where a sink runs.
pub(super) enum Task {
    Worker(JoinHandle<()>),
    Thread(std::thread::JoinHandle<()>),
}

impl Task {
    pub(super) fn is_finished(&self) -> bool {
        match self {
            Task::Worker(task) => task.is_finished(),
            Task::Thread(thread) => thread.is_finished(),
        }
    }
}

type Sending = Pin<Box<dyn Future<Output = ()> + Send>>;
type Writing = Box<dyn FnOnce() + Send>;

impl Recipe {
    /// Starts the sink under a supervisor.
    ///
    /// # Errors
    /// When it cannot be started now; unless its `predecessor` is still there, which is waited for.
    pub(super) fn run(self, predecessor: bool) -> Result<Task, Failure> {
        let supervisor = Supervisor::new(&self.name, self.health.clone(), self.stop.clone());
        if let Sink::Lake(config) = &self.sink {
            let (config, first) = (config.clone(), first(self.lake(config), predecessor)?);
            let run = move || supervisor.run_blocking(&self.runtime, first, || self.lake(&config));
            let thread = std::thread::Builder::new().name("lake".to_owned()).stack_size(LAKE_STACK);
            return Ok(Task::Thread(thread.spawn(run)?));
        }
        let first = first(self.sending(), predecessor)?;
        let runtime = self.runtime.clone();
        let run = async move { supervisor.run(first, || self.sending()).await };
        Ok(Task::Worker(runtime.spawn(run)))
    }

    fn sinkable(&self) -> Sinkable<'_> {
        Sinkable {
            name: &self.name,
            journal: &self.journal,
            ledger: &self.ledger,
            when_full: self.when_full,
            health: &self.health,
            signals: self.sink.signals().iter().map(journal_signal).collect(),
            dead_letters: &self.dead_letters,
            tap: Some(&self.tap),
        }
    }

    /// Any sink but a lake, ready to run.
    fn sending(&self) -> Result<Sending, String> {
        match &self.sink {
            Sink::PrometheusRemoteWrite(config) => {
                let settings = settings::remote_write(config).map_err(|Failure(error)| error)?;
                let sink =
                    RemoteWrite::start(self.sinkable(), self.room.clone(), settings, self.stop.clone());
                Ok(Box::pin(sink.map_err(|error| error.to_string())?.run()))
            }
            Sink::Otlp(config) => {
                let settings = settings::otlp(config).map_err(|Failure(error)| error)?;
                let sink = Otlp::start(self.sinkable(), self.room.clone(), settings, self.stop.clone());
                Ok(Box::pin(sink.map_err(|error| error.to_string())?.run()))
            }
            Sink::Elasticsearch(config) => {
                let settings = settings::elasticsearch(config).map_err(|Failure(error)| error)?;
                let sink =
                    Elasticsearch::start(self.sinkable(), self.room.clone(), settings, self.stop.clone());
                Ok(Box::pin(sink.map_err(|error| error.to_string())?.run()))
            }
            Sink::Blackhole(_) | Sink::Lake(_) => {
                let sink = blackhole(self.sinkable(), self.stop.clone());
                Ok(Box::pin(sink.map_err(|error| error.to_string())?))
            }
        }
    }

    fn lake(&self, config: &LakeSink) -> Result<Writing, String> {
        let slice =
            self.arena.try_charge(Share::Lake, self.parts.slice).map_err(|error| error.to_string())?;
        let node = format!("{:016x}", self.journal.id());
        let settings = tidegate_lake::Settings {
            file_age: config.file_age.get(),
            file_bytes: config.file_bytes.get(),
            retention: tidegate_lake::Retention {
                age: config.retention.age.get(),
                bytes: Some(config.retention.bytes.get()),
            },
            access: if config.group_readable { Access::Group } else { Access::Owner },
            ..tidegate_lake::Settings::new(config.folder(&self.data), self.parts.slice, node)
        };
        let (room, runtime) = (self.room.clone(), self.runtime.clone());
        let lake = Lake::start(self.sinkable(), settings, slice, room, runtime, self.stop.clone());
        let lake = lake.map_err(|error| error.to_string())?;
        Ok(Box::new(move || lake.run()))
    }
}

/// A signal of the configuration, as the journal names it.
pub(crate) fn journal_signal(signal: &tidegate_config::Signal) -> Signal {
    match signal {
        tidegate_config::Signal::Traces => Signal::Traces,
        tidegate_config::Signal::Metrics => Signal::Metrics,
        tidegate_config::Signal::Logs => Signal::Logs,
        tidegate_config::Signal::Profiles => Signal::Profiles,
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
