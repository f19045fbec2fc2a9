//! One sample in each request, as fast as they come: what a request costs beside its bytes is charged too.
//! (A low rate that takes more memory than a high one, Fluent Bit #9536.)

use crate::support::{MIB, Storm, alone, phase};
use serde_json::json;
use std::time::Duration;
use tidegate_load::{Behaviour, LoadProfile, OnRefused, RunLimit};

#[test]
fn one_item_at_a_time() {
    let _alone = alone();
    let mut storm = Storm::start(64 * MIB, 2000, &json!({}));
    // Half of the time with nobody to send it to, so that it piles up.
    storm.sink.set(Behaviour::Stall);
    let tiny = LoadProfile {
        connections: 200,
        series_per_request: 1,
        limit: RunLimit::Time(phase() * 2),
        on_refused: OnRefused::Retry { at_most: Duration::from_millis(200) },
        ..LoadProfile::default()
    };
    let cpu = storm.gateway.process().cpu();
    let driving = storm.drive(&tiny);
    // The storm's length, not a wait for something to happen.
    std::thread::sleep(phase());
    storm.sink.set(Behaviour::Healthy);
    let mut report = driving.join().unwrap();
    let cpu = storm.gateway.process().cpu() - cpu;
    println!(
        "{report}\n{:?} of CPU for each request",
        cpu / u32::try_from(report.accepted().max(1)).unwrap()
    );
    assert_eq!(report.failed, 0, "{report}");
    assert!(report.accepted() > 1000, "{report}");
    storm.is_over(&report.acked);
    storm.is_normal(&mut report.acked, 1 << 40);
}
