//! The protocols that tidegate receives, one file each, and the table of paths that leads to them.
//!
//! A source decides on a request's head what it is, checks the body in one walk, and gives the bytes as
//! they came to the journal through the gate. It promises that nothing is acknowledged before the journal
//! has it, and that every request is entered in the books once. It knows no sink.

mod body;
mod clock;
mod connection_slots;
mod elastic_apm;
mod elasticsearch;
mod grpc;
mod http;
mod http2;
mod http_logs;
mod ingest;
mod loki;
mod otlp;
mod prometheus_remote_write;
mod thanos_receive;

pub use connection_slots::{ConnectionSlots, HeldSlots};
pub use elastic_apm::{AgentSettings, AnonymousAgents, ApmLimits, BadSettings, ElasticApm};
pub use elasticsearch::{BulkDestination, Elasticsearch, Settings as ElasticsearchSettings};
pub use http::{Http, Ticket};
pub use http_logs::HttpLogs;
pub use http2::Http2;
pub use ingest::{Ingest, accept_tls};
pub use loki::Loki;
pub use otlp::Otlp;
pub use prometheus_remote_write::RemoteWrite;
pub use thanos_receive::{Readiness, ThanosMeters, ThanosReceive};
