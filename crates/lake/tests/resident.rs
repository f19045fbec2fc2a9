//! Promise: the slice is what the process grows by, zstd's own memory and what the allocator wastes between
//! live objects included.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it measured")]

#[path = "support/body.rs"]
mod body;
#[path = "support/nasty.rs"]
mod nasty;
#[path = "support/nasty_otlp.rs"]
mod nasty_otlp;
#[path = "support/otlp.rs"]
mod otlp;

use nasty::{NOW_NS, bodies};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use tidegate_arena::heap::{CountingAllocator, JEMALLOC, Jemalloc};
use tidegate_lake::{BatchPosition, Writer, WriterSettings};
use tidegate_wire::otlp::Signal;
use tidegate_wire::remote_write::{Symbols, Version, view};

#[global_allocator]
static ALLOCATOR: CountingAllocator<Jemalloc> = CountingAllocator::new(JEMALLOC);

/// A line of `/proc/self/status` in bytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches(|character: char| !character.is_ascii_digit()).parse::<u64>().unwrap() * 1024
}

/// Which part a process that this test starts plays, and where the bodies are.
const MAKE: &str = "TIDEGATE_TEST_MAKE_BODIES";
const PUSH: &str = "TIDEGATE_TEST_PUSH_BODIES";
const LARGEST: usize = 4 << 20;
/// Stands before bodies of remote write; before the others stands their signal.
const REMOTE_WRITE: u64 = 100;

#[test]
fn the_process_grows_by_no_more_than_the_slice() {
    if let Ok(path) = std::env::var(MAKE) {
        return make_bodies(Path::new(&path));
    }
    if let Ok(path) = std::env::var(PUSH) {
        return push_bodies(Path::new(&path));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bodies");
    // One process makes them and another takes them, so that what making them leaves behind is not measured.
    run(MAKE, &path);
    println!("{}", run(PUSH, &path));
}

fn run(part: &str, path: &Path) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .arg("--nocapture")
        .env(part, path)
        // Free pages that the allocator keeps for a while are its owner's to declare.
        .env("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{printed}{}", String::from_utf8_lossy(&child.stderr));
    printed
}

fn make_bodies(path: &Path) {
    let mut file = File::create(path).unwrap();
    let remote_write = bodies(1).map(|body| (REMOTE_WRITE, body.0));
    let otlp = nasty_otlp::bodies(1).map(|(signal, raw)| (signal as u64, raw));
    for (kind, body) in remote_write.chain(otlp) {
        file.write_all(&kind.to_le_bytes()).unwrap();
        file.write_all(&(body.len() as u64).to_le_bytes()).unwrap();
        file.write_all(&body).unwrap();
    }
}

fn push_bodies(path: &Path) {
    // Touched, so that it is resident before it counts.
    let mut body = vec![1; LARGEST];
    for slice in [Writer::smallest_slice(), 24 << 20] {
        let lake = tempfile::tempdir().unwrap();
        let before = status("RssAnon:");
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (writer, _) = Writer::open(WriterSettings::new(lake.path(), slice, "resident")).unwrap();
        push_all(writer, path, &mut body);
        // Of the peak, what is not code.
        let grown = (status("VmHWM:") - status("RssFile:")).saturating_sub(before);
        println!("slice {} MiB: {:.2} MiB resident for it", slice >> 20, grown as f64 / 1048576.0);
        assert!(grown <= slice, "{grown} bytes in a slice of {slice}");
    }
}

fn push_all(mut writer: Writer, path: &Path, body: &mut [u8]) {
    let mut file = File::open(path).unwrap();
    let mut sequence = 0;
    let (mut kind, mut length) = ([0; 8], [0; 8]);
    while file.read_exact(&mut kind).is_ok() {
        file.read_exact(&mut length).unwrap();
        let body = &mut body[..u64::from_le_bytes(length) as usize];
        file.read_exact(body).unwrap();
        let position = BatchPosition { sequence, received_at_ns: NOW_NS };
        let signals = [Signal::Traces, Signal::Logs, Signal::Metrics];
        match signals.into_iter().find(|&signal| signal as u64 == u64::from_le_bytes(kind)) {
            Some(signal) => drop(writer.push_otlp(&position, signal, body, NOW_NS).unwrap()),
            None => {
                let mut symbols = Symbols::new();
                let request = view(Version::V1, body, &mut symbols).unwrap();
                writer.push(&position, &request, NOW_NS).unwrap();
            }
        }
        sequence += 1;
    }
    writer.close_files().unwrap();
    assert_eq!(writer.durable(), Some(sequence - 1));
}
