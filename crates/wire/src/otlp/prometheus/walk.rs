//! The walk over a metrics request that makes series of its points.

use super::exemplars::bits_of;
use super::labels::Origin;
use super::name::{self, Kind};
use super::native::Native;
use super::part::Part;
use super::target::{ExemplarsOf, Series, Target, Value};
use super::text::NoRoom;
use super::{SeriesScratch, Settings, Translated, milliseconds};
use crate::otlp::attribute::{AnyValue, Attributes, Resource, Scope};
use crate::otlp::metric::{Data, Metric, temporality};
use crate::otlp::point::{ExponentialPoint, HistogramPoint, NO_RECORDED_VALUE, NumberPoint, SummaryPoint};
use crate::otlp::request::MetricsRequest;
use crate::otlp::split::{items_of_metric, items_of_resource};
use crate::remote_write::{Error, Label, Metadata, STALE_NAN, Sample};

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

/// One translation.
pub(super) struct Walk<'w, T> {
    settings: &'w Settings<'w>,
    scratch: &'w mut SeriesScratch,
    target: T,
    done: Translated,
    start_timestamps: u64,
    /// The time of the newest point of the resource, if there was one.
    newest: Option<i64>,
    part: Part,
}

/// What all points of a metric share.
#[derive(Clone, Copy)]
struct About<'a> {
    kind: u32,
    help: &'a [u8],
    /// The length of the family's name at the beginning of the name buffer.
    family: usize,
}

/// What every kind of point has.
#[derive(Clone, Copy)]
struct When {
    timestamp: i64,
    start_timestamp: i64,
    stale: bool,
}

impl When {
    fn new(time: u64, start_time: u64, flags: u32) -> Self {
        let stale = flags & NO_RECORDED_VALUE != 0;
        Self { timestamp: milliseconds(time), start_timestamp: milliseconds(start_time), stale }
    }

    /// A sample at that time: of this value, unless there is none.
    fn sample(self, bits: u64) -> Value<'static> {
        let bits = if self.stale { STALE_NAN } else { bits };
        let Self { timestamp, start_timestamp, .. } = self;
        Value::Sample(Sample { bits, timestamp, start_timestamp })
    }
}

impl<'w, T: Target> Walk<'w, T> {
    pub(super) fn new(
        settings: &'w Settings<'w>,
        scratch: &'w mut SeriesScratch,
        part: Part,
        target: T,
    ) -> Self {
        let done = Translated::default();
        Self { settings, scratch, target, done, start_timestamps: 0, newest: None, part }
    }

    pub(super) fn done(&self) -> Translated {
        self.done
    }

    /// Points that have a start time.
    pub(super) fn start_timestamps(&self) -> u64 {
        self.start_timestamps
    }

    pub(super) fn request(&mut self, raw: &[u8]) -> Result<(), Error> {
        for group in MetricsRequest::new(raw).resources() {
            if self.part.is_over() {
                break;
            }
            if !self.part.is_whole() {
                let points = items_of_resource(group.message());
                if !self.part.reaches(points) {
                    self.part.pass(points);
                    continue;
                }
            }
            self.newest = None;
            self.scratch.labels.clear();
            let resource_fits = self.resource(&group.resource).is_ok();
            let mark = self.scratch.labels.mark();
            for scope in group.scopes() {
                self.scratch.labels.rewind(mark);
                let fits = resource_fits && self.scope(&scope.scope, scope.schema_url).is_ok();
                for metric in scope.items() {
                    if fits {
                        self.metric(&metric)?;
                    } else {
                        self.done.dropped.oversized += self.part.pass(items_of_metric(metric.message()));
                    }
                }
            }
            // Once for each resource, and then of the newest point: what is older would be out of order.
            if self.settings.target_info && self.part.has_last() {
                self.target_info(&group.resource)?;
            }
        }
        Ok(())
    }

    /// `job`, `instance` and what is promoted become the base of all labels.
    fn resource(&mut self, resource: &Resource<'_>) -> Result<(), NoRoom> {
        self.identity(resource.attributes())?;
        let Settings { naming, promote, .. } = *self.settings;
        for attribute in resource.attributes() {
            if promote.iter().any(|promoted| promoted.as_bytes() == attribute.key) {
                let made = self.scratch.labels.attribute(
                    naming,
                    Origin::Promoted,
                    attribute.key,
                    attribute.value,
                )?;
                self.done.dropped.labels += u64::from(!made);
            }
        }
        self.scratch.labels.keep()
    }

    /// Adds `job` and `instance`.
    fn identity(&mut self, attributes: Attributes<'_>) -> Result<(), NoRoom> {
        let naming = self.settings.naming;
        let labels = &mut self.scratch.labels;
        if let Some(service) = attributes.find(b"service.name") {
            let namespace = attributes.find(b"service.namespace").unwrap_or(AnyValue::Empty);
            labels.put(naming, Origin::Own, b"", b"job", |text| {
                let start = text.len();
                text.value(namespace)?;
                if text.len() > start {
                    text.put(b"/")?;
                }
                text.value(service)
            })?;
        }
        if let Some(instance) = attributes.find(b"service.instance.id") {
            labels.attribute(naming, Origin::Own, b"instance", instance)?;
        }
        Ok(())
    }

    /// The scope's labels join the base.
    fn scope(&mut self, scope: &Scope<'_>, schema_url: &[u8]) -> Result<(), NoRoom> {
        let Settings { naming, scope_labels, .. } = *self.settings;
        let labels = &mut self.scratch.labels;
        if scope_labels {
            let own = [
                (&b"otel_scope_name"[..], scope.name),
                (b"otel_scope_version", scope.version),
                (b"otel_scope_schema_url", schema_url),
            ];
            for (name, value) in own {
                labels.attribute(naming, Origin::Own, name, AnyValue::Text(value))?;
            }
            for attribute in scope.attributes() {
                let (key, value) = (attribute.key, attribute.value);
                if matches!(key, b"name" | b"version" | b"schema_url") {
                    continue;
                }
                let made =
                    labels.put(naming, Origin::Scope, b"otel_scope_", key, |text| text.value(value))?;
                self.done.dropped.labels += u64::from(!made);
            }
        }
        labels.keep()
    }

    fn metric(&mut self, metric: &Metric<'_>) -> Result<(), Error> {
        if !self.part.is_whole() {
            let points = items_of_metric(metric.message());
            if !self.part.reaches(points) {
                self.part.pass(points);
                self.newest = self.newest.max(newest_of(metric));
                return Ok(());
            }
        }
        let (kind, named, cumulative) = match metric.data {
            Data::Empty => return Ok(()),
            Data::Gauge(_) if declared(metric) == Some(kind::UNKNOWN) => (kind::UNKNOWN, Kind::Gauge, true),
            Data::Gauge(_) => (kind::GAUGE, Kind::Gauge, true),
            Data::Sum(sum) if sum.is_monotonic => {
                (kind::COUNTER, Kind::Counter, sum.temporality == temporality::CUMULATIVE)
            }
            Data::Sum(sum) => {
                let declared = declared(metric).filter(|kind| *kind != kind::UNKNOWN);
                let cumulative = sum.temporality == temporality::CUMULATIVE;
                (declared.unwrap_or(kind::GAUGE), Kind::Other, cumulative)
            }
            Data::Histogram(histogram) => {
                (kind::HISTOGRAM, Kind::Other, histogram.temporality == temporality::CUMULATIVE)
            }
            Data::ExponentialHistogram(histogram) => {
                (kind::HISTOGRAM, Kind::Other, histogram.temporality == temporality::CUMULATIVE)
            }
            Data::Summary(_) => (kind::SUMMARY, Kind::Other, true),
        };
        if !cumulative {
            self.done.dropped.delta += self.part.pass(items_of_metric(metric.message()));
            return Ok(());
        }
        let fits = self.name(metric, named).is_ok();
        let family = self.scratch.name.len();
        if !fits || family == 0 {
            let points = self.part.pass(items_of_metric(metric.message()));
            *if fits { &mut self.done.dropped.invalid } else { &mut self.done.dropped.oversized } += points;
            return Ok(());
        }
        let about = About { kind, help: metric.description, family };
        self.target.family(family_of(self.scratch, about))?;
        match metric.data {
            Data::Empty => {}
            Data::Gauge(gauge) => {
                for point in gauge.points() {
                    if self.takes(point.time) {
                        self.number(&point, about)?;
                    }
                }
            }
            Data::Sum(sum) => {
                for point in sum.points() {
                    if self.takes(point.time) {
                        self.number(&point, about)?;
                    }
                }
            }
            Data::Histogram(histogram) => {
                for point in histogram.points() {
                    if self.takes(point.time) {
                        self.histogram(&point, about)?;
                    }
                }
            }
            Data::ExponentialHistogram(histogram) => {
                for point in histogram.points() {
                    if self.takes(point.time) {
                        self.exponential(point, about)?;
                    }
                }
            }
            Data::Summary(summary) => {
                for point in summary.points() {
                    if self.takes(point.time) {
                        self.summary(&point, about)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the next point, which is of this time, is wanted.
    fn takes(&mut self, time: u64) -> bool {
        let takes = self.part.pass(1) > 0;
        if !takes {
            self.newest = self.newest.max(Some(milliseconds(time)));
        }
        takes
    }

    /// Puts the metric's name and unit into their buffers.
    fn name(&mut self, metric: &Metric<'_>, kind: Kind) -> Result<(), NoRoom> {
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

    /// Puts the labels of a point together; false when there is no room, and the point is counted then.
    fn labels(&mut self, attributes: Attributes<'_>) -> bool {
        let labels = &mut self.scratch.labels;
        labels.begin();
        let mut unnamed = 0;
        let naming = self.settings.naming;
        let fill = || {
            for attribute in attributes {
                let made = labels.attribute(naming, Origin::Attribute, attribute.key, attribute.value)?;
                unnamed += u64::from(!made);
            }
            labels.finish()
        };
        let fits = fill().is_ok();
        if fits {
            self.done.dropped.labels += unnamed;
        } else {
            self.done.dropped.oversized += 1;
        }
        fits
    }

    fn number(&mut self, point: &NumberPoint<'_>, about: About<'_>) -> Result<(), Error> {
        let when = When::new(point.time, point.start_time, point.flags);
        let bits = match point.value {
            Some(value) => bits_of(value),
            None if when.stale => STALE_NAN,
            None => {
                self.done.dropped.invalid += 1;
                return Ok(());
            }
        };
        if !self.labels(point.attributes()) {
            return Ok(());
        }
        let all = point.exemplars();
        self.scratch.exemplars.clear();
        self.done.dropped.exemplars += if about.kind == kind::COUNTER {
            self.scratch.exemplars.fill(self.settings, all)
        } else {
            all.count() as u64
        };
        self.seen(when);
        self.put(about, b"", None, when.sample(bits), Take::All)
    }

    fn histogram(&mut self, point: &HistogramPoint<'_>, about: About<'_>) -> Result<(), Error> {
        if !ascends(point) {
            self.done.dropped.invalid += 1;
            return Ok(());
        }
        if !self.labels(point.attributes()) {
            return Ok(());
        }
        let when = When::new(point.time, point.start_time, point.flags);
        self.done.dropped.exemplars += self.scratch.exemplars.fill(self.settings, point.exemplars());
        self.seen(when);
        if let Some(sum) = point.sum {
            self.put(about, b"_sum", None, when.sample(sum), Take::None)?;
        }
        let count = when.sample(double(point.count));
        self.put(about, b"_count", None, count, Take::None)?;
        let mut counted = 0u64;
        let mut above = None;
        for (bound, count) in point.explicit_bounds().zip(point.bucket_counts()) {
            let to = f64::from_bits(bound);
            if to == f64::INFINITY {
                break;
            }
            counted = counted.saturating_add(count);
            self.put(
                about,
                b"_bucket",
                Some((b"le", bound)),
                when.sample(double(counted)),
                Take::Within(above, to),
            )?;
            above = Some(to);
        }
        let rest = Take::Within(above, f64::INFINITY);
        self.put(about, b"_bucket", Some((b"le", f64::INFINITY.to_bits())), count, rest)
    }

    fn exponential(&mut self, point: ExponentialPoint<'_>, about: About<'_>) -> Result<(), Error> {
        let when = When::new(point.time, point.start_time, point.flags);
        let Some(native) = Native::new(point, when.stale, when.timestamp, when.start_timestamp) else {
            self.done.dropped.scale += 1;
            return Ok(());
        };
        if !self.labels(point.attributes()) {
            return Ok(());
        }
        self.done.dropped.exemplars += self.scratch.exemplars.fill(self.settings, point.exemplars());
        self.seen(when);
        self.put(about, b"", None, Value::Histogram(native), Take::All)
    }

    fn summary(&mut self, point: &SummaryPoint<'_>, about: About<'_>) -> Result<(), Error> {
        if !self.labels(point.attributes()) {
            return Ok(());
        }
        let when = When::new(point.time, point.start_time, point.flags);
        self.seen(when);
        self.put(about, b"_sum", None, when.sample(point.sum), Take::None)?;
        self.put(about, b"_count", None, when.sample(double(point.count)), Take::None)?;
        for quantile in point.quantiles() {
            let more = Some((&b"quantile"[..], quantile.quantile));
            self.put(about, b"", more, when.sample(quantile.value), Take::None)?;
        }
        Ok(())
    }

    /// Notes a point that is translated.
    fn seen(&mut self, when: When) {
        self.newest = self.newest.max(Some(when.timestamp));
        self.start_timestamps += u64::from(when.start_timestamp != 0);
    }

    /// Writes one series of the point whose labels stand ready.
    fn put(
        &mut self,
        about: About<'_>,
        suffix: &[u8],
        more: Option<(&[u8], u64)>,
        value: Value<'_>,
        take: Take,
    ) -> Result<(), Error> {
        let SeriesScratch { name, bound, .. } = &mut *self.scratch;
        name.truncate(about.family);
        bound.truncate(0);
        let number = more.map_or(Ok(()), |(_, bits)| bound.float(bits));
        if name.put(suffix).and(number).is_err() {
            // There is room for every suffix and for every number.
            self.done.dropped.oversized += 1;
            return Ok(());
        }
        match take {
            Take::None => self.series(about, more, value, std::iter::empty()),
            Take::All => {
                let SeriesScratch { exemplars, .. } = &*self.scratch;
                let all = exemplars.all();
                put_series(&mut self.target, self.scratch, about, more, value, all, &mut self.done)
            }
            Take::Within(above, to) => {
                let SeriesScratch { exemplars, .. } = &*self.scratch;
                let within = exemplars.within(above, to);
                put_series(&mut self.target, self.scratch, about, more, value, within, &mut self.done)
            }
        }
    }

    fn series(
        &mut self,
        about: About<'_>,
        more: Option<(&[u8], u64)>,
        value: Value<'_>,
        exemplars: impl ExemplarsOf,
    ) -> Result<(), Error> {
        put_series(&mut self.target, self.scratch, about, more, value, exemplars, &mut self.done)
    }

    /// The resource's attributes as a series of its own, if there is a point to date it.
    fn target_info(&mut self, resource: &Resource<'_>) -> Result<(), Error> {
        let Some(timestamp) = self.newest else { return Ok(()) };
        self.scratch.labels.clear();
        let made = self.info_labels(resource);
        let Ok(worth) = made else {
            self.done.dropped.target_infos += 1;
            return Ok(());
        };
        if !worth {
            return Ok(());
        }
        let SeriesScratch { name, unit, exemplars, .. } = &mut *self.scratch;
        name.truncate(0);
        unit.truncate(0);
        exemplars.clear();
        if name.put(b"target_info").is_err() {
            return Ok(());
        }
        let about = About { kind: kind::GAUGE, help: b"Target metadata", family: name.len() };
        self.target.family(family_of(self.scratch, about))?;
        let value = Value::Sample(Sample { bits: 1f64.to_bits(), timestamp, start_timestamp: 0 });
        self.series(about, None, value, std::iter::empty())
    }

    /// Whether there is something to say and somebody to say it of.
    fn info_labels(&mut self, resource: &Resource<'_>) -> Result<bool, NoRoom> {
        self.identity(resource.attributes())?;
        let identity = self.scratch.labels.len();
        let naming = self.settings.naming;
        for attribute in resource.attributes() {
            if matches!(attribute.key, b"service.name" | b"service.namespace" | b"service.instance.id") {
                continue;
            }
            let made =
                self.scratch.labels.attribute(naming, Origin::Attribute, attribute.key, attribute.value)?;
            self.done.dropped.labels += u64::from(!made);
        }
        let worth = identity > 0 && self.scratch.labels.len() > identity;
        self.scratch.labels.finish()?;
        Ok(worth)
    }
}

/// Which exemplars of the point a series takes.
#[derive(Clone, Copy)]
enum Take {
    None,
    All,
    /// Those above the first and at most the second.
    Within(Option<f64>, f64),
}

fn put_series<T: Target>(
    target: &mut T,
    scratch: &SeriesScratch,
    about: About<'_>,
    more: Option<(&[u8], u64)>,
    value: Value<'_>,
    exemplars: impl ExemplarsOf,
    done: &mut Translated,
) -> Result<(), Error> {
    let SeriesScratch { labels, name, bound, exemplars: arena, .. } = scratch;
    let more = more.map(|(name, _)| Label { name, value: bound.all() });
    done.series += 1;
    match value {
        Value::Sample(_) => done.samples += 1,
        Value::Histogram(_) => done.histograms += 1,
    }
    done.exemplars += exemplars.clone().count() as u64;
    let family = family_of(scratch, about);
    target.series(&Series { labels: labels.with(name.all(), more), value, exemplars, arena, family })
}

fn family_of<'s>(scratch: &'s SeriesScratch, about: About<'s>) -> Metadata<'s> {
    let family = scratch.name.all().get(..about.family).unwrap_or_default();
    Metadata { kind: about.kind, family, help: about.help, unit: scratch.unit.all() }
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

/// What `prometheus.type` says of a metric that once came from Prometheus, where OTLP has no kind for it.
fn declared(metric: &Metric<'_>) -> Option<u32> {
    match metric.metadata().find(b"prometheus.type")? {
        AnyValue::Text(b"unknown") => Some(kind::UNKNOWN),
        AnyValue::Text(b"info") => Some(kind::INFO),
        AnyValue::Text(b"stateset") => Some(kind::STATE_SET),
        _ => None,
    }
}

/// Whether a histogram's bounds ascend and its counts are one more than those, or none.
fn ascends(point: &HistogramPoint<'_>) -> bool {
    let bounds = point.explicit_bounds().map(f64::from_bits);
    let ascend = bounds.clone().zip(bounds.clone().skip(1)).all(|(one, two)| one < two);
    let (bounds, counts) =
        (bounds.clone().filter(|bound| !bound.is_nan()).count(), point.bucket_counts().count());
    ascend
        && point.explicit_bounds().count() == bounds
        && (counts == bounds + 1 || counts == 0 && bounds == 0)
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has doubles only")]
fn double(count: u64) -> u64 {
    (count as f64).to_bits()
}
