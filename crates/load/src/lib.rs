//! Generators of realistic remote-write and OTLP traffic, and sinks that check what arrives.
//!
//! Every sample that a [`SeriesModel`] makes is numbered: sample `k` of a series has the value `k`. So a
//! [`VerifyingReceiver`] at the far end knows, series by series, what is missing, doubled or out of order, and
//! [`compare`] holds that against what was acknowledged to [`drive`].
//!
//! The encoders, the decoder and the HTTP here are written independently of the gateway's own, so that
//! both do not share a mistake. All of it is for load and tests: what a peer sends is bounded, but not
//! charged to the gateway's budget; only [`trickle`] runs inside a gateway, and says what it needs.

mod compare;
mod demo;
mod drive;
#[cfg(feature = "drivers")]
pub mod elastic_apm;
#[cfg(feature = "drivers")]
mod fleet;
pub mod hostile;
mod http;
mod listener;
pub mod load_loop;
mod model;
mod numbers;
#[cfg(feature = "drivers")]
mod opamp;
pub mod otlp;
pub mod protobuf;
pub mod remote_write;
#[cfg(feature = "drivers")]
mod server;
mod sink;
mod target;
#[cfg(feature = "drivers")]
mod thanos;

#[cfg(feature = "drivers")]
#[cfg(test)]
mod tests;

pub use compare::{AcknowledgedSamples, Comparison, compare};
pub use demo::{DEMO_BYTES, DEMO_SERIES, DemoReport, trickle};
pub use drive::{LoadProfile, LoadReport, OnRefused, RunLimit, drive, drive_blocking};
#[cfg(feature = "drivers")]
pub use fleet::{FleetAgents, FleetProgress, FleetSettings, check_ins};
pub use http::{Connection, Duplex, RequestError, Response, connect};
pub use model::{SampleKind, Series, SeriesModel, Timeline};
pub use numbers::NumberSet;
#[cfg(feature = "drivers")]
pub use opamp::{OpampAgents, OpampProgress, OpampSettings};
pub use sink::{Arrivals, Behaviour, Check, SeriesArrivals, VerifyingReceiver};
pub use target::{BadTarget, Target};
#[cfg(feature = "drivers")]
pub use thanos::{IngestorSeries, ThanosIngestors};
