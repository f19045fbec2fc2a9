//! P1, P2: 200 connections at full speed while the sink is healthy, stalled, failing, and gone: the memory
//! holds, everybody is answered, and everything acknowledged arrives once the sink is back.

use crate::support::{MIB, Storm, alone, full_speed, phase};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;
use tidegate_load::remote_write::Version;
use tidegate_load::{Behaviour, LoadProfile};

const CONNECTIONS: usize = 200;

const WEATHER: [Behaviour; 6] = [
    Behaviour::Healthy,
    Behaviour::Stall,
    Behaviour::Status { code: 503, retry_after: None },
    Behaviour::Refuse,
    Behaviour::Status { code: 429, retry_after: Some(1) },
    Behaviour::Healthy,
];

fn try_every_behaviour(memory: u64, settings: &Value, version: Version, each: Duration) {
    let _alone = alone();
    let mut storm = Storm::start(memory, 40_000, settings);
    let length = each * u32::try_from(WEATHER.len()).unwrap();
    let driving = storm.drive(&LoadProfile { version, ..full_speed(CONNECTIONS, length) });
    for mood in WEATHER {
        storm.sink.set(mood);
        // The storm's length, not a wait for something to happen.
        sleep(each);
        println!("{mood:?}: peak {:.1} MiB", storm.gateway.hwm() as f64 / MIB as f64);
    }
    let mut report = driving.join().unwrap();
    println!("{report}");
    assert_eq!(report.failed, 0, "everybody is answered: {report}");
    assert!(report.answers.keys().all(|status| [204, 503].contains(status)), "{report}");
    assert_eq!(report.with_retry_after, report.refused(), "every refusal says when to return: {report}");
    let verdict = storm.is_over(&report.acked);
    println!("{verdict:?}");
    assert!(verdict.acked > 0);
    storm.is_normal(&mut report.acked, 1 << 40);
}

#[test]
fn memory_holds_whatever_the_sink_does() {
    try_every_behaviour(64 * MIB, &json!({}), Version::V1, phase());
}

/// With the least memory there is, the same holds.
#[test]
fn half_the_memory_is_enough() {
    try_every_behaviour(32 * MIB, &json!({ "limits": { "connections": 300 } }), Version::V1, phase() / 3);
}

/// The same in version 2.0, and with a lake beside the sink, which goes on undisturbed.
#[test]
fn a_lake_continues_beside_a_slow_sink() {
    let lake = json!({ "sinks": { "lake": { "type": "lake", "file_age": "2s" } } });
    try_every_behaviour(64 * MIB, &lake, Version::V2, phase() / 2);
}
