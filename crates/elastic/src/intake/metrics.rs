//! Metricsets as metrics: each sample is a metric of one point.

use super::attributes::table;
use super::tables::{METRICSET, SAMPLE};
use super::time::of_micros;
use super::writer::{AttributeName, MessageWriter};
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

/// Writes the samples from the one with the number `from` on, as many as there is room for; after the first, up to so
/// many bytes. How many those are; when the writer is full after that, there are more.
pub(super) fn metricset(
    out: &mut MessageWriter<'_>,
    fields: Object<'_>,
    received_at_ns: u64,
    (from, limit): (usize, usize),
) -> usize {
    let time = of_micros(fields.find(b"timestamp"));
    let set = Metricset { fields, time_ns: time.unwrap_or(received_at_ns), is_received: time.is_none() };
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
        match (value, values) {
            (_, Some(Value::Array(values))) => histogram(out, &set, sample, values),
            (Some(Value::Number(value)), _) => number(out, &set, sample, value),
            _ => {}
        }
        out.close(metric);
        if out.is_full() {
            out.take_back(before);
            break;
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

fn number(out: &mut MessageWriter<'_>, set: &Metricset<'_>, sample: Object<'_>, value: Number<'_>) {
    let found = type_of(sample);
    let is_counter = matches!(found, Some((SampleType::Counter, _)));
    // `Metric.gauge`, `Metric.sum`
    let data = out.open(if is_counter { 7 } else { 5 });
    let point = out.open(1);
    out.fixed64(3, set.time_ns);
    match value.integer() {
        Some(integer) => out.fixed64(6, integer.cast_unsigned()),
        None => out.fixed64(4, value.double().to_bits()),
    }
    attributes(out, OF_NUMBER, set, sample, &[SampleType::Gauge, SampleType::Counter]);
    out.close(point);
    if is_counter {
        out.varint(2, CUMULATIVE);
        out.varint(3, 1);
    }
    out.close(data);
}

/// A histogram's values are the upper bounds of its buckets, where they rise; else they are kept as they are.
fn histogram(out: &mut MessageWriter<'_>, set: &Metricset<'_>, sample: Object<'_>, values: Array<'_>) {
    let counts = sample.find(b"counts").and_then(Value::array);
    let data = out.open(9);
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
    attributes(out, OF_HISTOGRAM, set, sample, &[SampleType::Histogram]);
    out.close(point);
    out.varint(2, DELTA);
    out.close(data);
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

/// The attributes of a point: what the metricset says of all of them, and what is said of this sample that OTLP has no
/// field for. A type that is not among the `usual` ones is kept.
fn attributes(
    out: &mut MessageWriter<'_>,
    field: u8,
    set: &Metricset<'_>,
    sample: Object<'_>,
    usual: &[SampleType],
) {
    table(out, field, set.fields, &METRICSET);
    if set.is_received {
        out.with_value(field, AttributeName::fixed("elastic.received"), |out| out.varint(2, 1));
    }
    table(out, field, sample, &SAMPLE);
    if let Some((found, text)) = type_of(sample)
        && !usual.contains(&found)
    {
        out.attribute(field, AttributeName::fixed("elastic.sample.type"), Value::Text(text));
    }
}
