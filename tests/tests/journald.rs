//! The source `journald` with systemd's own journal files and `journalctl`: every entry comes once, in the order of the journal, also
//! after SIGTERM and kill -9.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use tidegate_tests::{Gateway, SOON, tidegate, until};

/// The program that makes journal files of the export format.
const REMOTE: &str = "/lib/systemd/systemd-journal-remote";

/// A folder with journal files.
struct Journal {
    folder: TempDir,
    files: u32,
}

impl Journal {
    fn new() -> Journal {
        assert!(
            Path::new(REMOTE).exists(),
            "{REMOTE} is missing: install systemd-journal-remote (scripts/setup test does)"
        );
        Journal { folder: tempfile::tempdir().unwrap(), files: 0 }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Adds a file with the entries of these numbers, of which each third belongs to another unit and each fifth has several
    /// lines.
    fn write(&mut self, numbers: std::ops::Range<u64>) {
        self.files += 1;
        let file = self.folder.path().join(format!("part{}.journal", self.files));
        let mut program = Command::new(REMOTE)
            .arg(format!("--output={}", file.display()))
            .arg("-")
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = program.stdin.take().unwrap();
        for number in numbers {
            let unit = if number % 3 == 0 { "ssh.service" } else { "web.service" };
            write!(
                input,
                "__REALTIME_TIMESTAMP={}\n__MONOTONIC_TIMESTAMP={}\n_BOOT_ID=0123456789abcdef0123456789abcdef\n\
                 _HOSTNAME=web-1\n_PID={}\n_COMM=app\n_SYSTEMD_UNIT={unit}\nPRIORITY={}\nORDER_ID={number}\n",
                1_767_000_000_000_000 + number * 1000,
                1_000_000 + number * 1000,
                100 + number,
                3 + number % 4,
            )
            .unwrap();
            let message = message(number);
            if message.contains('\n') {
                input.write_all(b"MESSAGE\n").unwrap();
                input.write_all(&(message.len() as u64).to_le_bytes()).unwrap();
                writeln!(input, "{message}\n").unwrap();
            } else {
                writeln!(input, "MESSAGE={message}\n").unwrap();
            }
        }
        drop(input);
        assert!(program.wait().unwrap().success());
    }
}

fn message(number: u64) -> String {
    if number.is_multiple_of(5) { format!("line {number}\nsecond") } else { format!("line {number}") }
}

fn gateway(journal: &Journal, input: Value) -> Gateway {
    let mut settings = json!({"directory": journal.path(), "start_at": "beginning"});
    settings.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
    Gateway::new(json!({
        "memory": "64MiB",
        "sources": {"journald": {"inputs": {"test": settings}}},
        "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
    }))
}

/// The bodies in the lake.
fn bodies(gateway: &Gateway) -> Vec<String> {
    let rows = gateway.lake_rows("logs");
    rows.iter().map(|row| row["body"].as_str().unwrap_or_default().to_owned()).collect()
}

fn wait_for(gateway: &Gateway, entries: u64) {
    until(SOON, "the entries to be journalled", || {
        gateway.metrics().get("tidegate_journald_entries_total").is_some_and(|found| *found >= entries as f64)
    });
}

/// Entries written before the start, while the gateway runs and while it is down come once each.
#[test]
fn every_entry_comes_once() {
    let mut journal = Journal::new();
    journal.write(0..500);
    let mut gateway = gateway(&journal, json!({}));
    gateway.start();
    wait_for(&gateway, 500);
    journal.write(500..800);
    wait_for(&gateway, 800);
    gateway.kill9();
    journal.write(800..900);
    gateway.start();
    wait_for(&gateway, 100);
    gateway.term();
    journal.write(900..1000);
    gateway.start();
    wait_for(&gateway, 100);
    gateway.at_rest(SOON);
    gateway.books_close();
    gateway.term();
    let mut found = bodies(&gateway);
    found.sort();
    let mut expected: Vec<_> = (0..1000).map(message).collect();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(gateway.lake_rows("logs").len(), 1000);
}

/// Units are chosen by `journalctl`, and fields become attributes.
#[test]
fn an_entry_has_its_fields() {
    let mut journal = Journal::new();
    journal.write(0..30);
    let mut gateway = gateway(&journal, json!({"units": ["ssh.service"], "priority": "warning"}));
    gateway.start();
    let wanted: Vec<u64> = (0..30).filter(|number| number % 3 == 0 && 3 + number % 4 <= 4).collect();
    wait_for(&gateway, wanted.len() as u64);
    gateway.at_rest(SOON);
    gateway.term();
    let rows = gateway.lake_rows("logs");
    assert_eq!(rows.len(), wanted.len());
    let first = rows.iter().find(|row| row["body"] == "line 9").unwrap();
    let text = first.to_string();
    for part in ["process.pid", "109", "systemd.unit", "ssh.service", "journald.ORDER_ID"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert_eq!(first["severity_text"], "warning", "{text}");
}

/// Where systemd has deleted the entry that was read last, the next ones come, and the gap is counted.
#[test]
fn a_vacuumed_journal_is_a_counted_gap() {
    let mut journal = Journal::new();
    journal.write(0..50);
    let mut gateway = gateway(&journal, json!({}));
    gateway.start();
    wait_for(&gateway, 50);
    gateway.term();
    std::fs::remove_file(journal.path().join("part1.journal")).unwrap();
    journal.write(60..70);
    gateway.start();
    wait_for(&gateway, 10);
    until(SOON, "the gap to be counted", || gateway.metrics()["tidegate_journald_gaps_total"] == 1.0);
}

/// The checkpoints of a source that is not configured any more are kept, and the log says how to drop them; then it begins anew.
#[test]
fn a_removed_source_is_forgotten_on_request() {
    let mut journal = Journal::new();
    journal.write(0..20);
    let mut gateway = gateway(&journal, json!({}));
    let settings = std::fs::read_to_string(gateway.config()).unwrap();
    gateway.start();
    wait_for(&gateway, 20);
    gateway.term();
    gateway.configure(json!({"memory": "64MiB", "sinks": {"lake": {"type": "lake", "file_age": "1s"}}}));
    gateway.start();
    assert!(gateway.log().contains("tidegate journal forget-source journald"), "{}", gateway.log());
    gateway.term();

    let data = gateway.data();
    let forget =
        |source: &str| tidegate(&["journal", "forget-source", source, "--data", data.to_str().unwrap()]);
    assert!(forget("syslog").stderr.contains("journald"), "the sources with checkpoints are named");
    assert_eq!(forget("journald").succeeded(), "forgot 1 checkpoints of `journald`\n");
    gateway.configure_text(&settings);
    gateway.start();
    wait_for(&gateway, 20);
    gateway.at_rest(SOON);
    gateway.term();
    assert_eq!(bodies(&gateway).len(), 40, "the entries are read again");
}
