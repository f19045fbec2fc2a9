//! Random requests that a receiver must accept.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::oracle::{
    Count, ExemplarV1, ExemplarV2, HistogramV1, HistogramV2, Label, MetadataV1, MetadataV2, RequestV2,
    SampleV1, SampleV2, SeriesV1, SeriesV2, Span, WriteRequest, ZeroCount,
};
use crate::remote_write::{STALE_NAN, Version};

/// Bits of a value: stale markers and other NaNs more often than chance would have it.
fn bits() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        any::<f64>().prop_map(f64::to_bits),
        Just(STALE_NAN),
        Just(0x7ff0_0000_0000_0001),
        Just(0xfff8_dead_beef_0000),
        Just(0),
        Just((-0.0f64).to_bits()),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-e]{1,3}", "[a-c]{7,9}x?", "kubernetes_[a-c]{0,3}", "[aé☃\u{0}]{1,4}"]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,4}", "[a-z]{120,140}", "\\PC{0,9}"]
}

fn labels() -> impl Strategy<Value = Vec<Label>> {
    let metric = prop_oneof![Just("up".to_owned()), Just("http_requests".to_owned()), "[a-c]{1,2}", "é{70}"];
    (btree_map(name(), value(), 0..8), metric).prop_map(|(mut labels, metric)| {
        labels.insert("__name__".to_owned(), metric);
        labels.into_iter().map(|(name, value)| Label { name, value }).collect()
    })
}

fn exemplar() -> impl Strategy<Value = ExemplarV1> {
    let label = (name(), value()).prop_map(|(name, value)| Label { name, value });
    (vec(label, 0..3), bits(), any::<i64>()).prop_map(|(labels, value, timestamp)| ExemplarV1 {
        labels,
        value,
        timestamp,
    })
}

/// Spans of which only the first may begin below zero.
fn spans() -> impl Strategy<Value = Vec<Span>> {
    vec((0i32..1000, 0u32..4), 0..3).prop_flat_map(|spans| {
        (any::<i32>(), Just(spans)).prop_map(|(first, spans)| {
            let offset = |(number, (offset, length))| Span {
                offset: if number == 0 { first } else { offset },
                length,
            };
            spans.into_iter().enumerate().map(offset).collect()
        })
    })
}

/// Bits of a count that is not negative.
fn float_count() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u32>().prop_map(|count| f64::from(count).to_bits()), Just(f64::NAN.to_bits()), Just(0)]
}

/// Differences between neighbours.
fn deltas(counts: &[u32]) -> Vec<i64> {
    let before = std::iter::once(0).chain(counts.iter().copied());
    counts.iter().zip(before).map(|(count, before)| i64::from(*count) - i64::from(before)).collect()
}

prop_compose! {
    fn histogram()(
        (float, custom) in (any::<bool>(), any::<bool>()),
        (sum, zero_threshold, zero_count) in (bits(), bits(), any::<u32>()),
        (schema, reset_hint, timestamp) in (-4i32..=8, 0i32..4, any::<i64>()),
        (negative_spans, positive_spans) in (spans(), spans()),
        counts in vec(any::<u32>(), 16),
        float_counts in vec(float_count(), 16),
    ) -> HistogramV1 {
        let buckets = |spans: &[Span]| spans.iter().map(|span| span.length as usize).sum::<usize>();
        let mut histogram = HistogramV1 {
            sum, schema, zero_threshold, negative_spans, positive_spans, reset_hint, timestamp,
            ..HistogramV1::default()
        };
        let mut zero_count = zero_count;
        if custom {
            (histogram.schema, histogram.zero_threshold, zero_count) = (-53, 0, 0);
            histogram.negative_spans.clear();
            histogram.positive_spans.iter_mut().for_each(|span| span.offset = span.offset.rem_euclid(5));
            let bounds = 20u32..40;
            histogram.custom_values = bounds.map(|bound| f64::from(bound).to_bits()).collect();
        }
        let negative = buckets(&histogram.negative_spans);
        let positive = buckets(&histogram.positive_spans);
        if float {
            histogram.count = Some(Count::Float(float_counts[15]));
            histogram.zero_count = Some(ZeroCount::Float(f64::from(zero_count).to_bits()));
            histogram.negative_counts = float_counts[..negative].to_vec();
            histogram.positive_counts = float_counts[..positive].to_vec();
        } else {
            let total = |buckets: usize| counts[..buckets].iter().map(|count| u64::from(*count)).sum::<u64>();
            histogram.count = Some(Count::Int(total(negative) + total(positive) + u64::from(zero_count)));
            histogram.zero_count = Some(ZeroCount::Int(zero_count.into()));
            histogram.negative_deltas = deltas(&counts[..negative]);
            histogram.positive_deltas = deltas(&counts[..positive]);
        }
        histogram
    }
}

fn metadata() -> impl Strategy<Value = MetadataV1> {
    (0i32..8, "[a-c]{1,2}|up|http_requests", value(), "|seconds|bytes")
        .prop_map(|(kind, family, help, unit)| MetadataV1 { kind, family, help, unit })
}

prop_compose! {
    fn series_v1()(
        labels in labels(),
        samples in vec((bits(), any::<i64>()), 0..4),
        exemplars in vec(exemplar(), 0..3),
        histograms in vec(histogram(), 0..2),
    ) -> SeriesV1 {
        let sample = |(value, timestamp)| SampleV1 { value, timestamp };
        SeriesV1 { labels, samples: samples.into_iter().map(sample).collect(), exemplars, histograms }
    }
}

/// A valid 1.0 request.
pub(super) fn v1() -> impl Strategy<Value = WriteRequest> {
    (vec(series_v1(), 0..6), vec(metadata(), 0..4))
        .prop_map(|(timeseries, metadata)| WriteRequest { timeseries, metadata })
}

/// A valid 2.0 request, made from a 1.0 request and start timestamps.
pub(super) fn v2() -> impl Strategy<Value = RequestV2> {
    let starts = (prop_oneof![Just(0), any::<i64>()], prop_oneof![Just(0), any::<i64>()]);
    (v1(), vec(starts, 6), any::<bool>()).prop_map(|(request, starts, shuffled)| {
        let mut table = Table::new(shuffled);
        let mut timeseries = Vec::new();
        for (number, (series, (start, created))) in request.timeseries.into_iter().zip(starts).enumerate() {
            let labels_refs = table.refs(&series.labels);
            let exemplars = series.exemplars.iter().map(|exemplar| ExemplarV2 {
                labels_refs: table.refs(&exemplar.labels),
                value: exemplar.value,
                timestamp: exemplar.timestamp,
            });
            let exemplars = exemplars.collect();
            let metadata = request.metadata.get(number).map(|metadata| MetadataV2 {
                kind: metadata.kind,
                help_ref: table.number(&metadata.help),
                unit_ref: table.number(&metadata.unit),
            });
            let sample =
                |SampleV1 { value, timestamp }| SampleV2 { value, timestamp, start_timestamp: start };
            let mut series = SeriesV2 {
                labels_refs,
                samples: series.samples.into_iter().map(sample).collect(),
                histograms: series.histograms.iter().map(HistogramV2::from).collect(),
                exemplars,
                metadata,
                created_timestamp: created,
            };
            match (series.samples.is_empty(), series.histograms.is_empty()) {
                (true, true) if series.exemplars.is_empty() => continue,
                (false, false) => series.histograms.clear(),
                _ => {}
            }
            for histogram in &mut series.histograms {
                histogram.start_timestamp = start;
            }
            timeseries.push(series);
        }
        RequestV2 { symbols: table.symbols, timeseries }
    })
}

/// The bytes of a valid request of either version.
pub(crate) fn encoded() -> impl Strategy<Value = (Version, Vec<u8>)> {
    use prost::Message;
    prop_oneof![
        v1().prop_map(|request| (Version::V1, request.encode_to_vec())),
        v2().prop_map(|request| (Version::V2, request.encode_to_vec())),
    ]
}

/// A symbol table as a sender makes it.
struct Table {
    symbols: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

impl Table {
    /// With symbols that nobody uses, if `shuffled`: senders owe no particular order.
    fn new(shuffled: bool) -> Self {
        let mut table = Self { symbols: Vec::new(), numbers: BTreeMap::new() };
        table.number("");
        if shuffled {
            for symbol in ["unused", "up", "b", "é☃"] {
                table.number(symbol);
            }
        }
        table
    }

    fn number(&mut self, text: &str) -> u32 {
        *self.numbers.entry(text.to_owned()).or_insert_with(|| {
            self.symbols.push(text.to_owned());
            u32::try_from(self.symbols.len() - 1).unwrap()
        })
    }

    fn refs(&mut self, labels: &[Label]) -> Vec<u32> {
        labels.iter().flat_map(|label| [self.number(&label.name), self.number(&label.value)]).collect()
    }
}
