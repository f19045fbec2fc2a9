//! A step from no load to a multiple of the capacity, before a receiver that does not answer: every client gets a
//! retry delay, refusals are cheap, and the gateway recovers within seconds of the receiver. (A limiter that checks
//! periodically, OpenTelemetry Collector #8694, #4981.)

use crate::support::{MIB, Storm, alone, drained, full_speed, phase};
use serde_json::json;
use std::time::{Duration, Instant};
use tidegate_load::{Behaviour, LoadProfile};
use tidegate_tests::until;

const CONNECTIONS: usize = 400;
/// How soon everything is taken again, on a machine that has other things to do.
const RECOVERED: Duration = Duration::from_secs(20);

/// Requests taken within a second from now.
fn accepted_a_second(storm: &Storm) -> f64 {
    let accepted = || -> u64 {
        let sources = storm.gateway.status()["books"]["sources"].clone();
        sources.as_array().unwrap().iter().filter_map(|source| source["accepted"].as_u64()).sum()
    };
    let (begun, before) = (Instant::now(), accepted());
    std::thread::sleep(Duration::from_secs(1));
    (accepted() - before) as f64 / begun.elapsed().as_secs_f64()
}

#[test]
fn a_step_of_load_is_absorbed() {
    let _alone = alone();
    let mut storm =
        Storm::start(64 * MIB, 40_000, &json!({ "journal": { "quota": "64MiB", "segment": "4MiB" } }));
    let healthy = storm.drive(&full_speed(CONNECTIONS, phase()));
    let before = accepted_a_second(&storm);
    let warm = healthy.join().unwrap();
    storm.gateway.at_rest(drained());
    storm.sink.set(Behaviour::Stall);
    let refusing = phase() * 2;
    let driving = storm.drive(&LoadProfile {
        first: 1 << 40,
        ..full_speed(CONNECTIONS, Duration::from_secs(30) + refusing)
    });
    let refused = |storm: &Storm| -> u64 {
        let sources = storm.gateway.status()["books"]["sources"].clone();
        sources.as_array().unwrap().iter().filter_map(|source| source["refused"]["disk"].as_u64()).sum()
    };
    until(Duration::from_secs(20), "the journal to be full", || refused(&storm) > 0);
    let (begun, cpu) = (Instant::now(), storm.gateway.process().cpu());
    // The storm's length, not a wait for something to happen.
    std::thread::sleep(refusing);
    let cores = (storm.gateway.process().cpu() - cpu).as_secs_f64() / begun.elapsed().as_secs_f64();
    println!("refusing took {cores:.2} of a core");
    assert!(cores < 1.0, "refusing took {cores} cores");

    let back = Instant::now();
    storm.sink.set(Behaviour::Healthy);
    until(RECOVERED, "as much to be taken as before", || accepted_a_second(&storm) >= before / 2.0);
    println!("as good as before {:?} after the receiver was back", back.elapsed());
    let mut report = driving.join().unwrap();
    println!("{report}");
    assert_eq!(report.failed, 0, "everybody is answered: {report}");
    assert!(report.answers.keys().all(|status| [204, 503].contains(status)), "{report}");
    assert_eq!(report.with_retry_after, report.refused(), "every refusal says when to return: {report}");
    report.acked.merge(0, &warm.acked);
    storm.is_over(&report.acked);
    storm.is_normal(&mut report.acked, 1 << 42);
}
