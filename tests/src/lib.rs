//! Whole-program tests: tidegate as a process among real clients and servers.
//!
//! Here is the harness; the tests are in `tests/`, one file per promise or per real client. Everything
//! listens on loopback, on ports of its own and in a folder of its own, so that tests run side by side.
//! Nothing waits for a time to pass: [`until`] waits for a condition, and says what it was when it does not
//! come. A process that a test started ends with the test, and its log is printed when the test fails.
//!
//! The program under test is the one that `TIDEGATE_BIN` names, or else the release build beside the tests.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a harness: its failures are the tests'")]

pub mod certificates;
mod cgroup;
mod collector;
mod debian;
mod duckdb;
pub mod fleet;
mod gateway;
pub mod http;
mod kubernetes_api;
pub mod messages;
mod opensearch;
mod otlp_load;
mod ports;
mod program;
mod prometheus;
pub mod promql;
mod proxy;
mod real;
mod recorder;
mod scrape_target;
mod until;

pub use cgroup::Cgroup;
pub use collector::{Collector, collector_binary};
pub use debian::Debian;
pub use duckdb::duckdb;
pub use gateway::{Gateway, binary, command, tidegate};
pub use kubernetes_api::KubernetesApi;
pub use opensearch::OpenSearch;
pub use otlp_load::otlp_profile;
pub use ports::free_address;
pub use program::{Finished, Program, finish};
pub use prometheus::{Prometheus, Samples};
pub use proxy::Proxy;
pub use real::real_program;
pub use recorder::{Recorded, Recorder};
pub use scrape_target::ScrapeTarget;
pub use until::{POLL, until, until_some};

use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long anything may take that usually takes well under a second, on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

/// Now, in milliseconds since 1970.
///
/// # Panics
/// When the clock is before 1970.
pub fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Capabilities that a machine may lack for good, under their names in [`WITHOUT`]; `make test` sets up everything
/// else.
pub const CGROUP: &str = "cgroup";
/// The right to mount a file system.
pub const MOUNT: &str = "mount";

/// The variable that names, with commas between them, what a machine lacks although `CI` is set.
pub const WITHOUT: &str = "TIDEGATE_TEST_WITHOUT";

/// Says that a test proves nothing here, because `missing` is missing, and why. It says so on the terminal itself: what
/// passing tests print is never shown. Where `CI` is set the test fails instead, so that half a promise cannot pass for a
/// whole one, unless [`WITHOUT`] names what is missing.
///
/// # Panics
/// Where `CI` is set and nobody has said that `missing` may be.
pub fn skip(missing: &str, why: &str) {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let may = may_skip(&variable("CI"), &variable(WITHOUT), missing);
    assert!(may, "{why}; {WITHOUT}={missing} says that this is meant to be so");
    // Not by a macro: the test harness catches what those print.
    let _closed = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

fn may_skip(ci: &str, without: &str, missing: &str) -> bool {
    !matches!(ci, "true" | "1") || without.split(',').any(|name| name.trim() == missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In CI nothing is skipped that nobody named.
    #[test]
    fn skips_in_ci_have_to_be_named() {
        for (ci, without, may) in [
            ("", "", true),
            ("false", "", true),
            ("true", "", false),
            ("1", MOUNT, false),
            ("true", "mount, cgroup", true),
        ] {
            assert_eq!(may_skip(ci, without, CGROUP), may, "CI={ci} {WITHOUT}={without}");
        }
    }
}
