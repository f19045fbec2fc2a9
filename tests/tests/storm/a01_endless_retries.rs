//! A receiver that refuses within a millisecond: what is in flight and what is sent again stay bounded, however long
//! it lasts and however much comes in. (Retries outside the limit on concurrency, Vector #25212.)

use crate::support::{MIB, Storm, alone, full_speed, phase};
use serde_json::json;
use std::time::{Duration, Instant};
use tidegate_load::Behaviour;
use tidegate_tests::POLL;

/// Requests a second that a sink may make to a receiver that refuses them all: backing off makes them few.
const MOST_ATTEMPTS: f64 = 100.0;

/// The most that the sinks held within `time`, in bytes.
fn held(storm: &Storm, time: Duration) -> u64 {
    let (until, mut most) = (Instant::now() + time, 0);
    while Instant::now() < until {
        let status = storm.gateway.status();
        let shares = status["memory"]["payload"]["shares"].as_array().cloned().unwrap_or_default();
        let egress = shares.iter().find(|share| share["name"] == "egress");
        most = most.max(egress.and_then(|share| share["used"].as_u64()).unwrap());
        std::thread::sleep(POLL);
    }
    most
}

#[test]
fn refusals_do_not_pile_up() {
    let _alone = alone();
    let mut storm = Storm::start(64 * MIB, 40_000, &json!({}));
    storm.sink.set(Behaviour::Status { code: 503, retry_after: None });
    let driving = storm.drive(&full_speed(100, phase() * 5));
    let begun = Instant::now();
    let early = held(&storm, phase());
    let late = held(&storm, phase() * 2);
    let attempts = storm.sink.report().requests.get(&503).copied().unwrap_or(0);
    let rate = attempts as f64 / begun.elapsed().as_secs_f64();
    println!("the sink held {early} bytes, then {late}, and tried {rate:.0} times a second");
    assert!(late <= early.max(MIB) * 3 / 2, "what is in flight grows: {early} bytes, then {late}");
    assert!(rate <= MOST_ATTEMPTS, "the receiver is hammered: {rate:.0} requests a second");
    storm.sink.set(Behaviour::Status { code: 429, retry_after: Some(1) });
    let limited = held(&storm, phase());
    assert!(limited <= early.max(MIB) * 3 / 2, "what is in flight grows: {early} bytes, then {limited}");
    storm.sink.set(Behaviour::Healthy);
    let mut report = driving.join().unwrap();
    println!("{report}");
    assert_eq!(report.failed, 0, "everybody is answered: {report}");
    storm.is_over(&report.acked);
    storm.is_normal(&mut report.acked, 1 << 40);
}
