//! The Prometheus project's compliance suite for receivers of remote write 2.0.

use serde_json::json;
use std::process::Command;
use tidegate_tests::{Gateway, finish, real_program};

/// The one test that does not pass, and is marked MAY: it wants the `Written` headers to say 0 in an answer to 1.0. The gateway
/// says how many samples it wrote there too; clients of 1.0 do not look.
const KNOWN: [&str; 1] = ["TestRW1BasicCompatibility"];

#[test]
#[ignore = "`make test-real` runs it"]
fn the_receiver_suite_passes() {
    let Some(suite) = real_program("compliance", "receiver") else { return };
    let gateway = Gateway::started(json!({"memory": "96MiB", "sinks": {"nowhere": {"type": "blackhole"}}}));
    let config = gateway.folder().join("receivers.json");
    let receivers = json!({"remote_write": [{"name": "tidegate", "url": gateway.target().to_string()}]});
    std::fs::write(&config, receivers.to_string()).unwrap();
    let mut command = Command::new(suite);
    command.arg("-test.v").env("PROMETHEUS_RW2_COMPLIANCE_CONFIG_FILE", config);
    let printed = finish(command.current_dir(gateway.folder())).stdout;
    let of = |outcome: &str| -> Vec<String> {
        let start = format!("--- {outcome}: ");
        // Subtests are indented.
        let lines = printed.lines().filter_map(|line| line.strip_prefix(&start)?.split(' ').next());
        lines.map(str::to_owned).collect()
    };
    let (passed, failed) = (of("PASS"), of("FAIL"));
    println!("{} tests pass; {failed:?} fail", passed.len());
    assert!(passed.len() >= 20, "{printed}");
    assert_eq!(failed, KNOWN, "{printed}");
    gateway.books_close();
}
