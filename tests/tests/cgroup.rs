//! Promise: without `memory`, what is chosen in a cgroup and what the kernel needs beside it fit the limit: nothing is
//! killed there, whatever is sent. Needs root and a memory controller, and says so where it lacks them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::{LoadProfile, OnRefused, RunLimit, SeriesModel, Timeline, drive_blocking};
use tidegate_tests::{Cgroup, Gateway, SOON, binary, finish};

const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 };
const MIB: u64 = 1 << 20;

fn lives_in(limit: u64) {
    // The journal's pages are what the kernel keeps beside the process: more than there is room for.
    let mut gateway = Gateway::new(json!({
        "sinks": {"lake": {"type": "lake", "file_age": "1s"}, "nowhere": {"type": "blackhole"}},
        "journal": {"quota": "1GiB"},
    }));
    if !gateway.limit_memory(limit) {
        return;
    }
    gateway.start();
    let memory = gateway.status()["memory"]["limit"].as_u64().unwrap();
    let config = gateway.config();
    let mut plan = gateway.cgroup().unwrap().command(&binary());
    let plan = finish(plan.args(["plan", "--config", config.to_str().unwrap()])).succeeded();
    let first = plan.lines().next().unwrap_or_default();
    println!("{first}");
    assert!(first.contains(&format!("memory {}MiB: the cgroup's limit", memory / MIB)), "{plan}");
    assert!(memory <= limit / 4 * 3 && memory >= limit / 2, "{memory} of {limit}");

    // Many connections in the middle of a head, and a flood beside them: fewer than there may be in all.
    let address = gateway.http();
    let held: Vec<TcpStream> = (0..600)
        .map_while(|_| {
            let mut stream = TcpStream::connect(address).ok()?;
            stream.write_all(b"POST /api/v1/write HTTP/1.1\r\nHost: h\r\n").ok()?;
            Some(stream)
        })
        .collect();
    let model = Arc::new(SeriesModel::new(7, 20_000, TIMELINE));
    let on_refused = OnRefused::Retry { at_most: Duration::from_millis(50) };
    let limit_of_load = RunLimit::Time(Duration::from_secs(6));
    let profile = LoadProfile {
        limit: limit_of_load,
        on_refused,
        series_per_request: 2_000,
        connections: 32,
        ..LoadProfile::default()
    };
    let report = drive_blocking(&gateway.target(), &model, &profile).unwrap();
    println!("{} connections held, {report}", held.len());
    assert!(report.samples > 0);
    drop(held);
    gateway.at_rest(SOON * 4);
    gateway.books_close();
    let hwm = gateway.hwm();
    println!("at most {} MiB resident of {} MiB in a cgroup of {} MiB", hwm / MIB, memory / MIB, limit / MIB);
    assert!(hwm <= memory, "{hwm} bytes were resident");
    assert_eq!(gateway.cgroup().map_or(0, Cgroup::killed), 0);
    assert_eq!(gateway.term(), 0);
}

#[test]
fn the_default_lives_in_64_mib() {
    lives_in(64 * MIB);
}

#[test]
fn the_default_lives_in_160_mib() {
    lives_in(160 * MIB);
}
