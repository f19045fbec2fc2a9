//! `Metric`, with those of its points that one event has room for.

use super::Framed;
use super::proto::{
    bytes_field_len, double_field, fixed64_field, message_head, text_field, time_field, varint, varint_field,
    varint_len, zigzag,
};
use super::value::attributes;
use crate::record::{
    Buckets, ExponentialPoint, HistogramPoint, Metric, Number, NumberPoint, Point, Points, PointsOf,
};
use crate::ring::{Counted, EventOutput, Payload};
use std::ops::Range;

/// Points `range` of a metric, as a metric of its own.
pub(crate) struct MetricPoints<'a> {
    metric: &'a Metric<'a>,
    range: Range<usize>,
    points: usize,
    framed: Framed,
}

impl<'a> MetricPoints<'a> {
    pub(crate) fn new(metric: &'a Metric<'a>, range: Range<usize>) -> Self {
        let mut counted = Counted::default();
        write_points(&mut counted, metric, &range);
        let points = counted.0;
        let framed = Framed::count(|out| write_metric(out, metric, &range, points));
        MetricPoints { metric, range, points, framed }
    }
}

impl Payload for MetricPoints<'_> {
    fn len(&self) -> usize {
        self.framed.len()
    }

    fn write<O: EventOutput>(&self, out: &mut O) {
        self.framed.head(out);
        write_metric(out, self.metric, &self.range, self.points);
    }
}

/// `points` is the length of Gauge, Sum or Histogram.
fn write_metric<O: EventOutput>(out: &mut O, metric: &Metric<'_>, range: &Range<usize>, points: usize) {
    text_field(out, 1, metric.name);
    text_field(out, 2, metric.description);
    text_field(out, 3, metric.unit);
    let field = match metric.points {
        Points::Gauge(_) => 5,
        Points::Sum { .. } => 7,
        Points::Histogram { .. } => 9,
        Points::Exponential { .. } => 10,
    };
    message_head(out, field, points);
    write_points(out, metric, range);
}

fn write_points<O: EventOutput>(out: &mut O, metric: &Metric<'_>, range: &Range<usize>) {
    match metric.points {
        Points::Gauge(points) => messages(out, points, range, number),
        Points::Sum { points, temporality, monotonic } => {
            messages(out, points, range, number);
            varint_field(out, 2, temporality as u64);
            varint_field(out, 3, u64::from(monotonic));
        }
        Points::Histogram { points, temporality } => {
            messages(out, points, range, histogram);
            varint_field(out, 2, temporality as u64);
        }
        Points::Exponential { points, temporality } => {
            messages(out, points, range, exponential);
            varint_field(out, 2, temporality as u64);
        }
    }
}

/// The points as repeated field 1.
fn messages<O: EventOutput, P: Point>(
    out: &mut O,
    points: &dyn PointsOf<P>,
    range: &Range<usize>,
    write: impl Fn(&mut dyn EventOutput, &P::At<'_>),
) {
    let mut index = 0;
    points.each(&mut |point| {
        if range.contains(&index) {
            let mut len = Counted::default();
            write(&mut len, point);
            message_head(out, 1, len.0);
            write(out, point);
        }
        index += 1;
    });
}

fn number(mut out: &mut dyn EventOutput, point: &NumberPoint<'_>) {
    let out = &mut out;
    time_field(out, 2, point.start);
    time_field(out, 3, point.time);
    match point.value {
        Number::Double(value) => fixed64_field(out, 4, value.to_bits()),
        Number::Int(value) => fixed64_field(out, 6, value as u64),
    }
    attributes(out, 7, point.attributes);
}

fn histogram(mut out: &mut dyn EventOutput, point: &HistogramPoint<'_>) {
    let out = &mut out;
    time_field(out, 2, point.start);
    time_field(out, 3, point.time);
    fixed64_field(out, 4, point.count);
    double_field(out, 5, point.sum);
    packed64(out, 6, point.counts.len(), point.counts.iter().copied());
    packed64(out, 7, point.bounds.len(), point.bounds.iter().map(|bound| bound.to_bits()));
    attributes(out, 9, point.attributes);
    double_field(out, 11, point.min);
    double_field(out, 12, point.max);
}

fn exponential(mut out: &mut dyn EventOutput, point: &ExponentialPoint<'_>) {
    let out = &mut out;
    attributes(out, 1, point.attributes);
    time_field(out, 2, point.start);
    time_field(out, 3, point.time);
    fixed64_field(out, 4, point.count);
    double_field(out, 5, point.sum);
    varint_field(out, 6, zigzag(point.scale));
    fixed64_field(out, 7, point.zero_count);
    buckets(out, 8, &point.positive);
    buckets(out, 9, &point.negative);
    double_field(out, 12, point.min);
    double_field(out, 13, point.max);
    double_field(out, 14, Some(point.zero_threshold));
}

fn buckets<O: EventOutput>(out: &mut O, field: u32, buckets: &Buckets<'_>) {
    if buckets.counts.is_empty() {
        return;
    }
    let counts = buckets.counts.iter().map(|count| varint_len(*count)).sum::<usize>();
    let mut offset = Counted::default();
    varint_field(&mut offset, 1, zigzag(buckets.offset));
    message_head(out, field, offset.0 + bytes_field_len(2, counts));
    varint_field(out, 1, zigzag(buckets.offset));
    message_head(out, 2, counts);
    buckets.counts.iter().for_each(|count| varint(out, *count));
}

fn packed64<O: EventOutput>(out: &mut O, field: u32, count: usize, values: impl Iterator<Item = u64>) {
    if count > 0 {
        message_head(out, field, count * 8);
        values.for_each(|value| out.put(&value.to_le_bytes()));
    }
}
