//! Remote write as OTLP, against a plain model.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Of;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics,
};
use proptest::prelude::*;
use prost::Message;

use crate::otlp::prometheus::{
    MOST_BUCKETS, OtlpTranslation, Scratch, ScratchCapacity, Settings, from_remote_write,
    pieces_of_remote_write, to_v2,
};
use crate::otlp::{Signal, check};
use crate::output::Full;
use crate::remote_write::tests::strategies;
use crate::remote_write::{Request, STALE_NAN, Symbols, Version, view};

type Texts = BTreeMap<String, String>;

/// A float sample and all that is said of it.
#[derive(Debug, PartialEq)]
struct Point {
    resource: Texts,
    name: String,
    help: String,
    is_sum: bool,
    attributes: Texts,
    /// Nothing for a stale marker.
    bits: Option<u64>,
    time: u64,
    start_time: u64,
    exemplars: usize,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn nanoseconds(milliseconds: i64) -> u64 {
    u64::try_from(milliseconds).unwrap_or(0).saturating_mul(1_000_000)
}

/// The expected float samples of a request.
fn expected(version: Version, request: &Request<'_>) -> Vec<Point> {
    let mut points = Vec::new();
    for series in request.series() {
        let mut attributes: Texts =
            series.labels().map(|label| (text(label.name), text(label.value))).collect();
        let name = attributes.remove("__name__").unwrap_or_default();
        let mut resource = Texts::new();
        if let Some(job) = attributes.remove("job") {
            match job.split_once('/') {
                Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                    resource.insert("service.namespace".into(), namespace.into());
                    resource.insert("service.name".into(), name.into());
                }
                _ => drop(resource.insert("service.name".into(), job)),
            }
        }
        if let Some(instance) = attributes.remove("instance") {
            resource.insert("service.instance.id".into(), instance);
        }
        let about = match version {
            Version::V1 => request.metadata().find(|metadata| metadata.family == name.as_bytes()),
            Version::V2 => series.metadata(),
        };
        let about = about.unwrap_or_default();
        let samples = series.samples().count();
        for (number, sample) in series.samples().enumerate() {
            points.push(Point {
                resource: resource.clone(),
                name: name.clone(),
                help: text(about.help),
                is_sum: about.kind == 1,
                attributes: attributes.clone(),
                bits: (sample.bits != STALE_NAN).then_some(sample.bits),
                time: nanoseconds(sample.timestamp),
                start_time: nanoseconds(sample.start_timestamp),
                exemplars: if number + 1 == samples { series.exemplars().count() } else { 0 },
            });
        }
    }
    points.retain(|point| !point.name.is_empty());
    points
}

fn texts(attributes: &[KeyValue]) -> Texts {
    let text = |attribute: &KeyValue| match &attribute.value.as_ref().unwrap().value {
        Some(Value::StringValue(text)) => (attribute.key.clone(), text.clone()),
        other => panic!("labels are strings, not {other:?}"),
    };
    attributes.iter().map(text).collect()
}

fn metrics(raw: &[u8]) -> Vec<(Texts, Metric)> {
    let request = ExportMetricsServiceRequest::decode(raw).unwrap();
    let mut all = Vec::new();
    for group in request.resource_metrics {
        let resource = texts(&group.resource.unwrap_or_default().attributes);
        for metric in group.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
            all.push((resource.clone(), metric));
        }
    }
    all
}

fn found(raw: &[u8]) -> Vec<Point> {
    let mut points = Vec::new();
    for (resource, metric) in metrics(raw) {
        let (is_sum, of_metric): (_, Vec<NumberDataPoint>) = match metric.data.unwrap() {
            Data::Gauge(gauge) => (false, gauge.data_points),
            Data::Sum(sum) => {
                assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
                (true, sum.data_points)
            }
            _ => continue,
        };
        points.extend(of_metric.into_iter().map(|point| Point {
            resource: resource.clone(),
            name: metric.name.clone(),
            help: metric.description.clone(),
            is_sum,
            attributes: texts(&point.attributes),
            bits: match point.value {
                Some(Of::AsDouble(value)) => Some(value.to_bits()),
                Some(Of::AsInt(_)) => panic!("values are doubles"),
                None => {
                    assert_eq!(point.flags, 1);
                    None
                }
            },
            time: point.time_unix_nano,
            start_time: point.start_time_unix_nano,
            exemplars: point.exemplars.len(),
        }));
    }
    points
}

fn added(one: OtlpTranslation, two: OtlpTranslation) -> OtlpTranslation {
    OtlpTranslation {
        bytes: one.bytes + two.bytes,
        points: one.points + two.points,
        exemplars: one.exemplars + two.exemplars,
        dropped: one.dropped + two.dropped,
        dropped_exemplars: one.dropped_exemplars + two.dropped_exemplars,
    }
}

fn reversed(version: Version, raw: &[u8]) -> (OtlpTranslation, Vec<u8>) {
    let mut symbols = Symbols::new();
    let request = view(version, raw, &mut symbols).unwrap();
    let mut space = vec![0; 1 << 20];
    let done = from_remote_write(request, &mut space).unwrap();
    space.truncate(done.bytes);
    (done, space)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The output is valid OTLP, every sample in it equals the model's, and every point is counted.
    #[test]
    fn remote_write_becomes_equal_otlp((version, raw) in strategies::encoded()) {
        let (done, body) = reversed(version, &raw);
        let counts = check(Signal::Metrics, &body).unwrap();
        prop_assert_eq!(counts.items, done.points);
        let mut symbols = Symbols::new();
        let request = view(version, &raw, &mut symbols).unwrap();
        let values: usize = request.series().map(|series| series.samples().count() + series.histograms().count()).sum();
        prop_assert_eq!(done.points + done.dropped, values as u64);
        let exemplars: usize = request.series().map(|series| series.exemplars().count()).sum();
        prop_assert_eq!(done.exemplars + done.dropped_exemplars, exemplars as u64);
        prop_assert_eq!(found(&body), expected(version, &request));
    }

    /// No room is too small to say so.
    #[test]
    fn a_short_output_is_an_error((version, raw) in strategies::encoded(), part in 0.0f64..1.0) {
        let (done, body) = reversed(version, &raw);
        let mut symbols = Symbols::new();
        let request = view(version, &raw, &mut symbols).unwrap();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a part of a length is one")]
        let len = (done.bytes as f64 * part) as usize;
        prop_assume!(len < body.len());
        prop_assert_eq!(from_remote_write(request, &mut vec![0; len]), Err(Full));
    }

    /// In whatever pieces it is written, and from wherever it goes on, it says the same.
    #[test]
    fn the_pieces_equal_the_whole((version, raw) in strategies::encoded(), most in 0usize..600) {
        let (whole, body) = reversed(version, &raw);
        let mut symbols = Symbols::new();
        let request = view(version, &raw, &mut symbols).unwrap();
        let (mut pieces, mut sum, mut joined) = (pieces_of_remote_write(request), OtlpTranslation::default(), Vec::new());
        let (mut space, mut other) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        while !pieces.is_done() {
            let mut later = pieces_of_remote_write(request);
            later.skip_to(pieces.position());
            let done = pieces.write(&mut space, most).unwrap();
            prop_assert_eq!(later.write(&mut other, most).unwrap(), done);
            prop_assert_eq!(&space[..done.bytes], &other[..done.bytes]);
            check(Signal::Metrics, &space[..done.bytes]).unwrap();
            joined.extend_from_slice(&space[..done.bytes]);
            sum = added(sum, done);
        }
        prop_assert_eq!(found(&joined), found(&body));
        prop_assert_eq!(OtlpTranslation { bytes: 0, ..sum }, OtlpTranslation { bytes: 0, ..whole });
    }

    /// A part that does not fit is skipped, alone, and everything is counted once.
    #[test]
    fn points_without_room_are_passed_over((version, raw) in strategies::encoded(), room in 0usize..400) {
        let (whole, _) = reversed(version, &raw);
        let mut symbols = Symbols::new();
        let request = view(version, &raw, &mut symbols).unwrap();
        let (mut pieces, mut sum, mut lost) = (pieces_of_remote_write(request), OtlpTranslation::default(), 0);
        let mut space = vec![0; room];
        while !pieces.is_done() {
            match pieces.write(&mut space, usize::MAX) {
                Ok(done) => {
                    check(Signal::Metrics, &space[..done.bytes]).unwrap();
                    sum = added(sum, done);
                }
                Err(Full) => lost += pieces.skip_value(&mut sum),
            }
        }
        prop_assert_eq!(sum.points + sum.exemplars + lost, whole.points + whole.exemplars);
        prop_assert_eq!((sum.dropped, sum.dropped_exemplars), (whole.dropped, whole.dropped_exemplars));
    }

    /// An exponential histogram that goes to Prometheus and comes back has the same buckets.
    #[test]
    fn exponential_histograms_come_back(
        scale in -4..=8i32,
        (positive, negative) in ((-50..50i32, proptest::collection::vec(0u64..9, 0..40)), (-50..50i32, proptest::collection::vec(0u64..9, 0..4))),
        (count, zero_count, sum) in (any::<u32>(), 0u64..5, -1e9..1e9),
    ) {
        let buckets = |(offset, bucket_counts): (i32, Vec<u64>)| Some(Buckets { offset, bucket_counts });
        let point = ExponentialHistogramDataPoint {
            time_unix_nano: 5_000_000,
            start_time_unix_nano: 2_000_000,
            count: count.into(),
            sum: Some(sum),
            scale,
            zero_count,
            zero_threshold: 1e-9,
            positive: buckets(positive),
            negative: buckets(negative),
            ..ExponentialHistogramDataPoint::default()
        };
        let histogram = ExponentialHistogram { data_points: vec![point.clone()], aggregation_temporality: 2 };
        let metric = Metric { name: "m".into(), data: Some(Data::ExponentialHistogram(histogram)), ..Metric::default() };
        let scope = ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() };
        let group = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
        let raw = ExportMetricsServiceRequest { resource_metrics: vec![group] }.encode_to_vec();
        let mut scratch = Scratch::new(ScratchCapacity { symbols: 100, symbol_bytes: 1 << 10, ..ScratchCapacity::default() });
        let mut body = Vec::new();
        to_v2(&raw, &Settings::default(), &mut scratch, &mut body).unwrap();
        let (done, back) = reversed(Version::V2, &body);
        prop_assert_eq!((done.points, done.dropped), (1, 0));
        let (_, metric) = metrics(&back).remove(0);
        let Some(Data::ExponentialHistogram(mut histogram)) = metric.data else { panic!("another kind") };
        let mut found = histogram.data_points.remove(0);
        prop_assert_eq!(spelled(&found.positive), spelled(&point.positive));
        prop_assert_eq!(spelled(&found.negative), spelled(&point.negative));
        (found.positive, found.negative) = (point.positive.clone(), point.negative.clone());
        prop_assert_eq!(found, point);
    }
}

/// Each bucket that has something.
fn spelled(buckets: &Option<Buckets>) -> BTreeMap<i32, u64> {
    let Some(Buckets { offset, bucket_counts }) = buckets else { return BTreeMap::new() };
    (*offset..).zip(bucket_counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
}

/// A 1.0 request of one series `m` with these fields behind its label.
fn series(fields: &[u8]) -> Vec<u8> {
    let label = b"\x0a\x0d\x0a\x08__name__\x12\x01m";
    let len = label.len() + fields.len();
    assert!(len < 128);
    [&[0x0a, len as u8], &label[..], fields].concat()
}

/// Custom bounds: counts from the first bucket on, and one more than bounds.
#[test]
fn custom_buckets_become_a_histogram_with_bounds() {
    let mut histogram = vec![1 << 3, 6, 4 << 3, 105, 15 << 3, 7];
    // One span of two buckets from the second on: 2, and 2 more.
    histogram.extend(b"\x5a\x04\x08\x02\x10\x02\x62\x02\x04\x04");
    histogram.extend(b"\x82\x01\x10");
    histogram.extend(1f64.to_le_bytes());
    histogram.extend(2f64.to_le_bytes());
    let raw = series(&[&[4 << 3 | 2, histogram.len() as u8], &histogram[..]].concat());
    let (done, body) = reversed(Version::V1, &raw);
    assert_eq!((done.points, done.dropped), (1, 0));
    let (_, metric) = metrics(&body).remove(0);
    let Some(Data::Histogram(histogram)) = metric.data else { panic!("another kind") };
    let point = &histogram.data_points[0];
    assert_eq!(
        (point.bucket_counts.as_slice(), point.explicit_bounds.as_slice()),
        (&[0, 2, 4][..], &[1.0, 2.0][..])
    );
    assert_eq!((point.count, point.time_unix_nano), (6, 7_000_000));
}

/// Gaps between buckets become empty buckets, so how many there may be has a bound.
#[test]
fn buckets_too_far_apart_are_counted_and_left_out() {
    for (gap, dropped) in [(MOST_BUCKETS as u64 - 2, 0), (MOST_BUCKETS as u64 - 1, 1)] {
        let mut span = vec![0x08];
        span.extend(crate::proto::write::Varint::new(gap << 1).as_bytes());
        span.extend(b"\x10\x01");
        let mut histogram = b"\x08\x02\x5a\x04\x08\x02\x10\x01\x5a".to_vec();
        histogram.push(span.len() as u8);
        histogram.extend(span);
        histogram.extend(b"\x62\x02\x02\x00");
        let raw = series(&[&[4 << 3 | 2, histogram.len() as u8], &histogram[..]].concat());
        let (done, _) = reversed(Version::V1, &raw);
        assert_eq!((done.points, done.dropped), (1 - dropped, dropped), "a gap of {gap}");
    }
}

/// The bound that sinks rely on: a point takes at most twelve times its series with its symbols spelled out, and the
/// buckets between others.
#[test]
fn a_point_is_at_most_twelve_times_its_series() {
    fn put(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
        out.push(field << 3 | 2);
        let mut len = bytes.len();
        while len >= 0x80 {
            out.push(len as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend_from_slice(bytes);
    }
    let label = |name: &[u8], value: &[u8]| {
        let mut label = Vec::new();
        put(&mut label, 1, name);
        put(&mut label, 2, value);
        label
    };
    let with = |field: u8, messages: &[Vec<u8>]| {
        let mut series = Vec::new();
        put(&mut series, 1, &label(b"__name__", b"m"));
        messages.iter().for_each(|message| put(&mut series, field, message));
        let mut raw = Vec::new();
        put(&mut raw, 1, &series);
        (raw, series.len())
    };
    let many_labels: Vec<_> = (0..5000).map(|_| label(b"", b"")).collect();
    // A bucket of more than 2^62, and 16,000 that are as full; in the other, as many that are empty.
    let spans = |gap: bool| {
        let mut histogram = vec![0x08, 1];
        let (first, then) = if gap {
            ([0x08, 0, 0x10, 1], [0x08, 0x80, 0xfa, 0x01, 0x10, 1])
        } else {
            ([0x08, 0, 0x10, 1], [0x08, 0, 0x10, 0x80, 0x7d, 0])
        };
        put(&mut histogram, 11, &first);
        put(&mut histogram, 11, if gap { &then } else { &then[..5] });
        let mut deltas = vec![0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        deltas.resize(deltas.len() + if gap { 1 } else { 16_000 }, 0);
        put(&mut histogram, 12, &deltas);
        histogram
    };
    let mut sample = vec![0x09];
    sample.extend(1f64.to_bits().to_le_bytes());
    let mut labelled = with(1, &many_labels);
    put(&mut labelled.0, 1, &{
        let mut series = Vec::new();
        put(&mut series, 1, &label(b"__name__", b"n"));
        put(&mut series, 2, &sample);
        many_labels.iter().for_each(|label| put(&mut series, 1, label));
        series
    });
    for (raw, len) in [labelled, with(4, &[spans(false)]), with(4, &[spans(true)])] {
        let mut symbols = Symbols::new();
        let request = view(Version::V1, &raw, &mut symbols).unwrap();
        let mut space = vec![0; 4 << 20];
        let done = from_remote_write(request, &mut space).unwrap();
        assert_eq!(done.points, 1, "{done:?}");
        assert!(done.bytes <= 12 * len + (48 << 10), "{} of {len}", done.bytes);
    }
}

/// Each point says the labels of its series, and looking for them is no walk over all samples: with that, this would
/// take minutes.
#[test]
fn a_series_of_many_samples_is_translated_in_one_walk() {
    const SAMPLES: u64 = 200_000;
    let mut series = Vec::new();
    for (name, value) in [("__name__", "up"), ("job", "node")] {
        let mut label = Vec::new();
        prost::encoding::string::encode(1, &name.to_owned(), &mut label);
        prost::encoding::string::encode(2, &value.to_owned(), &mut label);
        prost::encoding::bytes::encode(1, &label, &mut series);
    }
    for number in 0..SAMPLES {
        let mut sample = Vec::new();
        prost::encoding::double::encode(1, &1.5, &mut sample);
        prost::encoding::uint64::encode(2, &(1_700_000_000_000 + number), &mut sample);
        prost::encoding::bytes::encode(2, &sample, &mut series);
    }
    let mut raw = Vec::new();
    prost::encoding::bytes::encode(1, &series, &mut raw);
    let mut symbols = Symbols::new();
    let request = view(Version::V1, &raw, &mut symbols).unwrap();
    let mut space = vec![0; 16 << 20];
    assert_eq!(from_remote_write(request, &mut space).unwrap().points, SAMPLES);
}
