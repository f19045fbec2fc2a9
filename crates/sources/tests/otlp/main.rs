//! The source `otlp` from the socket to the journal and back, over both versions of HTTP.

#![allow(clippy::unwrap_used, clippy::large_futures, reason = "tests")]

mod accepts;
mod allocations;
mod body;
mod callers;
mod client;
mod connections;
mod grpc;
mod limits;
mod pressure;
mod refuses;
mod rig;
mod sizes;
#[allow(dead_code, reason = "others use more of it")]
#[path = "../support/wire.rs"]
mod wire;
