//! A body that passes the check for metrics is one that prost decodes; its translations to remote write pass
//! the checks of both versions, with the items that the translation speaks of; and tried again with deltas added
//! up, they are the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use prost::Message;
use tidegate_wire::otlp::prometheus::{
    Deltas, Scratch, ScratchCapacity, Settings, points_to_v1, points_to_v2, to_v1, to_v2,
};
use tidegate_wire::otlp::{self, Signal};
use tidegate_wire::output::SliceOutput;
use tidegate_wire::remote_write::{Limits, Symbols, Version, check};

/// Histograms make much of little, each bucket a series: what needs more is left out.
const LARGEST: usize = 1 << 20;

fuzz_target!(|raw: &[u8]| {
    let capacity =
        ScratchCapacity { labels: 64, label_bytes: 8 << 10, symbols: 4096, symbol_bytes: 64 << 10 };
    let (settings, mut scratch) = (Settings::default(), Scratch::new(capacity));
    let mut space = vec![0; LARGEST];
    let Ok(counts) = otlp::check(Signal::Metrics, raw) else {
        let _ = to_v1(raw, &settings, &mut scratch, &mut SliceOutput::new(&mut space));
        let mut raw = raw.to_vec();
        if let Ok(retained) = otlp::retain_valid(Signal::Metrics, &mut raw) {
            assert_eq!(otlp::check(Signal::Metrics, &raw[..retained.len]), Ok(retained.counts));
        }
        return;
    };
    if let Err(error) = ExportMetricsServiceRequest::decode(raw) {
        // It stops at a hundred messages in each other, and here is capacity for a thousand arrays and maps.
        assert!(
            error.to_string().contains("recursion limit"),
            "what is accepted is a valid message: {error}"
        );
    }
    for version in [Version::V1, Version::V2] {
        let mut out = SliceOutput::new(&mut space);
        let made = match version {
            Version::V1 => to_v1(raw, &settings, &mut scratch, &mut out),
            Version::V2 => to_v2(raw, &settings, &mut scratch, &mut out),
        };
        let Ok(translated) = made else { return };
        let len = out.len();
        let there = check(version, &space[..len], &Limits::default(), &mut Symbols::new());
        let there = there.expect("translations are valid");
        let said = (translated.series, translated.samples, translated.histograms, translated.exemplars);
        assert_eq!((there.series, there.samples, there.histograms, there.exemplars), said);
        assert!(translated.dropped.points() <= counts.items);

        let mut deltas = Deltas::new(64);
        let mut tries = [0, 1].map(|_| {
            let mut space = vec![0; LARGEST];
            let (all, mut out) = (0..u64::MAX, SliceOutput::new(&mut space));
            let done = match version {
                Version::V1 => points_to_v1(raw, all, &settings, &mut scratch, Some(&mut deltas), &mut out),
                Version::V2 => points_to_v2(raw, all, &settings, &mut scratch, Some(&mut deltas), &mut out),
            };
            let len = out.len();
            space.truncate(len);
            done.ok().map(|done| (done.dropped, space))
        });
        let [first, second] = &mut tries;
        assert_eq!(first, second);
        let Some((dropped, body)) = first.take() else { return };
        check(version, &body, &Limits::default(), &mut Symbols::new()).expect("translations are valid");
        assert!(dropped.points() <= counts.items);
    }
});
