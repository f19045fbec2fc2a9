//! The source `prometheus_remote_write` from the socket to the journal and back.

#![allow(clippy::unwrap_used, clippy::large_futures, reason = "tests")]

mod accepts;
mod limits;
mod partial;
mod pressure;
mod refuses;
mod rig;
mod thanos_receive;
