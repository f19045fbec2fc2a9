//! The encoders against prost, with the messages as the specifications give them.

use prost::Message;

use super::{TIMELINE, model};
use crate::SampleKind;
use crate::remote_write::{RequestExtras, STALE, SampleBatch, Version};

#[derive(Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
    #[prost(message, repeated, tag = "3")]
    metadata: Vec<Metadata>,
}

#[derive(Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    exemplars: Vec<Exemplar>,
    #[prost(message, repeated, tag = "4")]
    histograms: Vec<Histogram>,
}

#[derive(Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
    /// Only in 2.0.
    #[prost(int64, tag = "3")]
    start_timestamp: i64,
}

#[derive(Message)]
struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(double, tag = "2")]
    value: f64,
    #[prost(int64, tag = "3")]
    timestamp: i64,
}

#[derive(Message)]
struct Metadata {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    metric_family_name: String,
    #[prost(string, tag = "4")]
    help: String,
}

#[derive(Message)]
struct Histogram {
    #[prost(uint64, tag = "1")]
    count_int: u64,
    #[prost(double, tag = "3")]
    sum: f64,
    #[prost(sint32, tag = "4")]
    schema: i32,
    #[prost(message, repeated, tag = "11")]
    positive_spans: Vec<Span>,
    #[prost(sint64, repeated, tag = "12")]
    positive_deltas: Vec<i64>,
    #[prost(int64, tag = "15")]
    timestamp: i64,
}

#[derive(Message)]
struct Span {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

#[derive(Message)]
struct Request {
    #[prost(string, repeated, tag = "4")]
    symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    timeseries: Vec<TimeSeries2>,
}

#[derive(Message)]
struct TimeSeries2 {
    #[prost(uint32, repeated, tag = "1")]
    labels_refs: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    histograms: Vec<Histogram>,
    #[prost(message, repeated, tag = "4")]
    exemplars: Vec<Exemplar2>,
    #[prost(message, optional, tag = "5")]
    metadata: Option<Metadata2>,
}

#[derive(Message)]
struct Exemplar2 {
    #[prost(uint32, repeated, tag = "1")]
    labels_refs: Vec<u32>,
    #[prost(double, tag = "2")]
    value: f64,
    #[prost(int64, tag = "3")]
    timestamp: i64,
}

#[derive(Message)]
struct Metadata2 {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(uint32, tag = "3")]
    help_ref: u32,
}

const EXTRAS: RequestExtras = RequestExtras { exemplars: true, metadata: true, stale: true };

fn check_samples(samples: &[Sample], first: u64) {
    let expected = [(first as f64).to_bits(), (first as f64 + 1.0).to_bits(), STALE];
    assert!(samples.iter().map(|sample| sample.value.to_bits()).eq(expected));
    assert!(samples.iter().zip(first..).all(|(sample, number)| sample.timestamp == TIMELINE.at(number)));
}

fn check_histograms(histograms: &[Histogram], first: u64) {
    assert_eq!(histograms.len(), 2);
    for (histogram, number) in histograms.iter().zip(first..) {
        assert_eq!((histogram.count_int, histogram.sum), (number, number as f64));
        assert_eq!((histogram.schema, histogram.timestamp), (3, TIMELINE.at(number)));
        let span = &histogram.positive_spans[0];
        assert_eq!((span.offset, span.length), (-7, 1));
        assert_eq!(histogram.positive_deltas, [number as i64]);
    }
}

/// Version 1 is what prost reads, sample 0 (whose value is left out) included.
#[test]
fn prost_reads_version_1() {
    let model = model(40);
    for first in [0, 1_000] {
        let mut raw = Vec::new();
        SampleBatch { extras: EXTRAS, ..SampleBatch::of(&model, model.series(), first, 2) }
            .encode(Version::V1, &mut raw);
        let request = WriteRequest::decode(&raw[..]).unwrap();
        assert_eq!(request.timeseries.len(), 40);
        for (index, (read, series)) in request.timeseries.iter().zip(model.series()).enumerate() {
            let labels = read.labels.iter().map(|label| (&*label.name, &*label.value));
            assert!(labels.eq(series.labels.iter().map(|(name, value)| (*name, &**value))));
            match series.kind {
                SampleKind::Float => check_samples(&read.samples, first),
                SampleKind::Histogram => check_histograms(&read.histograms, first),
            }
            let exemplar = index % 8 == 0 && series.kind == SampleKind::Float;
            assert_eq!(read.exemplars.len(), usize::from(exemplar));
            for exemplar in &read.exemplars {
                assert_eq!((exemplar.value, exemplar.timestamp), (0.25, TIMELINE.at(first)));
                assert_eq!(exemplar.labels[0].name, "trace_id");
            }
        }
        let metadata = &request.metadata[0];
        assert!(metadata.kind == 1 && metadata.help.contains(&metadata.metric_family_name));
    }
}

/// Version 2 is what prost reads, and its table of symbols has no symbol twice.
#[test]
fn prost_reads_version_2() {
    let model = model(40);
    for first in [0, 1_000] {
        let mut raw = Vec::new();
        SampleBatch { extras: EXTRAS, ..SampleBatch::of(&model, model.series(), first, 2) }
            .encode(Version::V2, &mut raw);
        let request = Request::decode(&raw[..]).unwrap();
        let symbol = |reference: &u32| &*request.symbols[*reference as usize];
        assert_eq!(request.symbols[0], "");
        let mut unique = request.symbols.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), request.symbols.len());
        for (read, series) in request.timeseries.iter().zip(model.series()) {
            let (pairs, odd) = read.labels_refs.as_chunks::<2>();
            assert!(odd.is_empty());
            let labels = pairs.iter().map(|[name, value]| (symbol(name), symbol(value)));
            assert!(labels.eq(series.labels.iter().map(|(name, value)| (*name, &**value))));
            match series.kind {
                SampleKind::Float => check_samples(&read.samples, first),
                SampleKind::Histogram => check_histograms(&read.histograms, first),
            }
            assert!(read.samples.iter().all(|sample| sample.start_timestamp == TIMELINE.base_ms));
            for exemplar in &read.exemplars {
                assert_eq!((exemplar.value, exemplar.timestamp), (0.25, TIMELINE.at(first)));
                assert_eq!(symbol(&exemplar.labels_refs[0]), "trace_id");
            }
            let metadata = read.metadata.as_ref().unwrap();
            assert!(metadata.kind == 1 && symbol(&metadata.help_ref).contains(&*series.labels[0].1));
        }
    }
}
