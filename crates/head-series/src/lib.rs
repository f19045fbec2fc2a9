//! The head series of each tenant, by a query of a Prometheus (or Thanos Query) at intervals.
//!
//! - [`run`] asks again and again, and keeps a [`HeadSeriesGate`](tidegate_admission::HeadSeriesGate) up to date.
//! - [`Decoder`] reads the response of an instant query, `{tenant="…"} value`.
//!
//! It promises: a response is read as it arrives, and of a tenant 16 bytes are kept, for a bounded number of tenants; a query that
//! fails leaves the last numbers, and after [`KEPT_FOR`] intervals without an answer nobody is limited any more.
//!
//! It leaves to others: comparing with limits and refusing (`limit`, `admission`).
#![deny(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")
)]

mod decoder;
mod queries;

pub use decoder::{DecodeError, Decoder};
pub use queries::{KEPT_FOR, QueryCounters, QuerySettings, planned_bytes, run};
