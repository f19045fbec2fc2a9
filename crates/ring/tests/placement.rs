//! Placement is that of Thanos Receive: its own code's answers to random rings, tenants, zones, shards and series, recorded and live.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

#[path = "placement/case.rs"]
mod case;
#[path = "placement/generate.rs"]
mod generate;
#[path = "placement/live.rs"]
mod live;

use case::{Recorded, compare};

/// The output of `live::record`: a case and its answer per line.
const RECORDED: &str = include_str!("placement/recorded.jsonl");

#[test]
fn placement_is_that_of_recorded_answers() {
    let (mut placed, mut sharded, mut refused) = (0, 0, 0);
    for (line, text) in RECORDED.lines().enumerate() {
        let Recorded { case, answer } = serde_json::from_str::<Recorded>(text).unwrap().lengthened();
        let outcome = compare(&case, &answer).unwrap_or_else(|error| panic!("line {}: {error}", line + 1));
        placed += outcome.placed;
        sharded += outcome.sharded;
        refused += outcome.refused;
    }
    assert!(placed > 1000 && sharded > 200 && refused > 100, "{placed} {sharded} {refused}");
}
