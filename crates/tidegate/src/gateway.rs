//! The gateway: the parts wired together, started in order, and stopped in the opposite one.
//!
//! The plan first: what does not fit in the memory does not start. Then the arena, the journal, the books,
//! the sinks, and last the doors. On the way out the doors are closed first, and the journal last.

pub(crate) mod acceptor;
mod admin_access;
mod agent_service;
mod backlog;
mod bounded_process;
mod connect;
mod data_folder;
mod dead_letters;
mod destination;
mod file_budget;
mod files;
mod fleet;
mod fleet_status;
mod head_series;
mod idle_connections;
mod ingest;
pub(crate) mod listeners;
mod metrics;
mod opamp;
pub(crate) mod orders;
pub(crate) mod plan;
mod rates;
mod refusals;
mod reload;
mod reloaded_files;
mod rules;
pub(crate) mod search;
mod search_pace;
pub(crate) mod sinks;
pub(crate) mod sources;
mod state_log;
mod status;
mod task_watch;
mod thanos_receive;
mod trial;
mod unix_socket;
mod upkeep;
pub(crate) mod workers;

use crate::Failure;
use acceptor::ConnectionLimiter;
use admin_access::AdminAccess;
use destination::Destination;
use fleet::RunningFleet;
use head_series::HeadSeriesQueries;
use ingest::Guarded;
use listeners::{Acceptor, Services};
use opamp::RunningOpamp;
use plan::GatewayPlan;
use reloaded_files::ReloadedFiles;
pub(crate) use rules::CHANGES;
use sinks::SinkSet;
use sinks::routing::RoutingHistory;
use sources::checkpoint_keys;
use sources::pipelines::CompiledPipelines;
use sources::running::{RunningServices, RunningSources};
use status::StatusView;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use task_watch::{PeriodicThread, TaskWatch};
use thanos_receive::ReloadMeters;
use tidegate_admission::{Gate, GateRules, SourcePipelines};
use tidegate_arena::{Arena, Bytes, Charge, Share};
use tidegate_config::{Config, Durability};
use tidegate_console::Console;
use tidegate_http1::{Server, Shutdown};
use tidegate_journal::{Journal, Recovery};
use tidegate_ledger::Ledger;
use tidegate_meters::{Buckets, Registry};
use tidegate_pool::Pool;
use tidegate_sources::{ConnectionSlots, Http};
use tidegate_tap::Tap;
use workers::Workers;

/// A running gateway.
pub(crate) struct Gateway {
    config: Arc<RwLock<Config>>,
    planned: GatewayPlan,
    workers: Arc<Workers>,
    pool: Pool,
    door: Arc<ConnectionLimiter>,
    gate: Gate,
    journal: Journal,
    sinks: Arc<SinkSet>,
    attach: sinks::SinkServices,
    destination: Option<Destination>,
    /// The sources that read or listen by themselves.
    running_sources: RunningSources,
    /// The pipelines of sources, as they are now.
    source_pipelines: Mutex<CompiledPipelines>,
    view: Arc<StatusView>,
    shutdowns: Vec<Shutdown>,
    acceptors: Vec<Acceptor>,
    /// Looks after the memory, and whether all the others are there.
    upkeep: PeriodicThread,
    keys: ReloadedFiles,
    thanos_reloads: Option<ReloadMeters>,
    head_series: Option<HeadSeriesQueries>,
    fleet: Option<RunningFleet>,
    opamp: Option<RunningOpamp>,
    /// The memory of checkpoints whose source is not configured.
    _left_over: Option<Charge>,
}

/// Whether the files of certificates and credentials that `config` names can be used.
///
/// # Errors
/// Which one cannot, and why.
pub(crate) fn look_at_files(config: &Config) -> Result<(), Failure> {
    ReloadedFiles::read(config).map(drop)
}

/// The errors of `config` in folders that cannot be made.
pub(crate) fn check_folders(config: &Config) -> Vec<String> {
    data_folder::check(config)
}

impl Gateway {
    /// Starts everything that `config` says.
    ///
    /// # Errors
    /// In words: what was being started, what is wrong, what to do. Nothing is left running then.
    pub(crate) fn start(config: Config) -> Result<Gateway, Failure> {
        Gateway::start_watched(config, task_watch::leave)
    }

    /// As [`start`](Self::start); `leave` is told what has ended that must not.
    fn start_watched(config: Config, leave: impl FnOnce(&str) + Send + 'static) -> Result<Gateway, Failure> {
        if !config.core_dumps {
            forbid_core_dumps();
        }
        let planned = plan::of_queued(&config, &RoutingHistory::read(&config.data)?);
        plan::check(&config, &planned)?;
        tell_of_bodies(&planned);
        if let Some(shortfall) = search::shortfall(&config, &planned) {
            tracing::warn!(setting = "memory", "{shortfall}");
        }
        let keys = ReloadedFiles::read(&config)?;
        let bound = listeners::bind(&config.listen)?;
        let files = planned.files;
        files.check()?;
        files.raise();
        if files.is_short() {
            tracing::warn!("{files}");
        }
        data_folder::prepare(&config.data)?;

        let arena = arena(&planned)?;
        // Half of what requests can have, so that what waits in memory for sinks leaves room to receive, and to
        // refuse.
        let held_bytes = planned.plan.ceiling(Share::Ingest) / 2;
        let journal = tidegate_journal::Settings { held_bytes, ..journal_settings(&config) };
        backlog::check(&config, &planned)?;
        let (journal, recovery) = Journal::open(journal)?;
        tell(&recovery);
        let left_over = checkpoint_keys::keep_left_over(&config, &journal, &arena);
        let registry = Registry::new(planned.workers + 2);
        let ledger = Ledger::new(&registry, recovery.items);
        let head = ledger.head();
        journal.observe(move |items| head.advance_to(items));

        let workers = Arc::new(Workers::start(planned.workers)?);
        let pool = Pool::start(planned.pool, plan::POOL_PLACES)?;
        let tap = Tap::new(arena.clone());
        let attach = sinks::SinkServices::new(&config, &planned, &arena, &journal, &ledger, &workers, &tap)?;
        let running = Arc::new(SinkSet::new(attach.start_all(&config.sinks)?));

        let thanos_meters = thanos_receive::meters(&config, &registry);
        let thanos_reloads = thanos_receive::ReloadMeters::of(&config, &registry);
        let destination = Destination::start(&config, &planned, &arena, &workers, &registry)?;

        let memory_wait = config.limits.memory_wait.get();
        let fleet = RunningFleet::start(&config, &arena, &workers)?;
        let access = match &fleet {
            Some(fleet) => fleet.senders(keys.senders.clone()),
            None => keys.senders.clone(),
        };
        let operators = keys.admins.clone();
        let pipelines = SourcePipelines::new(SourcePipelines::runs(planned.workers), pool.clone());
        pipelines.set(planned.source_pipelines.all(), None);
        let rules = GateRules { access, operators, pipelines, ..rules::of(&config, &ledger)? };
        let by_thanos_names = thanos_receive::has_metrics(&config);
        let head_series = HeadSeriesQueries::start(&config, &rules, &workers, &registry, by_thanos_names)?;
        let gate = Gate::with_rules(arena.clone(), journal.clone(), memory_wait, Some(tap.clone()), rules);
        gate.set_deliverable(planned.deliverable.clone());
        let durations = registry.histogram(metrics::REQUEST_DURATION, Buckets::durations());
        let http = Http::new(gate.clone(), ledger.source("http")?, durations);
        let settings = http_settings(&config);
        let shutdowns: Vec<Shutdown> = (0..planned.workers).map(|_| Shutdown::new()).collect();
        let places = ConnectionSlots::new(planned.connections as usize);
        let door = ConnectionLimiter::new(places.clone()).within(files.connections, files.leaving);
        let door = Arc::new(door.with_peers(config.limits.connections_per_peer));

        let acceptors = keys.acceptors(&config, &arena);
        let mut running_services = RunningServices {
            gate: &gate,
            journal: &journal,
            workers: &workers,
            registry: &registry,
            door: &door,
            acceptors: &acceptors,
            running: RunningSources::default(),
        };
        let (plan, memory) = ((&config, &planned), (&arena, &pool));
        let http =
            sources::start_all(http, plan, &ledger, memory, destination.as_ref(), &mut running_services)?;
        let running_sources = running_services.running;
        let running_config = Arc::new(RwLock::new(config.clone()));
        let view = Arc::new(StatusView {
            started: Instant::now(),
            memory: origin(&planned.budget.to_string()),
            plan: Mutex::new(planned.plan.clone()),
            arena: arena.clone(),
            journal: journal.clone(),
            journal_dir: config.data.join("journal").display().to_string(),
            durability: config.journal.durability,
            ledger,
            sinks: Arc::clone(&running),
            destination: destination.as_ref().map(Destination::shown),
            door: Arc::clone(&door),
            acceptor: acceptors.any().cloned(),
            gate: gate.clone(),
            registry,
            tap: tap.clone(),
            config: Arc::clone(&running_config),
            running_sources: running_sources.clone(),
            rates: rates::Rates::default(),
            search_pace: search_pace::SearchPace::default(),
            refusals: refusals::Refusals::default(),
            history: tidegate_console::History::new(),
            configuration: Mutex::new(status::running_configuration(&config)),
            orders: orders::ConfigurationOrders::default(),
            dead_letters: dead_letters::DeadLetterTurn::default(),
            fleet: fleet.as_ref().map(RunningFleet::fleet),
        });
        metrics::publish(&view);
        if let Some(fleet) = &fleet {
            fleet.publish(&view.registry);
        }
        let store = fleet.as_ref().and_then(RunningFleet::own_store);
        let opamp = RunningOpamp::start(&config, &arena, &workers, store)?;
        if let Some(opamp) = &opamp {
            opamp.publish(&view.registry);
        }
        let fleet_routes = fleet.iter().map(RunningFleet::operator_routes);
        let console_arena = Console::reserve()?;
        let console =
            Console::new(Arc::clone(&view) as Arc<dyn tidegate_console::Gateway>, console_arena.clone())
                .with_routes(fleet_routes.chain(opamp.iter().map(RunningOpamp::operator_routes)).collect())
                .with_credentials(!keys.admins.is_open())
                // The other half is for scrapers, probes and the pages' own requests.
                .with_most_viewers(files.admin / 2);
        let console = Guarded::new(console, keys.admins.clone(), AdminAccess::of(&config.listen));
        let console = Server::new(console, Console::settings(), console_arena.clone(), shutdowns[0].clone());
        let admin_door = Arc::new(
            ConnectionLimiter::new(ConnectionSlots::new(files.admin)).within(files.admin, files.leaving),
        );

        let services = Services {
            workers: &workers,
            arena: &arena,
            gate: &gate,
            http,
            settings,
            shutdowns: &shutdowns,
            places,
            door: &door,
            config: &config,
            acceptors: &acceptors,
            admin: Arc::new(ingest::Admin::new(console, tap)),
            thanos_meters: thanos_meters.as_ref(),
            admin_door,
            fleet: fleet.as_ref(),
            opamp: opamp.as_ref(),
            sinks: &running,
        };
        let acceptors: Vec<Acceptor> = bound.into_iter().map(|bound| bound.accept(&services)).collect();
        let mut watch = watch(&acceptors, &journal, &workers, &pool, &running);
        watch.over(running_sources.watched());
        if let Some(head_series) = &head_series {
            watch.over(head_series.watched());
        }
        if let Some(destination) = &destination {
            watch.over(destination.watched());
        }
        if let Some(fleet) = &fleet {
            watch.over(fleet.watched());
        }
        if let Some(opamp) = &opamp {
            watch.over(opamp.watched());
        }
        let log_state = state_log::round(Arc::downgrade(&view));
        let (gate_kept, keys_kept) = (gate.clone(), keys.clone());
        let arenas = [arena, console_arena]
            .into_iter()
            .chain(fleet.as_ref().map(|fleet| fleet.arena().clone()))
            .chain(opamp.as_ref().map(|opamp| opamp.arena().clone()));
        let upkeep = upkeep::start(arenas.collect(), gate_kept, keys_kept, log_state, watch, leave)?;
        let source_pipelines = Mutex::new(planned.source_pipelines.clone());
        Ok(Gateway {
            config: running_config,
            source_pipelines,
            planned,
            workers,
            pool,
            door,
            gate,
            journal,
            sinks: running,
            attach,
            destination,
            running_sources,
            view,
            shutdowns,
            acceptors,
            upkeep,
            keys,
            thanos_reloads,
            head_series,
            fleet,
            opamp,
            _left_over: left_over,
        })
    }

    /// The inputs of its plan.
    pub(crate) fn planned(&self) -> &GatewayPlan {
        &self.planned
    }

    /// Names the file that the configuration is read from.
    pub(crate) fn name_file(&self, file: Option<&std::path::Path>) {
        let mut running = self.view.configuration.lock().unwrap_or_else(PoisonError::into_inner);
        running.file = file.map(|file| file.display().to_string());
    }

    /// The next order about the configuration, if one waits.
    pub(crate) fn next_order(&self) -> Option<orders::PendingOrder> {
        self.view.orders.next()
    }

    /// Follows no more orders about the configuration.
    pub(crate) fn close_orders(&self) {
        self.view.orders.close();
    }

    /// Counts that a configuration was read again, for alerts that look for that by Thanos' names.
    pub(crate) fn count_reload(&self, has_succeeded: bool) {
        if let Some(meters) = &self.thanos_reloads {
            meters.count(has_succeeded);
        }
    }

    /// A runtime for what runs beside it, such as the demo's trickle.
    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        self.workers.worker(0)
    }

    /// Stops accepting, answers what is in flight, lets the sinks finish what they are at, syncs. Returns
    /// whether all of that was done within the deadline.
    pub(crate) fn stop(self) -> bool {
        let limit = self.config.read().unwrap_or_else(PoisonError::into_inner).limits.shutdown_timeout.get();
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        // From now on an end is what was ordered.
        drop(self.upkeep);
        // Before the gate refuses everything: they append what they have read.
        let sources_ended = self.running_sources.stop(Instant::now() + limit / 2);
        self.gate.stop();
        if let Some(mut destination) = self.destination {
            destination.stop();
        }
        self.acceptors.into_iter().for_each(Acceptor::close);
        if let Some(fleet) = &self.fleet {
            fleet.answer_all();
        }
        self.shutdowns.iter().for_each(Shutdown::begin);
        while self.door.open() > 0 && !left().is_zero() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let answered = self.door.open() == 0;
        let _late = sinks::stop_all(self.sinks.take(), deadline);
        // Before the fleet, whose state it may use.
        if let Some(opamp) = self.opamp {
            opamp.close(deadline);
        }
        if let Some(fleet) = self.fleet {
            fleet.close(&self.workers, deadline);
        }
        let synced = self.journal.close(left().max(Duration::from_secs(1)));
        self.workers.stop();
        self.pool.stop();
        if !answered {
            tracing::warn!(connections = self.door.open(), "requests were still in flight at the deadline");
        }
        answered && synced && sources_ended
    }
}

/// Keeps telemetry and secrets out of core dumps, and away from debuggers of users other than root.
fn forbid_core_dumps() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "a core dump of this process could not be ruled out (`core_dumps: false`)");
    }
}

/// Over everything that must not end.
fn watch(
    acceptors: &[Acceptor],
    journal: &Journal,
    workers: &Arc<Workers>,
    pool: &Pool,
    sinks: &Arc<SinkSet>,
) -> TaskWatch {
    let mut watch = TaskWatch::default();
    acceptors.iter().for_each(|acceptor| watch.over(acceptor.watched()));
    let (journal, workers, sinks) = (journal.clone(), Arc::clone(workers), Arc::clone(sinks));
    let pool = pool.clone();
    watch.over(move || pool.has_ended().then(|| "a thread of the pool".to_owned()));
    watch.over(move || journal.has_ended().then(|| "the journal's writer".to_owned()));
    watch.over(move || workers.gone());
    watch.over(move || sinks.ended().map(|name| format!("the supervisor of the sink `{name}`")));
    watch
}

/// Where a bound comes from, without the bound itself: `64MiB: as configured`.
fn origin(budget: &str) -> String {
    budget.split_once(": ").map_or(budget, |(_, origin)| origin).to_owned()
}

fn arena(planned: &GatewayPlan) -> Result<Arena, Failure> {
    let total = planned.plan.payload();
    let window = planned.window;
    let arena = Arena::new(total, planned.plan.floors(), window, planned.windows, plan::WAITERS);
    arena.map_err(|error| {
        let space = Bytes((window * planned.windows) as u64);
        Failure(format!(
            "reserving {space} of address space: {error}; is `ulimit -v` set, or overcommit off?"
        ))
    })
}

fn journal_settings(config: &Config) -> tidegate_journal::Settings {
    let journal = &config.journal;
    tidegate_journal::Settings {
        segment_bytes: journal.segment.get(),
        quota: journal.quota.get(),
        durability: match journal.durability {
            Durability::Fsync => tidegate_journal::Durability::Fsync,
            Durability::PageCache => tidegate_journal::Durability::PageCache,
            Durability::Memory => tidegate_journal::Durability::Memory,
        },
        keep: journal.keep.get(),
        queue: plan::JOURNAL_QUEUE,
        // Each may have a reader ahead of it.
        followers: 2 * tidegate_ledger::MAX_SINKS,
        checkpoints: sources::checkpoints(config),
        checkpoint_bytes: sources::checkpoint_bytes(config),
        ..tidegate_journal::Settings::new(config.data.join("journal"))
    }
}

fn http_settings(config: &Config) -> tidegate_http1::Settings {
    let limits = &config.limits;
    tidegate_http1::Settings {
        share: Share::Ingest,
        idle: limits.idle_timeout.get(),
        head: limits.header_timeout.get(),
        body: limits.body_timeout.get(),
        memory_wait: limits.memory_wait.get(),
        ..tidegate_http1::Settings::default()
    }
}

/// Says by name which `max_body` is not reached.
fn tell_of_bodies(planned: &GatewayPlan) {
    for announced in planned.announced.iter().filter(|announced| announced.is_short()) {
        tracing::info!(setting = announced.source.max_body_setting, "{}", announced.shortfall());
    }
}

/// Says what was found in the journal, where that is worth a line.
fn tell(recovery: &Recovery) {
    tracing::info!(
        segments = recovery.segments,
        bytes = recovery.bytes,
        items = recovery.items,
        took = ?recovery.took,
        "the journal is open"
    );
    if recovery.torn_bytes > 0 {
        tracing::info!(bytes = recovery.torn_bytes, "cut an unfinished write, which was not acknowledged");
    }
    if recovery.damaged_records > 0 || recovery.unreadable_segments > 0 {
        tracing::warn!(
            records = recovery.damaged_records,
            segments = recovery.unreadable_segments,
            "the journal is damaged; readable records are kept, and damaged segments are set aside"
        );
    }
    if recovery.doubtful_checkpoints {
        tracing::warn!(
            "the journal's last segment could not be written to the disk: sources send again what the checkpoints in it cover"
        );
    }
    if recovery.lost_checkpoints {
        tracing::warn!(
            found = recovery.checkpoints,
            "the saved checkpoints of sources cannot be read: sources read again what the journal's records do not tell"
        );
    }
    for sink in &recovery.lost_cursors {
        tracing::warn!(sink, "the sink's cursor could not be read; it begins again at the oldest record");
    }
}

#[cfg(test)]
mod tests;
