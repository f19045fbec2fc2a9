//! P1: a journal much larger than the memory: the gateway listens at once, and its memory stays where it is
//! while the backlog drains and new data comes in.

use crate::support::{MIB, Storm, alone, driving, long};
use serde_json::json;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_load::{Behaviour, Check, LoadProfile, RunLimit, SeriesModel, VerifyingReceiver};
use tidegate_tests::{SOON, until};

/// How soon it listens, on a machine that has other things to do.
const LISTENING: Duration = Duration::from_secs(10);

#[test]
fn a_backlog_is_no_burden() {
    let _alone = alone();
    let backlog = if long() { 5 << 30 } else { 384 * MIB };
    let settings = json!({ "journal": { "durability": "page_cache" } });
    let mut storm = Storm::plan(64 * MIB, 1, &settings);
    storm.limit();
    // Bodies are replayed to be fast, so the sink counts; that every sample arrives is tried elsewhere.
    storm.sink = VerifyingReceiver::start(Behaviour::Refuse, Check::Nothing).unwrap();
    let upstream = json!({ "type": "prometheus_remote_write", "url": storm.sink.target().to_string() });
    let all = |journal: &str| {
        json!({
            "memory": 64 * MIB, "limits": { "connections": 1000 }, "journal": { "durability": journal },
            "sinks": { "up": upstream },
        })
    };
    storm.gateway.configure(all("page_cache"));
    storm.gateway.start();
    let model = Arc::new(SeriesModel::new(5, 16_000, crate::support::TIMELINE));
    let profile = LoadProfile {
        connections: 8,
        series_per_request: 2000,
        prebuilt: Some(1),
        limit: RunLimit::Requests(backlog / 50_000),
        deadline: Duration::from_secs(900),
        ..LoadProfile::default()
    };
    let report = driving(&storm.gateway.target(), &model, &profile).join().unwrap();
    println!("{report}");
    let status = storm.gateway.status();
    let journal = status["journal"]["bytes"].as_u64().unwrap();
    println!("a journal of {} MiB, {} segments", journal / MIB, status["journal"]["segments"]);
    assert!(journal >= backlog * 9 / 10);
    storm.gateway.kill9();

    let begun = Instant::now();
    storm.gateway.launch();
    until(SOON, "the gateway to listen", || TcpStream::connect(storm.gateway.http()).is_ok());
    let listening = begun.elapsed();
    storm.gateway.kill9();
    println!("listening after {listening:?}");
    assert!(listening < LISTENING);

    storm.gateway.start();
    let before = storm.gateway.hwm();
    storm.sink.set(Behaviour::Healthy);
    let meanwhile = LoadProfile {
        prebuilt: None,
        limit: RunLimit::Time(Duration::from_secs(3)),
        rate: Some(200.0),
        series_per_request: 100,
        ..profile
    };
    let more = driving(&storm.gateway.target(), &model, &meanwhile).join().unwrap();
    assert_eq!((more.refused(), more.failed), (0, 0), "{more}");
    let status = storm.gateway.at_rest(Duration::from_secs(600));
    println!(
        "{:.1} MiB before, {:.1} MiB at most",
        before as f64 / MIB as f64,
        storm.gateway.hwm() as f64 / MIB as f64
    );
    storm.is_sound();
    let delivered = status["books"]["sinks"][0]["delivered"].as_u64().unwrap();
    assert!(delivered >= report.samples + more.samples, "{delivered}");
}
