//! The kinds of sources, a descriptor for each: the plan, the start, the limits and the greeting walk over them.
//!
//! A kind is its file below and its line in [`KINDS`].

pub(crate) mod checkpoint_keys;
mod elastic_apm;
mod elasticsearch;
mod file;
mod fluent_forward;
mod follow;
mod http;
mod journald;
mod kubernetes_logs;
mod loki;
mod otlp;
pub(crate) mod pipelines;
mod prometheus_remote_write;
pub(crate) mod running;
mod syslog;
mod tail_series;

use super::destination::Destination;
use super::plan::{AcceptedSizes, GatewayPlan};
use crate::Failure;
use running::{RunningKind, RunningServices};
use tidegate_arena::Arena;
use tidegate_config::{Allowance, Config, SourceLimits, Sources};
use tidegate_journal::{Protocol, Signal};
use tidegate_ledger::{Ledger, Source};
use tidegate_pool::Pool;
use tidegate_sources::Http;

/// All kinds of sources, in the order of the configuration.
pub(crate) static KINDS: [&SourceKind; 11] = [
    &otlp::KIND,
    &prometheus_remote_write::KIND,
    &elasticsearch::KIND,
    &elastic_apm::KIND,
    &http::KIND,
    &file::KIND,
    &loki::KIND,
    &syslog::KIND,
    &fluent_forward::KIND,
    &journald::KIND,
    &kubernetes_logs::KIND,
];

/// A kind of source.
pub(crate) struct SourceKind {
    /// Its name in the configuration, in the books and in metrics.
    pub(crate) name: &'static str,
    /// The setting for the largest body.
    pub(crate) max_body_setting: &'static str,
    /// Its value: the largest body when decompressed, in bytes.
    pub(crate) max_body: fn(&Sources) -> u64,
    /// The largest body that is received for that, in bytes: what compresses badly becomes longer by it.
    pub(crate) max_received: fn(&Sources) -> u64,
    /// The records that it journals: the sinks' requirements for them bound its bodies.
    pub(crate) records: &'static [(Protocol, Signal)],
    /// The memory of a thread that checks its bodies, kept between requests, in bytes.
    pub(crate) thread_bytes: usize,
    /// The limits shared by all its clients.
    pub(crate) allowance: fn(&SourceLimits) -> &Allowance,
    /// A label and the address to send to, for people.
    pub(crate) shown: fn(&Config) -> (&'static str, String),
    /// How it runs where it reads or listens by itself, beside the shared listeners.
    pub(crate) runs: Option<RunningKind>,
    /// Has a service serve it besides; one that runs by itself leaves the service as it is.
    start: fn(Http, &SourceEnvironment<'_>) -> Result<Http, Failure>,
}

/// The environment of a source at its start.
pub(crate) struct SourceEnvironment<'a> {
    config: &'a Config,
    books: Source,
    arena: Arena,
    pool: Pool,
    /// The largest requests that it accepts.
    announced: &'a AcceptedSizes,
    /// The cluster that answers a `_bulk`, where one does.
    destination: Option<&'a Destination>,
}

impl SourceKind {
    /// Whether the configuration asks for it. Kinds that are served on the shared listeners always are.
    pub(crate) fn is_configured(&self, config: &Config) -> bool {
        self.runs.as_ref().is_none_or(|runs| (runs.is_configured)(config))
    }
}

/// The kinds that the configuration asks for: of the others nothing is planned, opened or shown.
pub(crate) fn configured(config: &Config) -> impl Iterator<Item = &'static SourceKind> + Clone + '_ {
    KINDS.into_iter().filter(|kind| kind.is_configured(config))
}

/// The checkpoints that the configured sources keep in the journal at most.
pub(crate) fn checkpoints(config: &Config) -> usize {
    configured(config).filter_map(|kind| kind.runs.as_ref()).map(|runs| (runs.checkpoints)(config)).sum()
}

/// The mistakes in the settings of sources that only their parts can see, in a sentence each with the setting.
pub(crate) fn check(config: &Config) -> Vec<String> {
    [file::check(config), kubernetes_logs::check(config), syslog::check(config)].concat()
}

/// The bytes of their keys and values at most. Files have short ones, cursors of the systemd journal long ones.
pub(crate) fn checkpoint_bytes(config: &Config) -> usize {
    let of_kind = |kind: &'static SourceKind| {
        let longest = if kind.name == "journald" {
            tidegate_journal::CHECKPOINT_KEY_MAX + tidegate_journal::CHECKPOINT_VALUE_MAX
        } else {
            tidegate_tail::CHECKPOINT_BYTES
        };
        Some((kind.runs.as_ref()?.checkpoints)(config) * longest)
    };
    configured(config).filter_map(of_kind).sum()
}

/// Starts every source, each for requests as large as `planned` says: has `http` serve those of the shared listeners, and
/// runs the others.
///
/// # Errors
/// When one of them cannot be started.
pub(super) fn start_all(
    http: Http,
    (config, planned): (&Config, &GatewayPlan),
    ledger: &Ledger,
    (arena, pool): (&Arena, &Pool),
    destination: Option<&Destination>,
    running: &mut RunningServices<'_>,
) -> Result<Http, Failure> {
    planned.announced.iter().try_fold(http, |http, announced| {
        let kind = announced.source;
        let (books, arena, pool) = (ledger.source(kind.name)?, arena.clone(), pool.clone());
        let environment = SourceEnvironment { config, books, arena, pool, announced, destination };
        if let Some(runs) = &kind.runs {
            running.start(kind.name, runs, &environment)?;
        }
        (kind.start)(http, &environment)
    })
}
