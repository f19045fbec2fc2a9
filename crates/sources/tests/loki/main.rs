//! The source `loki` over real connections, before a real journal.

#![allow(clippy::unwrap_used, clippy::large_futures, reason = "tests")]

#[path = "../otlp/body.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod body;
#[path = "../otlp/client.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod client;
#[path = "../otlp/rig.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod rig;

mod accepts;
mod refuses;
