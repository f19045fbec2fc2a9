//! The sink `otlp` behind a real journal and before a peer that does what it is told.

#![allow(clippy::unwrap_used, clippy::large_futures, reason = "tests")]

mod answers;
mod bodies;
mod bulk;
mod early;
mod endpoints;
mod huge;
mod intake;
mod joining;
mod json;
mod limits;
mod loki;
mod memory;
mod peer;
mod remote_write;
mod restarts;
mod rig;
mod splunk_hec;
mod storm;
mod tenants;
mod tls;
