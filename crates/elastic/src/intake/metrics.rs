//! Metricsets as metrics: each sample is a metric of one point.

use super::attributes::table;
use super::tables::{METRICSET, SAMPLE};
use super::time::of_micros;
use super::writer::{AttributeName, MessageWriter};
use std::ops::Range;
use tidegate_wire::intake::{Array, Number, Object, Text, Value};

/// `ScopeMetrics.metrics`
const METRICS: u8 = 2;
/// `NumberDataPoint.attributes`
const OF_NUMBER: u8 = 7;
/// `HistogramDataPoint.attributes`
const OF_HISTOGRAM: u8 = 9;
/// `AGGREGATION_TEMPORALITY_DELTA`, `AGGREGATION_TEMPORALITY_CUMULATIVE`
const DELTA: u64 = 1;
const CUMULATIVE: u64 = 2;

/// The properties that all samples of a metricset share.
struct Metricset<'a> {
    fields: Object<'a>,
    time_ns: u64,
    /// Whether that is when it was received.
    is_received: bool,
    /// The output ranges that hold the attributes shared by all samples, of number and of histogram points. Finding them
    /// in the event takes a walk over all its samples, so they are encoded once and copied.
    of_numbers: Option<Range<usize>>,
    of_histograms: Option<Range<usize>>,
}

/// The type of a sample.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SampleType {
    Gauge,
    Counter,
    Histogram,
    /// Something else, which is kept.
    Other,
}

/// The type of the OTLP data point that a sample becomes.
#[derive(Clone, Copy)]
enum PointKind {
    Number,
    Histogram,
}

/// The attributes that a sample shares with the others, at the end of its point.
struct Shared {
    kind: PointKind,
    len: usize,
}

/// Writes the samples from the one with the number `from` on, as many as there is room for; after the first, up to so
/// many bytes. How many those are; when the writer is full after that, there are more.
pub(super) fn metricset(
    out: &mut MessageWriter<'_>,
    fields: Object<'_>,
    received_at_ns: u64,
    (from, limit): (usize, usize),
) -> usize {
    let time = of_micros(fields.find(b"timestamp"));
    let (time_ns, is_received) = (time.unwrap_or(received_at_ns), time.is_none());
    let mut set = Metricset { fields, time_ns, is_received, of_numbers: None, of_histograms: None };
    let Some(Value::Object(samples)) = fields.find(b"samples") else { return 0 };
    let mut written = 0;
    for (name, value) in samples.members().skip(from) {
        let before = out.len();
        let Value::Object(sample) = value else {
            written += 1;
            continue;
        };
        let metric = out.open(METRICS);
        out.text_field(1, name);
        if let Some(Value::Text(unit)) = sample.find(b"unit") {
            out.text_field(3, unit);
        }
        let (value, values) = (sample.find(b"value"), sample.find(b"values"));
        let shared = match (value, values) {
            (_, Some(Value::Array(values))) => Some(histogram(out, &set, sample, values)),
            (Some(Value::Number(value)), _) => Some(number(out, &set, sample, value)),
            _ => None,
        };
        out.close(metric);
        if out.is_full() {
            out.take_back(before);
            break;
        }
        if let Some(Shared { kind, len }) = shared {
            // The sample ends with them.
            let written = match kind {
                PointKind::Number => &mut set.of_numbers,
                PointKind::Histogram => &mut set.of_histograms,
            };
            written.get_or_insert(out.len() - len..out.len());
        }
        out.limit(limit);
        written += 1;
    }
    written
}

fn type_of(sample: Object<'_>) -> Option<(SampleType, Text<'_>)> {
    let Value::Text(text) = sample.find(b"type")? else { return None };
    let known = [
        (&b"gauge"[..], SampleType::Gauge),
        (b"counter", SampleType::Counter),
        (b"histogram", SampleType::Histogram),
    ];
    let found = known.iter().find(|(name, _)| text.is(name)).map_or(SampleType::Other, |(_, found)| *found);
    Some((found, text))
}

fn number(out: &mut MessageWriter<'_>, set: &Metricset<'_>, sample: Object<'_>, value: Number<'_>) -> Shared {
    let found = type_of(sample);
    let is_counter = matches!(found, Some((SampleType::Counter, _)));
    // `Metric.gauge`, `Metric.sum`
    let data = out.open(if is_counter { 7 } else { 5 });
    if is_counter {
        out.varint(2, CUMULATIVE);
        out.varint(3, 1);
    }
    let point = out.open(1);
    out.fixed64(3, set.time_ns);
    match value.integer() {
        Some(integer) => out.fixed64(6, integer.cast_unsigned()),
        None => out.fixed64(4, value.double().to_bits()),
    }
    of_sample(out, OF_NUMBER, sample, &[SampleType::Gauge, SampleType::Counter]);
    let shared = set.of_all_samples(out, PointKind::Number);
    out.close(point);
    out.close(data);
    shared
}

/// A histogram's values are the upper bounds of its buckets, where they rise; else they are kept as they are.
fn histogram(
    out: &mut MessageWriter<'_>,
    set: &Metricset<'_>,
    sample: Object<'_>,
    values: Array<'_>,
) -> Shared {
    let counts = sample.find(b"counts").and_then(Value::array);
    let data = out.open(9);
    out.varint(2, DELTA);
    let point = out.open(1);
    out.fixed64(3, set.time_ns);
    match counts.filter(|counts| is_plain(values, *counts)) {
        Some(counts) => {
            let whole =
                |value: Value<'_>| value.number().and_then(Number::integer).map_or(0, i64::cast_unsigned);
            out.fixed64(4, counts.values().map(whole).fold(0, u64::wrapping_add));
            let packed = out.open(6);
            counts.values().for_each(|value| out.bytes(&whole(value).to_le_bytes()));
            // Above the highest bound there is nothing.
            out.bytes(&[0; 8]);
            out.close(packed);
            let packed = out.open(7);
            let double = |value: Value<'_>| value.number().map_or(0.0, Number::double);
            values.values().for_each(|value| out.bytes(&double(value).to_bits().to_le_bytes()));
            out.close(packed);
        }
        None => {
            for name in ["values", "counts"] {
                if let Some(value) = sample.find(name.as_bytes()) {
                    let name =
                        if name == "values" { "elastic.sample.values" } else { "elastic.sample.counts" };
                    out.attribute(OF_HISTOGRAM, AttributeName::fixed(name), value);
                }
            }
        }
    }
    if let Some(value) = sample.find(b"value") {
        out.attribute(OF_HISTOGRAM, AttributeName::fixed("elastic.sample.value"), value);
    }
    of_sample(out, OF_HISTOGRAM, sample, &[SampleType::Histogram]);
    let shared = set.of_all_samples(out, PointKind::Histogram);
    out.close(point);
    out.close(data);
    shared
}

/// Whether values rise, and have as many counts, which are whole numbers.
fn is_plain(values: Array<'_>, counts: Array<'_>) -> bool {
    let rises = values.values().try_fold(f64::NEG_INFINITY, |before, value| {
        let value = value.number()?.double();
        (value > before && value.is_finite()).then_some(value)
    });
    let whole = |value: Value<'_>| value.number().and_then(Number::integer).is_some_and(|count| count >= 0);
    rises.is_some() && values.values().count() == counts.values().count() && counts.values().all(whole)
}

impl Metricset<'_> {
    /// Writes the attributes that all samples have.
    fn of_all_samples(&self, out: &mut MessageWriter<'_>, kind: PointKind) -> Shared {
        let before = out.len();
        let (field, written) = match kind {
            PointKind::Number => (OF_NUMBER, &self.of_numbers),
            PointKind::Histogram => (OF_HISTOGRAM, &self.of_histograms),
        };
        match written {
            Some(written) => out.again(written.clone()),
            None => {
                table(out, field, self.fields, &METRICSET);
                if self.is_received {
                    out.with_value(field, AttributeName::fixed("elastic.received"), |out| out.varint(2, 1));
                }
            }
        }
        Shared { kind, len: out.len().saturating_sub(before) }
    }
}

/// Writes what is said of this sample that OTLP has no field for. A type that is not among the `usual` ones is kept.
fn of_sample(out: &mut MessageWriter<'_>, field: u8, sample: Object<'_>, usual: &[SampleType]) {
    table(out, field, sample, &SAMPLE);
    if let Some((found, text)) = type_of(sample)
        && !usual.contains(&found)
    {
        out.attribute(field, AttributeName::fixed("elastic.sample.type"), Value::Text(text));
    }
}
