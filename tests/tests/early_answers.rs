//! Every refusal is an answer, also for a client that is still sending: Python's and Go's clients send all of a body
//! before they look whether there is an answer, and must find it.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::json;
use std::path::PathBuf;
use std::process::Command;
use tidegate_tests::{Gateway, finish};

/// More than a gateway with 64 MiB takes, and than sockets' buffers hold.
const BYTES: usize = 24 << 20;

fn gateway() -> Gateway {
    Gateway::started(json!({
        "memory": "64MiB",
        "sources": { "otlp": { "max_body": "1MiB" } },
        "sinks": { "out": { "type": "blackhole" } },
    }))
}

fn source(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("early").join(name)
}

/// The answer of each path: too large, not found, wrong kind.
fn requests(command: &mut Command, gateway: &Gateway) -> String {
    command.arg(gateway.http().to_string()).arg(BYTES.to_string());
    for (path, kind) in
        [("/v1/logs", "application/json"), ("/nowhere", "text/plain"), ("/v1/traces", "text/plain")]
    {
        command.args([path, kind]);
    }
    finish(command).succeeded()
}

const ANSWERS: &str = "/v1/logs 413\n/nowhere 404\n/v1/traces 415\n";

#[test]
fn clients_of_python_see_why_they_are_refused() {
    let gateway = gateway();
    let python = std::env::var("TIDEGATE_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    assert_eq!(requests(Command::new(python).arg(source("python.py")), &gateway), ANSWERS);
}

#[test]
fn clients_of_go_see_why_they_are_refused() {
    let gateway = gateway();
    let program = gateway.folder().join("early");
    let mut build = Command::new("go");
    finish(build.args(["build", "-o"]).arg(&program).arg(".").current_dir(source("go"))).succeeded();
    assert_eq!(requests(&mut Command::new(&program), &gateway), ANSWERS);
}
