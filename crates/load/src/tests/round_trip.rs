//! The decoder reads the generator's output.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{TIMELINE, model};
use crate::remote_write::{
    DecodeError, ReceivedSample, RequestExtras, RequestTotals, STALE, SampleBatch, Version, compress, decode,
};
use crate::{SampleKind, SeriesModel};

fn sent(batch: &SampleBatch<'_>, version: Version) -> (RequestTotals, Vec<ReceivedSample>) {
    let (mut raw, mut body, mut arrivals) = (Vec::new(), Vec::new(), Vec::new());
    batch.encode(version, &mut raw);
    compress(&raw, &mut body);
    let totals = decode(version, &body, raw.len(), &mut |arrival| arrivals.push(arrival)).unwrap();
    assert_eq!(
        decode(version, &body, raw.len() - 1, &mut |_| ()),
        Err(DecodeError::Snappy),
        "the limit holds"
    );
    (totals, arrivals)
}

proptest! {
    /// Every sample arrives under its series' key with its number and time, in order, in both versions.
    #[test]
    fn every_sample_is_read_as_written(
        (series, skip) in (1usize..60).prop_flat_map(|n| (Just(n), 0..n)),
        first in prop_oneof![0u64..3, 0u64..1 << 40],
        samples in 1u64..5,
        (exemplars, metadata, stale) in any::<(bool, bool, bool)>(),
    ) {
        let model = model(series);
        let extras = RequestExtras { exemplars, metadata, stale };
        let batch = SampleBatch { extras, ..SampleBatch::of(&model, model.range(skip..series), first, samples) };
        let mut expected = Vec::new();
        for series in batch.series {
            for number in first..first + samples {
                let bits = (number as f64).to_bits();
                expected.push(ReceivedSample { key: series.key, kind: series.kind, bits, time_ms: TIMELINE.at(number) });
            }
            if stale && series.kind == SampleKind::Float {
                let time_ms = TIMELINE.at(first + samples);
                expected.push(ReceivedSample { key: series.key, kind: SampleKind::Float, bits: STALE, time_ms });
            }
        }
        let floats = expected.iter().filter(|arrival| arrival.kind == SampleKind::Float).count() as u64;
        for version in [Version::V1, Version::V2] {
            let (totals, arrivals) = sent(&batch, version);
            prop_assert_eq!(&arrivals, &expected);
            prop_assert!(arrivals.iter().all(|a| a.is_stale() || a.number().is_some_and(|n| n >= first)));
            prop_assert_eq!(totals.series, (series - skip) as u64);
            prop_assert_eq!(totals.samples, floats);
            prop_assert_eq!(totals.histograms, expected.len() as u64 - floats);
            prop_assert_eq!(totals.metadata > 0, metadata);
            prop_assert!(exemplars || totals.exemplars == 0);
        }
    }

    /// Whatever the bytes, the decoder says so and does not panic.
    #[test]
    fn no_bytes_break_the_decoder(mut raw in proptest::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let model = model(3);
        let mut body = Vec::new();
        for version in [Version::V1, Version::V2] {
            compress(&raw, &mut body);
            let _ = decode(version, &body, 1 << 20, &mut |_| ());
            SampleBatch::of(&model, model.series(), 1, 2).encode(version, &mut raw);
            let at = at.index(raw.len());
            raw[at] = byte;
            compress(&raw, &mut body);
            let _ = decode(version, &body, 1 << 20, &mut |_| ());
        }
    }
}

/// Bodies are as large as real ones: nine labels about 300 bytes a series, compressed to a tenth or so.
#[test]
fn bodies_have_realistic_sizes() {
    let model = SeriesModel::new(1, 2_000, TIMELINE);
    let mut raw = Vec::new();
    SampleBatch::of(&model, model.series(), 5, 1).encode(Version::V1, &mut raw);
    let bytes_per_series = raw.len() / 2_000;
    assert!((280..330).contains(&bytes_per_series), "{bytes_per_series}");
    assert!(model.series().iter().all(|series| series.labels.len() == 9));
    let mut body = Vec::new();
    compress(&raw, &mut body);
    assert!((7..12).contains(&(raw.len() / body.len())), "{} of {}", body.len(), raw.len());
    SampleBatch::of(&model, model.series(), 5, 1).encode(Version::V2, &mut raw);
    assert!(raw.len() / 2_000 < bytes_per_series / 2 + 30, "{}", raw.len() / 2_000);
}

/// The same seed makes the same series, another seed others, and no two series have the same labels.
#[test]
fn models_are_deterministic() {
    let keys =
        |seed| SeriesModel::new(seed, 5_000, TIMELINE).series().iter().map(|s| s.key).collect::<Vec<_>>();
    assert_eq!(keys(1), keys(1));
    assert_ne!(keys(1), keys(2));
    assert_eq!(keys(1).into_iter().collect::<HashSet<_>>().len(), 5_000);
}

/// A receiver that guesses the version wrong would read nothing: the media type decides.
#[test]
fn the_media_type_names_the_version() {
    for version in [Version::V1, Version::V2] {
        assert_eq!(Version::of_content_type(version.content_type()), Some(version));
    }
    let v1 = Some(Version::V1);
    assert_eq!(Version::of_content_type("application/x-protobuf; proto=prometheus.WriteRequest"), v1);
    for other in ["", "text/plain", "application/x-protobuf;proto=prometheus.Other"] {
        assert_eq!(Version::of_content_type(other), None, "{other}");
    }
}

/// A message whose labels were damaged on the way is not taken for another series.
#[test]
fn broken_label_sets_are_noticed() {
    let label = |name: &str, value: &str| {
        let pair = [&[0x0a, name.len() as u8], name.as_bytes(), &[0x12, value.len() as u8], value.as_bytes()];
        let pair = pair.concat();
        [&[0x0a, pair.len() as u8], &pair[..]].concat()
    };
    for labels in [
        vec![],
        vec![label("b", "1"), label("a", "1")],
        vec![label("a", "1"), label("a", "1")],
        vec![label("a", "")],
        vec![label("", "1")],
    ] {
        let series = labels.concat();
        let raw = [&[0x0a, series.len() as u8], &series[..]].concat();
        let mut body = Vec::new();
        compress(&raw, &mut body);
        assert_eq!(decode(Version::V1, &body, 1_000, &mut |_| ()), Err(DecodeError::Labels));
    }
}
