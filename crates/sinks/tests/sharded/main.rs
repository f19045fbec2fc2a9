//! The sink `prometheus_remote_write` with `shard_by`, behind a real journal and before receivers that answer as they are told.

#![allow(clippy::unwrap_used, clippy::large_futures, clippy::indexing_slicing, reason = "tests")]

mod answers;
mod failures;
mod members;
#[path = "../thanos_receive/messages.rs"]
mod messages;
mod placement;
mod receiver;
mod relabeling;
mod rig;
