//! A body of either version that passes the check converts to OTLP that passes the check for metrics, with every loss
//! counted; likewise its rest without native histograms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_wire::otlp::prometheus::from_remote_write;
use tidegate_wire::otlp::{self, Signal};
use tidegate_wire::output::SliceOutput;
use tidegate_wire::remote_write::{
    Limits, Symbols, Version, check, has_histograms, view, without_histograms,
};

/// Spans of a native histogram may say much of buckets that are not there: what needs more is left out.
const LARGEST: usize = 1 << 20;

fuzz_target!(|raw: &[u8]| {
    let mut space = vec![0; LARGEST];
    for version in [Version::V1, Version::V2] {
        let mut symbols = Symbols::new();
        let Ok(counts) = check(version, raw, &Limits::default(), &mut symbols) else { continue };
        let request = view(version, raw, &mut symbols).expect("what is accepted can be seen");
        if let Ok(said) = from_remote_write(request, &mut space) {
            let there = otlp::check(Signal::Metrics, &space[..said.bytes]).expect("what is said is valid");
            assert_eq!(there.items, said.points);
            assert_eq!(said.points + said.dropped, counts.samples + counts.histograms);
            assert!(said.exemplars + said.dropped_exemplars <= counts.exemplars);
        }

        let mut out = SliceOutput::new(&mut space);
        let Ok(left_out) = without_histograms(version, raw, &mut out) else { continue };
        let len = out.len();
        if left_out.remaining == 0 {
            continue;
        }
        let left = check(version, &space[..len], &Limits::default(), &mut Symbols::new());
        let left = left.expect("what is left is valid");
        assert_eq!((left.histograms, left_out.histograms), (0, counts.histograms));
        assert_eq!(left.samples, counts.samples);
        assert!(!has_histograms(version, &space[..len]));
    }
});
