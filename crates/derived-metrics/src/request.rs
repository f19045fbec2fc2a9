//! Series as the message `ExportMetricsServiceRequest`.
//!
//! Lengths of nested messages are summed up from those of the points: to measure each message by encoding it would encode a point 64
//! times.

use crate::aggregator::Aggregator;
use crate::attributes::Attributes;
use crate::point::Point;
use crate::settings::{Group, Instrument, InstrumentKind, Temporality};
use tidegate_wire::output::{Full, Output};
use tidegate_wire::proto::write::{self, Encode};

/// The most bytes before a nested message of less than 4 GiB.
const HEAD_MAX: u64 = 6;
/// The temporality, and whether a sum is monotonic.
const METRIC_FIELDS_MAX: u64 = 4;

/// A request with some series, which are in the order of the flush and of one tenant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) aggregator: &'a Aggregator,
    pub(crate) series: &'a [u32],
    /// The time of all data points, in nanoseconds since 1970.
    pub(crate) time_ns: u64,
}

/// All data points of a metric and resource.
struct Metric<'a> {
    request: Request<'a>,
    /// Series of one resource and measure.
    series: &'a [u32],
    instrument: &'a Instrument,
    /// The first of its words in those of the group.
    offset: usize,
}

impl<'a> Request<'a> {
    pub(crate) fn len(&self) -> Result<u64, Full> {
        self.by_resource()
            .try_fold(0, |len, series| Ok(len + write::bytes_len(self.resource_metrics_len(series)?)))
    }

    pub(crate) fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        for series in self.by_resource() {
            write::length(out, 1, self.resource_metrics_len(series)?)?;
            write::bytes(out, 1, self.resource(series))?;
            write::length(out, 2, self.scope_metrics_len(series)?)?;
            let scope = self.aggregator.settings.scope.as_bytes();
            write::length(out, 1, write::bytes_len(scope.len() as u64))?;
            write::bytes(out, 1, scope)?;
            for metric in self.metrics(series) {
                metric.encode(out)?;
            }
        }
        Ok(())
    }

    /// An upper bound for what a series adds to the series before it: that of its points, and that of what is around them.
    pub(crate) fn series_len_max(&self, number: u32, before: Option<u32>) -> Result<u64, Full> {
        let aggregator = self.aggregator;
        let series = aggregator.series.at(number);
        let before = before.map(|before| aggregator.series.at(before));
        let Some(group) = aggregator.settings.measures.get(usize::from(series.measure)) else { return Ok(0) };
        let mut len = 0;
        for (instrument, offset) in instruments(group) {
            len += HEAD_MAX + self.point(number, &instrument.kind, offset).encoded_len()?;
        }
        let is_resource = before.is_some_and(|before| before.resource == series.resource);
        if !is_resource || before.is_some_and(|before| before.measure != series.measure) {
            for instrument in &group.instruments {
                let texts = [&instrument.name, &instrument.description, &instrument.unit];
                let texts = texts.into_iter().map(|text| HEAD_MAX + text.len() as u64).sum::<u64>();
                len += HEAD_MAX + texts + HEAD_MAX + METRIC_FIELDS_MAX;
            }
        }
        if !is_resource {
            let resource = aggregator.resources.attributes(series.resource, &aggregator.blob);
            len += 5 * HEAD_MAX + resource.len() as u64 + aggregator.settings.scope.len() as u64;
        }
        Ok(len)
    }

    fn by_resource(&self) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let table = &self.aggregator.series;
        self.series.chunk_by(|a, b| table.at(*a).resource == table.at(*b).resource)
    }

    /// The message `Resource` of series.
    fn resource(&self, series: &[u32]) -> &'a [u8] {
        let aggregator = self.aggregator;
        let Some(first) = series.first() else { return &[] };
        aggregator.resources.attributes(aggregator.series.at(*first).resource, &aggregator.blob)
    }

    fn resource_metrics_len(&self, series: &'a [u32]) -> Result<u64, Full> {
        let resource = self.resource(series).len() as u64;
        Ok(write::bytes_len(resource) + write::bytes_len(self.scope_metrics_len(series)?))
    }

    fn scope_metrics_len(&self, series: &'a [u32]) -> Result<u64, Full> {
        let scope = write::bytes_len(write::bytes_len(self.aggregator.settings.scope.len() as u64));
        self.metrics(series).try_fold(scope, |len, metric| Ok(len + write::bytes_len(metric.len()?)))
    }

    /// The metrics of series of one resource.
    fn metrics(self, series: &'a [u32]) -> impl Iterator<Item = Metric<'a>> {
        let table = &self.aggregator.series;
        let by_measure = series.chunk_by(|a, b| table.at(*a).measure == table.at(*b).measure);
        by_measure.flat_map(move |series| {
            let measure = series.first().map(|first| usize::from(table.at(*first).measure));
            let group = measure.and_then(|measure| self.aggregator.settings.measures.get(measure));
            let instruments = group.into_iter().flat_map(instruments);
            let metrics = instruments.map(move |(instrument, offset)| Metric {
                request: self,
                series,
                instrument,
                offset,
            });
            metrics.filter(|metric| metric.points().next().is_some())
        })
    }

    /// The data points of a series.
    pub(crate) fn data_points(&self, number: u32) -> u32 {
        let group = self.group(number);
        let instruments = group.into_iter().flat_map(instruments);
        instruments.map(|(it, offset)| u32::from(self.has_point(number, &it.kind, offset))).sum()
    }

    fn has_point(&self, number: u32, kind: &InstrumentKind, offset: usize) -> bool {
        let words = self.words(number, kind, offset);
        self.group(number)
            .is_some_and(|group| !group.is_absent(kind, words, self.aggregator.settings.temporality))
    }

    fn words(&self, number: u32, kind: &InstrumentKind, offset: usize) -> &'a [u64] {
        self.aggregator.series.words(number).get(offset..offset + kind.words()).unwrap_or_default()
    }

    /// The group that a series is of.
    fn group(&self, number: u32) -> Option<&'a Group> {
        let Aggregator { settings, series, .. } = self.aggregator;
        settings.measures.get(usize::from(series.at(number).measure))
    }

    fn point(&self, number: u32, kind: &'a InstrumentKind, offset: usize) -> Point<'a> {
        let Aggregator { series: table, resources, blob, .. } = self.aggregator;
        let series = table.at(number);
        let names = self.group(number).and_then(|group| group.attributes.as_deref());
        let attributes = match names {
            _ if resources.is_overflow(series.resource) => Attributes::Overflow,
            Some(names) => Attributes::Listed(names, series.key(blob)),
            None => Attributes::All(series.key(blob)),
        };
        Point {
            kind,
            words: self.words(number, kind, offset),
            attributes,
            start_ns: series.start_ms().saturating_mul(1_000_000),
            time_ns: self.time_ns,
            exemplar: table.exemplar(number),
        }
    }
}

impl<'a> Metric<'a> {
    fn points(&self) -> impl Iterator<Item = Point<'a>> {
        let Metric { request, series, instrument, offset } = *self;
        let is_there = move |number: &&u32| request.has_point(**number, &instrument.kind, offset);
        series.iter().filter(is_there).map(move |number| request.point(*number, &instrument.kind, offset))
    }

    fn len(&self) -> Result<u64, Full> {
        let Instrument { name, description, unit, .. } = self.instrument;
        let texts = [name, description, unit].into_iter().map(|text| write::bytes_len(text.len() as u64));
        Ok(texts.sum::<u64>() + write::bytes_len(self.points_len()?))
    }

    /// The length of the message `Sum` or another in its place.
    fn points_len(&self) -> Result<u64, Full> {
        let fields = match self.instrument.kind {
            InstrumentKind::Count | InstrumentKind::Sum { is_monotonic: true } => 4,
            InstrumentKind::Sum { is_monotonic: false } => 2,
            InstrumentKind::Gauge => 0,
            InstrumentKind::Histogram { .. } | InstrumentKind::ExponentialHistogram { .. } => 2,
        };
        self.points().try_fold(fields, |len, point| Ok(len + write::bytes_len(point.encoded_len()?)))
    }

    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Instrument { name, description, unit, kind } = self.instrument;
        write::length(out, 2, self.len()?)?;
        write::bytes(out, 1, name.as_bytes())?;
        write::bytes(out, 2, description.as_bytes())?;
        write::bytes(out, 3, unit.as_bytes())?;
        let field = match kind {
            InstrumentKind::Gauge => 5,
            InstrumentKind::Count | InstrumentKind::Sum { .. } => 7,
            InstrumentKind::Histogram { .. } => 9,
            InstrumentKind::ExponentialHistogram { .. } => 10,
        };
        write::length(out, field, self.points_len()?)?;
        for point in self.points() {
            write::message(out, 1, &point)?;
        }
        if field != 5 {
            write::varint(
                out,
                2,
                match self.request.aggregator.settings.temporality {
                    Temporality::Delta => 1,
                    Temporality::Cumulative => 2,
                },
            )?;
        }
        match kind {
            InstrumentKind::Count | InstrumentKind::Sum { is_monotonic: true } => write::varint(out, 3, 1),
            _ => Ok(()),
        }
    }
}

/// The instruments of a group, each with the first of its words.
fn instruments(group: &Group) -> impl Iterator<Item = (&Instrument, usize)> {
    group.instruments.iter().scan(0, |end, instrument| {
        let offset = *end;
        *end += instrument.kind.words();
        Some((instrument, offset))
    })
}
