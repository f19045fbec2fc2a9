//! OpAMP: its state and its tasks, and the service behind `listen.opamp`.

use super::agent_service::{AgentRoutes, AgentService, AnswersOperators, OperatorRoutes, REQUESTS, arena};
use super::workers::Workers;
use super::{fleet, metrics};
use crate::Failure;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, MemoryPlan, Reservation};
use tidegate_config::{Config, OpampAccess, OpampListener, yaml_as_json};
use tidegate_console::AdminRoutes;
use tidegate_fleet::{EmbeddedStore, OperatorRequest, Store};
use tidegate_http1::{Body, Reply, Settings, Shutdown};
use tidegate_meters::Registry;
use tidegate_opamp::{AgentApi, LONGEST_ANSWER, Opamp, OperatorApi};
use tokio::task::AbortHandle;

/// OpAMP in a running gateway.
pub(super) struct RunningOpamp {
    opamp: Arc<Opamp>,
    /// The state, where it is not the fleet's.
    own_store: Option<Arc<dyn Store>>,
    arena: Arena,
    tasks: [(&'static str, AbortHandle); 2],
}

/// The memory of OpAMP, as lines of the plan.
pub(super) fn declare(plan: &mut MemoryPlan, config: &Config, workers: usize) {
    let Some(settings) = &config.listen.opamp else { return };
    let mut line = |what, count: usize, each: u64, setting| {
        plan.declare(Reservation { owner: "opamp", what, count: count as u64, each, setting });
    };
    line("messages and answers of agents", 1, settings.memory.get(), Some("listen.opamp.memory"));
    line("bookkeeping of a window or of a wait", 2 * REQUESTS, 64, None);
    line("records on their way to the state", 1, tidegate_opamp::HEAP_BYTES as u64, None);
    // As a tree and as text.
    line("an answer to an operator, being made", 2, LONGEST_ANSWER as u64, None);
    line("scratch of a worker", workers, tidegate_fleet::THREAD_BYTES as u64, None);
    if config.listen.fleet.as_ref().is_none_or(|fleet| fleet.postgres.is_some()) {
        line("pages of the state", 1, tidegate_fleet::CACHE_BYTES as u64, None);
        line("the thread of the state", 1, tidegate_fleet::STACK_BYTES as u64, None);
    }
}

impl RunningOpamp {
    /// Reads the state and starts the tasks, if the configuration has OpAMP. `store` is the fleet's, where that is a file of this gateway. Agents and
    /// configurations are charged to `memory`.
    ///
    /// # Errors
    /// In words: what was being started, what is wrong.
    pub(super) fn start(
        config: &Config,
        memory: &Arena,
        workers: &Workers,
        store: Option<Arc<dyn Store>>,
    ) -> Result<Option<RunningOpamp>, Failure> {
        let Some(settings) = &config.listen.opamp else { return Ok(None) };
        let failed = |error: &dyn std::fmt::Display| Failure(format!("starting OpAMP: {error}"));
        let longest = settings.max_message.as_usize().max(LONGEST_ANSWER);
        let arena = arena(settings.memory.get(), longest).map_err(|error| failed(&error))?;
        let (store, own_store) = match store {
            Some(store) => (store, None),
            None => {
                let store = EmbeddedStore::open(&fleet::state(config)).map_err(|error| failed(&error))?;
                let store: Arc<dyn Store> = Arc::new(store);
                (Arc::clone(&store), Some(store))
            }
        };
        let runtime = workers.worker(0);
        let load = Opamp::load(store, limits(settings), (arena.clone(), memory.clone()));
        let opamp = runtime.block_on(load).map_err(|error| failed(&error))?;
        let tasks = [
            ("the roll-out of configurations", runtime.spawn(Arc::clone(&opamp).roll_out()).abort_handle()),
            (
                "the removal of agents that are gone",
                runtime.spawn(Arc::clone(&opamp).forget()).abort_handle(),
            ),
        ];
        Ok(Some(RunningOpamp { opamp, own_store, arena, tasks }))
    }

    /// The memory of messages and answers.
    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Publishes its meters.
    pub(super) fn publish(&self, registry: &Registry) {
        metrics::opamp::publish(registry, &self.opamp);
    }

    /// The routes on the admin address.
    pub(super) fn operator_routes(&self) -> Arc<dyn AdminRoutes> {
        Arc::new(OperatorRoutes(OperatorApi::new(Arc::clone(&self.opamp))))
    }

    /// The service of the listener.
    pub(super) fn listener(&self, settings: Settings, shutdowns: &[Shutdown]) -> AgentService<AgentApi> {
        AgentService::new(settings, shutdowns, &self.arena, || AgentApi::new(Arc::clone(&self.opamp)))
    }

    /// The words for a part of it that has ended although it must not.
    pub(super) fn watched(&self) -> impl Fn() -> Option<String> + Send + 'static {
        let (store, tasks) = (self.own_store.clone(), self.tasks.clone());
        move || {
            if store.as_ref().is_some_and(|store| store.has_ended()) {
                return Some("the thread of the state of OpAMP".to_owned());
            }
            let ended = tasks.iter().find(|(_, task)| task.is_finished());
            ended.map(|(name, _)| format!("{name} of OpAMP"))
        }
    }

    /// Stops its tasks, and closes the state where it is its own.
    pub(super) fn close(self, deadline: Instant) {
        self.opamp.stop();
        for (_, task) in &self.tasks {
            task.abort();
        }
        let closed = self
            .own_store
            .is_none_or(|store| store.close(deadline.max(Instant::now() + Duration::from_secs(1))));
        if !closed {
            tracing::warn!("the state of OpAMP could not be closed in time; what was acknowledged is in it");
        }
    }
}

fn limits(settings: &OpampListener) -> tidegate_opamp::Settings {
    tidegate_opamp::Settings {
        max_message: settings.max_message.as_usize(),
        needs_token: settings.access == OpampAccess::Tokens,
        own_telemetry: settings.own_telemetry.as_ref().map(ToString::to_string),
        forget_after: settings.forget_after.get(),
        check: |text| yaml_as_json("the configuration", text).map(drop).map_err(|errors| errors.to_string()),
    }
}

impl AnswersOperators for OperatorApi {
    const PREFIX: &'static str = "/opamp/";

    async fn answer(&self, request: OperatorRequest, body: Body) -> Reply {
        OperatorApi::answer(self, &request, &body).await
    }
}

impl AgentRoutes for AgentApi {
    fn one_too_many() -> Reply {
        Reply::new(503).retry_after(30).text("there are too many connections; try again\n")
    }

    fn count_refused(&self) {
        AgentApi::count_refused(self);
    }
}
