//! The memory plan of a configuration: what every part of the program may take, and what is left for
//! payload. `design/memory.md` has the argument; here are the numbers.

mod deliverable;

use deliverable::announced;
pub(crate) use deliverable::{AcceptedSizes, capacities, check, sufficient};

use super::destination;
use super::file_budget::FileBudget;
use super::sinks::kinds;
use super::sinks::pipelines::SinkPipelines;
use super::sinks::routing::RoutingHistory;
use super::sources;
use super::sources::pipelines::CompiledPipelines;
use super::thanos_receive;
use super::upkeep;
use super::workers::{self, Workers};
use std::fmt;
use tidegate_admission::{Deliverable, SizeLimit, access};
use tidegate_arena::{Bytes, MemoryPlan, ProgramPages, Reservation, Share};
use tidegate_config::{Config, MemoryBudget, Sink};
use tidegate_console::Console;
use tidegate_journal::{Protocol, Signal};
use tidegate_lake::Writer;
use tidegate_ledger::Ledger;
use tidegate_pool::Pool;
use tidegate_sources::Http2;
use tidegate_tls::{CONNECTION_BYTES, WORKER_BYTES};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The memory of a parked connection: its task, its socket's registration, its timer. `tidegate-bench connections`
/// measures 1.8 KiB.
const CONNECTION: u64 = 2 * KIB;
/// Threads beside the workers, their helpers, the sinks' and the upkeep's: the main one, the journal's, the
/// allocator's.
const THREADS: u64 = 3;
/// Large bodies that can wait for a thread of the pool; others wait before it.
pub(crate) const POOL_PLACES: usize = 64;
/// Pages of the executable and its libraries that may stay resident, in bytes. What a busy gateway uses all
/// the time is about half of it.
pub(crate) const PROGRAM: u64 = 10 * MIB;
/// Slots of the journal's queue: as many requests as can wait for the disk at a time.
pub(crate) const JOURNAL_QUEUE: usize = 1024;
/// Charges that can wait for memory at a time.
pub(crate) const WAITERS: usize = 4096;
/// An upper bound on what a connection is charged beside its request, in bytes.
const OF_THE_CONNECTION: u64 = 128 * KIB;
/// The least part of the payload with which a sink works.
const MIN_SHARE: u64 = MIB / 2;
/// How many times its own length an item may take when a sink has written it out.
const EXPANSION_FACTOR: u64 = 10;
/// The largest lake writer's slice: beyond it files do not become better.
const LARGEST_SLICE: u64 = 24 * MIB;

/// A plan, and what follows from it for the parts.
pub(crate) struct GatewayPlan {
    /// The bound on the process, and where it comes from.
    pub(crate) budget: MemoryBudget,
    pub(crate) plan: MemoryPlan,
    pub(crate) workers: usize,
    /// Threads of the pool for large bodies.
    pub(crate) pool: usize,
    pub(crate) connections: u32,
    /// How many files may be open, and what for.
    pub(crate) files: FileBudget,
    /// The lake writer's slice, in bytes; zero without a lake.
    pub(crate) slice: u64,
    /// The lake's share of journal memory besides its slice, in bytes.
    pub(crate) lake_part: u64,
    /// The guaranteed share of any other sink, in bytes.
    pub(crate) sink_part: u64,
    /// The memory that one sink at a time may borrow completely, in bytes.
    pub(crate) common: u64,
    /// The pipelines of the sinks.
    pub(crate) pipelines: SinkPipelines,
    /// The pipelines of the sources.
    pub(crate) source_pipelines: CompiledPipelines,
    /// The largest record that every sink can deliver.
    pub(crate) deliverable: Deliverable,
    /// The largest requests of each source that follow from that.
    pub(crate) announced: Vec<AcceptedSizes>,
    /// The length of a window's address space, in bytes.
    pub(crate) window: usize,
    /// How many windows the arena has.
    pub(crate) windows: usize,
}

/// The plan of `config`. Whether it fits is for its `check` to say.
pub(crate) fn of(config: &Config) -> GatewayPlan {
    of_queued(config, &RoutingHistory::default())
}

/// The same for a gateway with a queue, whose records were routed by `history`.
pub(crate) fn of_queued(config: &Config, history: &RoutingHistory) -> GatewayPlan {
    with(config, (SinkPipelines::of(config, history), CompiledPipelines::of(config)))
}

/// The plan of `config`, with the pipelines of its sinks and sources.
fn with(config: &Config, (pipelines, source_pipelines): (SinkPipelines, CompiledPipelines)) -> GatewayPlan {
    let budget = config.memory_budget();
    let memory = budget.bytes.get();
    let mut plan = MemoryPlan::new(memory);
    let workers = Workers::cores();
    let connections = config.connections(&budget);
    let windows = tidegate_config::windows(budget.bytes, connections);
    // Large bodies may take half of the machine, rounded up; what is small keeps the workers.
    let pool = workers.div_ceil(2);
    declare(&mut plan, config, (workers, pool), connections, windows);
    pipelines.declared().for_each(|declared| plan.declare(declared));
    source_pipelines.declared(workers).for_each(|declared| plan.declare(declared));

    let is_lake = |sink: &&Sink| kinds::of(sink).share() == Share::Lake;
    let lakes = config.sinks.values().filter(is_lake).count() as u64;
    // One that samples traces has a reader ahead of it.
    let others = config.sinks.len() as u64 - lakes + pipelines.samplers();
    let payload = plan.payload();
    let part = |of: u64| (payload / of).max(MIN_SHARE);
    let slice = (payload / 3).clamp(Writer::smallest_slice(), LARGEST_SLICE) & !(MIB / 4 - 1);
    let (lake_part, sink_part) = (part(24).min(4 * MIB), part(8 * others.max(1)).min(32 * MIB));
    plan.floor(Share::Lake, lakes * (slice + lake_part));
    plan.floor(Share::Egress, others * sink_part);
    plan.floor(Share::Decode, part(16));
    plan.floor(Share::Ingest, part(16));
    if config.destination().is_some() {
        plan.floor(Share::Forward, part(16));
    }

    let common = payload.saturating_sub(plan.floors().sum());
    let most_held = common + part(16);
    let received = sources::configured(config).map(|kind| (kind.max_received)(&config.sources));
    // The largest body with its head; and what a sink makes of an item as large. Address space is free, but not
    // endless.
    let longest = received.max().unwrap_or(0).saturating_mul(EXPANSION_FACTOR) + MIB;
    let window = most_held.min(longest.max(sink_part)).max(MIB) + 64 * KIB;
    let mut planned = GatewayPlan {
        window: usize::try_from(window).unwrap_or(usize::MAX),
        budget,
        plan,
        workers,
        pool,
        connections,
        files: FileBudget::of(config, workers, connections),
        slice: if lakes > 0 { slice } else { 0 },
        lake_part,
        sink_part,
        common,
        pipelines,
        source_pipelines,
        deliverable: Deliverable::default(),
        announced: Vec::new(),
        windows,
    };
    planned.deliverable = deliverable::bounds(config, &planned);
    planned.announced = announced(config, &planned);
    planned
}

impl GatewayPlan {
    /// Whether sinks and pipelines can hold requests of a usual size.
    pub(crate) fn takes_usual_requests(&self) -> bool {
        !self.announced.iter().any(AcceptedSizes::is_too_small)
    }

    /// The most bytes that this sink can ever hold for records of the journal.
    pub(crate) fn most_of(&self, sink: &Sink) -> u64 {
        let kind = kinds::of(sink);
        let part = if kind.share() == Share::Lake { self.lake_part } else { self.sink_part };
        let reserve = kind.log_reserve(usize::try_from(part).unwrap_or(usize::MAX));
        (self.common + part).saturating_sub(reserve as u64)
    }

    /// The longest body that a source can receive whose pipeline holds it so many times.
    pub(crate) fn most_for_source_pipeline(&self, copies: usize) -> u64 {
        let floors = self.plan.floors();
        let most = self.common + floors.of(Share::Ingest) + floors.of(Share::Decode);
        most.saturating_sub(OF_THE_CONNECTION + tidegate_stage::WORKING as u64) / copies.max(1) as u64
    }

    /// The bound on records of this protocol and signal: what every sink can deliver, of what can be received at all.
    pub(crate) fn bound(&self, protocol: Protocol, signal: Signal) -> SizeLimit {
        let ceiling = self.plan.ceiling(Share::Ingest).min(self.plan.ceiling(Share::Decode));
        let received = usize::try_from(ceiling).unwrap_or(usize::MAX).min(self.window);
        self.deliverable.size_limit(protocol, signal).and(SizeLimit { most: received, ..SizeLimit::NONE })
    }
}

fn declare(
    plan: &mut MemoryPlan,
    config: &Config,
    (workers, pool): (usize, usize),
    connections: u32,
    windows: usize,
) {
    let of_sinks: u64 = config.sinks.values().map(|sink| kinds::of(sink).starter().threads()).sum();
    // A worker has a helper, for name resolution.
    let threads = 2 * workers as u64 + THREADS + of_sinks;
    let bodies = sources::configured(config).map(|kind| kind.thread_bytes as u64).sum::<u64>();
    let scratch = bodies + 128 * KIB;
    let line = |owner, what, count, each| Reservation { owner, what, count, each, setting: None };
    let limited = |setting, line: Reservation| Reservation { setting: Some(setting), ..line };
    plan.declare(line("program", "pages of the executable and its libraries", 1, program_bytes()));
    plan.declare(line("threads", "stacks, to their full depth", threads, workers::STACK as u64));
    plan.declare(line("threads", "the stack of the upkeep", 1, upkeep::STACK as u64));
    plan.declare(line("workers", "a runtime, and scratch for requests", workers as u64, scratch));
    Pool::declared(pool, POOL_PLACES).into_iter().for_each(|declared| plan.declare(declared));
    plan.declare(line("pool", "scratch of a thread", pool as u64, bodies));
    let turns = Http2::WORKER_BYTES as u64;
    plan.declare(line("workers", "HTTP/2 frames being parsed", workers as u64, turns));
    let parked = line(
        "connections",
        "a parked connection; HTTP/2 counts as seventeen",
        connections.into(),
        CONNECTION,
    );
    plan.declare(limited("limits.connections", parked));
    if config.uses_tls() {
        let secrets =
            line("connections", "TLS of a parked connection", connections.into(), CONNECTION_BYTES as u64);
        plan.declare(limited("limits.connections", secrets));
        plan.declare(line("workers", "scratch for TLS", workers as u64, WORKER_BYTES as u64));
        let different = config.server_certificates().len() as u64;
        plan.declare(line("tls", "certificates, and new ones beside them", different, 512 * KIB));
    }
    let files = [&config.access.credentials_file, &config.access.admin_credentials_file];
    let files = files.into_iter().flatten().count() as u64;
    if files > 0 {
        plan.declare(line("access", "credentials, and new ones beside them", files, access::BYTES as u64));
    }
    plan.declare(line("arena", "bookkeeping of a window or of a wait", (windows + WAITERS) as u64, 64));
    // Room for the cursors of some sinks that are gone and not forgotten.
    let readers_ahead = config.sinks.values().filter(|sink| sink.sample().is_some()).count();
    let followers = config.sinks.len() + readers_ahead + 2;
    let journal = tidegate_journal::Settings { followers, ..super::journal_settings(config) };
    journal.overhead().into_iter().for_each(|declared| plan.declare(declared));
    plan.declare(line("books", "all pages", 1, Ledger::size_bytes() as u64));
    if let Some(bytes) = super::rules::bytes(config) {
        plan.declare(limited("tenants.most", line("tenants", "the table of all of them", 1, bytes)));
    }
    plan.declare(line("meters", "all series", 1, 512 * KIB));
    Console::declared().into_iter().for_each(|declared| plan.declare(declared));
    let of_sinks = config.sinks.values().flat_map(|sink| kinds::of(sink).declared());
    of_sinks.for_each(|declared| plan.declare(declared));
    let of_sources =
        sources::configured(config).filter_map(|kind| Some((kind.runs.as_ref()?.declared)(config)));
    of_sources.flatten().for_each(|declared| plan.declare(declared));
    destination::declare(plan, config);
    thanos_receive::declare(plan, config);
    super::head_series::declare(plan, config);
    super::fleet::declare(plan, config, workers);
    super::opamp::declare(plan, config, workers);
    plan.declare(line("rest", "configuration, log, and other small things", 1, MIB));
    plan.declare(line("allocator", "freed memory that is not back yet, and rounding", 1, 2 * MIB));
}

/// Memory of the program's own pages: all of them, or as many as the upkeep lets stay.
fn program_bytes() -> u64 {
    ProgramPages::measure().map_or(PROGRAM, |program| program.bytes().min(PROGRAM))
}

impl fmt::Display for GatewayPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "memory {}\n", self.budget)?;
        writeln!(f, "{}", self.plan)?;
        writeln!(f, "{:<44} {:>10} {:>10}", "largest requests, decompressed", "body", "one item")?;
        for announced in &self.announced {
            writeln!(f, "{announced}")?;
        }
        writeln!(f)?;
        if self.slice > 0 {
            writeln!(f, "lake writer's slice: {}", Bytes(self.slice))?;
        }
        if self.files.is_short() {
            writeln!(f, "{}", self.files)?;
        }
        let kernel = tidegate_config::kernel_needs(self.budget.bytes, self.connections).get();
        writeln!(
            f,
            "a cgroup's limit of {} holds this, and {} that the kernel needs beside it: sockets, page tables, page cache",
            Bytes(self.plan.memory() + kernel),
            Bytes(kernel)
        )
    }
}

#[cfg(test)]
mod tests;
