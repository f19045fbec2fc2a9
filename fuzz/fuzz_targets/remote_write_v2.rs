//! A body that passes the 2.0 check is one that prost decodes, with as many items; translated to 1.0 it
//! passes as well, and no item is lost.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use tidegate_wire::output::{Counter, SliceOutput};
use tidegate_wire::remote_write::{
    Limits, Request, Symbols, Version, check, inspect, repair, translate, view,
};

#[path = "../../crates/wire/src/remote_write/tests/oracle.rs"]
#[allow(dead_code, unused, reason = "others use the rest of it")]
mod oracle;

fuzz_target!(|raw: &[u8]| {
    let limits = Limits::default();
    let mut symbols = Symbols::new();
    // The accepted part of a body, once repaired, is accepted by the strictest receiver.
    if let Ok(found) = inspect(Version::V2, raw, &limits, &mut symbols) {
        let mut space = vec![0; raw.len()];
        let mut out = SliceOutput::new(&mut space);
        repair(Version::V2, raw, &limits, &mut symbols, &mut out).expect("it is no longer than it was");
        let len = out.len();
        let counts = check(Version::V2, &space[..len], &limits, &mut symbols).expect("it was repaired");
        assert_eq!(counts.items(), found.counts.items());
    }
    let Ok(counts) = check(Version::V2, raw, &limits, &mut symbols) else {
        if let Ok(Request::V2(request)) = view(Version::V2, raw, &mut symbols) {
            let _ = translate::to_v1(request, &mut Counter::default());
        }
        return;
    };
    let decoded = oracle::RequestV2::decode(raw).expect("what is accepted is a valid message");
    let sum =
        |count: fn(&oracle::SeriesV2) -> usize| decoded.timeseries.iter().map(count).sum::<usize>() as u64;
    assert_eq!(counts.series, decoded.timeseries.len() as u64);
    assert_eq!(counts.symbols, decoded.symbols.len() as u64);
    assert_eq!(counts.samples, sum(|series| series.samples.len()));
    assert_eq!(counts.histograms, sum(|series| series.histograms.len()));
    assert_eq!(counts.exemplars, sum(|series| series.exemplars.len()));

    let Ok(Request::V2(request)) = view(Version::V2, raw, &mut symbols) else { unreachable!() };
    let mut counter = Counter::default();
    translate::to_v1(request, &mut counter).expect("counting needs no room");
    // References make a small body mean much: larger ones cost time and say nothing new.
    if counter.bytes() > 1 << 20 {
        return;
    }
    let mut space = vec![0; counter.bytes() as usize];
    let mut out = SliceOutput::new(&mut space);
    translate::to_v1(request, &mut out).expect("what was counted is what is written");
    assert_eq!(out.len(), counter.bytes() as usize);
    let back = check(Version::V1, &space, &limits, &mut Symbols::new()).expect("translations are valid");
    assert_eq!((back.series, back.samples), (counts.series, counts.samples));
    assert_eq!((back.histograms, back.exemplars), (counts.histograms, counts.exemplars));
});
