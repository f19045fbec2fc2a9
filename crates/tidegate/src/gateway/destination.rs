//! The cluster that answers a `_bulk` with `sources.elasticsearch.acknowledge: destination`: the bulk engine, and its
//! requests over the connections of a sink.

use super::plan::GatewayPlan;
use super::sinks::kinds;
use super::workers::Workers;
use crate::Failure;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, MemoryPlan, Reservation, Share};
use tidegate_bulk::{Forward, Settings};
use tidegate_config::{Config, ElasticsearchSink};
use tidegate_meters::Registry;
use tidegate_sinks::{Cluster, ClusterNodes, ElasticsearchSettings};
use tidegate_sources::BulkDestination;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long an item waits for others to share a request, while a request could be sent.
const INTERVAL: Duration = Duration::from_millis(10);
/// How long after it came an item is still sent, while the cluster accepts others.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long requests in flight have when the gateway stops.
const GRACE: Duration = Duration::from_secs(5);
/// How much later than the connection the engine gives a request up.
const LATER: Duration = Duration::from_secs(5);
/// The most bytes of a response that are read. It is not kept whole.
const LONGEST_RESPONSE: usize = 256 << 20;
/// One waiting item for so many bytes of the memory.
const BYTES_PER_ITEM: u64 = 16 << 10;
/// Items that wait or are in flight, at least and at most.
const ITEMS: (u64, u64) = (1 << 10, 1 << 16);
/// The memory of a request in flight besides its connection: its future, its replies, a part of a response.
const REQUEST: u64 = 64 << 10;
/// With less memory than this there are half as many requests in flight.
const SMALL: u64 = 48 << 20;
/// Kinds of requests that are in flight independently: by `refresh`.
const LANES: usize = 3;

/// The engine, and what runs it.
pub(crate) struct Destination {
    forward: Forward,
    cluster: Cluster,
    /// The sink's name.
    name: String,
    stop: Option<oneshot::Sender<()>>,
    driver: JoinHandle<()>,
}

/// Declares what the engine takes beside payload, and its floor.
pub(super) fn declare(plan: &mut MemoryPlan, config: &Config) {
    let Some((_, sink)) = config.destination() else { return };
    let settings = settings(config, sink, plan.payload());
    plan.declare(settings.declared());
    // Its connections are the next line.
    plan.declare(Reservation { each: REQUEST, ..settings.declared_in_flight() });
    let connections = requests(config, sink);
    let bytes =
        kinds::elasticsearch::settings(sink).map_or(0, |sink| Cluster::bytes(&sink, connections)) as u64;
    let what = "connections to the destination of a `_bulk`";
    let setting = Some("sinks.….max_in_flight");
    plan.declare(Reservation { owner: "bulk", what, count: 1, each: bytes, setting });
}

/// How many files the connections have open: those in flight, and as many idle ones at each endpoint.
pub(super) fn files(config: &Config) -> u64 {
    config
        .destination()
        .map_or(0, |(_, sink)| (sink.endpoints.len() as u64 + 1) * requests(config, sink) as u64)
}

/// The most requests in flight.
fn requests(config: &Config, sink: &ElasticsearchSink) -> usize {
    LANES * flights(config, sink)
}

/// The most requests in flight that have the same `refresh`.
fn flights(config: &Config, sink: &ElasticsearchSink) -> usize {
    let most = sink.max_in_flight as usize;
    if config.memory_budget().bytes.get() < SMALL { most.div_ceil(2) } else { most }
}

fn settings(config: &Config, sink: &ElasticsearchSink, payload: u64) -> Settings {
    // A quarter of what there is for bodies, whatever `refresh` they ask for; half of that for one item.
    let lane_bytes = (payload / 4).max(1 << 20);
    let lane = usize::try_from(lane_bytes).unwrap_or(usize::MAX);
    let items = (config.memory_budget().bytes.get() / BYTES_PER_ITEM).clamp(ITEMS.0, ITEMS.1);
    let flights = flights(config, sink);
    let timeout = sink.timeout.get();
    Settings {
        slots: u32::try_from(items).unwrap_or(u32::MAX),
        batch_bytes: sink.max_request_bytes.as_usize().min(lane / 4),
        item_bytes: lane / 2,
        linger: INTERVAL,
        max_in_flight: flights,
        batches: 4 * flights.max(4),
        answer_bytes: LONGEST_RESPONSE,
        timeout: timeout + LATER,
        deadline: DEADLINE,
        retry_for: config.sources.elasticsearch.retry_for.get(),
        backoff: (sink.delivery.backoff.min.get(), sink.delivery.backoff.max.get()),
        grace: GRACE.min(config.limits.shutdown_timeout.get() / 2),
        forwards: true,
        ..Settings::new(Share::Forward, lane_bytes)
    }
}

impl Destination {
    /// Starts the engine, if `config` has one.
    ///
    /// # Errors
    /// When the sink's settings cannot be used.
    pub(super) fn start(
        config: &Config,
        planned: &GatewayPlan,
        arena: &Arena,
        workers: &Arc<Workers>,
        registry: &Registry,
    ) -> Result<Option<Destination>, Failure> {
        let Some((name, sink)) = config.destination() else { return Ok(None) };
        let cluster = Cluster::new(&of(sink)?, requests(config, sink));
        let cluster =
            cluster.map_err(|error| Failure(format!("starting the destination `{name}`: {error}")))?;
        let (forward, driver) = Forward::new(settings(config, sink, planned.plan.payload()), arena.clone());
        forward.publish(registry);
        let (stop, stopped) = oneshot::channel();
        let over = cluster.clone();
        // The last worker: sinks begin with the first.
        let runtime = workers.worker(planned.workers.saturating_sub(1));
        let driver = runtime.spawn(async move {
            driver.run(&over, async { drop(stopped.await) }).await;
        });
        Ok(Some(Destination { forward, cluster, name: name.to_string(), stop: Some(stop), driver }))
    }

    /// Its names for people: the sink's name, and its cluster.
    pub(super) fn shown(&self) -> (String, Cluster) {
        (self.name.clone(), self.cluster.clone())
    }

    /// The source's requirements on it.
    pub(super) fn of_source(&self) -> BulkDestination {
        let cluster = self.cluster.clone();
        BulkDestination {
            forward: self.forward.clone(),
            unreachable: Arc::new(move || cluster.unreachable()),
        }
    }

    /// Changed settings of the sink, ready to be taken over.
    ///
    /// # Errors
    /// When the sink's settings cannot be used.
    pub(super) fn changed(old: &Config, new: &Config) -> Result<Option<ClusterNodes>, Failure> {
        let (before, after) = (old.destination(), new.destination());
        match after {
            Some((_, sink)) if before != after => {
                Ok(Some(ClusterNodes::new(&of(sink)?, requests(new, sink))?))
            }
            _ => Ok(None),
        }
    }

    /// Takes it over.
    pub(super) fn change(&self, nodes: ClusterNodes) {
        self.cluster.change(nodes);
    }

    /// Whether the driver has ended, as it must not.
    pub(super) fn watched(&self) -> impl Fn() -> Option<String> + Send + 'static {
        let driver = self.driver.abort_handle();
        move || driver.is_finished().then(|| "the engine that forwards items to the destination".to_owned())
    }

    /// Has the engine take no more items, and end when those it has are answered.
    pub(super) fn stop(&mut self) {
        self.stop.take();
    }
}

fn of(sink: &ElasticsearchSink) -> Result<ElasticsearchSettings, Failure> {
    kinds::elasticsearch::settings(sink)
}
