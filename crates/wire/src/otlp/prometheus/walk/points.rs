//! The series of one point, of each kind.

use super::{MetricContext, MetricTranslator, family_of, kind};
use crate::otlp::attribute::Attributes;
use crate::otlp::point::{ExponentialPoint, HistogramPoint, NO_RECORDED_VALUE, NumberPoint, SummaryPoint};
use crate::otlp::prometheus::deltas::{Counter, DeltaError, Key, Sum};
use crate::otlp::prometheus::exemplars::bits_of;
use crate::otlp::prometheus::labels::Origin;
use crate::otlp::prometheus::native::Native;
use crate::otlp::prometheus::series_output::{ExemplarIter, Series, SeriesOutput, Value};
use crate::otlp::prometheus::{SeriesScratch, Translated, milliseconds};
use crate::remote_write::{Label, RewriteError, STALE_NAN, Sample};

/// The properties common to every kind of point.
#[derive(Clone, Copy)]
pub(super) struct PointTimes {
    timestamp: i64,
    start_timestamp: i64,
    stale: bool,
}

impl PointTimes {
    fn new(time: u64, start_time: u64, flags: u32) -> Self {
        let stale = flags & NO_RECORDED_VALUE != 0;
        Self { timestamp: milliseconds(time), start_timestamp: milliseconds(start_time), stale }
    }

    /// The same from another start on, in nanoseconds.
    fn since(self, start_time: u64) -> Self {
        Self { start_timestamp: milliseconds(start_time), ..self }
    }

    /// A sample at that time: of this value, unless there is none.
    fn sample(self, bits: u64) -> Value<'static> {
        let bits = if self.stale { STALE_NAN } else { bits };
        let Self { timestamp, start_timestamp, .. } = self;
        Value::Sample(Sample { bits, timestamp, start_timestamp })
    }
}

impl<T: SeriesOutput> MetricTranslator<'_, T> {
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

    pub(super) fn number(
        &mut self,
        point: &NumberPoint<'_>,
        context: MetricContext<'_>,
    ) -> Result<(), RewriteError> {
        let mut when = PointTimes::new(point.time, point.start_time, point.flags);
        let mut bits = match point.value {
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
        if context.adds && !when.stale {
            let Some(sum) = self.added(point, f64::from_bits(bits), context) else { return Ok(()) };
            (bits, when) = (sum.value.to_bits(), when.since(sum.start));
        }
        let all = point.exemplars();
        self.scratch.exemplars.clear();
        self.done.dropped.exemplars += if context.kind == kind::COUNTER {
            self.scratch.exemplars.fill(self.settings, all)
        } else {
            all.count() as u64
        };
        self.seen(when);
        self.put(context, b"", None, when.sample(bits), Take::All)
    }

    /// The identities of the counters of the point whose labels are ready.
    fn key(&self, context: MetricContext<'_>) -> Option<Key> {
        let SeriesScratch { labels, name, .. } = &*self.scratch;
        let family = name.all().get(..context.family)?;
        Some(self.deltas.as_deref()?.key(family, labels.range(0, labels.len())))
    }

    /// The sum whose labels are ready, with one more delta; `None` if that is refused, and counted.
    fn added(&mut self, point: &NumberPoint<'_>, delta: f64, context: MetricContext<'_>) -> Option<Sum> {
        if !delta.is_finite() || delta < 0.0 {
            self.done.dropped.invalid += 1;
            return None;
        }
        let key = self.key(context)?;
        let added = self.deltas.as_deref_mut()?.add(key, Counter::Value, delta, point.start_time, point.time);
        added.inspect_err(|refused| self.done.dropped.refused(*refused)).ok()
    }

    pub(super) fn histogram(
        &mut self,
        point: &HistogramPoint<'_>,
        context: MetricContext<'_>,
    ) -> Result<(), RewriteError> {
        if !ascends(point) {
            self.done.dropped.invalid += 1;
            return Ok(());
        }
        if !self.labels(point.attributes()) {
            return Ok(());
        }
        let mut when = PointTimes::new(point.time, point.start_time, point.flags);
        let added = match context.adds && !when.stale {
            true => match self.added_to_count(point, context) {
                Some((point, count)) => {
                    when = when.since(count.start);
                    Some((point, count.value))
                }
                None => return Ok(()),
            },
            false => None,
        };
        self.done.dropped.exemplars += self.scratch.exemplars.fill(self.settings, point.exemplars());
        self.seen(when);
        let key = added.map(|(key, _)| key);
        if let Some(sum) = point.sum.and_then(|sum| self.told(key, point, Counter::Sum, f64::from_bits(sum)))
        {
            self.put(context, b"_sum", None, when.sample(sum.to_bits()), Take::None)?;
        }
        let count = added.map_or(double(point.count), |(_, count)| count);
        let count = when.sample(count.to_bits());
        self.put(context, b"_count", None, count, Take::None)?;
        let mut counted = 0u64;
        let mut above = None;
        for (bound, count) in finite_bounds(point).zip(point.bucket_counts()) {
            let to = f64::from_bits(bound);
            counted = counted.saturating_add(count);
            let Some(counted) = self.told(key, point, Counter::Bucket(bound), double(counted)) else {
                continue;
            };
            let value = when.sample(counted.to_bits());
            self.put(context, b"_bucket", Some((b"le", bound)), value, Take::Within(above, to))?;
            above = Some(to);
        }
        let rest = Take::Within(above, f64::INFINITY);
        self.put(context, b"_bucket", Some((b"le", f64::INFINITY.to_bits())), count, rest)
    }

    /// The count of a delta histogram with one more point, and its counters' identities; `None` if the point is
    /// refused, and counted.
    fn added_to_count(
        &mut self,
        point: &HistogramPoint<'_>,
        context: MetricContext<'_>,
    ) -> Option<(Key, Sum)> {
        let key = self.key(context)?;
        let deltas = self.deltas.as_deref_mut()?;
        let counters = finite_bounds(point).map(Counter::Bucket);
        let counters = [Counter::Count, Counter::Sum].into_iter().chain(counters);
        let added = if deltas.has_room(key, counters) {
            deltas.add(key, Counter::Count, double(point.count), point.start_time, point.time)
        } else {
            Err(DeltaError::Full)
        };
        let count = added.inspect_err(|refused| self.done.dropped.refused(*refused)).ok()?;
        Some((key, count))
    }

    /// The value of a histogram's series: as it is said, or what it comes to where deltas are added up.
    fn told(
        &mut self,
        key: Option<Key>,
        point: &HistogramPoint<'_>,
        counter: Counter,
        said: f64,
    ) -> Option<f64> {
        let Some(key) = key else { return Some(said) };
        let added = self.deltas.as_deref_mut()?.add(key, counter, said, point.start_time, point.time);
        added.ok().map(|sum| sum.value)
    }

    pub(super) fn exponential(
        &mut self,
        point: ExponentialPoint<'_>,
        context: MetricContext<'_>,
    ) -> Result<(), RewriteError> {
        let when = PointTimes::new(point.time, point.start_time, point.flags);
        let Some(native) = Native::new(point, when.stale, when.timestamp, when.start_timestamp) else {
            self.done.dropped.scale += 1;
            return Ok(());
        };
        if !self.labels(point.attributes()) {
            return Ok(());
        }
        self.done.dropped.exemplars += self.scratch.exemplars.fill(self.settings, point.exemplars());
        self.seen(when);
        self.put(context, b"", None, Value::Histogram(native), Take::All)
    }

    pub(super) fn summary(
        &mut self,
        point: &SummaryPoint<'_>,
        context: MetricContext<'_>,
    ) -> Result<(), RewriteError> {
        if !self.labels(point.attributes()) {
            return Ok(());
        }
        let when = PointTimes::new(point.time, point.start_time, point.flags);
        self.seen(when);
        self.put(context, b"_sum", None, when.sample(point.sum), Take::None)?;
        self.put(context, b"_count", None, when.sample(double(point.count).to_bits()), Take::None)?;
        for quantile in point.quantiles() {
            let more = Some((&b"quantile"[..], quantile.quantile));
            self.put(context, b"", more, when.sample(quantile.value), Take::None)?;
        }
        Ok(())
    }

    /// Notes a point that is translated.
    fn seen(&mut self, when: PointTimes) {
        self.newest = self.newest.max(Some(when.timestamp));
        self.start_timestamps += u64::from(when.start_timestamp != 0);
    }

    /// Writes one series of the point whose labels stand ready.
    fn put(
        &mut self,
        context: MetricContext<'_>,
        suffix: &[u8],
        more: Option<(&[u8], u64)>,
        value: Value<'_>,
        take: Take,
    ) -> Result<(), RewriteError> {
        let SeriesScratch { name, bound, .. } = &mut *self.scratch;
        name.truncate(context.family);
        bound.truncate(0);
        let number = more.map_or(Ok(()), |(_, bits)| bound.float(bits));
        if name.put(suffix).and(number).is_err() {
            // There is room for every suffix and for every number.
            self.done.dropped.oversized += 1;
            return Ok(());
        }
        match take {
            Take::None => self.series(context, more, value, std::iter::empty()),
            Take::All => {
                let SeriesScratch { exemplars, .. } = &*self.scratch;
                let all = exemplars.all();
                put_series(&mut self.target, self.scratch, context, more, value, all, &mut self.done)
            }
            Take::Within(above, to) => {
                let SeriesScratch { exemplars, .. } = &*self.scratch;
                let within = exemplars.within(above, to);
                put_series(&mut self.target, self.scratch, context, more, value, within, &mut self.done)
            }
        }
    }

    pub(super) fn series(
        &mut self,
        context: MetricContext<'_>,
        more: Option<(&[u8], u64)>,
        value: Value<'_>,
        exemplars: impl ExemplarIter,
    ) -> Result<(), RewriteError> {
        put_series(&mut self.target, self.scratch, context, more, value, exemplars, &mut self.done)
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

fn put_series<T: SeriesOutput>(
    target: &mut T,
    scratch: &SeriesScratch,
    context: MetricContext<'_>,
    more: Option<(&[u8], u64)>,
    value: Value<'_>,
    exemplars: impl ExemplarIter,
    done: &mut Translated,
) -> Result<(), RewriteError> {
    let SeriesScratch { labels, name, bound, exemplars: arena, .. } = scratch;
    let more = more.map(|(name, _)| Label { name, value: bound.all() });
    done.series += 1;
    match value {
        Value::Sample(_) => done.samples += 1,
        Value::Histogram(_) => done.histograms += 1,
    }
    done.exemplars += exemplars.clone().count() as u64;
    let family = family_of(scratch, context);
    target.series(&Series { labels: labels.with(name.all(), more), value, exemplars, arena, family })
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

/// A histogram's bounds but for the last, which all have.
fn finite_bounds(point: &HistogramPoint<'_>) -> impl Iterator<Item = u64> + Clone {
    point.explicit_bounds().take_while(|bound| f64::from_bits(*bound) != f64::INFINITY)
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has doubles only")]
fn double(count: u64) -> f64 {
    count as f64
}
