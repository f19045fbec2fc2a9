//! Received text cannot affect a terminal that shows it, and a pipe receives the original bytes.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_tests::http::request;
use tidegate_tests::{Gateway, SOON, binary, finish, skip, tidegate, until};

/// Clears the screen, in seven and in eight bits; turns the text around; rings; goes back; types.
const NASTY: &str = "=a\u{1b}[2J\u{9b}2J\u{202e}b\u{2066}\u{7}\u{8}\u{7f}\r\u{61c}\u{200f}z";

fn send(gateway: &Gateway) {
    let record = json!({"body": {"stringValue": NASTY}, "severityText": NASTY});
    let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).to_string();
    let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json"];
    assert_eq!(request(gateway.http(), &head, body.as_bytes()).unwrap().status, 200);
}

/// The program's output to a terminal. `None` without a tool that creates one.
fn in_a_terminal(args: &[&str]) -> Option<String> {
    let mut line = format!("'{}'", binary().display());
    for arg in args {
        assert!(!arg.contains('\''));
        line.push_str(&format!(" '{arg}'"));
    }
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "dumb");
    if Command::new("script").arg("--version").output().is_err() {
        skip("script", "there is no `script` to make a terminal");
        return None;
    }
    let shown = finish(&mut command);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    Some(shown.stdout)
}

#[track_caller]
fn is_harmless(shown: &str) {
    // The terminal itself puts a return before each line feed, and CSV has one there.
    let text = shown.replace("\r\r\n", "\n").replace("\r\n", "\n");
    let wrong = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2066}\u{61c}\u{200f}".contains(c));
    assert!(text.contains("2J") && !text.contains(wrong), "{text:?}");
}

#[test]
fn sent_control_characters_are_escaped_on_a_terminal() {
    let gateway = Gateway::started(json!({
        "memory": "128MiB",
        "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
    }));
    send(&gateway);
    until(SOON, "the lake to have a file", || gateway.lake_rows("logs").len() == 1);
    let data = gateway.data();
    let cat = |format| ["lake", "cat", "logs", "--format", format, "--data", data.to_str().unwrap()];

    // To a pipe: exact.
    let row: Value = serde_json::from_str(tidegate(&cat("ndjson")).succeeded().trim()).unwrap();
    assert!(row.to_string().contains('\u{202e}'), "{row}");
    let csv = tidegate(&cat("csv")).succeeded();
    assert!(csv.contains('\u{9b}') && csv.contains(&format!("'{NASTY}")), "{csv:?}");

    for format in ["table", "ndjson", "csv"] {
        let Some(shown) = in_a_terminal(&cat(format)) else { return };
        is_harmless(&shown);
        if format == "ndjson" {
            assert_eq!(serde_json::from_str::<Value>(shown.trim()).unwrap(), row, "JSON says the same");
        }
    }

    let stop = AtomicBool::new(false);
    let admin = gateway.admin().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                send(&gateway);
            }
        });
        let shown = in_a_terminal(&["tap", "--count", "1", "--admin", &admin]);
        stop.store(true, Relaxed);
        is_harmless(&shown.unwrap());
    });
}
