//! A large request now and then among many small ones: what it took is given back, and does not stay with whoever
//! comes next. (Pools that keep the largest buffer they have seen, Mimir #8044, #9666.)

use crate::crowd::{PATIENCE, block_on, bodies};
use crate::support::{MIB, Storm, TIMELINE, alone, phase};
use serde_json::json;
use std::time::Instant;
use tidegate_load::remote_write::Version;
use tidegate_load::{AcknowledgedSamples, Connection, LoadProfile, RunLimit, SeriesModel};

/// Series of a large request: about 12 MiB of them.
const LARGE: usize = 38_000;
/// The most of them that are sent.
const MOST: u64 = 60;
/// The allowed growth of resident memory, in bytes.
const RATCHET: u64 = 4 * MIB;

#[test]
fn buffers_shrink_after_large_requests() {
    let _alone = alone();
    let mut storm = Storm::start(64 * MIB, 2000, &json!({}));
    let mut acked = AcknowledgedSamples::none(storm.model.len());
    storm.is_normal(&mut acked, 0);
    let small = LoadProfile {
        first: 1,
        connections: 8,
        series_per_request: 8,
        limit: RunLimit::Time(phase()),
        ..LoadProfile::default()
    };
    let report = storm.drive(&small).join().unwrap();
    acked.merge(0, &report.acked);
    storm.is_over(&acked);
    let before = storm.gateway.process().private();

    let large = SeriesModel::new(99, LARGE, TIMELINE);
    let body = &bodies(&large, 1)[0];
    let target = storm.gateway.target();
    let driving = storm.drive(&LoadProfile { first: 1 << 30, limit: RunLimit::Time(phase() * 3), ..small });
    let (mut taken, begun) = (0, Instant::now());
    block_on(async {
        // Each on a connection of its own, so that any of them could be left with it.
        while taken < MOST && begun.elapsed() < phase() * 3 {
            let mut connection = Connection::open(&target, PATIENCE).await.unwrap();
            let answer = connection.write(&target, Version::V1, body, PATIENCE).await.unwrap();
            assert!([204, 503].contains(&answer.status), "{answer:?}");
            taken += u64::from(answer.status == 204);
        }
    });
    let report = driving.join().unwrap();
    println!("{taken} requests with {LARGE} series were taken; small ones: {report}");
    assert!(taken > 0);
    assert_eq!(report.failed, 0, "{report}");
    acked.merge(0, &report.acked);
    // Series of the large requests are none of the model's, so only what was sent besides is compared.
    storm.gateway.at_rest(crate::support::drained());
    storm.is_sound();
    let after = storm.gateway.process().private();
    println!("{:.1} MiB private before, {:.1} after", before as f64 / MIB as f64, after as f64 / MIB as f64);
    assert!(after <= before + RATCHET, "{before} bytes before, {after} after");
    let missing = tidegate_load::compare(&storm.model, &acked, &storm.sink.report());
    assert!(missing.nothing_lost(), "{missing:?}");
}
