//! The configuration of tidegate.
//!
//! One declaration per setting (name, type, default, allowed range, documentation) gives its parser,
//! its default, its line in the reference, its part of the JSON Schema and its line in the commented
//! example, so none of them can disagree: see `declare.rs` for the three macros, `model.rs` for the
//! settings themselves.
//!
//! Promises: a configuration that [`parse`] returns is complete and every value in it is valid by
//! itself and beside the others; every mistake in a file is reported at once, each with its place, an
//! excerpt and what to do; nothing in a file can make the reader panic or grow without a bound.
//!
//! Left to others: whether the whole fits into `memory` (the plan in `tidegate-arena`), whether an
//! address can be bound or a folder written (whoever opens it).
//!
//! The file is read from parser events into a tree with positions ([`granit_parser`], the parser under
//! `serde-saphyr`), not through serde: serde stops at the first mistake, hides where keys stand, and
//! gives a scalar a type before its setting has been found, which turns `protocol: 2.0` into a float.

mod checks;
mod declare;
mod difference;
mod document;
mod effective;
mod error;
mod example;
mod files;
mod import;
mod load;
mod markdown;
mod memory;
mod model;
mod presets;
mod reader;
mod schema;
mod setting;
mod setting_names;
mod substitute;
mod suggest;
mod values;
mod yaml;

pub use difference::differing;
pub use document::yaml_as_json;
pub use effective::{effective, secrets};
pub use error::{Errors, Invalid, Problem, SourcePosition};
pub use example::example;
pub use import::{
    CollectorVersion, Imported, Note, fluent_bit, otelcol, prometheus, thanos_limits, thanos_receive, vector,
    vmagent,
};
pub use load::{LONGEST_FILE, Loaded, ParsedSteps, load, load_and_look, parse, parse_steps};
pub use markdown::markdown;
pub use memory::{MemoryBudget, Origin, kernel_needs, windows};
pub use model::{
    Access, Acknowledge, Allowance, ApmAgents, Backoff, Before, BlackholeSink, BulkAction, BulkCompression,
    CertificateField, ClientAuth, Compression, Config, ConfiguredDerivation, ConfiguredPipeline,
    ConfiguredSampling, Console, DefaultAt, Delivery, Deltas, DeriveSink, DiscoverySettings, Durability,
    EffectiveTls, ElasticApmSource, ElasticsearchSink, ElasticsearchSource, Expectation, FileEncoding,
    FileFormat, FileInput, FileMultiline, FileSource, FileStart, FleetListener, FleetPostgres,
    FluentForwardSource, Given, HandoffFull, HandoffSettings, HashringAlgorithm, HeadSeriesQuery, HttpFormat,
    HttpLogsSource, HttpMethod, HttpSink, INPUT_ATTRIBUTE, IngestorVersion, Journal, JournaldFields,
    JournaldInput, JournaldPriority, JournaldSource, JournaldStart, KubernetesApi, KubernetesLogsSource,
    LakeSink, Limits, Listen, ListenTls, Listener, ListenerTls, LokiSink, LokiSource, Mapping, Naming,
    OnError, OnLongLine, OpampAccess, OpampListener, OrSeries, OtlpSink, OtlpSource, OtlpTransport, Pipeline,
    PipelineTest, Product, Protocol, Redact, RedactPreset, RelabelRule, RemoteWriteCompression,
    RemoteWriteSink, RemoteWriteSource, Retention, RouteBy, RumSource, Sample, SampleMode, Signal, Sink,
    SinkRouting, SinkSample, Source, SourceLimits, SourcePipeline, Sources, SplunkHecSink, Step, StepLabel,
    Steps, SyslogFormat, SyslogFraming, SyslogListener, SyslogSource, TailPolicies, TailPolicy, TailSampling,
    TenantOverride, Tenants, ThanosCompression, ThanosReceiveListener, ThanosReceiveSink, Tls, Translation,
    WhenFull,
};
/// Policies by which traces are sampled.
pub use model::{derive, tail_sampling};
pub use presets::Parse;
pub use schema::schema;
pub use setting::Sequence;
pub use substitute::Substituted;
pub use suggest::nearest;
pub use values::{
    Bytes, Condition, ContentType, Decimal, DnsUrl, Duration, Fixture, Hashring, HeaderName, HostName,
    IndexGlob, IndexPattern, IndexPiece, Integer, Modulus, Name, Percentage, Ratio, Secret, ShardBy,
    Statement, SyslogAddress, TenantName, Text, UnixSocket, Url,
};
