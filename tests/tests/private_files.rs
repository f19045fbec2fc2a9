//! The gateway's files belong to its own user: mode 0600 in folders with mode 0700, also those of earlier versions.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tidegate_tests::http::request;
use tidegate_tests::{Gateway, SOON, tidegate, until};

const BODY: &[u8] =
    br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"hello"}}]}]}]}"#;

fn settings() -> serde_json::Value {
    json!({"memory": "128MiB", "sinks": {"lake": {"type": "lake", "file_age": "1s"}}})
}

/// Everything below a folder, and the folder.
fn all(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        if path.is_dir() {
            found.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    found
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[track_caller]
fn is_private(folder: &Path) {
    for path in all(folder) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), expected, "{}: {:o}", path.display(), mode(&path));
    }
}

fn send(gateway: &Gateway) {
    let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json"];
    assert_eq!(request(gateway.http(), &head, BODY).unwrap().status, 200);
}

#[test]
fn the_data_folder_is_the_owners() {
    let mut gateway = Gateway::started(settings());
    send(&gateway);
    until(SOON, "the lake to have a file", || gateway.lake_rows("logs").len() == 1);
    is_private(&gateway.data());
    let names = all(&gateway.data());
    for part in ["journal/", "lake/v1/logs/", "lake/v1/manifest/", "accepted", "dead-letters"] {
        assert!(names.iter().any(|name| name.to_str().unwrap().contains(part)), "{part}: {names:?}");
    }

    // As an earlier version left it.
    gateway.term();
    for path in all(&gateway.data()) {
        fs::set_permissions(&path, Permissions::from_mode(if path.is_dir() { 0o755 } else { 0o644 }))
            .unwrap();
    }
    gateway.start();
    is_private(&gateway.data());
    assert!(gateway.log().contains("removed other users' access"), "{}", gateway.log());
    send(&gateway);
    until(SOON, "the lake to have both", || gateway.lake_rows("logs").len() == 2);
    is_private(&gateway.data());
}

/// A link where the gateway writes a file does not make it write elsewhere.
#[test]
fn a_link_in_the_data_folder_is_not_followed() {
    let mut gateway = Gateway::new(settings());
    fs::create_dir(gateway.data()).unwrap();
    let precious = gateway.folder().join("precious");
    fs::write(&precious, "mine").unwrap();
    symlink(&precious, gateway.data().join("accepted.new")).unwrap();
    let refused = gateway.refuses_to_start();
    assert!(
        refused.stderr.contains("accepted.new") && refused.stderr.contains("it is a link"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
}

/// A lake for a group is outside of the data folder, and the group may read and not write.
#[test]
fn a_lake_can_be_read_by_its_group() {
    let mut gateway = Gateway::new(json!({
        "memory": "128MiB",
        "sinks": {"lake": {"type": "lake", "file_age": "1s", "group_readable": true}},
    }));
    let refused = gateway.refuses_to_start();
    assert!(refused.stderr.contains("outside of `data`"), "{}", refused.stderr);
    let lake = gateway.folder().join("lake");
    gateway.configure(json!({
        "memory": "128MiB",
        "sinks": {"lake": {"type": "lake", "file_age": "1s", "group_readable": true, "path": lake}},
    }));
    gateway.start();
    send(&gateway);
    let config = gateway.config();
    let args = ["lake", "cat", "logs", "--format", "ndjson", "--config", config.to_str().unwrap()];
    until(SOON, "the lake to have a file", || !tidegate(&args).stdout.is_empty());
    is_private(&gateway.data());
    for path in all(&lake.join("v1")) {
        let expected = if path.is_dir() { 0o750 } else { 0o640 };
        let expected = if path.ends_with("lock") { 0o600 } else { expected };
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
}

/// Keys, credentials and secrets that others can read are named, at the start and by `tidegate check`.
#[test]
fn loose_files_with_secrets_are_named() {
    let mut gateway = Gateway::new(settings());
    let (who, token) = (gateway.folder().join("who"), gateway.folder().join("token"));
    fs::write(&who, "").unwrap();
    fs::write(&token, "hunter2\n").unwrap();
    let access = json!({"credentials_file": who});
    gateway.configure(json!({
        "memory": "128MiB",
        "access": access,
        "sinks": {"up": {
            "type": "otlp",
            "endpoints": ["http://127.0.0.1:1"],
            "headers": {"authorization": format!("Bearer ${{file:{}}}", token.display())},
        }},
    }));
    let line = format!("bearer agents sha256:{}\n", "0c".repeat(32));
    fs::write(&who, line).unwrap();
    for path in [&who, &token] {
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    let config = gateway.config();
    let check = || tidegate(&["check", config.to_str().unwrap()]).succeeded();
    let told = check();
    for words in ["`access.credentials_file`", "token", "everybody on this machine may read it (mode 0644)"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("hunter2"));
    gateway.start();
    assert_eq!(
        gateway.log().matches("everybody on this machine may read it").count(),
        2,
        "{}",
        gateway.log()
    );
    for path in [&who, &token] {
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
    let told = check();
    assert!(!told.contains("may read it"), "{told}");
}
