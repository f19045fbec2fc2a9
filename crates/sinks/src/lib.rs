//! The destinations that tidegate sends to, one file each. Every sink follows the journal with a cursor of
//! its own, so a slow one slows nobody.
//!
//! A sink promises: items leave the queue only when the peer took them or a reason is entered in the books
//! (promise P4); what it holds in memory stays within its part of the egress share, however long the peer
//! stalls; and it goes on by itself when the peer does. It knows no source.

mod backoff;
mod batch;
mod blackhole;
mod body_parts;
mod clock;
mod concurrency_limit;
mod delivery;
mod derive;
mod egress_budget;
mod elasticsearch;
mod endpoints;
mod health;
mod http;
mod http_peer;
mod journal_consumer;
mod lake;
mod loki;
mod losses;
mod need;
mod other_events;
mod otlp;
mod pipeline_stage;
mod probe;
mod prometheus_remote_write;
mod secrets;
mod signals;
mod splunk_hec;
mod spread;
mod stop;
mod supervisor;
mod tenant;
mod thanos_receive;
mod tls;
mod trace_sampling;

use tidegate_stage::decoding;

pub use blackhole::blackhole;
pub use delivery::{BadLevel, EndpointError, StartError};
pub use derive::{Derive, DeriveError, DeriveReport, DeriveSettings};
pub use egress_budget::{BorrowQueue, EgressBudget};
pub use elasticsearch::{
    Cluster, ClusterNodes, Elasticsearch, Settings as ElasticsearchSettings,
    SetupError as ElasticsearchSetupError, put_templates,
};
pub use health::{Activity, BlockedDestination, Health, LastError};
pub use http::Http;
pub use journal_consumer::{AttachError, SinkContext};
pub use lake::{Lake, LakeError};
pub use loki::Loki;
pub use need::Need;
pub use otlp::{
    Compression, IndexerAcknowledgement, Json, Otlp, RoutedOtlp, RoutedStartError, Routing,
    Settings as OtlpSettings, SplunkHec as SplunkHecSettings, Transport,
};
pub use pipeline_stage::{EarlierPipeline, SinkCapacity, SinkPipeline};
pub use probe::{HarmlessRefusal, Probe, ProbeProxy};
pub use prometheus_remote_write::{
    Naming, Prefer, RemoteWrite, Settings as RemoteWriteSettings, ShardBy, ShardedRemoteWrite,
    ShardedStartError, Sharding, Translation,
};
pub use signals::Signals;
pub use splunk_hec::SplunkHec;
pub use spread::{
    ConflictReason, MemberReport, RingSourceError, SendDelays, SpreadError, log_reserve, member_name,
};
pub use stop::{StopSender, StopSignal};
pub use supervisor::Supervisor;
pub use thanos_receive::{
    ForwardingReport, HashringError, HashringFileReport, HashringReport, Hashrings, Layout as ThanosLayout,
    Settings as ThanosReceiveSettings, StartError as ThanosReceiveStartError, ThanosReceive, check_hashrings,
    describe_hashrings,
};
pub use tidegate_elastic::documents::{IndexTemplate, Mapping, PatternPart, Product};
pub use tidegate_elastic::templates::{Template, templates};
pub use tidegate_stage::{PipelineMeters, StepMeters, StepTotals};
pub use tidegate_wire::loki::push::LabelRules;
pub use tidegate_wire::otlp::json::Layout;
pub use tidegate_wire::otlp::route::RouteKey;
pub use tidegate_wire::otlp::splunk_hec::{Metadata, MetadataField};
pub use tls::{Tls, TlsError};
pub use trace_sampling::{SamplingReport, SharedSampler, TraceSampling};
