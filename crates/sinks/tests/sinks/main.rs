//! The sinks behind a real journal: `prometheus_remote_write` before a peer that checks what arrives, sample by
//! sample, and the lake before its reader.

#![allow(clippy::unwrap_used, clippy::large_futures, reason = "tests")]

mod dead_letters;
mod early;
mod endpoints;
mod failures;
mod joining;
mod lake;
mod lanes;
mod limits;
mod losses;
mod memory;
mod needs;
mod order;
mod other_signals;
mod otlp_metrics;
mod restarts;
mod rig;
mod supervised;
mod too_large;
mod versions;
mod written_headers;
