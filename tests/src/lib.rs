//! Whole-program tests: tidegate as a process among real clients and servers.
//!
//! Here is the harness; the tests are in `tests/`, one file per promise or per real client. Everything
//! listens on loopback, on ports of its own and in a folder of its own, so that tests run side by side.
//! Nothing waits for a time to pass: [`until`] waits for a condition, and says what it was when it does not
//! come. A process that a test started ends with the test, and its log is printed when the test fails.
//!
//! The program under test is the one that `TIDEGATE_BIN` names, or else the release build beside the tests.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a harness: its failures are the tests'")]

mod cgroup;
mod collector;
mod duckdb;
mod gateway;
pub mod http;
pub mod messages;
mod opensearch;
mod ports;
mod program;
mod prometheus;
mod recorder;
mod until;

pub use cgroup::Cgroup;
pub use collector::{Collector, collector_binary};
pub use duckdb::duckdb;
pub use gateway::{Gateway, binary, command, tidegate};
pub use opensearch::OpenSearch;
pub use ports::free_address;
pub use program::{Finished, Program, finish};
pub use prometheus::{Prometheus, Samples};
pub use recorder::{Recorded, Recorder};
pub use until::{POLL, until, until_some};

use std::time::Duration;

/// How long anything may take that usually takes well under a second, on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

/// Says that a test proves nothing here, and why; it fails instead where `CI` is set and `needed` is true,
/// so that a missing set-up cannot pass for success.
pub fn skip(why: &str, needed: bool) {
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
    assert!(!(ci && needed), "{why}");
    eprintln!("SKIPPED: {why}");
}
