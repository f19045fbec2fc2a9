//! Whatever happens to a body on its way: no panic, and what is still accepted means what prost says.

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

use super::model::Model;
use super::oracle::{RequestV2, WriteRequest};
use super::{check, strategies};
use crate::damage::{apply, damage};
use crate::remote_write::{Symbols, Version, join, split, translate, view};

/// Everything that reads a body, checked or not: none of it may panic.
fn read_all(version: Version, raw: &[u8]) {
    let mut symbols = Symbols::new();
    let mut out = Vec::new();
    if let Ok(request) = view(version, raw, &mut symbols) {
        for series in request.series() {
            let _ = (series.labels().count(), series.samples().count(), series.metadata());
            let _ = series.exemplars().map(|exemplar| exemplar.labels.count()).sum::<usize>();
            for histogram in series.histograms() {
                let _ = (histogram.positive_spans().count(), histogram.negative_deltas().count());
                let _ = (histogram.positive_counts().count(), histogram.custom_values().count());
            }
        }
        let _ = request.metadata().count();
        if let crate::remote_write::Request::V2(request) = request {
            let _ = translate::to_v1(request, &mut out);
        }
    }
    let _ = join::join(&[raw, raw], &mut join::Scratch::new(1000), &mut out);
    let _ = translate::to_v2(raw, &mut translate::Scratch::new(1000, 100), &mut out);
    let _ = split::split(raw, split::Limit { samples: 2, bytes: 100 }).count();
    let _ = split::partition(raw, &mut [Vec::new(), Vec::new()]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A damaged 1.0 body is refused, or shown as prost decodes it.
    #[test]
    fn v1_survives_damage(request in strategies::v1(), damages in vec(damage(), 1..4)) {
        let mut raw = request.encode_to_vec();
        apply(&mut raw, &damages);
        read_all(Version::V1, &raw);
        if check(Version::V1, &raw).is_ok() {
            let mut symbols = Symbols::new();
            let shown = Model::from(view(Version::V1, &raw, &mut symbols).unwrap());
            prop_assert_eq!(shown, Model::from(&WriteRequest::decode(&raw[..]).unwrap()));
        }
    }

    /// A damaged 2.0 body is refused, or shown as prost decodes it.
    #[test]
    fn v2_survives_damage(request in strategies::v2(), damages in vec(damage(), 1..4)) {
        let mut raw = request.encode_to_vec();
        apply(&mut raw, &damages);
        read_all(Version::V2, &raw);
        if check(Version::V2, &raw).is_ok() {
            let mut symbols = Symbols::new();
            let shown = Model::from(view(Version::V2, &raw, &mut symbols).unwrap());
            prop_assert_eq!(shown, Model::from(&RequestV2::decode(&raw[..]).unwrap()));
        }
    }

    /// Bytes that never were a request do not panic either, and an error's text stays short.
    #[test]
    fn noise_is_survived(raw in vec(prop_oneof![any::<u8>(), 0u8..0x30], 0..300)) {
        for version in [Version::V1, Version::V2] {
            read_all(version, &raw);
            if let Err(error) = check(version, &raw) {
                prop_assert!(error.to_string().len() < 500);
            }
        }
    }
}
