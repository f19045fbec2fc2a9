//! Native histograms are refused by the rules of Prometheus' own `Validate`, rule by rule.

use prost::Message;

use super::oracle::{
    Count, HistogramV1, HistogramV2, Label, RequestV2, SampleV1, SeriesV1, SeriesV2, Span, WriteRequest,
    ZeroCount,
};
use crate::remote_write::{Limits, Symbols, Version, inspect};

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn spans(spans: &[(i32, u32)]) -> Vec<Span> {
    spans.iter().map(|&(offset, length)| Span { offset, length }).collect()
}

/// Three buckets above zero and two below, ten observations.
fn integers() -> HistogramV1 {
    HistogramV1 {
        count: Some(Count::Int(10)),
        zero_count: Some(ZeroCount::Int(1)),
        schema: 3,
        positive_spans: spans(&[(-2, 2), (1, 1)]),
        positive_deltas: vec![2, 1, -2],
        negative_spans: spans(&[(0, 2)]),
        negative_deltas: vec![1, 1],
        ..HistogramV1::default()
    }
}

/// The same in floats.
fn floats() -> HistogramV1 {
    HistogramV1 {
        count: Some(Count::Float(10f64.to_bits())),
        zero_count: Some(ZeroCount::Float(1f64.to_bits())),
        positive_counts: bits(&[2.0, 3.0, 1.0]),
        negative_counts: bits(&[1.0, 2.0]),
        positive_deltas: vec![],
        negative_deltas: vec![],
        ..integers()
    }
}

/// Custom buckets: three bounds, and so four buckets.
fn custom() -> HistogramV1 {
    HistogramV1 {
        count: Some(Count::Int(4)),
        schema: -53,
        positive_spans: spans(&[(0, 2), (1, 1)]),
        positive_deltas: vec![1, 0, 1],
        custom_values: bits(&[1.0, 2.0, 3.0]),
        ..HistogramV1::default()
    }
}

type Change = fn(&mut HistogramV1);
/// A histogram, what is changed of it, and why it is refused then.
type Case = (fn() -> HistogramV1, Change, Option<&'static str>);

#[test]
fn follows_the_rules_of_prometheus() {
    let cases: [Case; 35] = [
        (integers, |_| (), None),
        (floats, |_| (), None),
        (custom, |_| (), None),
        // A stale marker, and a histogram of nothing.
        (HistogramV1::default, |h| h.sum = crate::remote_write::STALE_NAN, None),
        (HistogramV1::default, |_| (), None),
        // Schemas.
        (integers, |h| h.schema = -4, None),
        (integers, |h| h.schema = 8, None),
        (integers, |h| h.schema = -5, Some("has the schema -5: it must be from -4 to 8, or -53")),
        (integers, |h| h.schema = -9, Some("has the schema -9")),
        (integers, |h| h.schema = 9, Some("has the schema 9")),
        (floats, |h| h.schema = -52, Some("has the schema -52")),
        (floats, |h| h.schema = i32::MIN, Some("has the schema -2147483648")),
        // The count against the buckets.
        (
            integers,
            |h| h.count = Some(Count::Int(11)),
            Some("counts 11 observations, and 10 are in its buckets"),
        ),
        (integers, |h| h.count = Some(Count::Int(9)), Some("counts 9 observations, and 10")),
        (integers, |h| h.zero_count = None, Some("counts 10 observations, and 9")),
        // Observations of NaN are in no bucket.
        (integers, |h| (h.count, h.sum) = (Some(Count::Int(11)), f64::NAN.to_bits()), None),
        (
            integers,
            |h| (h.count, h.sum) = (Some(Count::Int(9)), f64::NAN.to_bits()),
            Some("counts 9 observations, and 10"),
        ),
        (floats, |h| h.count = Some(Count::Float(99f64.to_bits())), None),
        (floats, |h| h.count = Some(Count::Float((-1f64).to_bits())), Some("has a negative count")),
        // Buckets and spans.
        (integers, |h| h.positive_deltas = vec![2, -3, 3], Some("positive bucket 2 has a negative count")),
        (integers, |h| h.negative_deltas = vec![-1, 4], Some("negative bucket 1 has a negative count")),
        (
            floats,
            |h| h.negative_counts[1] = (-1f64).to_bits(),
            Some("negative bucket 2 has a negative count"),
        ),
        (floats, |h| h.negative_counts[1] = f64::NAN.to_bits(), None),
        (
            integers,
            |h| h.positive_spans[1].offset = -1,
            Some("positive span 2 has the offset -1: it must not be negative"),
        ),
        (
            integers,
            |h| h.negative_spans[0].length = 3,
            Some("negative spans cover 3 buckets, and 2 are given"),
        ),
        (floats, |h| h.positive_spans.clear(), Some("positive spans cover 0 buckets, and 3 are given")),
        // The form of the count decides which buckets are looked at.
        (floats, |h| h.count = Some(Count::Int(10)), Some("positive spans cover 3 buckets, and 0 are given")),
        // Custom bounds.
        (integers, |h| h.custom_values = bits(&[1.0]), Some("has an exponential schema and custom bounds")),
        (
            custom,
            |h| h.custom_values = bits(&[1.0, 1.0, 3.0]),
            Some("has custom bounds that do not increase"),
        ),
        (custom, |h| h.custom_values = bits(&[1.0, f64::NAN, 3.0]), Some("that is not a number")),
        (custom, |h| h.custom_values = bits(&[1.0, 2.0, f64::INFINITY]), Some("+Inf, which is implied")),
        (custom, |h| h.custom_values = bits(&[1.0, 2.0]), Some("fewer custom bounds than its spans need")),
        (
            custom,
            |h| h.positive_spans[0].offset = -1,
            Some("positive span 1 has the offset -1: it must not be negative"),
        ),
        (custom, |h| h.zero_threshold = 1f64.to_bits(), Some("has custom buckets and a zero bucket")),
        (
            custom,
            |h| (h.negative_spans, h.negative_deltas) = (spans(&[(0, 1)]), vec![0]),
            Some("has custom buckets and negative ones"),
        ),
    ];
    for (number, (of, change, expected)) in cases.into_iter().enumerate() {
        let mut histogram = of();
        change(&mut histogram);
        for (version, raw) in [(Version::V1, v1(&histogram)), (Version::V2, v2(&histogram))] {
            let found = inspect(version, &raw, &Limits::default(), &mut Symbols::new()).unwrap();
            let reason = found.rejected.errors.first().map(ToString::to_string);
            match expected {
                None => assert_eq!((reason, found.counts.histograms), (None, 1), "case {number}"),
                Some(expected) => {
                    let reason = reason.unwrap_or_default();
                    assert!(reason.contains(expected), "case {number}: `{reason}` instead of `{expected}`");
                    assert_eq!(
                        (found.counts.histograms, found.rejected.counts.histograms),
                        (0, 1),
                        "case {number}"
                    );
                }
            }
        }
    }
}

/// A histogram that is refused takes nothing else of its series with it.
#[test]
fn the_rest_of_a_series_is_accepted() {
    let wrong = HistogramV1 { schema: 9, ..integers() };
    let mut series = series(&wrong);
    series.histograms.push(integers());
    series.samples.push(SampleV1 { value: 1, timestamp: 1 });
    let raw = WriteRequest { timeseries: vec![series], metadata: vec![] }.encode_to_vec();
    let found = inspect(Version::V1, &raw, &Limits::default(), &mut Symbols::new()).unwrap();
    assert_eq!((found.counts.series, found.counts.samples, found.counts.histograms), (1, 1, 1));
    assert_eq!((found.rejected.counts.series, found.rejected.counts.items()), (0, 1));
}

fn series(histogram: &HistogramV1) -> SeriesV1 {
    let name = Label { name: "__name__".to_owned(), value: "h".to_owned() };
    SeriesV1 { labels: vec![name], histograms: vec![histogram.clone()], ..SeriesV1::default() }
}

fn v1(histogram: &HistogramV1) -> Vec<u8> {
    WriteRequest { timeseries: vec![series(histogram)], metadata: vec![] }.encode_to_vec()
}

fn v2(histogram: &HistogramV1) -> Vec<u8> {
    let symbols = ["", "__name__", "h"].map(str::to_owned).to_vec();
    let histograms = vec![HistogramV2::from(histogram)];
    let series = SeriesV2 { labels_refs: vec![1, 2], histograms, ..SeriesV2::default() };
    RequestV2 { symbols, timeseries: vec![series] }.encode_to_vec()
}
