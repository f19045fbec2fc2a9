//! The settings.

mod access;
mod allowance;
mod console;
pub mod derive;
mod fleet;
mod journal;
mod limits;
mod listen;
mod listener;
mod opamp;
mod pipeline;
mod pipeline_steps;
mod pipeline_test;
mod sinks;
mod sources;
pub mod tail_sampling;
mod thanos_receive;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use self::console::Console;
pub use access::{Access, BulkAction, ClientAuth, EffectiveTls, ListenTls, ListenerTls};
pub use allowance::{Allowance, CertificateField, DefaultAt, SourceLimits, TenantOverride, Tenants};
pub use derive::ConfiguredDerivation;
pub(crate) use derive::DerivationProblem;
pub use fleet::{FleetListener, FleetPostgres};
pub use journal::{Durability, Journal, WhenFull};
pub use limits::{HeadSeriesQuery, Limits};
pub use listen::Listen;
pub use listener::Listener;
pub use opamp::{OpampAccess, OpampListener};
pub use pipeline::{
    ConfiguredPipeline, INPUT_ATTRIBUTE, OnError, Pipeline, Redact, RedactPreset, RelabelRule, Sample,
    SampleMode, Step, StepLabel,
};
pub(crate) use pipeline::{Route, selecting, texts};
pub use pipeline_steps::Steps;
pub use pipeline_test::{Expectation, Given, OrSeries, PipelineTest};
pub(crate) use sinks::Outbound;
pub use sinks::{
    Backoff, BlackholeSink, BulkCompression, Compression, Delivery, Deltas, DeriveSink, DiscoverySettings,
    ElasticsearchSink, HandoffFull, HandoffSettings, HashringAlgorithm, HttpFormat, HttpMethod, HttpSink,
    IngestorVersion, LakeSink, LokiSink, Mapping, Naming, OtlpSink, OtlpTransport, Product, Protocol,
    RemoteWriteCompression, RemoteWriteSink, Retention, RouteBy, Signal, Sink, SinkRouting, SplunkHecSink,
    ThanosCompression, ThanosReceiveSink, Tls, Translation,
};
pub use sources::{
    Acknowledge, ApmAgents, Before, ElasticApmSource, ElasticsearchSource, FileEncoding, FileFormat,
    FileInput, FileMultiline, FileSource, FileStart, FluentForwardSource, HttpLogsSource, JournaldFields,
    JournaldInput, JournaldPriority, JournaldSource, JournaldStart, KubernetesApi, KubernetesLogsSource,
    LokiSource, OnLongLine, OtlpSource, RemoteWriteSource, RumSource, Source, SourcePipeline, Sources,
    SyslogFormat, SyslogFraming, SyslogListener, SyslogSource,
};
pub use tail_sampling::{ConfiguredSampling, SinkSample, TailPolicies, TailPolicy, TailSampling};
pub use thanos_receive::ThanosReceiveListener;

use crate::declare::settings;
use crate::setting::Sequence;
use crate::values::{Bytes, Name};

settings! {
    /// The whole configuration. The default is what runs when nothing is configured.
    pub struct Config {
        /// Upper bound on the resident memory of the whole process. Default: the cgroup's memory limit minus the
        /// kernel's share, at most three quarters of the limit; 256 MiB without a cgroup limit.
        memory: Option<Bytes> = None,
        /// The folder for the journal, the lake, and all other persistent state. Only one running tidegate may use a
        /// folder.
        data: PathBuf = PathBuf::from("./tidegate-data"),
        /// Whether a crash may write a core dump, which contains telemetry and secrets from memory. While false, only
        /// root can attach a profiler or debugger. A change takes effect after a restart.
        core_dumps: bool = false,
        /// Listening addresses.
        listen: Listen = Listen::default(),
        /// The console, on the address `listen.admin`.
        console: Console = Console::default(),
        /// Authentication of clients and admins.
        access: Access = Access::default(),
        /// The journal on disk. Acknowledged data stays here until every sink has delivered it.
        journal: Journal = Journal::default(),
        /// The protocols received. All sources share the addresses `listen.http` and `listen.grpc` and are
        /// distinguished by path.
        sources: Sources = Sources::default(),
        /// Limits on the resources that clients may use.
        limits: Limits = Limits::default(),
        /// Tenants: the owners of the data, if one gateway serves several.
        tenants: Tenants = Tenants::default(),
        /// Pipelines, each with a unique name: steps that change, drop and sample what sinks take, or what sources receive. A
        /// sink or a source names its `pipeline`.
        pipelines: BTreeMap<Name, Pipeline> = BTreeMap::new(),
        /// Tests of the pipelines, which `tidegate test` runs.
        tests: Sequence<PipelineTest> = Sequence::from(Vec::new()),
        /// Destinations, each with a unique name. Every sink receives all data that it supports. At most 64. Default:
        /// one lake named `lake`.
        sinks: BTreeMap<Name, Sink> = default_sinks(),
    }
}

impl Config {
    /// Whether tenants exist: a request must have one, credentials may name one, or one address has them.
    pub fn has_tenants(&self) -> bool {
        self.tenants.are_on()
            || self.access.credentials_file.is_some()
            || self.listen.thanos_receive.is_some()
    }

    /// The distinct server certificates: those of `listen`, and those of sources with addresses of their own.
    pub fn server_certificates(&self) -> Vec<EffectiveTls<'_>> {
        let mut all = self.listen.tls.all_effective();
        for shown in self.sources.tls().filter_map(|own| self.listen.tls.effective_of(own)) {
            if !all.contains(&shown) {
                all.push(shown);
            }
        }
        all
    }

    /// Whether any address uses TLS.
    pub fn uses_tls(&self) -> bool {
        !self.server_certificates().is_empty()
    }

    /// The sink whose cluster answers a `_bulk`, where one does.
    pub fn destination(&self) -> Option<(&Name, &ElasticsearchSink)> {
        let source = &self.sources.elasticsearch;
        let mut named = self.sinks.iter().filter_map(|(name, sink)| match sink {
            Sink::Elasticsearch(settings) => Some((name, settings)),
            _ => None,
        });
        match (source.acknowledge, &source.destination) {
            (Acknowledge::Journal, _) => None,
            (Acknowledge::Destination, Some(wanted)) => named.find(|(name, _)| *name == wanted),
            (Acknowledge::Destination, None) => named.next().filter(|_| named.next().is_none()),
        }
    }
}

/// The sinks of a configuration without `sinks`.
pub(crate) fn default_sinks() -> BTreeMap<Name, Sink> {
    "lake".parse().map(|name| (name, Sink::Lake(LakeSink::default()))).into_iter().collect()
}
