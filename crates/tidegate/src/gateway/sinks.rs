//! The sinks of a running gateway: started, compared with a new configuration, stopped.

mod backlogs;
pub(crate) mod kinds;
mod memory;
pub(crate) mod pipelines;
pub(crate) mod routing;
mod set;
mod start;

use self::pipelines::SinkPipelines;
use self::routing::{QueueSpan, RoutingHistory};
use super::plan::{self, GatewayPlan};
use super::workers::Workers;
use crate::Failure;
use memory::SinkMemory;
pub(crate) use set::{ShownSink, SinkSet};
use start::{SinkEnvironment, Task};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, Share};
use tidegate_config::{Config, Name, Sink};
use tidegate_journal::dead_letters::{self, DeadLetters};
use tidegate_journal::{Journal, Signal, WhenFull};
use tidegate_ledger::Ledger;
use tidegate_sinks::{BorrowQueue, EgressBudget, Health, SinkPipeline, StopSender, TraceSampling};
use tidegate_tap::Tap;
use tokio::runtime::Handle;

/// How long a change of the configuration waits for sinks to stop. What takes longer stops in its own time, and
/// its successor waits for it.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A sink that runs.
pub(crate) struct RunningSink {
    shown: Arc<ShownSink>,
    /// The memory that it was started with.
    parts: SinkMemory,
    stopper: StopSender,
    task: Task,
}

impl RunningSink {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.shown.name
    }

    /// Whether it has ended. Nothing but the order to stop ends it: its supervisor starts it again.
    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it, as nothing does but the gateway's own end.
    #[cfg(test)]
    pub(crate) fn end(&self) {
        self.stopper.stop();
    }
}

/// The services that sinks are attached to.
pub(crate) struct SinkServices {
    data: PathBuf,
    journal_config: tidegate_config::Journal,
    /// As they are now.
    parts: Mutex<SinkMemory>,
    pipelines: Mutex<SinkPipelines>,
    routing: Mutex<RoutingHistory>,
    arena: Arena,
    journal: Journal,
    ledger: Ledger,
    dead_letters: DeadLetters,
    tap: Tap,
    workers: Arc<Workers>,
    borrowers: Arc<BorrowQueue>,
    next_worker: AtomicUsize,
    /// Those that were told to stop and did not in time. A name is among them once: its successor does not
    /// start before it is gone.
    leaving: Mutex<Vec<RunningSink>>,
    /// How long a change waits for sinks to stop.
    patience: Duration,
}

impl SinkServices {
    pub(crate) fn new(
        config: &Config,
        planned: &GatewayPlan,
        arena: &Arena,
        journal: &Journal,
        ledger: &Ledger,
        workers: &Arc<Workers>,
        tap: &Tap,
    ) -> Result<SinkServices, Failure> {
        let mut routing = RoutingHistory::read(&config.data)?;
        let queue = span_of(journal);
        let routings = planned.pipelines.routings(config.sinks.keys());
        let is_merged = routing.make_room(&routings, &queue);
        routing.begin(&routings, &queue);
        routing.store(&config.data)?;
        let pipelines = match is_merged {
            true => planned.pipelines.with_earlier_of(config.sinks.keys(), &routing),
            false => planned.pipelines.clone(),
        };
        let letters = config.data.join("dead-letters");
        let dead_letters = DeadLetters::open(&letters, dead_letters::DEFAULT_MAX)
            .map_err(|error| format!("opening the dead letters in {}: {error}", letters.display()))?;
        let parts = SinkMemory::of(planned, &config.sinks);
        let beside = pipelines.bytes().saturating_sub(planned.pipelines.bytes());
        let services = SinkServices {
            data: config.data.clone(),
            journal_config: config.journal.clone(),
            parts: Mutex::new(parts),
            pipelines: Mutex::new(pipelines),
            routing: Mutex::new(routing),
            arena: arena.clone(),
            journal: journal.clone(),
            ledger: ledger.clone(),
            dead_letters,
            tap: tap.clone(),
            workers: Arc::clone(workers),
            borrowers: Arc::default(),
            next_worker: AtomicUsize::new(0),
            leaving: Mutex::default(),
            patience: STOP_TIMEOUT,
        };
        if beside > 0 {
            services.replan(parts, beside)?;
        }
        Ok(services)
    }

    /// Starts all of `sinks`.
    pub(crate) fn start_all(&self, sinks: &BTreeMap<Name, Sink>) -> Result<Vec<RunningSink>, Failure> {
        self.tell_of_cursors(sinks);
        backlogs::warn_of_orphans(&self.data, sinks);
        let mut running = Vec::new();
        self.start_missing(&mut running, sinks)?;
        Ok(running)
    }

    /// Stops the sinks that are not in `new`, or differ there, or have other memory or another pipeline in `planned`; and starts
    /// the others of `new`. When one of them cannot be started, everything is as it was before.
    pub(crate) fn change(
        &self,
        running: &mut Vec<RunningSink>,
        old: &BTreeMap<Name, Sink>,
        new: &BTreeMap<Name, Sink>,
        planned: &GatewayPlan,
    ) -> Result<(), Failure> {
        let (before, after) = (*self.parts(), SinkMemory::of(planned, new));
        let pipelines_before = self.pipelines();
        self.routing().check_room(&planned.pipelines.routings(new.keys()), &span_of(&self.journal))?;
        let pipelines = planned.pipelines.with_meters_of(&pipelines_before);
        let is_same = |sink: &RunningSink| {
            let has_name = |(name, _): &(&Name, &Sink)| name.as_str() == sink.name();
            let configured = old.iter().find(has_name);
            configured.is_some()
                && configured == new.iter().find(has_name)
                && pipelines.is_same_in(&pipelines_before, sink.name())
        };
        self.stop_others(running, |sink| sink.parts == after && is_same(sink));
        self.set_pipelines(&pipelines);
        let changed = self
            .replan(after, 0)
            .and_then(|()| self.begin_routing(&pipelines, new))
            .and_then(|()| self.start_missing(running, new));
        if changed.is_err() {
            self.stop_others(running, |sink| sink.parts == before && is_same(sink));
            self.roll_back(running, old, &pipelines_before, before);
        }
        let used = if changed.is_ok() { new } else { old };
        self.tell_of_cursors(used);
        backlogs::warn_of_orphans(&self.data, used);
        changed
    }

    /// Has `sinks` run again after a failed change, with the pipelines and the memory of before. What fails is logged: whatever it is,
    /// the sinks have to run.
    fn roll_back(
        &self,
        running: &mut Vec<RunningSink>,
        sinks: &BTreeMap<Name, Sink>,
        pipelines: &SinkPipelines,
        parts: SinkMemory,
    ) {
        let log = |Failure(error)| tracing::error!(error, "going back to the configuration before failed");
        let queue = span_of(&self.journal);
        let history = {
            let mut routing = self.routing();
            routing.begin(&pipelines.routings(sinks.keys()), &queue);
            routing.clone()
        };
        history.store(&self.data).unwrap_or_else(log);
        // Items received since the change began were routed by it, and are queued.
        let earlier = pipelines.with_earlier_of(sinks.keys(), &history);
        self.set_pipelines(&earlier);
        self.replan(parts, earlier.bytes().saturating_sub(pipelines.bytes())).unwrap_or_else(log);
        for (name, sink) in sinks {
            self.start_if_missing(running, name, sink).unwrap_or_else(log);
        }
        running.sort_by(|a, b| a.name().cmp(b.name()));
    }

    /// Routes what is journalled from now on by `pipelines`; as before, where that cannot be stored. No sink that is routed otherwise
    /// runs any more, so none has read further.
    fn begin_routing(&self, pipelines: &SinkPipelines, sinks: &BTreeMap<Name, Sink>) -> Result<(), Failure> {
        let queue = span_of(&self.journal);
        let mut routing = self.routing();
        let mut changed = routing.clone();
        changed.begin(&pipelines.routings(sinks.keys()), &queue);
        changed.store(&self.data)?;
        *routing = changed;
        Ok(())
    }

    /// How queued records are routed.
    pub(crate) fn routing(&self) -> MutexGuard<'_, RoutingHistory> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts those of `sinks` that do not run.
    fn start_missing(
        &self,
        running: &mut Vec<RunningSink>,
        sinks: &BTreeMap<Name, Sink>,
    ) -> Result<(), Failure> {
        for (name, sink) in sinks {
            self.start_if_missing(running, name, sink)?;
        }
        running.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(())
    }

    fn start_if_missing(
        &self,
        running: &mut Vec<RunningSink>,
        name: &Name,
        sink: &Sink,
    ) -> Result<(), Failure> {
        if !running.iter().any(|sink| sink.name() == name.as_str()) {
            running.push(self.start(name.as_str(), sink)?);
            tracing::info!(sink = name.as_str(), "the sink is running");
        }
        Ok(())
    }

    /// Stops the sinks that are not to stay, and closes their pages in the books.
    fn stop_others(&self, running: &mut Vec<RunningSink>, stays: impl Fn(&RunningSink) -> bool) {
        let (stay, go): (Vec<_>, Vec<_>) = running.drain(..).partition(stays);
        *running = stay;
        go.iter().for_each(|sink| self.ledger.detach(sink.name()));
        let late = stop_all(go, Instant::now() + self.patience);
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner).extend(late);
    }

    /// Gives the arena another plan, less so many bytes that the plan does not have, waiting a while for what is charged to fit it.
    fn replan(&self, parts: SinkMemory, beside: u64) -> Result<(), Failure> {
        let deadline = Instant::now() + self.patience;
        while self.arena.replan(parts.total.saturating_sub(beside), parts.floors).is_err() {
            if Instant::now() > deadline {
                return Err(Failure::from("the memory for the new sinks is in use by requests; try again"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        *self.parts() = parts;
        Ok(())
    }

    fn pipelines(&self) -> SinkPipelines {
        self.pipelines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_pipelines(&self, pipelines: &SinkPipelines) {
        *self.pipelines.lock().unwrap_or_else(PoisonError::into_inner) = pipelines.clone();
    }

    fn parts(&self) -> MutexGuard<'_, SinkMemory> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, name: &str, sink: &Sink) -> Result<RunningSink, Failure> {
        let parts = *self.parts();
        let health = Health::default();
        let (stopper, stop) = StopSender::new();
        let kind = kinds::of(sink);
        let share = kind.share();
        let part = parts.charged_to(share);
        let room = EgressBudget::new(&self.arena, share, part, &self.borrowers);
        let most = room.most().saturating_sub(kind.log_reserve(part));
        let sampling = self.pipelines().sampling(name).map(|sampling| TraceSampling {
            watch: Arc::clone(&sampling.watch),
            earlier: sampling.earlier(&self.routing()),
            meters: sampling.meters.clone(),
            settings: sampling.settings.clone(),
            version: sampling.version,
            room: EgressBudget::new(&self.arena, Share::Egress, parts.other, &self.borrowers),
            runtime: self.worker().clone(),
            shared: sampling.shared.clone(),
        });
        let pipeline = self.pipelines().get(name).map(|pipeline| SinkPipeline {
            sampling,
            earlier: self.pipelines().earlier(name, &self.routing()),
            capacities: plan::capacities(kind, pipeline, (most as u64, parts.slice)),
            ..pipeline.clone()
        });
        let meters = pipeline.as_ref().map(|pipeline| pipeline.meters.clone());
        let wiring = SinkEnvironment {
            name: name.to_owned(),
            kind: sink.kind(),
            signals: sink.signals().iter().map(journal_signal).collect(),
            when_full: match sink.when_full(&self.journal_config) {
                tidegate_config::WhenFull::Block => WhenFull::Block,
                tidegate_config::WhenFull::DropOldest => WhenFull::DropOldest,
            },
            data: self.data.clone(),
            slice: parts.slice,
            arena: self.arena.clone(),
            journal: self.journal.clone(),
            ledger: self.ledger.clone(),
            dead_letters: self.dead_letters.clone(),
            tap: self.tap.clone(),
            pipeline,
            health: health.clone(),
            stop,
            room,
            runtime: self.worker().clone(),
        };
        let started = kind.starter().run(wiring, self.is_leaving(name));
        let task =
            started.map_err(|Failure(error)| Failure(format!("starting the sink `{name}`: {error}")))?;
        let shown = Arc::new(ShownSink {
            name: name.to_owned(),
            kind: sink.kind(),
            target: kind.target(&self.data),
            health,
            usual_lag: kind.usual_lag(),
            pipeline: meters,
            sampling: self.pipelines().sampling(name).cloned(),
        });
        Ok(RunningSink { shown, parts, stopper, task })
    }

    /// Whether a sink of this name was told to stop, and is still there.
    fn is_leaving(&self, name: &str) -> bool {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|sink| !sink.is_finished());
        leaving.iter().any(|sink| sink.name() == name)
    }

    fn worker(&self) -> &Handle {
        self.workers.worker(self.next_worker.fetch_add(1, Relaxed))
    }

    /// A cursor without a sink holds what it has not sent: said loudly, since only a person knows whether
    /// the sink was renamed or is gone.
    fn tell_of_cursors(&self, sinks: &BTreeMap<Name, Sink>) {
        for name in self.journal.sinks() {
            if let Some(sink) = TraceSampling::sink_of(&name) {
                if self.pipelines().sampling(sink).is_none() {
                    self.forget_reader_ahead(&name);
                }
                continue;
            }
            if !sinks.keys().any(|known| known.as_str() == name) {
                tracing::warn!(
                    sink = name,
                    "the journal has a cursor for a sink that is not configured, and keeps its unsent items; if the sink was removed for good, run `tidegate journal forget {name}`"
                );
            }
        }
    }

    /// Forgets the cursor of a watcher whose sink samples no more: it only reads ahead, so nothing of it is unsent.
    fn forget_reader_ahead(&self, cursor: &str) {
        match self.journal.forget(cursor) {
            Ok(true) => tracing::info!(cursor, "the cursor of a sink that sampled traces is gone with that"),
            Ok(false) => tracing::warn!(
                cursor,
                "a sink that sampled traces has not stopped yet: its cursor keeps the journal until the next reload or restart"
            ),
            Err(error) => {
                tracing::warn!(cursor, %error, "the cursor of a sink that sampled traces cannot be removed")
            }
        }
    }
}

/// Items queued in `journal`.
fn span_of(journal: &Journal) -> QueueSpan {
    let stats = journal.stats();
    // A reader ahead of a sink may begin before it, and routes as the sink.
    let sink_of = |name: String| TraceSampling::sink_of(&name).map(str::to_owned).unwrap_or(name);
    let cursors = stats.sinks.into_iter().map(|sink| (sink.position.sequence, sink_of(sink.name)));
    QueueSpan { head: stats.head, oldest: cursors.min() }
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

/// Stops `sinks` and waits until they have: until `deadline` at most. Returns those that have not.
pub(crate) fn stop_all(mut sinks: Vec<RunningSink>, deadline: Instant) -> Vec<RunningSink> {
    sinks.iter().for_each(|sink| sink.stopper.stop());
    for sink in &sinks {
        // Looked at from outside: waiting on a worker's runtime would need that worker's timer.
        while !sink.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !sink.is_finished() {
            tracing::warn!(
                sink = sink.name(),
                "the sink did not stop in time; its unsent items are in the journal"
            );
        }
    }
    sinks.retain(|sink| !sink.is_finished());
    sinks
}

#[cfg(test)]
mod tests;
