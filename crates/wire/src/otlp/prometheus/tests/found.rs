//! The contents of a remote-write body, in plain structures.

use std::collections::BTreeMap;

use crate::remote_write::{Count, Request, Symbols, Version, view};

pub(super) type Labels = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) labels: Labels,
    pub(super) value: Value,
    pub(super) timestamp: i64,
    pub(super) start_timestamp: i64,
    /// Labels, bits and time of each.
    pub(super) exemplars: Vec<(Labels, u64, i64)>,
    /// Kind, help and unit.
    pub(super) family: (u32, String, String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// The bits.
    Sample(u64),
    Histogram(Histogram),
}

/// A native histogram with its buckets spelled out.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Histogram {
    pub(super) count: u64,
    pub(super) sum: u64,
    pub(super) schema: i32,
    pub(super) zero_threshold: u64,
    pub(super) zero_count: u64,
    pub(super) positive: BTreeMap<i64, u64>,
    pub(super) negative: BTreeMap<i64, u64>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn labels<'a>(labels: impl Iterator<Item = crate::remote_write::Label<'a>>) -> Labels {
    labels.map(|label| (text(label.name), text(label.value))).collect()
}

fn buckets(
    spans: impl Iterator<Item = crate::remote_write::Span>,
    mut deltas: impl Iterator<Item = i64>,
) -> BTreeMap<i64, u64> {
    let (mut index, mut count) = (0i64, 0i64);
    let mut buckets = BTreeMap::new();
    for span in spans {
        index += i64::from(span.offset);
        for _ in 0..span.length {
            count = count.wrapping_add(deltas.next().unwrap());
            buckets.insert(index, count.cast_unsigned());
            index += 1;
        }
    }
    buckets
}

fn int(count: Option<Count>) -> u64 {
    match count {
        Some(Count::Int(count)) => count,
        None => 0,
        Some(Count::Float(_)) => panic!("these are integer histograms"),
    }
}

/// The series of a body, in order. In 1.0 the kind of a family is found by name; help and unit are not
/// compared there.
pub(super) fn series(version: Version, raw: &[u8]) -> Vec<Series> {
    let mut symbols = Symbols::new();
    let request: Request<'_> = view(version, raw, &mut symbols).unwrap();
    let mut found = Vec::new();
    for series in request.series() {
        let labels = labels(series.labels());
        let family = series.metadata().unwrap_or_default();
        let exemplars = series
            .exemplars()
            .map(|exemplar| (self::labels(exemplar.labels), exemplar.bits, exemplar.timestamp))
            .collect();
        let (value, timestamp, start_timestamp) = match (series.samples().next(), series.histograms().next())
        {
            (Some(sample), None) => (Value::Sample(sample.bits), sample.timestamp, sample.start_timestamp),
            (None, Some(histogram)) => {
                let value = Histogram {
                    count: int(histogram.count),
                    sum: histogram.sum_bits,
                    schema: histogram.schema,
                    zero_threshold: histogram.zero_threshold_bits,
                    zero_count: int(histogram.zero_count),
                    positive: buckets(histogram.positive_spans(), histogram.positive_deltas()),
                    negative: buckets(histogram.negative_spans(), histogram.negative_deltas()),
                };
                (Value::Histogram(value), histogram.timestamp, histogram.start_timestamp)
            }
            other => panic!("one of the two, not {other:?}"),
        };
        let family = (family.kind, text(family.help), text(family.unit));
        found.push(Series { labels, value, timestamp, start_timestamp, exemplars, family });
    }
    found
}
