//! The hour turns for everybody in the same second: what is written by the hour turns over within its slice, and
//! nobody notices. (All tenants that truncate at once, Thanos #7255.)

use crate::support::{MIB, Storm, TIMELINE, alone};
use serde_json::json;
use tidegate_load::{LoadProfile, OnRefused, RunLimit};

const SERIES: usize = 5000;
const PASSES: u64 = 20;
const HOUR_MS: i64 = 3_600_000;

#[test]
fn the_hour_turns() {
    let _alone = alone();
    let lake = json!({ "sinks": { "lake": { "type": "lake", "file_age": "2s" } } });
    let mut storm = Storm::start(64 * MIB, SERIES, &lake);
    // In the middle of the passes the next hour begins.
    let turn = (HOUR_MS - TIMELINE.base_ms % HOUR_MS) / TIMELINE.interval_ms;
    let profile = LoadProfile {
        first: u64::try_from(turn).unwrap() - PASSES / 2,
        limit: RunLimit::Passes(PASSES),
        on_refused: OnRefused::Count,
        ..LoadProfile::default()
    };
    let mut report = storm.drive(&profile).join().unwrap();
    println!("{report}");
    assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
    storm.is_over(&report.acked);
    let rows = storm.gateway.lake_rows("metric_points").len() as u64;
    assert_eq!(rows, SERIES as u64 * PASSES, "rows in the lake");
    storm.is_normal(&mut report.acked, 1 << 40);
}
