//! Metrics of OTLP: points of gauges, sums and summaries, and both kinds of histograms.

use super::ItemOrigin;
use crate::gatherer::{Gatherer, Overflow};
use crate::json::Stack;
use crate::run::{
    ExemplarRow, Keys, MetricKey, OtlpHistogram, PointValue, RowKey, RowRejection, id, write_attributes,
};
use crate::table::{flag, point_type};
use crate::{BatchResult, Error};
use tidegate_wire::otlp::{
    Attributes, Data, Exemplar, ExponentialPoint, HistogramPoint, Metric, MetricsRequest, NO_RECORDED_VALUE,
    Number, NumberPoint, SummaryPoint, temporality,
};

/// The context for adding the points of one metric.
struct Context<'c, 'r, 'a> {
    metric: MetricKey<'a>,
    origin: &'c mut ItemOrigin<'r, 'a>,
    stack: &'c mut Stack<'a>,
    pushed: &'c mut BatchResult,
}

impl<'a> Context<'_, '_, 'a> {
    /// The place of a series in a run.
    fn series(
        &mut self,
        emptied: u64,
        keys: &mut Keys,
        attributes: Attributes<'a>,
        quantile: Option<u64>,
    ) -> Result<u32, RowRejection> {
        let scope = self.origin.scope(emptied, &mut keys.origins, &mut keys.texts, self.stack)?;
        let series = keys.otlp_series_of(&self.metric, scope, attributes, quantile, self.stack);
        if series.is_err() {
            self.stack.clear();
        }
        series
    }
}

impl<O: Overflow> Gatherer<O> {
    pub(super) fn push_metrics(&mut self, raw: &[u8], pushed: &mut BatchResult) -> Result<(), Error> {
        let mut stack = Stack::new();
        for resource in MetricsRequest::new(raw).resources() {
            for scope in resource.scopes() {
                let mut points =
                    ItemOrigin::new(&resource.resource, resource.schema_url, &scope.scope, scope.schema_url);
                let mut histograms =
                    ItemOrigin::new(&resource.resource, resource.schema_url, &scope.scope, scope.schema_url);
                for metric in scope.items() {
                    let origin = match metric.data {
                        Data::Histogram(_) | Data::ExponentialHistogram(_) => &mut histograms,
                        _ => &mut points,
                    };
                    self.push_metric(&metric, origin, &mut stack, pushed)?;
                }
            }
        }
        Ok(())
    }

    fn push_metric<'a>(
        &mut self,
        metric: &Metric<'a>,
        origin: &mut ItemOrigin<'_, 'a>,
        stack: &mut Stack<'a>,
        pushed: &mut BatchResult,
    ) -> Result<(), Error> {
        let Metric { name, unit, description, .. } = *metric;
        let key = |point_type| MetricKey { name, unit, description, point_type };
        let mut context = Context { metric: key(point_type::UNKNOWN), origin, stack, pushed };
        match metric.data {
            Data::Gauge(gauge) => {
                context.metric = key(point_type::GAUGE);
                gauge.points().try_for_each(|point| self.push_number(&point, &mut context))
            }
            Data::Sum(sum) => {
                context.metric = key(sum_type(sum.temporality, sum.is_monotonic));
                sum.points().try_for_each(|point| self.push_number(&point, &mut context))
            }
            Data::Summary(summary) => {
                summary.points().try_for_each(|point| self.push_summary(&point, &mut context))
            }
            Data::Histogram(histogram) => {
                context.metric = key(point_type::HISTOGRAM);
                let points = &mut histogram.points();
                points.try_for_each(|point| self.push_explicit(&point, histogram.temporality, &mut context))
            }
            Data::ExponentialHistogram(histogram) => {
                context.metric = key(point_type::HISTOGRAM);
                let points = &mut histogram.points();
                points
                    .try_for_each(|point| self.push_exponential(&point, histogram.temporality, &mut context))
            }
            _ => Ok(()),
        }
    }

    fn push_number<'a>(
        &mut self,
        point: &NumberPoint<'a>,
        context: &mut Context<'_, '_, 'a>,
    ) -> Result<(), Error> {
        let value = match point.value {
            Some(Number::Int(value)) => PointValue::Int(value),
            Some(Number::Double(bits)) => PointValue::Double(bits),
            None => PointValue::None,
        };
        let mut counted = BatchResult::default();
        self.take(&mut counted, |rows| {
            let keys = &mut rows.points.keys;
            let series = context.series(rows.emptied, keys, point.attributes(), None)?;
            let exemplars = rows.points.exemplars();
            let row = rows.points.add(head(point.time, point.start_time, series, point.flags), value)?;
            let added = point.exemplars().try_for_each(|exemplar| {
                let exemplar = exemplar_row(&mut rows.points.keys, &exemplar, context.stack)?;
                rows.points.add_exemplar_to(row, exemplar)
            });
            if let Err(reason) = added {
                context.stack.clear();
                rows.points.take_back(row, exemplars);
                return Err(reason);
            }
            Ok(1)
        })?;
        context.pushed.add(&counted);
        Ok(())
    }

    /// A row for each quantile, one for the sum and one for the count.
    fn push_summary<'a>(
        &mut self,
        point: &SummaryPoint<'a>,
        context: &mut Context<'_, '_, 'a>,
    ) -> Result<(), Error> {
        let count = i64::try_from(point.count).unwrap_or(i64::MAX);
        let quantiles = point.quantiles().map(|quantile| {
            (point_type::SUMMARY_QUANTILE, Some(quantile.quantile), PointValue::Double(quantile.value))
        });
        let totals = [
            (point_type::SUMMARY_SUM, None, PointValue::Double(point.sum)),
            (point_type::SUMMARY_COUNT, None, PointValue::Int(count)),
        ];
        let mut counted = BatchResult::default();
        for (point_type, quantile, value) in quantiles.chain(totals) {
            context.metric.point_type = point_type;
            self.take(&mut counted, |rows| {
                let keys = &mut rows.points.keys;
                let series = context.series(rows.emptied, keys, point.attributes(), quantile)?;
                let head = head(point.time, point.start_time, series, point.flags);
                rows.points.add(head, value).map(|_| 1)
            })?;
        }
        // It is one item, however many rows it has, and it is lost when any of them is.
        counted.dropped = counted.dropped.at_most_one();
        context.pushed.add(&counted);
        Ok(())
    }

    fn push_explicit<'a>(
        &mut self,
        point: &HistogramPoint<'a>,
        temporality: i32,
        context: &mut Context<'_, '_, 'a>,
    ) -> Result<(), Error> {
        let mut counted = BatchResult::default();
        self.take(&mut counted, |rows| {
            let keys = &mut rows.histograms.keys;
            let series = context.series(rows.emptied, keys, point.attributes(), None)?;
            let histogram = OtlpHistogram {
                head: head(point.time, point.start_time, series, point.flags),
                count: point.count,
                sum: point.sum,
                min: point.min,
                max: point.max,
                temporality,
                buckets: point,
            };
            let exemplars = rows.histograms.exemplars();
            let row = rows.histograms.add_explicit(&histogram)?;
            rows.add_exemplars(row, exemplars, point.exemplars(), context)
        })?;
        context.pushed.add(&counted);
        Ok(())
    }

    fn push_exponential<'a>(
        &mut self,
        point: &ExponentialPoint<'a>,
        temporality: i32,
        context: &mut Context<'_, '_, 'a>,
    ) -> Result<(), Error> {
        let mut counted = BatchResult::default();
        self.take(&mut counted, |rows| {
            let keys = &mut rows.histograms.keys;
            let series = context.series(rows.emptied, keys, point.attributes(), None)?;
            let histogram = OtlpHistogram {
                head: head(point.time, point.start_time, series, point.flags),
                count: point.count,
                sum: point.sum,
                min: point.min,
                max: point.max,
                temporality,
                buckets: point,
            };
            let exemplars = rows.histograms.exemplars();
            let row = rows.histograms.add_exponential(&histogram)?;
            rows.add_exemplars(row, exemplars, point.exemplars(), context)
        })?;
        context.pushed.add(&counted);
        Ok(())
    }

    /// Adds the exemplars of a histogram, which is taken back when there is no room for them.
    fn add_exemplars<'a>(
        &mut self,
        row: u32,
        before: usize,
        mut exemplars: impl Iterator<Item = Exemplar<'a>>,
        context: &mut Context<'_, '_, 'a>,
    ) -> Result<u64, RowRejection> {
        let added = exemplars.try_for_each(|exemplar| {
            let exemplar = exemplar_row(&mut self.histograms.keys, &exemplar, context.stack)?;
            self.histograms.add_exemplar_to(row, exemplar)
        });
        if added.is_err() {
            context.stack.clear();
            self.histograms.take_back(row, before);
        }
        added.map(|()| 1)
    }
}

fn sum_type(of: i32, monotonic: bool) -> i32 {
    match (of, monotonic) {
        (temporality::CUMULATIVE, true) => point_type::COUNTER,
        (temporality::CUMULATIVE, false) => point_type::UP_DOWN_COUNTER,
        (temporality::DELTA, true) => point_type::DELTA,
        (temporality::DELTA, false) => point_type::UP_DOWN_DELTA,
        (_, true) => point_type::MONOTONIC,
        (_, false) => point_type::SUM,
    }
}

fn head(time: u64, start: u64, series: u32, flags: u32) -> RowKey {
    let flags = if flags & NO_RECORDED_VALUE != 0 { flag::STALE } else { 0 };
    RowKey::new(split(time), (start > 0).then(|| split(start)), series, flags)
}

fn split(nanoseconds: u64) -> (i64, u16) {
    let rest = u16::try_from(nanoseconds % 1000).unwrap_or(0);
    (i64::try_from(nanoseconds / 1000).unwrap_or(i64::MAX), rest)
}

fn exemplar_row<'a>(
    keys: &mut Keys,
    exemplar: &Exemplar<'a>,
    stack: &mut Stack<'a>,
) -> Result<ExemplarRow, RowRejection> {
    let (bits, flags) = match exemplar.value {
        Some(Number::Int(value)) => (value.cast_unsigned(), flag::INT),
        Some(Number::Double(bits)) => (bits, 0),
        None => (0, 0),
    };
    let (time_us, time_ns) = split(exemplar.time);
    Ok(ExemplarRow {
        row: u32::MAX,
        attributes: write_attributes(&mut keys.texts, exemplar.filtered_attributes(), |_| true, stack)?,
        time_us,
        time_ns,
        flags,
        bits,
        trace_id: id(exemplar.trace_id)?,
        span_id: id(exemplar.span_id)?,
    })
}
