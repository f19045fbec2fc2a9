//! The sinks of a running gateway: started, compared with a new configuration, stopped.

use super::plan::Planned;
use super::workers::Workers;
use crate::Failure;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, Share};
use tidegate_config::{Config, LakeSink, Name, Protocol, RemoteWriteSink, Sink};
use tidegate_journal::dead_letters::{self, DeadLetters};
use tidegate_journal::{Journal, WhenFull};
use tidegate_ledger::Ledger;
use tidegate_sinks::{
    Health, Lake, Prefer, RemoteWrite, RemoteWriteSettings, Room, Sinkable, Stop, Stopper, blackhole,
};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// The stack of a lake's thread, in bytes: as the plan declares.
const LAKE_STACK: usize = super::workers::STACK;

/// A sink that runs.
pub(crate) struct Running {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    /// Where it sends, for people.
    pub(crate) target: String,
    pub(crate) health: Health,
    /// How far behind it is when all is well: a lake finishes a file now and then.
    pub(crate) usual_lag: Duration,
    stopper: Stopper,
    task: Task,
}

enum Task {
    Worker(JoinHandle<()>),
    Thread(std::thread::JoinHandle<()>),
}

/// What sinks are attached to.
pub(crate) struct Attach {
    data: PathBuf,
    journal_config: tidegate_config::Journal,
    slice: u64,
    lake_part: usize,
    egress: u64,
    arena: Arena,
    journal: Journal,
    ledger: Ledger,
    dead_letters: DeadLetters,
    workers: Arc<Workers>,
    turn: Arc<Semaphore>,
    next_worker: AtomicUsize,
}

impl Attach {
    pub(crate) fn new(
        config: &Config,
        planned: &Planned,
        arena: &Arena,
        journal: &Journal,
        ledger: &Ledger,
        workers: &Arc<Workers>,
    ) -> Result<Attach, Failure> {
        let letters = config.data.join("dead-letters");
        let dead_letters = DeadLetters::open(&letters, dead_letters::DEFAULT_MAX)
            .map_err(|error| format!("opening the dead letters in {}: {error}", letters.display()))?;
        Ok(Attach {
            data: config.data.clone(),
            journal_config: config.journal.clone(),
            slice: planned.slice,
            lake_part: usize::try_from(planned.lake_part).unwrap_or(usize::MAX),
            egress: planned.plan.floors().of(Share::Egress),
            arena: arena.clone(),
            journal: journal.clone(),
            ledger: ledger.clone(),
            dead_letters,
            workers: Arc::clone(workers),
            turn: Arc::new(Semaphore::new(1)),
            next_worker: AtomicUsize::new(0),
        })
    }

    /// Starts all of `sinks`.
    pub(crate) fn start_all(&self, sinks: &BTreeMap<Name, Sink>) -> Result<Vec<Running>, Failure> {
        let part = self.part(sinks);
        self.tell_of_cursors(sinks);
        sinks.iter().map(|(name, sink)| self.start(name.as_str(), sink, part)).collect()
    }

    /// Stops the sinks that are not in `new` or differ there, and starts the others of `new`.
    pub(crate) fn change(
        &self,
        running: &mut Vec<Running>,
        old: &BTreeMap<Name, Sink>,
        new: &BTreeMap<Name, Sink>,
    ) -> Result<(), Failure> {
        let part = self.part(new);
        if part < part_of(self.egress, old) && part < 256 << 10 {
            return Err(Failure::from("there is no memory for so many sinks; restart tidegate to plan anew"));
        }
        let kept = |name: &str| {
            new.iter().any(|(other, sink)| other.as_str() == name && old.get(other) == Some(sink))
        };
        let (stay, go): (Vec<_>, Vec<_>) = running.drain(..).partition(|sink| kept(&sink.name));
        *running = stay;
        let gone: Vec<String> = go.iter().map(|sink| sink.name.clone()).collect();
        stop_all(go, self.workers.worker(0), Instant::now() + Duration::from_secs(30));
        for name in &gone {
            self.ledger.detach(name);
        }
        for (name, sink) in new {
            if !running.iter().any(|sink| sink.name == name.as_str()) {
                running.push(self.start(name.as_str(), sink, part)?);
                tracing::info!(sink = name.as_str(), "the sink is running");
            }
        }
        running.sort_by(|a, b| a.name.cmp(&b.name));
        self.tell_of_cursors(new);
        Ok(())
    }

    fn part(&self, sinks: &BTreeMap<Name, Sink>) -> usize {
        part_of(self.egress, sinks)
    }

    fn start(&self, name: &str, sink: &Sink, part: usize) -> Result<Running, Failure> {
        let health = Health::default();
        let (stopper, stop) = Stopper::new();
        let when_full = match sink {
            Sink::PrometheusRemoteWrite(sink) => sink.when_full(&self.journal_config),
            Sink::Lake(_) | Sink::Blackhole(_) => self.journal_config.when_full,
        };
        let sinkable = Sinkable {
            name,
            journal: &self.journal,
            ledger: &self.ledger,
            when_full: match when_full {
                tidegate_config::WhenFull::Block => WhenFull::Block,
                tidegate_config::WhenFull::DropOldest => WhenFull::DropOldest,
            },
            health: &health,
            dead_letters: &self.dead_letters,
        };
        let failed = |error: &dyn std::fmt::Display| Failure(format!("starting the sink `{name}`: {error}"));
        let mut usual_lag = Duration::from_secs(1);
        let (target, task) = match sink {
            Sink::Lake(lake) => {
                usual_lag = lake.file_age.get() + Duration::from_secs(5);
                let task = self.lake(sinkable, lake, stop).map_err(|Failure(error)| failed(&error))?;
                (lake.folder(&self.data).display().to_string(), task)
            }
            Sink::PrometheusRemoteWrite(remote_write) => {
                let settings = settings(remote_write).map_err(|Failure(error)| failed(&error))?;
                let room = Room::new(&self.arena, Share::Egress, part, &self.turn);
                let sink =
                    RemoteWrite::start(sinkable, room, settings, stop).map_err(|error| failed(&error))?;
                (remote_write.url.to_string(), Task::Worker(self.worker().spawn(sink.run())))
            }
            Sink::Blackhole(_) => {
                let sink = blackhole(sinkable, stop).map_err(|error| failed(&error))?;
                ("nowhere".to_owned(), Task::Worker(self.worker().spawn(sink)))
            }
        };
        Ok(Running { name: name.to_owned(), kind: sink.kind(), target, health, usual_lag, stopper, task })
    }

    fn lake(&self, sinkable: Sinkable<'_>, sink: &LakeSink, stop: Stop) -> Result<Task, Failure> {
        let slice = self.arena.try_charge(Share::Lake, self.slice)?;
        let node = format!("{:016x}", self.journal.id());
        let settings = tidegate_lake::Settings {
            file_age: sink.file_age.get(),
            file_bytes: sink.file_bytes.get(),
            retention: tidegate_lake::Retention {
                age: sink.retention.age.get(),
                bytes: Some(sink.retention.bytes.get()),
            },
            ..tidegate_lake::Settings::new(sink.folder(&self.data), self.slice, node)
        };
        let room = Room::new(&self.arena, Share::Lake, self.lake_part, &self.turn);
        let lake = Lake::start(sinkable, settings, slice, room, self.worker().clone(), stop)?;
        let thread = std::thread::Builder::new()
            .name("lake".to_owned())
            .stack_size(LAKE_STACK)
            .spawn(move || lake.run())?;
        Ok(Task::Thread(thread))
    }

    fn worker(&self) -> &Handle {
        self.workers.worker(self.next_worker.fetch_add(1, Relaxed))
    }

    /// A cursor without a sink holds what it has not sent: said loudly, since only a person knows whether
    /// the sink was renamed or is gone.
    fn tell_of_cursors(&self, sinks: &BTreeMap<Name, Sink>) {
        for name in self.journal.sinks() {
            if !sinks.keys().any(|known| known.as_str() == name) {
                tracing::warn!(
                    sink = name,
                    "the journal has a cursor for a sink that is not configured, and keeps what it has not sent; \
                     if the sink is gone for good, stop tidegate and run `tidegate journal forget {name}`"
                );
            }
        }
    }
}

/// Each sink's part of egress.
fn part_of(egress: u64, sinks: &BTreeMap<Name, Sink>) -> usize {
    let users = sinks.values().filter(|sink| !matches!(sink, Sink::Lake(_))).count().max(1);
    usize::try_from(egress).unwrap_or(usize::MAX) / users
}

fn settings(sink: &RemoteWriteSink) -> Result<RemoteWriteSettings, Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in &sink.headers {
        let mut value = HeaderValue::from_str(value.expose())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name.as_str())?, value);
    }
    Ok(RemoteWriteSettings {
        url: Uri::try_from(sink.url.as_str())?,
        headers,
        prefer: match sink.protocol {
            Protocol::Auto => Prefer::AsReceived,
            Protocol::V1 => Prefer::V1,
            Protocol::V2 => Prefer::V2,
        },
        lanes: sink.lanes as usize,
        max_bytes: sink.max_request_bytes.as_usize(),
        max_items: u64::from(sink.max_request_samples),
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.backoff.min.get(), sink.backoff.max.get()),
    })
}

/// Stops `sinks` and waits until they have: until `deadline` at most.
pub(crate) fn stop_all(sinks: Vec<Running>, runtime: &Handle, deadline: Instant) {
    sinks.iter().for_each(|sink| sink.stopper.stop());
    for sink in sinks {
        let left = deadline.saturating_duration_since(Instant::now());
        let ended = match sink.task {
            Task::Worker(task) => runtime.block_on(async { tokio::time::timeout(left, task).await.is_ok() }),
            Task::Thread(thread) => {
                while !thread.is_finished() && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(5));
                }
                thread.is_finished()
            }
        };
        if !ended {
            tracing::warn!(
                sink = sink.name,
                "the sink did not stop in time; what it has not sent is in the journal"
            );
        }
    }
}
