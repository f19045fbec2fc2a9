//! Collects the contents of the pages from all parts.

mod sink_parts;

use super::acceptor::ConnectionLimiter;
use super::connect;
use super::dead_letters::{DeadLetterTurn, OrderServices, OrderTarget};
use super::orders::ConfigurationOrders;
use super::rates::Rates;
use super::refusals::Refusals;
use super::search_pace::SearchPace;
use super::sinks::{ShownSink, SinkSet};
use super::sources::running::RunningSources;
use sink_parts::{decisions, derived, last_error, member, pipeline_step, waiting};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError};
use std::time::{Duration, Instant, SystemTime};
use tidegate_admission::Gate;
use tidegate_arena::{Arena, MemoryPlan, heap};
use tidegate_config::{Config, Durability};
use tidegate_console::{
    ConfigurationFuture, ConfigurationOrder, ConnectAnswer, ConnectError, ConnectQuery, Damage,
    DeadLetterFuture, DeadLetterOrder, DeclaredLine, Destination, Failed, FilesFuture, FilesQuery,
    ForgetError, Gateway, Handshakes, History, Journal as JournalStatus, Lag, LeftBehind, Levels,
    ListedPipeline, MOST_MEMBERS, MOST_POLICIES, MOST_SAMPLED, MOST_STEPS, MOST_WAITING, Memory, Payload,
    ProcessError, ProcessFuture, ProcessInput, ProcessOutput, Resident, RunningConfiguration, Sink,
    SourcePipeline, Status, Syncs, Tenant, Tenants,
};
use tidegate_http1::Body;
use tidegate_journal::{Journal, SinkStats, Stats};
use tidegate_ledger::{Balance, Dropped, Ledger, RecentRefusal, Refusal, SinkBalance};
use tidegate_meters::Registry;
use tidegate_sinks::{Cluster, PipelineMeters, TraceSampling};
use tidegate_tap::Tap;
use tidegate_tls::{HandshakeFailure, TlsAcceptor};

/// The parts that know something.
pub(crate) struct StatusView {
    pub(crate) started: Instant,
    /// The bound on memory, with where it comes from.
    pub(crate) memory: String,
    /// As it is now: a change of the sinks changes it.
    pub(crate) plan: Mutex<MemoryPlan>,
    pub(crate) arena: Arena,
    pub(crate) journal: Journal,
    pub(crate) journal_dir: String,
    pub(crate) durability: Durability,
    pub(crate) ledger: Ledger,
    pub(crate) sinks: Arc<SinkSet>,
    /// The cluster that answers a `_bulk` itself, and its sink's name.
    pub(crate) destination: Option<(String, Cluster)>,
    pub(crate) door: Arc<ConnectionLimiter>,
    /// Counts handshakes, where any address speaks TLS.
    pub(crate) acceptor: Option<Arc<TlsAcceptor>>,
    pub(crate) gate: Gate,
    pub(crate) registry: Registry,
    pub(crate) tap: Tap,
    /// As it is running; locked for writing while it is being changed.
    pub(crate) config: Arc<RwLock<Config>>,
    /// The sources that read or listen by themselves.
    pub(crate) running_sources: RunningSources,
    pub(crate) rates: Rates,
    pub(crate) search_pace: SearchPace,
    pub(crate) refusals: Refusals,
    pub(crate) history: History,
    /// As the pages show it.
    pub(crate) configuration: Mutex<RunningConfiguration>,
    pub(crate) orders: ConfigurationOrders,
    pub(crate) dead_letters: DeadLetterTurn,
    /// The agents that are managed here.
    pub(crate) fleet: Option<Arc<tidegate_fleet::Fleet>>,
}

impl Gateway for StatusView {
    fn status(&self) -> Status {
        let (tenants, handshakes, fleet) = (self.tenants(), self.handshakes(), self.fleet());
        Status { tenants, handshakes, fleet, ..self.brief() }
    }

    fn metrics(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        super::metrics::of_the_process(self.started, out)?;
        self.registry.encode(&mut Adapter(out))
    }

    fn broken_sinks(&self) -> Vec<String> {
        let stats = self.journal.stats();
        let shown = self.sinks.shown();
        let broken = shown.iter().filter(|sink| is_broken(sink, cursor(&stats, sink)));
        broken.map(|sink| sink.name.clone()).collect()
    }

    fn ready(&self) -> Result<(), String> {
        if self.gate.is_stopping() {
            return Err("the gateway is stopping".to_owned());
        }
        self.journal.append_error().map_or(Ok(()), |refused| Err(refused.to_string()))
    }

    fn tap(&self) -> &Tap {
        &self.tap
    }

    fn sink_names(&self) -> Vec<String> {
        self.sinks.shown().iter().map(|sink| sink.name.clone()).collect()
    }

    fn pipelines(&self) -> Option<Vec<ListedPipeline>> {
        self.try_config().map(|config| super::trial::listed(&config))
    }

    fn steps_of(&self, pipeline: &str) -> Option<String> {
        super::trial::steps_of(&*self.try_config()?, pipeline)
    }

    fn history(&self) -> &History {
        &self.history
    }

    fn recent_refusals(&self, visit: &mut dyn FnMut(&RecentRefusal)) {
        self.ledger.recent_refusals(visit);
    }

    fn configuration(&self) -> RunningConfiguration {
        self.configuration.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn connect(&self, query: &ConnectQuery) -> ConnectAnswer {
        let config = self.try_config().ok_or(ConnectError::Changing)?;
        connect::answer(&config, query)
    }

    fn order(&self, order: ConfigurationOrder) -> ConfigurationFuture<'_> {
        self.orders.give(order)
    }

    fn dead_letters(&self, order: DeadLetterOrder) -> DeadLetterFuture<'_> {
        let target = self.try_config().map(|config| OrderTarget::of(&config, &order.sink));
        let services = OrderServices { arena: &self.arena, gate: &self.gate, ledger: &self.ledger };
        Box::pin(self.dead_letters.follow(services, target, order))
    }

    fn trial<'a>(&'a self, input: Vec<ProcessInput>, output: &'a mut ProcessOutput<'a>) -> ProcessFuture<'a> {
        Box::pin(super::trial::run(&self.arena, input, output))
    }

    fn is_searchable(&self) -> bool {
        // While the configuration is being changed, a search is told so.
        self.try_config().is_none_or(|config| config.console.search)
    }

    fn search<'a>(
        &'a self,
        kind: &'static str,
        query: Arc<Body>,
        output: &'a mut ProcessOutput<'a>,
    ) -> ProcessFuture<'a> {
        let order = self.try_config().map(|config| super::search::order(&config, kind, self.journal.id()));
        Box::pin(async move {
            let changing = || ProcessError::Start("the configuration is being changed".to_owned());
            super::search::run(&self.arena, &self.search_pace, order.ok_or_else(changing)?, query, output)
                .await
        })
    }

    fn files<'a>(&'a self, query: &'a FilesQuery) -> FilesFuture<'a> {
        Box::pin(super::files::collect(&self.running_sources, query))
    }

    fn forget(&self, sink: &str) -> Result<u64, ForgetError> {
        let Some(config) = self.try_config() else {
            return Err(ForgetError::Later("the configuration is being changed; try again".to_owned()));
        };
        if config.sinks.keys().any(|name| name.as_str() == sink) {
            return Err(ForgetError::InUse(format!(
                "the sink `{sink}` is configured: take it out of the configuration, and have that read again (SIGHUP)"
            )));
        }
        let cursors = self.journal.stats().sinks;
        let Some(cursor) = cursors.iter().find(|cursor| cursor.name == sink) else {
            let known: Vec<&str> = cursors.iter().map(|cursor| &*cursor.name).collect();
            return Err(ForgetError::Unknown(format!(
                "the journal has no cursor for `{sink}`; it has: {}",
                known.join(", ")
            )));
        };
        let items = cursor.lag_items;
        match self.journal.forget(sink) {
            Ok(true) => {
                tracing::warn!(sink, items, "forgot a sink that is not configured, with its unsent items");
                Ok(items)
            }
            Ok(false) => Err(ForgetError::Later(format!(
                "the sink `{sink}` has not stopped yet; try again in a moment"
            ))),
            Err(error) => Err(ForgetError::Later(format!("deleting the cursor of `{sink}`: {error}"))),
        }
    }
}

/// The longest configuration that the pages show, in bytes: it is kept as text, among the small things of the plan.
const LONGEST_CONFIGURATION: usize = 128 << 10;

/// `config` as the pages show it.
pub(crate) fn running_configuration(config: &Config) -> RunningConfiguration {
    let text = tidegate_config::effective(config);
    let text = match text.len() <= LONGEST_CONFIGURATION {
        true => text,
        false => "# It is longer than the 128 KiB that are kept for this page: see `tidegate check FILE`.\n"
            .to_owned(),
    };
    RunningConfiguration { file: None, text: text.into() }
}

/// `Registry::encode` wants to know the writer's type.
struct Adapter<'a>(&'a mut dyn fmt::Write);

impl fmt::Write for Adapter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(text)
    }
}

impl StatusView {
    pub(crate) fn plan(&self) -> MutexGuard<'_, MemoryPlan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows another plan from now on.
    pub(crate) fn replan(&self, plan: MemoryPlan) {
        *self.plan() = plan;
    }

    /// Adds to the history what `status` says; to be called about once a second.
    pub(crate) fn note_history(&self, status: &Status) {
        let payload = status.memory.payload.shares.iter().map(|share| share.used).sum();
        let resident = status.memory.resident.as_ref().map_or(0, |resident| resident.now);
        let levels = Levels { journal: status.journal.bytes, resident, payload };
        self.history.note(status.uptime, &status.books, levels);
    }

    /// Shows another configuration, of the same file, from now on.
    pub(crate) fn reconfigured(&self, config: &Config) {
        let text = running_configuration(config).text;
        self.configuration.lock().unwrap_or_else(PoisonError::into_inner).text = text;
    }

    /// Everything but what grows with those who send.
    pub(crate) fn brief(&self) -> Status {
        let stats = self.journal.stats();
        let mut books = self.ledger.balance();
        enter_taken(&mut books.sinks, &stats.sinks);
        let source_pipelines = self.source_pipelines();
        let steps = source_pipelines.iter().map(|pipeline| pipeline.steps.len()).sum::<usize>();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: Some(env!("TIDEGATE_COMMIT")).filter(|commit| !commit.is_empty()).map(str::to_owned),
            at: SystemTime::now(),
            uptime: self.started.elapsed(),
            stopping: self.gate.is_stopping(),
            refused_lately: self.refusals.lately(self.started.elapsed()),
            memory: self.memory(),
            destination: self.destination(),
            source_pipelines,
            sinks: self.sinks(&stats, &books, MOST_STEPS.saturating_sub(steps)),
            left_behind: self.left_behind(&stats),
            journal: self.journal(&stats),
            tenants: None,
            handshakes: None,
            fleet: None,
            books,
        }
    }

    /// Cursors that no sink follows, or will.
    fn left_behind(&self, stats: &Stats) -> Vec<LeftBehind> {
        // While it is being changed, sinks stop and start: what is left behind is known afterwards.
        let Some(config) = self.try_config() else { return Vec::new() };
        let known = |name: &str| config.sinks.keys().any(|known| known.as_str() == name);
        let is_ahead = |name: &str| TraceSampling::sink_of(name).is_some();
        let left = stats
            .sinks
            .iter()
            .filter(|cursor| !cursor.followed && !known(&cursor.name) && !is_ahead(&cursor.name));
        let left = left.map(|cursor| LeftBehind {
            name: cursor.name.clone(),
            items: cursor.lag_items,
            bytes: cursor.lag_bytes,
            age: cursor.lag_age,
            command: format!("tidegate journal forget {}", cursor.name),
        });
        left.collect()
    }

    fn destination(&self) -> Option<Destination> {
        let (name, cluster) = self.destination.as_ref()?;
        let health = cluster.health();
        let (activity, trouble) = (health.activity(), health.trouble());
        Some(Destination {
            source: "elasticsearch".to_owned(),
            sink: name.clone(),
            in_flight: activity.in_flight,
            requests: activity.requests,
            failures: activity.failures,
            last_success: health.last_success(),
            last_error: last_error(trouble),
            failing_since: cluster.failing_since(),
        })
    }

    fn memory(&self) -> Memory {
        let plan = self.plan();
        let open = self.door.open() as u64;
        let declared = plan.declared().iter().map(|line| {
            let shown = DeclaredLine::of(line);
            if line.owner == "connections" { shown.using(open * line.each, None) } else { shown }
        });
        Memory {
            limit: plan.memory(),
            origin: self.memory.clone(),
            resident: Resident::read().ok(),
            heap_live: heap::heap().live,
            declared: declared.collect(),
            payload: Payload::of(&self.arena),
            connections_open: open,
            connections_limit: self.door.most() as u64,
        }
    }

    fn journal(&self, stats: &Stats) -> JournalStatus {
        let durability = match self.durability {
            Durability::Fsync => "fsync",
            Durability::PageCache => "page_cache",
            Durability::Memory => "memory",
        };
        JournalStatus {
            dir: self.journal_dir.clone(),
            durability: durability.to_owned(),
            bytes: stats.bytes,
            quota: stats.quota,
            segments: stats.segments as u64,
            oldest_age: stats.oldest_age,
            head: stats.head,
            items_total: stats.items,
            items_per_second: self.rates.arriving(),
            full_in: self.rates.full_in(stats.quota),
            damage: Damage {
                records: stats.damaged_records,
                bytes: stats.damaged_bytes,
                quarantined_segments: stats.quarantined as u64,
            },
            syncs: Syncs { count: stats.syncs, mean: mean(stats) },
            trouble: self.journal.append_error().map(|refused| refused.to_string()),
        }
    }

    fn handshakes(&self) -> Option<Handshakes> {
        let tally = self.acceptor.as_ref()?.tally();
        let failed = HandshakeFailure::ALL.map(|reason| Failed {
            reason: reason.name(),
            count: tally.failed(reason),
            advice: reason.advice(),
        });
        Some(Handshakes::of(tally.done(), failed.to_vec()))
    }

    fn tenants(&self) -> Option<Tenants> {
        let table = self.gate.rules().limits.as_ref()?;
        let tenants = table.tenants()?;
        let shown = tenants.accounts().map(|account| {
            let (page, book) = (account.page(), account.page().book());
            let worst = Refusal::ALL.iter().zip(book.refused).filter(|(_, count)| *count > 0);
            let worst = worst.max_by_key(|(_, count)| *count).map(|(reason, _)| reason.name());
            Tenant {
                name: page.title().to_owned(),
                received: book.received,
                accepted: book.accepted,
                refused: book.refused.iter().sum(),
                mostly: worst,
                open: book.open,
                items: book.items.iter().sum(),
                bytes: book.bytes,
                held: account.held(),
            }
        });
        // The entry that is shared is not a tenant.
        let known = tenants.accounts().count().saturating_sub(1) as u64;
        Some(Tenants::of(shown.collect(), known, tenants.most() as u64))
    }

    /// The configuration, unless it is being changed now.
    fn try_config(&self) -> Option<RwLockReadGuard<'_, Config>> {
        match self.config.try_read() {
            Ok(config) => Some(config),
            Err(TryLockError::Poisoned(config)) => Some(config.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn source_pipelines(&self) -> Vec<SourcePipeline> {
        let mut left = MOST_STEPS;
        let pipelines = self.gate.rules().pipelines.all();
        let shown = pipelines.iter().map(|pipeline| {
            let steps: Vec<_> = pipeline.meters().steps().iter().take(left).map(pipeline_step).collect();
            left -= steps.len();
            SourcePipeline { source: pipeline.source().to_owned(), steps }
        });
        shown.collect()
    }

    fn sinks(&self, stats: &Stats, books: &Balance, mut steps: usize) -> Vec<Sink> {
        let mut sinks: Vec<Sink> =
            self.sinks.shown().iter().map(|sink| self.sink(sink, stats, books)).collect();
        let (mut left, mut members, mut policies) = (MOST_WAITING, MOST_MEMBERS, MOST_POLICIES);
        let mut sampled = MOST_SAMPLED;
        for sink in &mut sinks {
            sink.members_left_out = sink.members.len().saturating_sub(members) as u64;
            sink.members.truncate(members);
            members -= sink.members.len();
            sink.waiting.truncate(left);
            left -= sink.waiting.len();
            sink.pipeline_left_out = sink.pipeline.len().saturating_sub(steps) as u64;
            sink.pipeline.truncate(steps);
            steps -= sink.pipeline.len();
            sink.sampling.take_if(|_| sampled == 0);
            if let Some(sampling) = &mut sink.sampling {
                sampled -= 1;
                sampling.policies_left_out = sampling.policies.len().saturating_sub(policies) as u64;
                sampling.policies.truncate(policies);
                policies -= sampling.policies.len();
            }
        }
        sinks
    }

    fn sink(&self, sink: &ShownSink, stats: &Stats, books: &Balance) -> Sink {
        let cursor = cursor(stats, sink);
        let book = books.sinks.iter().find(|book| book.name == sink.name);
        let (activity, trouble) = (sink.health.activity(), sink.health.trouble());
        let broken = is_broken(sink, cursor);
        Sink {
            name: sink.name.clone(),
            kind: sink.kind.to_owned(),
            target: sink.target.clone(),
            lag: cursor.map_or(Lag::default(), |cursor| Lag {
                items: cursor.lag_items,
                bytes: cursor.lag_bytes,
                age: cursor.lag_age,
            }),
            usual_lag: sink.usual_lag,
            cursor: cursor.map_or(0, |cursor| cursor.position.sequence),
            in_flight: activity.in_flight,
            concurrency_limit: sink.health.concurrency_limit(),
            requests: activity.requests,
            last_success: sink.health.last_success(),
            failures: activity.failures,
            bytes: activity.bytes,
            resent: activity.resent,
            restarts: activity.restarts,
            broken,
            items_per_second: self.rates.leaving(&sink.name),
            // One that was started again and has nothing to do is not waited for.
            retry_at: trouble.retry_at.filter(|_| broken || !trouble.broken),
            last_error: last_error(trouble),
            waiting: sink.health.waiting().into_iter().map(waiting).collect(),
            pipeline: sink.pipeline.iter().flat_map(PipelineMeters::steps).map(pipeline_step).collect(),
            pipeline_left_out: 0,
            sampling: decisions(sink, stats),
            derived: derived(sink),
            members: sink.health.members().into_iter().map(member).collect(),
            members_left_out: 0,
            delivered: book.map_or(0, |book| book.delivered),
            dropped: book.map_or_else(Vec::new, |book| book.dropped.clone()),
        }
    }
}

fn cursor<'a>(stats: &'a Stats, sink: &ShownSink) -> Option<&'a SinkStats> {
    stats.sinks.iter().find(|cursor| cursor.name == sink.name)
}

/// Whether it failed, and either was not started again yet or has not shown that it works.
fn is_broken(sink: &ShownSink, cursor: Option<&SinkStats>) -> bool {
    let trouble = sink.health.trouble();
    let waits = trouble.retry_at.is_some_and(|at| at > SystemTime::now());
    trouble.broken && (waits || cursor.is_some_and(|cursor| cursor.lag_records > 0))
}

/// Enters what the full journal has taken from sinks that are busy with a request, and will enter it themselves
/// only when that has ended: a peer that stalls would make it look queued all the while.
fn enter_taken(books: &mut [SinkBalance], cursors: &[SinkStats]) {
    for book in books {
        let Some(cursor) = cursors.iter().find(|cursor| cursor.name == book.name) else { continue };
        let at = book.dropped.iter().position(|(reason, _)| *reason == Dropped::Quota);
        let entered = at.and_then(|at| book.dropped.get(at)).map_or(0, |(_, items)| *items);
        let taken = cursor.position.dropped.saturating_sub(entered).min(book.queued);
        book.queued -= taken;
        match at.and_then(|at| book.dropped.get_mut(at)) {
            Some((_, items)) => *items += taken,
            None if taken > 0 => book.dropped.push((Dropped::Quota, taken)),
            None => {}
        }
    }
}

fn mean(stats: &Stats) -> Duration {
    u32::try_from(stats.syncs)
        .ok()
        .filter(|syncs| *syncs > 0)
        .map_or(Duration::ZERO, |syncs| stats.sync_time / syncs)
}

#[cfg(test)]
mod tests {
    //! Promise: what the quota has taken is shown as dropped at once, and once.

    use super::*;
    use tidegate_journal::CursorPosition;

    fn cursor(dropped: u64) -> SinkStats {
        let position =
            CursorPosition { sequence: 9, items: 0, born: 0, dropped, damaged: 0, in_flight: 1, ahead: 0 };
        SinkStats {
            name: "up".to_owned(),
            position,
            followed: true,
            lag_records: 1,
            lag_items: 0,
            lag_bytes: 0,
            lag_age: None,
            write_errors: 0,
        }
    }

    #[test]
    fn items_taken_by_a_busy_sink_are_not_queued() {
        let mut books = [SinkBalance {
            name: "up".to_owned(),
            accepted: 100,
            replayed: 0,
            delivered: 10,
            passed: 0,
            queued: 90,
            dropped: vec![(Dropped::Rejected, 5)],
            difference: 0,
        }];
        for (taken, queued) in [(0, 90), (30, 60), (30, 60), (50, 40)] {
            enter_taken(&mut books, &[cursor(taken)]);
            assert_eq!(books[0].queued, queued);
        }
        assert_eq!(books[0].dropped, [(Dropped::Rejected, 5), (Dropped::Quota, 50)]);
    }
}
