//! P1, P3: connections that do nothing, next to nothing, or come and go: what each costs is small and
//! declared, and one too many is told so.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends where it fails, and says what it measures"
)]

#[path = "support/storm.rs"]
mod storm;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::time::Duration;
use storm::{MIB, Storm, alone, full_speed, phase};
use tidegate_load::hostile::{HostileReport, churn, idle, slow_loris};
use tidegate_load::{AcknowledgedSamples, LoadProfile, OnRefused, RunLimit};
use tidegate_tests::http::Client;
use tidegate_tests::{SOON, until};
use tokio::runtime::Builder;

const IDLE: usize = 10_000;
const SLOW: usize = 1000;
/// The most that an idle connection may keep resident, in bytes.
const PER_CONNECTION: u64 = 2 << 10;

fn block_on<F: Future>(future: F) -> F::Output {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Room for as many files as these tests and their gateways need.
fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = 16_384.min(limit.maximum.unwrap_or(u64::MAX));
    assert!(wanted > IDLE as u64 + 500, "`ulimit -Hn` is {wanted}: this test needs more");
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).unwrap();
}

fn open(storm: &Storm) -> u64 {
    storm.gateway.status()["memory"]["connections_open"].as_u64().unwrap()
}

/// 10,000 idle connections cost at most 2 KiB each, also after each has carried a request, and are no
/// obstacle to others.
#[test]
fn idle_connections_cost_next_to_nothing() {
    let _alone = alone();
    allow_files();
    let mut storm = Storm::start(64 * MIB, 1000, &json!({ "limits": { "connections": IDLE + 200 } }));
    let mut acked = AcknowledgedSamples::none(storm.model.len());
    // Whatever is made once is made before.
    storm.is_normal(&mut acked, 0);
    let before = storm.gateway.process().private();
    let connections = block_on(async {
        let connections = idle(storm.gateway.http(), IDLE).await.unwrap();
        let connections = connections.into_iter().map(|stream| stream.into_std().unwrap());
        connections.collect::<Vec<_>>()
    });
    until(SOON, "all connections to be accepted", || open(&storm) >= IDLE as u64);
    let fresh = storm.gateway.process().private().saturating_sub(before) / IDLE as u64;
    for mut stream in &connections {
        use std::io::{Read, Write};
        stream.set_nonblocking(false).unwrap();
        stream.write_all(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = [0; 1024];
        let read = stream.read(&mut answer).unwrap();
        assert!(answer[..read].starts_with(b"HTTP/1.1 404"), "each is served");
    }
    let used = storm.gateway.process().private().saturating_sub(before) / IDLE as u64;
    println!("an idle connection keeps {fresh} bytes resident, after a request {used}");
    storm.is_normal(&mut acked, 1);
    assert!(fresh.max(used) <= PER_CONNECTION);
    drop(connections);
    until(SOON, "all connections to be closed", || open(&storm) < 10);
    storm.is_normal(&mut acked, 2);
}

/// Clients that send a byte a second are answered 408 and closed; they keep nobody waiting meanwhile.
#[test]
fn slow_connections_are_answered_408() {
    let _alone = alone();
    allow_files();
    let settings =
        json!({ "limits": { "connections": SLOW + 200, "header_timeout": "3s", "body_timeout": "4s" } });
    let mut storm = Storm::start(64 * MIB, 1000, &settings);
    let steady = LoadProfile {
        connections: 4,
        rate: Some(50.0),
        on_refused: OnRefused::Count,
        limit: RunLimit::Time(Duration::from_secs(8)),
        ..LoadProfile::default()
    };
    let driving = storm.drive(&steady);
    let head = format!("POST /api/v1/write HTTP/1.1\r\nHost: {}\r\n", storm.gateway.http());
    let slow = |request: Vec<u8>, address| async move {
        slow_loris(address, SLOW / 2, &request, Duration::from_secs(1), SOON).await
    };
    let (heads, bodies) = block_on(async {
        let address = storm.gateway.http();
        let whole =
            "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\nContent-Length: 100\r\n\r\n";
        // The head at once, then the body byte by byte.
        let fast_head = fast_then_slow(address, format!("{head}{whole}"));
        tokio::join!(slow(head.repeat(3).into_bytes(), address), fast_head)
    });
    println!("slow heads: {heads:?}; slow bodies: {bodies:?}");
    let all = SLOW as u64 / 2;
    assert_eq!((heads.connected, heads.answered, heads.closed), (all, all, all), "{heads:?}");
    assert_eq!((bodies.connected, bodies.answered, bodies.closed), (all, all, all), "{bodies:?}");
    let mut report = driving.join().unwrap();
    println!("meanwhile: {report}");
    assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
    storm.is_over(&report.acked);
    storm.is_normal(&mut report.acked, 1 << 40);
}

/// Sends `head` at once and a byte a second of a body on each of many connections, and expects 408.
async fn fast_then_slow(address: std::net::SocketAddr, head: String) -> HostileReport {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut streams = idle(address, SLOW / 2).await.unwrap();
    let mut outcome = HostileReport { connected: streams.len() as u64, ..HostileReport::default() };
    for stream in &mut streams {
        stream.write_all(head.as_bytes()).await.unwrap();
    }
    let mut clients = tokio::task::JoinSet::new();
    for mut stream in streams {
        clients.spawn(async move {
            let (mut reader, mut writer) = stream.split();
            let mut answer = Vec::new();
            let sending = async {
                let mut beat = tokio::time::interval(Duration::from_secs(1));
                while writer.write_all(b"x").await.is_ok() {
                    beat.tick().await;
                }
            };
            let receiving = async { while reader.read_buf(&mut answer).await.is_ok_and(|read| read > 0) {} };
            tokio::select! {
                () = receiving => {}
                () = async { sending.await; std::future::pending().await } => {}
                () = tokio::time::sleep(SOON) => {}
            }
            answer.starts_with(b"HTTP/1.1 408")
        });
    }
    while let Some(told) = clients.join_next().await {
        let told = u64::from(told.unwrap());
        outcome.answered += told;
        outcome.closed += told;
    }
    outcome
}

/// A thousand connections a second come, say half a word, and go; nothing of them stays.
#[test]
fn connection_churn_leaks_nothing() {
    let _alone = alone();
    allow_files();
    let mut storm = Storm::start(64 * MIB, 1000, &json!({ "limits": { "connections": 4000 } }));
    let mut acked = AcknowledgedSamples::none(storm.model.len());
    storm.is_normal(&mut acked, 0);
    let driving = storm.drive(&LoadProfile { first: 1, ..full_speed(4, phase()) });
    let half = b"POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Len";
    let churned = block_on(churn(storm.gateway.http(), 1000, half, phase()));
    let report = driving.join().unwrap();
    println!("{churned:?}, meanwhile {report}");
    assert_eq!(churned.not_connected, 0);
    assert!(churned.connected as f64 > 300.0 * phase().as_secs_f64(), "{churned:?}");
    assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
    until(SOON, "all connections to be closed", || open(&storm) < 10);
    acked.merge(0, &report.acked);
    storm.is_over(&acked);
    storm.is_normal(&mut acked, 1 << 40);
}

/// One connection too many is answered 503 with a delay, and when one goes there is room for one.
#[test]
fn a_connection_beyond_the_limit_is_answered_503() {
    let _alone = alone();
    const MOST: usize = 50;
    let mut storm = Storm::start(64 * MIB, 1000, &json!({ "limits": { "connections": MOST } }));
    let mut inside = block_on(async {
        let connections = idle(storm.gateway.http(), MOST).await.unwrap();
        connections.into_iter().map(|stream| stream.into_std().unwrap()).collect::<Vec<_>>()
    });
    until(SOON, "all connections to be accepted", || open(&storm) == MOST as u64);
    for _ in 0..20 {
        let mut outside = Client::connect(storm.gateway.http()).unwrap();
        let answer = outside.answer().unwrap();
        assert_eq!(answer.status, 503, "{answer:?}");
        let delay: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!(delay >= 1 && !answer.body.is_empty(), "{answer:?}");
        assert!(outside.is_closed().unwrap());
    }
    inside.truncate(MOST - 10);
    until(SOON, "some connections to be closed", || open(&storm) == MOST as u64 - 10);
    let mut acked = AcknowledgedSamples::none(storm.model.len());
    storm.is_normal(&mut acked, 0);
    let refused = storm.gateway.status()["books"]["sources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|source| source["refused"]["connections"].as_u64())
        .sum::<u64>();
    assert_eq!(refused, 20, "the books know of them");
}
