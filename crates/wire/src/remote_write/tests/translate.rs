//! A translated body means the same, but for what its version cannot hold, which is counted.

use proptest::prelude::*;
use prost::Message;

use super::model::{Model, Series};
use super::oracle::{MetadataV1, RequestV2, WriteRequest};
use super::{check, strategies};
use crate::remote_write::translate::{Dropped, Scratch, to_v1, to_v2};
use crate::remote_write::{Request, RewriteError, STALE_NAN, Symbols, Version, view};

fn into_v2(raw: &[u8]) -> (Vec<u8>, Dropped) {
    let mut out = Vec::new();
    let dropped = to_v2(raw, &mut Scratch::new(1000, 10), &mut out).unwrap();
    assert!(check(Version::V2, &out).is_ok());
    (out, dropped)
}

fn into_v1(raw: &[u8]) -> (Vec<u8>, Dropped) {
    let mut out = Vec::new();
    let mut symbols = Symbols::new();
    let Request::V2(request) = view(Version::V2, raw, &mut symbols).unwrap() else { unreachable!() };
    let dropped = to_v1(request, &mut out).unwrap();
    assert!(check(Version::V1, &out).is_ok());
    (out, dropped)
}

/// A series as 2.0 has it: samples and histograms apart, exemplars with the first of them.
fn apart(series: &Series) -> Vec<Series> {
    let mut parts = Vec::new();
    if !series.samples.is_empty() {
        parts.push(Series { histograms: vec![], ..series.clone() });
    }
    if !series.histograms.is_empty() {
        let exemplars = if parts.is_empty() { series.exemplars.clone() } else { vec![] };
        parts.push(Series { samples: vec![], exemplars, ..series.clone() });
    }
    if parts.is_empty() && !series.exemplars.is_empty() {
        parts.push(series.clone());
    }
    parts
}

proptest! {
    /// 1.0 to 2.0 keeps every item; what is left out is counted.
    #[test]
    fn v1_to_v2_keeps_all_items(request in strategies::v1()) {
        let (out, dropped) = into_v2(&request.encode_to_vec());
        let decoded = RequestV2::decode(&out[..]).unwrap();
        let model = Model::from(&request);
        let expected: Vec<_> = model.series.iter().flat_map(apart).collect();
        prop_assert_eq!(Model::from(&decoded).series, expected);
        let empty: Vec<_> = model.series.iter().filter(|series| apart(series).is_empty()).collect();
        prop_assert_eq!(dropped.series, empty.len() as u64);
        prop_assert_eq!(dropped.start_timestamps, 0);
    }

    /// 1.0 to 2.0 and back is what it was, for all that 2.0 can hold.
    #[test]
    fn there_and_back_is_the_same(request in strategies::v1()) {
        let mut request = request;
        request.timeseries.retain(|series| series.samples.is_empty() != series.histograms.is_empty());
        let names: Vec<_> = Model::from(&request).series.iter().map(Series::name).collect();
        request.metadata.retain(|metadata| {
            names.contains(&metadata.family) && (metadata.kind, &*metadata.help, &*metadata.unit) != (0, "", "")
        });
        request.metadata.sort_by(|a, b| a.family.cmp(&b.family));
        request.metadata.dedup_by(|a, b| a.family == b.family);
        let (there, dropped) = into_v2(&request.encode_to_vec());
        prop_assert_eq!(dropped, Dropped::default());
        let (back, dropped) = into_v1(&there);
        prop_assert_eq!(dropped, Dropped::default());
        let mut back = WriteRequest::decode(&back[..]).unwrap();
        back.metadata.sort_by(|a, b| a.family.cmp(&b.family));
        prop_assert_eq!(back, request);
    }

    /// 2.0 to 1.0 keeps everything but start timestamps, which are counted.
    #[test]
    fn v2_to_v1_keeps_all_but_starts(request in strategies::v2()) {
        let (out, dropped) = into_v1(&request.encode_to_vec());
        let mut expected = Model::from(&request);
        let mut starts = 0;
        for series in &mut expected.series {
            let samples = series.samples.iter_mut().map(|sample| &mut sample.start);
            let histograms = series.histograms.iter_mut().map(|histogram| &mut histogram.start_timestamp);
            for start in samples.chain(histograms) {
                starts += u64::from(std::mem::take(start) != 0);
            }
        }
        prop_assert_eq!(Model::from(&WriteRequest::decode(&out[..]).unwrap()).series, expected.series);
        prop_assert_eq!(dropped, Dropped { start_timestamps: starts, ..Dropped::default() });
    }
}

fn request(name: &str, kind: i32, family: &str) -> WriteRequest {
    let text = |text: &str| text.to_owned();
    let labels = vec![super::oracle::Label { name: text("__name__"), value: text(name) }];
    let samples = vec![super::oracle::SampleV1 { value: STALE_NAN, timestamp: 7 }];
    let series = super::oracle::SeriesV1 { labels, samples, ..Default::default() };
    let metadata = MetadataV1 { kind, family: text(family), help: text("Help."), unit: text("") };
    WriteRequest { timeseries: vec![series], metadata: vec![metadata] }
}

/// Metadata finds the series of its family, and its family again.
#[test]
fn metadata_follows_its_family() {
    for (name, kind, family) in
        [("up", 2, "up"), ("x_bucket", 3, "x"), ("x_count", 5, "x"), ("x_sum", 4, "x")]
    {
        let request = request(name, kind, family);
        let (there, dropped) = into_v2(&request.encode_to_vec());
        assert_eq!(dropped, Dropped::default(), "{name}");
        assert_eq!(WriteRequest::decode(&into_v1(&there).0[..]).unwrap(), request, "{name}");
    }
    let (_, dropped) = into_v2(&request("up", 2, "down").encode_to_vec());
    assert_eq!(dropped.metadata, 1);
    let (there, dropped) = into_v2(&request("x_total", 1, "x").encode_to_vec());
    assert_eq!(dropped.metadata, 0);
    assert_eq!(WriteRequest::decode(&into_v1(&there).0[..]).unwrap().metadata[0].family, "x_total");
}

/// A stale marker's bits go through both translations.
#[test]
fn stale_markers_are_bit_exact() {
    let (there, _) = into_v2(&request("up", 2, "up").encode_to_vec());
    assert_eq!(RequestV2::decode(&there[..]).unwrap().timeseries[0].samples[0].value, STALE_NAN);
    let (back, _) = into_v1(&there);
    assert_eq!(WriteRequest::decode(&back[..]).unwrap().timeseries[0].samples[0].value, STALE_NAN);
}

/// The scratch is a bound, and says so.
#[test]
fn scratch_is_a_bound() {
    let raw = request("up", 2, "up").encode_to_vec();
    for (symbols, families) in [(2, 1), (3, 0)] {
        let error = to_v2(&raw, &mut Scratch::new(symbols, families), &mut Vec::new()).unwrap_err();
        assert!(matches!(error, RewriteError::Scratch { .. }), "{error}");
    }
    assert!(to_v2(&raw, &mut Scratch::new(3, 1), &mut Vec::new()).is_ok());
}
