//! A body that passes the 1.0 check is one that prost decodes, with as many items; it can be split,
//! translated to 2.0 and back, and what comes out passes as well, with nothing lost but what is counted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use tidegate_wire::output::SliceOutput;
use tidegate_wire::remote_write::{Limits, Symbols, Version, check, inspect, repair, split, translate};

#[path = "../../crates/wire/src/remote_write/tests/oracle.rs"]
#[allow(dead_code, unused, reason = "others use the rest of it")]
mod oracle;

fuzz_target!(|raw: &[u8]| {
    let limits = Limits::default();
    let mut symbols = Symbols::new();
    // The accepted part of a body, once repaired, is accepted by the strictest receiver.
    if let Ok(found) = inspect(Version::V1, raw, &limits, &mut symbols) {
        let mut space = vec![0; raw.len()];
        let mut out = SliceOutput::new(&mut space);
        repair(Version::V1, raw, &limits, &mut symbols, &mut out).expect("it is no longer than it was");
        let len = out.len();
        let counts = check(Version::V1, &space[..len], &limits, &mut symbols).expect("it was repaired");
        assert_eq!(counts.items(), found.counts.items());
    }
    let Ok(counts) = check(Version::V1, raw, &limits, &mut symbols) else {
        let _ = split::split(raw, split::Limit { samples: 1, bytes: 1 }).count();
        return;
    };
    let decoded = oracle::WriteRequest::decode(raw).expect("what is accepted is a valid message");
    let sum =
        |count: fn(&oracle::SeriesV1) -> usize| decoded.timeseries.iter().map(count).sum::<usize>() as u64;
    assert_eq!(counts.series, decoded.timeseries.len() as u64);
    assert_eq!(counts.samples, sum(|series| series.samples.len()));
    assert_eq!(counts.histograms, sum(|series| series.histograms.len()));
    assert_eq!(counts.exemplars, sum(|series| series.exemplars.len()));
    assert_eq!(counts.metadata, decoded.metadata.len() as u64);

    let mut pieces = 0;
    for piece in split::split(raw, split::Limit { samples: 2, bytes: 200 }) {
        pieces +=
            check(Version::V1, &raw[piece.range], &limits, &mut symbols).expect("pieces are valid").series;
    }
    assert_eq!(pieces, counts.series);

    let mut space = vec![0; 16 * raw.len() + 1024];
    let mut out = SliceOutput::new(&mut space);
    let mut scratch = translate::Scratch::new(raw.len(), raw.len());
    let _dropped = translate::to_v2(raw, &mut scratch, &mut out).expect("there is room");
    let len = out.len();
    let there = check(Version::V2, &space[..len], &limits, &mut symbols).expect("translations are valid");
    assert_eq!(there.samples, counts.samples);
    assert_eq!(there.histograms, counts.histograms);
    assert_eq!(there.exemplars, counts.exemplars);
});
