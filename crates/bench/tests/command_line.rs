//! The program from outside: what it lists, and what it says when it cannot measure.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_tidegate-bench");
    Command::new(program).args(arguments).env_remove("TIDEGATE_BIN").output().unwrap()
}

fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("subject");
    let mut file = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o755).open(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    path
}

fn failure(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn lists_its_rows_without_a_gateway() {
    let listed = bench(&["--list"]);
    assert!(listed.status.success());
    let listed = String::from_utf8(listed.stdout).unwrap();
    for row in ["cpu-forwarding", "otlp-ingest", "storm", "connections", "idle", "backlog"] {
        assert!(listed.lines().any(|line| line.starts_with(row)), "{listed}");
    }
    let some = String::from_utf8(bench(&["--list", "idle"]).stdout).unwrap();
    assert_eq!(some.lines().count(), 1, "{some}");
}

#[test]
fn a_missing_gateway_is_an_error_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let said = failure(&bench(&["idle", "--dir", dir, "--subject", "/nonexistent/tidegate"]));
    assert!(said.contains("/nonexistent/tidegate") && said.contains("--subject"), "{said}");
    let said = failure(&bench(&["idle", "--dir", dir, "--subject", "/bin/echo"]));
    assert!(said.contains("is no tidegate"), "{said}");
}

#[test]
fn names_the_row_whose_gateway_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let broken = "#!/bin/sh\n[ \"$1\" = --version ] && echo tidegate 0.0.0 && exit 0\nexit 3\n";
    let subject = script(folder.path(), broken);
    let said = failure(&bench(&["idle", "--dir", dir, "--subject", subject.to_str().unwrap()]));
    assert!(said.contains("measuring `idle`") && said.contains("ended at once"), "{said}");
}
