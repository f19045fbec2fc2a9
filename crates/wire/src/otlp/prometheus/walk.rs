//! The walk over a metrics request that makes series of its points.

mod points;
mod resource;

use super::deltas::Deltas;
use super::name::{self, Kind};
use super::point_range::PointRange;
use super::series_output::SeriesOutput;
use super::text::BufferFull;
use super::{SeriesScratch, Settings, Translated, milliseconds};
use crate::otlp::attribute::AnyValue;
use crate::otlp::metric::{Data, Metric, temporality};
use crate::otlp::request::{MetricsRequest, ResourceGroup};
use crate::otlp::split::{items_of_metric, items_of_resource};
use crate::remote_write::{Metadata, RewriteError};
use std::ops::Range;

/// The kinds of family that remote write knows.
mod kind {
    pub(super) const UNKNOWN: u32 = 0;
    pub(super) const COUNTER: u32 = 1;
    pub(super) const GAUGE: u32 = 2;
    pub(super) const HISTOGRAM: u32 = 3;
    pub(super) const SUMMARY: u32 = 5;
    pub(super) const INFO: u32 = 6;
    pub(super) const STATE_SET: u32 = 7;
}

/// A place in a request: in a metric, or before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PointPlace {
    /// The metric's number in its scope, that scope's in its resource, and that resource's.
    metric: usize,
    scope: usize,
    resource: usize,
    /// The points before that metric.
    passed: u64,
    /// The points of that metric before the place.
    inside: u64,
    /// The time of the newest point of the resource before the place, in milliseconds.
    newest: Option<i64>,
}

/// One translation.
pub(super) struct MetricTranslator<'w, T> {
    settings: &'w Settings<'w>,
    scratch: &'w mut SeriesScratch,
    target: T,
    done: Translated,
    start_timestamps: u64,
    /// The time of the newest point of the resource, if there was one.
    newest: Option<i64>,
    range: PointRange,
    /// Where the walk begins, and later the end of what it came to.
    place: PointPlace,
    /// The points of the present metric that are before the walk.
    inside: u64,
    /// Converts deltas to counters, if configured.
    deltas: Option<&'w mut Deltas>,
}

/// The properties that all points of a metric share.
#[derive(Clone, Copy)]
struct MetricContext<'a> {
    kind: u32,
    help: &'a [u8],
    /// The length of the family's name at the beginning of the name buffer.
    family: usize,
    /// Whether points say what came since the one before, to be added up.
    adds: bool,
}

impl<'w, T: SeriesOutput> MetricTranslator<'w, T> {
    pub(super) fn new(
        settings: &'w Settings<'w>,
        scratch: &'w mut SeriesScratch,
        (place, wanted): (PointPlace, Range<u64>),
        deltas: Option<&'w mut Deltas>,
        target: T,
    ) -> Self {
        let (done, range) = (Translated::default(), PointRange::new(wanted, place.passed + place.inside));
        let (start_timestamps, newest, inside) = (0, None, 0);
        Self { settings, scratch, target, done, start_timestamps, newest, range, place, inside, deltas }
    }

    /// The end of what the walk came to.
    pub(super) fn place(&self) -> PointPlace {
        self.place
    }

    pub(super) fn done(&self) -> Translated {
        self.done
    }

    /// Points that have a start time.
    pub(super) fn start_timestamps(&self) -> u64 {
        self.start_timestamps
    }

    pub(super) fn request(&mut self, raw: &[u8]) -> Result<(), RewriteError> {
        let begin = self.place;
        for (resource, group) in MetricsRequest::new(raw).resources().enumerate().skip(begin.resource) {
            if self.range.is_over() {
                break;
            }
            // Where a walk goes on within a resource, that has points that are wanted, or none are left of it.
            let goes_on = begin.passed + begin.inside > 0 && resource == begin.resource;
            if !self.range.is_whole() && !goes_on {
                let points = items_of_resource(group.message());
                if !self.range.reaches(points) {
                    self.range.pass(points);
                    continue;
                }
            }
            self.newest = if goes_on { begin.newest } else { None };
            self.scratch.labels.clear();
            let resource_fits = self.resource(&group.resource).is_ok();
            let begin = if goes_on { begin } else { PointPlace::default() };
            self.scopes(&group, PointPlace { resource, ..begin }, resource_fits)?;
            if self.place.resource == resource {
                self.place.inside = self.range.reached().saturating_sub(self.place.passed);
                self.place.newest = self.newest;
            }
            // Once for each resource, and then of the newest point: what is older would be out of order.
            if self.settings.target_info && self.range.has_last() {
                self.target_info(&group.resource)?;
            }
        }
        Ok(())
    }

    /// The metrics of a resource from a place on, up to the last point that is wanted.
    fn scopes(
        &mut self,
        group: &ResourceGroup<'_, Metric<'_>>,
        begin: PointPlace,
        fits: bool,
    ) -> Result<(), RewriteError> {
        let mark = self.scratch.labels.mark();
        for (number, scope) in group.scopes().enumerate().skip(begin.scope) {
            self.scratch.labels.rewind(mark);
            let fits = fits && self.scope(&scope.scope, scope.schema_url).is_ok();
            let metrics = if number == begin.scope { begin.metric } else { 0 };
            for (metric_number, metric) in scope.items().enumerate().skip(metrics) {
                let is_begun = number == begin.scope && metric_number == begin.metric;
                self.inside = if is_begun { begin.inside } else { 0 };
                if self.range.is_over() {
                    // All that counts of what comes is whether the resource has another point.
                    let points = items_of_metric(metric.message());
                    self.range.pass(points);
                    if points > 0 {
                        return Ok(());
                    }
                    continue;
                }
                let passed = self.range.passed() - self.inside;
                self.place = PointPlace { metric: metric_number, scope: number, passed, ..begin };
                if fits {
                    self.metric(&metric)?;
                } else {
                    self.done.dropped.oversized += self.range.pass(self.points_of(&metric));
                }
            }
        }
        Ok(())
    }

    fn metric(&mut self, metric: &Metric<'_>) -> Result<(), RewriteError> {
        if !self.range.is_whole() {
            let points = self.points_of(metric);
            if !self.range.reaches(points) {
                self.range.pass(points);
                self.newest = self.newest.max(newest_of(metric));
                return Ok(());
            }
        }
        let (kind, named, temporality) = match metric.data {
            Data::Empty => return Ok(()),
            Data::Gauge(_) if declared(metric) == Some(kind::UNKNOWN) => {
                (kind::UNKNOWN, Kind::Gauge, temporality::CUMULATIVE)
            }
            Data::Gauge(_) => (kind::GAUGE, Kind::Gauge, temporality::CUMULATIVE),
            Data::Sum(sum) if sum.is_monotonic => (kind::COUNTER, Kind::Counter, sum.temporality),
            Data::Sum(sum) => {
                let declared = declared(metric).filter(|kind| *kind != kind::UNKNOWN);
                (declared.unwrap_or(kind::GAUGE), Kind::Other, sum.temporality)
            }
            Data::Histogram(histogram) => (kind::HISTOGRAM, Kind::Other, histogram.temporality),
            Data::ExponentialHistogram(histogram) => (kind::HISTOGRAM, Kind::Other, histogram.temporality),
            Data::Summary(_) => (kind::SUMMARY, Kind::Other, temporality::CUMULATIVE),
        };
        let adds = temporality == temporality::DELTA && self.deltas.is_some() && has_counters(metric.data);
        if !adds && temporality != temporality::CUMULATIVE {
            self.done.dropped.delta += self.range.pass(self.points_of(metric));
            return Ok(());
        }
        let fits = self.name(metric, named).is_ok();
        let family = self.scratch.name.len();
        if !fits || family == 0 {
            let points = self.range.pass(self.points_of(metric));
            *if fits { &mut self.done.dropped.invalid } else { &mut self.done.dropped.oversized } += points;
            return Ok(());
        }
        let context = MetricContext { kind, help: metric.description, family, adds };
        self.target.family(family_of(self.scratch, context))?;
        let skipped = usize::try_from(self.inside).unwrap_or(usize::MAX);
        match metric.data {
            Data::Empty => {}
            Data::Gauge(gauge) => {
                for point in gauge.points().skip(skipped) {
                    if self.takes(point.time) {
                        self.number(&point, context)?;
                    } else if self.range.is_passed() {
                        break;
                    }
                }
            }
            Data::Sum(sum) => {
                for point in sum.points().skip(skipped) {
                    if self.takes(point.time) {
                        self.number(&point, context)?;
                    } else if self.range.is_passed() {
                        break;
                    }
                }
            }
            Data::Histogram(histogram) => {
                for point in histogram.points().skip(skipped) {
                    if self.takes(point.time) {
                        self.histogram(&point, context)?;
                    } else if self.range.is_passed() {
                        break;
                    }
                }
            }
            Data::ExponentialHistogram(histogram) => {
                for point in histogram.points().skip(skipped) {
                    if self.takes(point.time) {
                        self.exponential(point, context)?;
                    } else if self.range.is_passed() {
                        break;
                    }
                }
            }
            Data::Summary(summary) => {
                for point in summary.points().skip(skipped) {
                    if self.takes(point.time) {
                        self.summary(&point, context)?;
                    } else if self.range.is_passed() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The points of a metric that are not before the walk.
    fn points_of(&self, metric: &Metric<'_>) -> u64 {
        items_of_metric(metric.message()).saturating_sub(self.inside)
    }

    /// Whether the next point, which is of this time, is wanted.
    fn takes(&mut self, time: u64) -> bool {
        let takes = self.range.pass(1) > 0;
        if !takes {
            self.newest = self.newest.max(Some(milliseconds(time)));
        }
        takes
    }

    /// Puts the metric's name and unit into their buffers.
    fn name(&mut self, metric: &Metric<'_>, kind: Kind) -> Result<(), BufferFull> {
        let SeriesScratch { name, unit, .. } = self.scratch;
        name.truncate(0);
        unit.truncate(0);
        name::metric(name, self.settings.naming, metric.name, metric.unit, kind)?;
        // Room for the longest suffix.
        let len = name.len();
        name.put(b"_bucket")?;
        name.truncate(len);
        name::unit(unit, metric.unit)
    }
}

fn family_of<'s>(scratch: &'s SeriesScratch, context: MetricContext<'s>) -> Metadata<'s> {
    let family = scratch.name.all().get(..context.family).unwrap_or_default();
    Metadata { kind: context.kind, family, help: context.help, unit: scratch.unit.all() }
}

/// Whether deltas of this kind can be added up to something that Prometheus takes for a counter.
fn has_counters(data: Data<'_>) -> bool {
    match data {
        Data::Sum(sum) => sum.is_monotonic,
        Data::Histogram(_) => true,
        Data::Empty | Data::Gauge(_) | Data::ExponentialHistogram(_) | Data::Summary(_) => false,
    }
}

/// The time of the newest point of a metric.
fn newest_of(metric: &Metric<'_>) -> Option<i64> {
    let newest = match metric.data {
        Data::Empty => None,
        Data::Gauge(gauge) => gauge.points().map(|point| point.time).max(),
        Data::Sum(sum) => sum.points().map(|point| point.time).max(),
        Data::Histogram(histogram) => histogram.points().map(|point| point.time).max(),
        Data::ExponentialHistogram(histogram) => histogram.points().map(|point| point.time).max(),
        Data::Summary(summary) => summary.points().map(|point| point.time).max(),
    };
    newest.map(milliseconds)
}

/// The type of a metric that once came from Prometheus, from `prometheus.type`, if OTLP has no kind for it.
fn declared(metric: &Metric<'_>) -> Option<u32> {
    match metric.metadata().find(b"prometheus.type")? {
        AnyValue::Text(b"unknown") => Some(kind::UNKNOWN),
        AnyValue::Text(b"info") => Some(kind::INFO),
        AnyValue::Text(b"stateset") => Some(kind::STATE_SET),
        _ => None,
    }
}
