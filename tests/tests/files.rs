//! The source `file`: numbered lines come into the lake once each, whatever happens to the files and to the gateway.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tidegate_tests::{Gateway, SOON, until};

/// The counter of the records of the source.
const ACCEPTED: &str = "tidegate_items_accepted_total{source=\"file\"";

/// A gateway that reads `*.log*` of a folder of its own into a lake.
struct Reader {
    gateway: Gateway,
    logs: PathBuf,
}

impl Reader {
    fn new(memory: &str, more: &Value) -> Reader {
        let gateway = Gateway::new(json!({}));
        let logs = gateway.folder().join("logs");
        fs::create_dir(&logs).unwrap();
        let mut input = json!({"include": [format!("{}/*.log*", logs.display())]});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        gateway.configure(json!({
            "memory": memory,
            "sources": {"file": {"inputs": {"main": input}}},
            "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
        }));
        Reader { gateway, logs }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.logs.join(name)
    }

    /// The records that it has given to the journal.
    fn accepted(&self) -> usize {
        let metrics = self.gateway.metrics();
        let accepted = metrics.iter().filter(|(name, _)| name.starts_with(ACCEPTED));
        accepted.map(|(_, value)| *value as usize).sum()
    }

    /// Waits until so many records are in the lake; and checks that these are the lines, once each.
    fn expect(&self, mut lines: Vec<String>) {
        lines.sort();
        until(SOON, "the lines to be read", || self.gateway.lake_rows("logs").len() >= lines.len());
        self.gateway.at_rest(SOON);
        let rows = self.gateway.lake_rows("logs");
        let mut found: Vec<String> =
            rows.iter().map(|row| row["body"].as_str().unwrap().to_owned()).collect();
        found.sort();
        let missing: Vec<_> =
            lines.iter().filter(|line| found.binary_search(line).is_err()).take(5).collect();
        let twice: Vec<_> =
            found.windows(2).filter(|two| two[0] == two[1]).map(|two| &two[0]).take(5).collect();
        let other: Vec<_> = found.iter().filter(|line| lines.binary_search(line).is_err()).take(5).collect();
        let all = format!("{} rows for {} lines", found.len(), lines.len());
        assert!(found == lines, "{all}; missing {missing:?}; twice {twice:?}; other {other:?}");
    }
}

fn numbered(from: u32, to: u32) -> Vec<String> {
    (from..to).map(|n| format!("line {n:07} {}", "x".repeat(200))).collect()
}

fn append(path: &Path, lines: &[String]) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
}

/// Renames, copies with truncation and kills, one after the other, with 64 MiB of memory.
#[test]
fn every_line_once_through_rotations_and_kills() {
    let mut reader = Reader::new("64MiB", &json!({}));
    reader.gateway.start();
    let mut all = Vec::new();
    for round in 0..6_u32 {
        let lines = numbered(round * 3000, (round + 1) * 3000);
        append(&reader.path("a.log"), &lines[..1500]);
        if round % 3 == 2 {
            reader.gateway.kill9();
        }
        if round % 2 == 0 {
            fs::rename(reader.path("a.log"), reader.path(&format!("a.log.{round}"))).unwrap();
        } else {
            fs::copy(reader.path("a.log"), reader.path(&format!("a.log.{round}"))).unwrap();
            OpenOptions::new().write(true).truncate(true).open(reader.path("a.log")).unwrap();
        }
        append(&reader.path("a.log"), &lines[1500..]);
        if round % 3 == 2 {
            reader.gateway.start();
        }
        all.extend(lines);
    }
    reader.expect(all);
}

/// A program writes and rotates by renaming all the time; the gateway is killed again and again.
#[test]
fn every_line_once_while_the_gateway_is_killed_in_a_loop() {
    const ROTATE_AFTER: usize = 4_000;
    let mut reader = Reader::new("64MiB", &json!({}));
    let lines = numbered(0, 60_000);
    let (path, to_write) = (reader.path("a.log"), lines.clone());
    let rotated = reader.logs.clone();
    let writer = std::thread::spawn(move || {
        for (number, part) in to_write.chunks(ROTATE_AFTER).enumerate() {
            for few in part.chunks(100) {
                append(&path, few);
                // A pace that lasts for several lives of the gateway.
                std::thread::sleep(Duration::from_millis(10));
            }
            fs::rename(&path, rotated.join(format!("a.log.{number}"))).unwrap();
        }
    });
    let mut lives = 0;
    while !writer.is_finished() {
        reader.gateway.start();
        let killed_at = Instant::now() + Duration::from_millis(300 + 170 * (lives % 4));
        until(SOON, "the time to be killed", || Instant::now() >= killed_at);
        reader.gateway.kill9();
        lives += 1;
    }
    writer.join().unwrap();
    assert!(lives >= 3, "it was killed {lives} times");
    reader.gateway.start();
    reader.expect(lines);
    reader.gateway.books_close();
}

/// 10,000 files that nobody writes to and 1,000 that somebody does, within 64 MiB, and next to no processor time at rest.
#[test]
fn many_files_fit_a_small_budget() {
    const IDLE: usize = 10_000;
    const ACTIVE: usize = 1_000;
    let mut gateway = Gateway::new(json!({}));
    let logs = gateway.folder().join("logs");
    fs::create_dir(&logs).unwrap();
    for n in 0..IDLE {
        fs::write(logs.join(format!("idle-{n:05}.log")), format!("idle {n}\n")).unwrap();
    }
    gateway.configure(json!({
        "memory": "64MiB",
        "limits": {"connections": 100},
        "sources": {"file": {"max_files": IDLE + ACTIVE, "inputs": {"main": {
            "include": [format!("{}/*.log", logs.display())],
            "format": "plain",
        }}}},
        "sinks": {"nowhere": {"type": "blackhole"}},
    }));
    gateway.start();
    let mut reader = Reader { gateway, logs };
    until(2 * SOON, "the idle files to be read", || reader.accepted() == IDLE);
    for round in 0..20 {
        for n in 0..ACTIVE {
            append(&reader.path(&format!("active-{n:04}.log")), &[format!("active {n} {round}")]);
        }
    }
    until(2 * SOON, "the active files to be read", || reader.accepted() == IDLE + 20 * ACTIVE);
    let budget = 64 << 20;
    let hwm = reader.gateway.process().hwm();
    println!("{} MiB were resident at most", hwm >> 20);
    assert!(hwm <= budget, "{hwm} bytes were resident");
    let (begun, before) = (Instant::now(), reader.gateway.process().cpu());
    // A listing in each ten seconds, and a look at every sixth file.
    until(SOON, "three listings", || begun.elapsed() >= Duration::from_secs(30));
    let used = reader.gateway.process().cpu().saturating_sub(before);
    println!("{used:?} of processor time in {:?}", begun.elapsed());
    // The bench measures it on a machine that does nothing else.
    assert!(used <= begun.elapsed() / 5, "{used:?} of processor time in {:?}", begun.elapsed());
    reader.gateway.books_close();
}

/// `logrotate` itself, by renaming and by copying with truncation, with compression of the older files, faster than anybody reads.
#[test]
fn every_line_once_with_logrotate() {
    for way in ["create", "copytruncate"] {
        let mut reader = Reader::new("64MiB", &json!({"compressed": true}));
        reader.gateway.start();
        let settings = reader.gateway.folder().join("logrotate.conf");
        let log = reader.path("a.log");
        let text = format!(
            "{} {{\n  rotate 20\n  size 1\n  compress\n  delaycompress\n  {way}\n  su root root\n}}\n",
            log.display()
        );
        fs::write(&settings, text).unwrap();
        let mut all = Vec::new();
        for round in 0..6_u32 {
            let lines = numbered(round * 2_000, (round + 1) * 2_000);
            append(&log, &lines);
            all.extend(lines);
            rotate(&settings, &reader.gateway.folder().join("logrotate.state"));
        }
        reader.expect(all);
        let compressed = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|end| end == "gz");
        let compressed = fs::read_dir(&reader.logs).unwrap().map(Result::unwrap).filter(compressed).count();
        assert!(compressed >= 4, "logrotate compressed {compressed} files");
    }
}

fn rotate(settings: &Path, state: &Path) {
    let run = Command::new("logrotate").arg("--force").arg("--state").arg(state).arg(settings).output();
    let run = run.expect("logrotate is not installed: run `make setup-test`");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
