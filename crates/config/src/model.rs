//! The settings.

mod access;
mod allowance;
mod journal;
mod limits;
mod listen;
mod listener;
mod sinks;
mod sources;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use access::{Access, BulkAction, ClientAuth, ListenTls, ListenerTls, Shown};
pub use allowance::{Allowance, CertificateField, DefaultAt, SourceLimits, TenantOverride, Tenants};
pub use journal::{Durability, Journal, WhenFull};
pub use limits::Limits;
pub use listen::Listen;
pub use listener::Listener;
pub(crate) use sinks::Outbound;
pub use sinks::{
    Backoff, BlackholeSink, BulkCompression, Compression, Deltas, ElasticsearchSink, LakeSink, Mapping,
    Naming, OtlpSink, OtlpTransport, Product, Protocol, RemoteWriteSink, Retention, Signal, Sink, Tls,
    Translation,
};
pub use sources::{
    ApmAgents, ElasticApmSource, ElasticsearchSource, HttpLogsSource, OtlpSource, RemoteWriteSource,
    RumSource, Sources,
};

use crate::declare::settings;
use crate::values::{Bytes, Name};

settings! {
    /// The whole configuration. The default is what runs when nothing is configured.
    pub struct Config {
        /// The bound on the resident memory of the whole process. Without it: the cgroup's memory limit less what the
        /// kernel needs beside it, at most three quarters of the limit; or 256 MiB when there is none.
        memory: Option<Bytes> = None,
        /// The folder for the journal, the lake, and everything else that must survive a restart.
        /// One running tidegate per folder.
        data: PathBuf = PathBuf::from("./tidegate-data"),
        /// Whether a crash may write the memory of the process, with telemetry and secrets in it, to a core dump. Without
        /// it profilers and debuggers of users other than root cannot attach either. Needs a restart.
        core_dumps: bool = false,
        /// Where to listen.
        listen: Listen = Listen::default(),
        /// Who may send, and who may look.
        access: Access = Access::default(),
        /// The journal on disk: everything that was acknowledged waits here until every sink has it.
        journal: Journal = Journal::default(),
        /// What is received. All sources share the addresses `listen.http` and `listen.grpc`, and are told apart by path.
        sources: Sources = Sources::default(),
        /// What clients may use up.
        limits: Limits = Limits::default(),
        /// Who sends, where one gateway serves several owners of data.
        tenants: Tenants = Tenants::default(),
        /// Where everything goes, each sink under a name of its own: every sink gets everything that it can take. At
        /// most 64. Without any: one lake named `lake`.
        sinks: BTreeMap<Name, Sink> = default_sinks(),
    }
}

impl Config {
    /// Whether there are tenants: where one is required, and where credentials may name some.
    pub fn has_tenants(&self) -> bool {
        self.tenants.are_on() || self.access.credentials_file.is_some()
    }
}

/// What stands in for missing sinks.
pub(crate) fn default_sinks() -> BTreeMap<Name, Sink> {
    "lake".parse().map(|name| (name, Sink::Lake(LakeSink::default()))).into_iter().collect()
}
