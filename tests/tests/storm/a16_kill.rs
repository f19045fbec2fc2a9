//! P2: killed at random moments under load, and started again on what it left: everything acknowledged
//! arrives, in order, and twice only what was in flight.

use crate::support::{MIB, Storm, alone, driving, long};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tidegate_load::{AcknowledgedSamples, LoadProfile, OnRefused, RunLimit};

const CONNECTIONS: usize = 8;
const PER_REQUEST: usize = 100;
const SERIES: usize = 4000;
/// The most samples that the sink has in flight.
const IN_FLIGHT: u64 = 5000;

#[test]
fn a_kill_loses_nothing_acknowledged() {
    let _alone = alone();
    let kills: u64 = if long() { 500 } else { 50 };
    let settings = json!({
        // Small segments, so that kills also meet their beginnings and ends.
        "journal": { "segment": "4MiB" },
        "sinks": { "up": { "max_request_samples": IN_FLIGHT } },
    });
    let mut storm = Storm::start(64 * MIB, SERIES, &settings);
    let stop = Arc::new(AtomicBool::new(false));
    let (target, model, stopped) = (storm.gateway.target(), Arc::clone(&storm.model), Arc::clone(&stop));
    let clients = std::thread::spawn(move || {
        let (mut acked, mut failed, mut first) = (AcknowledgedSamples::none(SERIES), 0, 0);
        while !stopped.load(Relaxed) {
            let profile = LoadProfile {
                connections: CONNECTIONS,
                series_per_request: PER_REQUEST,
                first,
                limit: RunLimit::Passes(10),
                rate: Some(1000.0),
                answer_within: Duration::from_secs(10),
                on_refused: OnRefused::Retry { at_most: Duration::from_millis(20) },
                deadline: Duration::from_secs(600),
                ..LoadProfile::default()
            };
            let report = driving(&target, &model, &profile).join().unwrap();
            acked.merge(0, &report.acked);
            (failed, first) = (failed + report.failed, first + 10);
        }
        (acked, failed, first)
    });
    let mut slowest = Duration::ZERO;
    for _ in 0..kills {
        sleep(Duration::from_millis(rand::random_range(0..400)));
        let hwm = storm.gateway.hwm();
        assert!(hwm <= 64 * MIB, "{hwm}");
        storm.gateway.kill9();
        let started = Instant::now();
        storm.gateway.start();
        slowest = slowest.max(started.elapsed());
    }
    stop.store(true, Relaxed);
    let (mut acked, failed, first) = clients.join().unwrap();
    let verdict = storm.is_over(&acked);
    println!(
        "{kills} kills, ready again within {slowest:?}, {failed} requests without an answer: {verdict:?}"
    );
    println!("{:.0} duplicates for each kill", verdict.duplicates as f64 / kills as f64);
    assert_eq!(verdict.acked, first * SERIES as u64, "every request was accepted in the end");
    // Clients retry their requests in flight, and so does the sink.
    let window = (CONNECTIONS * PER_REQUEST) as u64 + IN_FLIGHT;
    assert!(verdict.duplicates <= kills * window, "{verdict:?}");
    storm.is_normal(&mut acked, first);
}
