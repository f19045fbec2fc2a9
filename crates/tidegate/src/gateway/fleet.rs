//! The fleet: its state and its tasks, and the service behind `listen.fleet`.

use super::agent_service::{AgentRoutes, AgentService, AnswersOperators, OperatorRoutes, REQUESTS, arena};
use super::metrics;
use super::workers::Workers;
use crate::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_admission::access::Access;
use tidegate_arena::{Arena, MemoryPlan, Reservation};
use tidegate_config::{Config, FleetListener, FleetPostgres, Listener};
use tidegate_console::AdminRoutes;
use tidegate_fleet::{
    AgentApi, EmbeddedStore, FileSettings, Fleet, FleetFiles, OperatorApi, OperatorRequest, OutputSettings,
    PgpKey, PostgresSettings, PostgresStore, Store, StoreError,
};
use tidegate_http1::{Body, Reply, Settings, Shutdown};
use tidegate_meters::Registry;
use tokio::task::AbortHandle;

/// The fleet of a running gateway.
pub(super) struct RunningFleet {
    fleet: Arc<Fleet>,
    files: Arc<FleetFiles>,
    store: Arc<dyn Store>,
    arena: Arena,
    tasks: [(&'static str, AbortHandle); 6],
}

/// The memory of the fleet, as lines of the plan.
pub(super) fn declare(plan: &mut MemoryPlan, config: &Config, workers: usize) {
    let Some(settings) = &config.listen.fleet else { return };
    let mut line = |what, count: usize, each: u64, setting| {
        plan.declare(Reservation { owner: "fleet", what, count: count as u64, each, setting });
    };
    line("requests and answers of agents", 1, settings.memory.get(), Some("listen.fleet.memory"));
    line("bookkeeping of a window or of a wait", 2 * REQUESTS, 64, None);
    match &settings.postgres {
        None => line("pages of the state", 1, tidegate_fleet::CACHE_BYTES as u64, None),
        Some(_) => {
            let each = tidegate_fleet::CONNECTION_BYTES as u64;
            line("connections to the database", tidegate_fleet::CONNECTIONS, each, None);
            let metadata = 2 * settings.max_body.get();
            line("metadata of an agent, being read", 1, metadata, Some("listen.fleet.max_body"));
        }
    }
    line("the thread of the state", 1, tidegate_fleet::STACK_BYTES as u64, None);
    let downloads = tidegate_fleet::DOWNLOADS + tidegate_fleet::OPERATOR_DOWNLOADS;
    line("downloads of files", downloads, tidegate_fleet::DOWNLOAD_BYTES as u64, None);
    line("the thread of files", 1, tidegate_fleet::FILE_STACK_BYTES as u64, None);
    line("the key of packages", 1, tidegate_fleet::LONGEST_PGP_KEY as u64, None);
    line("a policy being put, or an answer to an operator", 1, tidegate_fleet::CHANGE_BYTES as u64, None);
    let actions = tidegate_fleet::LONGEST_ACTION_ANSWER as u64;
    line("answers with actions, being put together", tidegate_fleet::ACTION_ANSWERS, actions, None);
    line("the clean-up of actions", 1, tidegate_fleet::RETENTION_BYTES as u64, None);
    line("scratch of a worker", workers, tidegate_fleet::THREAD_BYTES as u64, None);
}

impl RunningFleet {
    /// Opens the state and the files and starts the tasks, if the configuration has a fleet. Agents and policies are charged to `memory`.
    ///
    /// # Errors
    /// In words: what was being started, what is wrong.
    pub(super) fn start(
        config: &Config,
        memory: &Arena,
        workers: &Workers,
    ) -> Result<Option<RunningFleet>, Failure> {
        let Some(settings) = &config.listen.fleet else { return Ok(None) };
        let failed = |error: &dyn std::fmt::Display| Failure(format!("starting the fleet: {error}"));
        let longest = settings.max_body.as_usize().max(tidegate_fleet::LONGEST_ANSWER);
        let arena = arena(settings.memory.get(), longest).map_err(|error| failed(&error))?;
        let store = open(config, settings).map_err(|error| failed(&error))?;
        let runtime = workers.worker(0);
        let load = Fleet::load(Arc::clone(&store), limits(config, settings), (arena.clone(), memory.clone()));
        let fleet = runtime.block_on(load).map_err(|error| failed(&error))?;
        let (has_tls, key) = (config.listen.tls.is_on(Listener::Fleet), pgp_key(settings)?);
        let folder = config.data.join("fleet").join("files");
        let open = FleetFiles::open(
            &folder,
            Arc::clone(&store),
            (file_limits(settings), PgpKey { has_tls, key }),
            memory.clone(),
        );
        let files = runtime.block_on(open).map_err(|error| failed(&error))?;
        let tasks = [
            ("the roll-out of policies", runtime.spawn(Arc::clone(&fleet).roll_out()).abort_handle()),
            ("the clock of check-ins", runtime.spawn(Arc::clone(&fleet).end_polls()).abort_handle()),
            ("the changes by other gateways", runtime.spawn(Arc::clone(&fleet).follow()).abort_handle()),
            ("the record of who was seen", runtime.spawn(Arc::clone(&fleet).keep_seen()).abort_handle()),
            ("the clean-up of actions", runtime.spawn(Arc::clone(&fleet).clean_up_actions()).abort_handle()),
            ("the clean-up of files", runtime.spawn(Arc::clone(&files).keep_clean()).abort_handle()),
        ];
        Ok(Some(RunningFleet { fleet, files, store, arena, tasks }))
    }

    /// Access for senders: `others`, and agents with the keys that their policies bring.
    pub(super) fn senders(&self, others: Access) -> Access {
        others.with_issuer(self.fleet.api_key_issuer())
    }

    /// The state, where it is this gateway's own file: others may keep things in it as well.
    pub(super) fn own_store(&self) -> Option<Arc<dyn Store>> {
        (!self.store.is_shared()).then(|| Arc::clone(&self.store))
    }

    /// The memory of requests and answers.
    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The fleet.
    pub(super) fn fleet(&self) -> Arc<Fleet> {
        Arc::clone(&self.fleet)
    }

    /// Publishes its meters.
    pub(super) fn publish(&self, registry: &Registry) {
        metrics::fleet::publish(registry, &self.fleet, &self.files);
    }

    /// The routes on the admin address.
    pub(super) fn operator_routes(&self) -> Arc<dyn AdminRoutes> {
        Arc::new(OperatorRoutes(OperatorApi::new(Arc::clone(&self.fleet), Arc::clone(&self.files))))
    }

    /// The service of the listener.
    pub(super) fn listener(&self, settings: Settings, shutdowns: &[Shutdown]) -> AgentService<AgentApi> {
        AgentService::new(settings, shutdowns, &self.arena, || {
            AgentApi::new(Arc::clone(&self.fleet), Arc::clone(&self.files))
        })
    }

    /// The words for a part of it that has ended although it must not.
    pub(super) fn watched(&self) -> impl Fn() -> Option<String> + Send + 'static {
        let (store, files, tasks) = (Arc::clone(&self.store), Arc::clone(&self.files), self.tasks.clone());
        move || {
            if files.has_ended() {
                return Some("the thread of the fleet's files".to_owned());
            }
            if store.has_ended() {
                return Some("the thread of the fleet's state".to_owned());
            }
            let ended = tasks.iter().find(|(_, task)| task.is_finished());
            ended.map(|(name, _)| format!("{name} of the fleet"))
        }
    }

    /// Answers all agents that wait.
    pub(super) fn answer_all(&self) {
        self.fleet.stop();
    }

    /// Writes down what is only in memory, and closes the state.
    pub(super) fn close(self, workers: &Workers, deadline: Instant) {
        for (_, task) in &self.tasks {
            task.abort();
        }
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        let saved =
            workers.worker(0).block_on(async { tokio::time::timeout(left, self.fleet.save_seen()).await });
        match saved {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the state does not know when agents were seen last"),
            Err(_) => tracing::warn!("there was no time to write down when agents were seen last"),
        }
        if !self.store.close(deadline.max(Instant::now() + Duration::from_secs(1))) {
            tracing::warn!(
                "the state of the fleet could not be closed in time; what was acknowledged is in it"
            );
        }
    }
}

fn limits(config: &Config, settings: &FleetListener) -> tidegate_fleet::Settings {
    let hosts = settings.elasticsearch_hosts.iter().flatten().map(|url| url.expose().to_owned());
    tidegate_fleet::Settings {
        long_poll: settings.long_poll.get(),
        max_body: settings.max_body.as_usize(),
        keep_actions: settings.keep_actions.get(),
        outputs: OutputSettings { hosts: hosts.collect(), has_tenants: config.has_tenants() },
    }
}

fn file_limits(settings: &FleetListener) -> FileSettings {
    FileSettings {
        quota: settings.files.get(),
        max_body: settings.max_body.as_usize(),
        memory: settings.memory.get(),
    }
}

/// Opens the state: the database, or else a file in the data folder.
fn open(config: &Config, settings: &FleetListener) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match &settings.postgres {
        Some(FleetPostgres { url, ca_file }) => {
            let settings = PostgresSettings { url: url.expose().to_owned(), ca_file: ca_file.clone() };
            Arc::new(PostgresStore::open(&settings)?)
        }
        None => Arc::new(EmbeddedStore::open(&state(config))?),
    })
}

/// Open files of a fleet: its state, what its threads work on, and downloads.
pub(super) fn files(config: &Config) -> u64 {
    const OWN: usize = 8;
    let downloads = tidegate_fleet::DOWNLOADS + tidegate_fleet::OPERATOR_DOWNLOADS;
    config.listen.fleet.as_ref().map_or(0, |_| (OWN + downloads) as u64)
}

/// The key that agents verify packages with.
fn pgp_key(settings: &FleetListener) -> Result<Option<Box<[u8]>>, Failure> {
    let Some(path) = &settings.pgp_key_file else { return Ok(None) };
    let failed =
        |words: String| Failure(format!("reading `listen.fleet.pgp_key_file`, {}: {words}", path.display()));
    let longest = tidegate_fleet::LONGEST_PGP_KEY as u64;
    let len = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if len > longest {
        return Err(failed(format!("it has {len} bytes, and a key has {longest} at most")));
    }
    let key = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    Ok(Some(key.into_boxed_slice()))
}

/// Where the state is, if it is a file.
pub(super) fn state(config: &Config) -> PathBuf {
    config.data.join("fleet").join("state.redb")
}

impl AnswersOperators for OperatorApi {
    const PREFIX: &'static str = "/fleet/";

    /// The agents, and one of them.
    fn is_for_pages(path: &str) -> bool {
        let rest = path.strip_prefix("agents");
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('/').is_some_and(|id| !id.contains('/')))
    }

    async fn answer(&self, request: OperatorRequest, body: Body) -> Reply {
        OperatorApi::answer(self, &request, &body).await
    }
}

impl AgentRoutes for AgentApi {
    fn one_too_many() -> Reply {
        Reply::new(429)
            .content_type("application/json; charset=utf-8")
            .retry_after(30)
            .text("{\"statusCode\":429,\"error\":\"MaxConnections\",\"message\":\"there are too many connections\"}")
    }

    fn probed(head: &[u8]) -> Option<Reply> {
        AgentApi::probed(head)
    }

    fn count_refused(&self) {
        AgentApi::count_refused(self);
    }
}
