//! Metrics of the SDK. Exemplars are left out.

use super::Exporter;
use super::values::show;
use crate::clock::nanos;
use crate::record::{
    Attributes, Buckets, ExponentialPoint, HistogramPoint, Metric, Number, NumberPoint, Points, PointsOf,
    Scope, Temporality, Value,
};
use opentelemetry::KeyValue;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, ExponentialHistogram, Gauge, Histogram, MetricData, ResourceMetrics, Sum,
};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use std::time::Duration;

impl PushMetricExporter for Exporter {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.adopt(metrics.resource());
        for group in metrics.scope_metrics() {
            let scope = self.scope(group.scope());
            for metric in group.metrics() {
                match metric.data() {
                    AggregatedMetrics::F64(data) => self.metric(metric, scope, data, Number::Double),
                    AggregatedMetrics::U64(data) => self.metric(metric, scope, data, whole),
                    AggregatedMetrics::I64(data) => self.metric(metric, scope, data, Number::Int),
                }
            }
        }
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.flush(Duration::from_secs(5))
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.end(timeout)
    }

    fn temporality(&self) -> opentelemetry_sdk::metrics::Temporality {
        self.temporality
    }
}

impl Exporter {
    fn metric<T: Copy>(
        &self,
        metric: &opentelemetry_sdk::metrics::data::Metric,
        scope: Scope,
        data: &MetricData<T>,
        number: fn(T) -> Number,
    ) {
        let send = |points| {
            let (name, description, unit) = (metric.name(), metric.description(), metric.unit());
            // Counted if it is refused; the SDK would only log it.
            let _ = self.sender.metric(&Metric { name, description, unit, points, scope });
        };
        match data {
            MetricData::Gauge(gauge) => send(Points::Gauge(&With(gauge, number))),
            MetricData::Sum(sum) => send(Points::Sum {
                points: &With(sum, number),
                temporality: temporality(sum.temporality()),
                monotonic: sum.is_monotonic(),
            }),
            MetricData::Histogram(histogram) => send(Points::Histogram {
                points: &With(histogram, number),
                temporality: temporality(histogram.temporality()),
            }),
            MetricData::ExponentialHistogram(histogram) => send(Points::Exponential {
                points: &With(histogram, number),
                temporality: temporality(histogram.temporality()),
            }),
        }
    }
}

/// An aggregation, and what its numbers are.
struct With<'a, D, T>(&'a D, fn(T) -> Number);

impl<T: Copy> PointsOf<NumberPoint<'static>> for With<'_, Gauge<T>, T> {
    fn each(&self, visit: &mut dyn FnMut(&NumberPoint<'_>)) {
        let (start, time) = (self.0.start_time().map_or(0, nanos), nanos(self.0.time()));
        for point in self.0.data_points() {
            let attributes = &Pairs(|| point.attributes());
            visit(&NumberPoint { attributes, start, time, value: (self.1)(point.value()) });
        }
    }
}

impl<T: Copy> PointsOf<NumberPoint<'static>> for With<'_, Sum<T>, T> {
    fn each(&self, visit: &mut dyn FnMut(&NumberPoint<'_>)) {
        let (start, time) = (nanos(self.0.start_time()), nanos(self.0.time()));
        for point in self.0.data_points() {
            let attributes = &Pairs(|| point.attributes());
            visit(&NumberPoint { attributes, start, time, value: (self.1)(point.value()) });
        }
    }
}

impl<T: Copy> PointsOf<HistogramPoint<'static>> for With<'_, Histogram<T>, T> {
    fn each(&self, visit: &mut dyn FnMut(&HistogramPoint<'_>)) {
        let (start, time) = (nanos(self.0.start_time()), nanos(self.0.time()));
        for point in self.0.data_points() {
            let bounds: Vec<f64> = point.bounds().collect();
            let counts: Vec<u64> = point.bucket_counts().collect();
            visit(&HistogramPoint {
                attributes: &Pairs(|| point.attributes()),
                start,
                time,
                count: point.count(),
                sum: Some(double((self.1)(point.sum()))),
                min: point.min().map(|min| double((self.1)(min))),
                max: point.max().map(|max| double((self.1)(max))),
                bounds: &bounds,
                counts: &counts,
            });
        }
    }
}

impl<T: Copy> PointsOf<ExponentialPoint<'static>> for With<'_, ExponentialHistogram<T>, T> {
    fn each(&self, visit: &mut dyn FnMut(&ExponentialPoint<'_>)) {
        let (start, time) = (nanos(self.0.start_time()), nanos(self.0.time()));
        for point in self.0.data_points() {
            let positive: Vec<u64> = point.positive_bucket().counts().collect();
            let negative: Vec<u64> = point.negative_bucket().counts().collect();
            visit(&ExponentialPoint {
                attributes: &Pairs(|| point.attributes()),
                start,
                time,
                count: point.count() as u64,
                sum: Some(double((self.1)(point.sum()))),
                min: point.min().map(|min| double((self.1)(min))),
                max: point.max().map(|max| double((self.1)(max))),
                scale: i32::from(point.scale()),
                zero_count: point.zero_count(),
                zero_threshold: point.zero_threshold(),
                positive: Buckets { offset: point.positive_bucket().offset(), counts: &positive },
                negative: Buckets { offset: point.negative_bucket().offset(), counts: &negative },
            });
        }
    }
}

/// Attributes that are an iterator, made anew each time.
struct Pairs<F>(F);

impl<'a, I: Iterator<Item = &'a KeyValue>, F: Fn() -> I> Attributes for Pairs<F> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        for pair in (self.0)() {
            show(&pair.value, |value| visit(pair.key.as_str(), value));
        }
    }
}

fn temporality(theirs: opentelemetry_sdk::metrics::Temporality) -> Temporality {
    match theirs {
        opentelemetry_sdk::metrics::Temporality::Delta => Temporality::Delta,
        _ => Temporality::Cumulative,
    }
}

fn whole(value: u64) -> Number {
    i64::try_from(value).map_or(Number::Double(value as f64), Number::Int)
}

fn double(number: Number) -> f64 {
    match number {
        Number::Int(value) => value as f64,
        Number::Double(value) => value,
    }
}
