//! Lines of metric sets: one point of one metric each.

use super::json::{Object, double, string};
use super::{counted, line};
use crate::encode::text::decimal;
use crate::record::{
    Attributes, ExponentialPoint, HistogramPoint, Metric, Number, NumberPoint, Points, PointsOf,
};
use crate::ring::EventOutput;

pub(crate) struct MetricLine<'a> {
    metric: &'a Metric<'a>,
    /// Which of the metric's points.
    index: usize,
    len: usize,
}

impl<'a> MetricLine<'a> {
    pub(crate) fn new(metric: &'a Metric<'a>, index: usize) -> Self {
        let mut line = MetricLine { metric, index, len: 0 };
        line.len = counted(|out| write(out, &line));
        line
    }
}

line!(MetricLine, write);

fn write<O: EventOutput>(out: &mut O, line: &MetricLine<'_>) {
    let (metric, index) = (line.metric, line.index);
    match metric.points {
        Points::Gauge(points) => number(out, metric, points, index, "gauge"),
        Points::Sum { points, monotonic, .. } => {
            number(out, metric, points, index, if monotonic { "counter" } else { "gauge" });
        }
        Points::Histogram { points, .. } => points.nth(index, &mut |point| histogram(out, metric, point)),
        Points::Exponential { points, .. } => points.nth(index, &mut |point| exponential(out, metric, point)),
    }
}

fn number<O: EventOutput>(
    out: &mut O,
    metric: &Metric<'_>,
    points: &dyn PointsOf<NumberPoint<'static>>,
    index: usize,
    kind: &str,
) {
    points.nth(index, &mut |point| {
        set(out, metric, point.attributes, point.time, kind, |sample| match point.value {
            Number::Int(value) => sample.value("value", value.into()),
            Number::Double(value) => sample.double("value", value),
        });
    });
}

/// The server wants values with their counts: the middle of each range that is not empty.
fn histogram<O: EventOutput>(out: &mut O, metric: &Metric<'_>, point: &HistogramPoint<'_>) {
    let middle = |index: usize| {
        let below = index.checked_sub(1).and_then(|index| point.bounds.get(index)).copied();
        match (below, point.bounds.get(index).copied()) {
            (Some(below), Some(above)) => below + (above - below) / 2.0,
            (None, Some(above)) if above > 0.0 => above / 2.0,
            (None, Some(above)) => above,
            (Some(below), None) => below,
            (None, None) => 0.0,
        }
    };
    let counts = point.counts.iter().copied().enumerate().map(|(index, count)| (middle(index), count));
    set(out, metric, point.attributes, point.time, "histogram", |sample| values(sample, counts.clone()));
}

fn exponential<O: EventOutput>(out: &mut O, metric: &Metric<'_>, point: &ExponentialPoint<'_>) {
    let base = 2_f64.powf(2_f64.powi(point.scale.saturating_neg().clamp(-64, 64)));
    let middle = |offset: i32, index: usize| {
        let below = base.powf(f64::from(offset) + index as f64);
        below + (below * base - below) / 2.0
    };
    let negative = point.negative.counts.iter().enumerate().rev();
    let negative = negative.map(|(index, count)| (-middle(point.negative.offset, index), *count));
    let positive = point.positive.counts.iter().enumerate();
    let positive = positive.map(|(index, count)| (middle(point.positive.offset, index), *count));
    let counts = negative.chain([(0.0, point.zero_count)]).chain(positive);
    set(out, metric, point.attributes, point.time, "histogram", |sample| values(sample, counts.clone()));
}

fn values<O: EventOutput>(sample: &mut Object<'_, O>, counts: impl Iterator<Item = (f64, u64)> + Clone) {
    let counts = counts.filter(|(value, count)| *count > 0 && value.is_finite());
    list(sample.key("values"), counts.clone(), |out, (value, _)| double(out, value));
    list(sample.key("counts"), counts, |out, (_, count)| decimal(out, count));
}

fn list<O: EventOutput, T>(out: &mut O, items: impl Iterator<Item = T>, write: impl Fn(&mut O, T)) {
    out.put(b"[");
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.put(b",");
        }
        write(out, item);
    }
    out.put(b"]");
}

fn set<O: EventOutput>(
    out: &mut O,
    metric: &Metric<'_>,
    attributes: &dyn Attributes,
    time: u64,
    kind: &str,
    value: impl FnOnce(&mut Object<'_, O>),
) {
    let mut outer = Object::open(out);
    let mut object = outer.object("metricset");
    object.timestamp("timestamp", time);
    object.labels("tags", attributes);
    let mut samples = object.object("samples");
    let mut sample = samples.sample(metric.name);
    string(sample.key("type"), kind);
    if !metric.unit.is_empty() {
        string(sample.key("unit"), metric.unit);
    }
    value(&mut sample);
    sample.close();
    samples.close();
    object.close();
    outer.close();
    out.put(b"\n");
}
