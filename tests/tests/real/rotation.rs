//! The source `file` under rotations every second, while the gateway is killed every five: each line comes into the lake once.
//!
//! `TIDEGATE_ROTATION_SECONDS` (120) is how long each way of rotation lasts, `TIDEGATE_ROTATION_MB` (50) how many megabytes a
//! second are written, `TIDEGATE_ROTATION_WAY` the one way to try.

use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tidegate_tests::{Gateway, binary, until};

/// The length of a line with its end.
const LINE: usize = 512;
/// Time between two pieces of the log.
const PIECE: Duration = Duration::from_millis(10);
const ROTATE_EVERY: Duration = Duration::from_secs(1);
const KILL_EVERY: Duration = Duration::from_secs(5);
/// Rotated files that stay. One that is removed before it is read is lost with the next kill: a busy machine must have the time.
const KEPT: usize = 200;
/// Longer than a file is held: what is compressed from it is looked at then.
const SETTLED: Duration = Duration::from_secs(15);
/// Longer than the rest takes to be read and stored.
const AT_LAST: Duration = Duration::from_mins(10);

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Rename,
    CopyTruncate,
    /// `logrotate` itself, which compresses all but the newest.
    Logrotate,
}

#[test]
#[ignore = "`make test-real` runs it"]
fn every_line_once_through_rotations_and_kills_for_long() {
    let only = std::env::var("TIDEGATE_ROTATION_WAY").ok();
    let ways = [("rename", Way::Rename), ("copytruncate", Way::CopyTruncate), ("logrotate", Way::Logrotate)];
    for (name, way) in ways {
        if only.as_ref().is_none_or(|only| only == name) {
            rotate_for_long(name, way);
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn rotate_for_long(name: &str, way: Way) {
    let seconds = number("TIDEGATE_ROTATION_SECONDS", 120);
    let bytes_a_second = number("TIDEGATE_ROTATION_MB", 50) * 1_000_000;
    let mut gateway = Gateway::new(json!({}));
    let logs = gateway.folder().join("logs");
    fs::create_dir(&logs).unwrap();
    let pattern = format!("{}/*.log*", logs.display());
    gateway.configure(json!({
        "memory": "128MiB",
        "sources": {"file": {
            "rotate_wait": "10s",
            "inputs": {"main": {"include": [pattern], "compressed": true, "format": "plain"}},
        }},
        "sinks": {"lake": {"type": "lake", "file_age": "5s"}},
    }));
    let is_over = Arc::new(AtomicBool::new(false));
    let rotator = (way == Way::Logrotate).then(|| {
        let (logs, is_over) = (logs.clone(), Arc::clone(&is_over));
        thread::spawn(move || logrotate(&logs, &is_over))
    });
    let begun = Instant::now();
    let writer = {
        let log = logs.join("a.log");
        let lasts = Duration::from_secs(seconds);
        let lines_a_piece = bytes_a_second * PIECE.as_millis() as u64 / 1000 / LINE as u64;
        thread::spawn(move || write_for(lasts, &log, lines_a_piece, way))
    };
    let (mut kills, mut next_kill) = (0, Instant::now() + KILL_EVERY);
    gateway.start();
    while !writer.is_finished() {
        if Instant::now() >= next_kill {
            gateway.kill9();
            kills += 1;
            gateway.start();
            next_kill = Instant::now() + KILL_EVERY;
        }
        thread::sleep(PIECE);
    }
    let (lines, rotations) = writer.join().unwrap();
    let took = begun.elapsed();
    is_over.store(true, Relaxed);
    let rotations = rotations + rotator.map_or(0, |rotator| rotator.join().unwrap());
    let seen = Seen::when_complete(&gateway, lines);
    let written = (lines * LINE) as f64 / 1e6 / took.as_secs_f64();
    println!(
        "{name}: {lines} lines, {written:.1} MB/s for {:.0} s, {rotations} rotations, {kills} kills: {} lost, {} twice",
        took.as_secs_f64(),
        seen.lost(),
        seen.twice()
    );
    assert_eq!((seen.lost(), seen.twice()), (0, 0), "lost from {:?} on", seen.0.iter().position(|n| *n == 0));
    gateway.books_close();
}

/// Writes numbered lines in pieces, and rotates; gives how many lines and rotations.
fn write_for(lasts: Duration, log: &Path, lines_a_piece: u64, way: Way) -> (usize, usize) {
    let (mut lines, mut rotations) = (0, 0);
    let begun = Instant::now();
    let (mut next_piece, mut next_rotation) = (begun, begun + ROTATE_EVERY);
    let filling = "x".repeat(LINE - "line 0123456789 \n".len());
    while begun.elapsed() < lasts {
        let mut piece = Vec::with_capacity(LINE * lines_a_piece as usize);
        for _ in 0..lines_a_piece {
            writeln!(piece, "line {lines:010} {filling}").unwrap();
            lines += 1;
        }
        append_to(log).write_all(&piece).unwrap();
        if way != Way::Logrotate && Instant::now() >= next_rotation {
            rotations += 1;
            rotate(log, rotations, way);
            next_rotation += ROTATE_EVERY;
        }
        next_piece += PIECE;
        thread::sleep(next_piece.saturating_duration_since(Instant::now()));
    }
    (lines, rotations)
}

fn append_to(log: &Path) -> File {
    OpenOptions::new().append(true).create(true).open(log).unwrap()
}

/// Rotates, and removes a file that is long read.
fn rotate(log: &Path, number: usize, way: Way) {
    let name = |number: usize| PathBuf::from(format!("{}.{number}", log.display()));
    if way == Way::Rename {
        fs::rename(log, name(number)).unwrap();
    } else {
        fs::copy(log, name(number)).unwrap();
        OpenOptions::new().write(true).truncate(true).open(log).unwrap();
    }
    if let Some(old) = number.checked_sub(KEPT) {
        let _ = fs::remove_file(name(old));
    }
}

fn logrotate(logs: &Path, is_over: &AtomicBool) -> usize {
    let settings = logs.with_file_name("logrotate.conf");
    let log = logs.join("a.log");
    let rules = "rotate 1000\n  size 1\n  compress\n  delaycompress\n  nocreate\n  missingok\n  su root root";
    fs::write(&settings, format!("{} {{\n  {rules}\n}}\n", log.display())).unwrap();
    let mut rotations = 0;
    let mut next = Instant::now() + ROTATE_EVERY;
    while !is_over.load(Relaxed) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next += ROTATE_EVERY;
        let state = logs.with_file_name("logrotate.state");
        let run = Command::new("logrotate").arg("--force").arg("--state").arg(state).arg(&settings).output();
        let run = run.expect("logrotate is not installed: run `make setup-test`");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        rotations += 1;
    }
    rotations
}

/// The records that the gateway has accepted since it was started.
fn accepted(gateway: &Gateway) -> u64 {
    let name = "tidegate_items_accepted_total{source=\"file\"";
    let metrics = gateway.metrics();
    metrics.iter().filter(|(metric, _)| metric.starts_with(name)).map(|(_, value)| *value as u64).sum()
}

/// How often each line is in the lake.
struct Seen(Vec<u8>);

impl Seen {
    /// Waits until no more records come, and all are stored.
    fn when_complete(gateway: &Gateway, lines: usize) -> Seen {
        let mut last = (accepted(gateway), Instant::now());
        until(AT_LAST, "the files to be read", || {
            let now = accepted(gateway);
            if now != last.0 {
                last = (now, Instant::now());
            }
            last.1.elapsed() >= SETTLED
        });
        gateway.at_rest(AT_LAST);
        Seen::of(gateway, lines)
    }

    fn of(gateway: &Gateway, lines: usize) -> Seen {
        let mut seen = vec![0_u8; lines];
        let data = gateway.data();
        let mut command = Command::new(binary());
        command.args(["lake", "cat", "logs", "--format", "ndjson", "--data"]).arg(data);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut rows = BufReader::with_capacity(1 << 20, child.stdout.take().unwrap());
        let mut row = Vec::new();
        while rows.read_until(b'\n', &mut row).unwrap() > 0 {
            let text = std::str::from_utf8(&row).unwrap();
            let (_, rest) = text.split_once("\"line ").unwrap_or_else(|| panic!("no line: {text}"));
            let number: usize = rest[..10].parse().unwrap();
            seen[number] = seen[number].saturating_add(1);
            row.clear();
        }
        assert!(child.wait().unwrap().success());
        Seen(seen)
    }

    fn lost(&self) -> usize {
        self.0.iter().filter(|count| **count == 0).count()
    }

    fn twice(&self) -> usize {
        self.0.iter().filter(|count| **count > 1).count()
    }
}
