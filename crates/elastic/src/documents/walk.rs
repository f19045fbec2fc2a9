//! Walks over OTLP and has each item written in the mapping that is asked for.

use super::data_stream::StreamOverride;
use super::document_buffer::DocumentOutput;
use super::document_writer::{DocumentWriter, ScopeOrigin};
use super::ecs::is_nameable;
use super::group::PointGroup;
use super::point::{AnyPoint, MetricKind};
use super::{DocumentPosition, DocumentSettings, Mapping, Untranslatable, WriteResult};
use tidegate_wire::otlp::{
    AnyValue, Data, Item, LogRecord, LogsRequest, Metric, MetricsRequest, ResourceGroup, ScopeGroup, Signal,
    Span, TracesRequest, items,
};
use tidegate_wire::output::Full;

pub(super) fn otlp(
    signal: Signal,
    raw: &[u8],
    from: DocumentPosition,
    prefix: &str,
    settings: &DocumentSettings<'_>,
    sheet: &mut impl DocumentOutput,
) -> Result<WriteResult, Full> {
    let mut pen = DocumentWriter::new(sheet, prefix, from, settings);
    let full = match signal {
        Signal::Logs => pen.logs(raw, from.item).is_err(),
        Signal::Traces => pen.traces(raw, from.item).is_err(),
        Signal::Metrics => pen.metrics_of(raw, from.item).is_err(),
        Signal::Profiles => {
            let items = items(signal, raw);
            return Ok(WriteResult {
                untranslatable: Untranslatable { items, values: 0 },
                ..WriteResult::default()
            });
        }
    };
    pen.finished(full)
}

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// The properties that all items of a scope share.
    fn from<T: Item<'a>>(
        &mut self,
        resource: &ResourceGroup<'a, T>,
        scope: &ScopeGroup<'a, T>,
        wishes: StreamOverride<'a>,
    ) -> ScopeOrigin<'a> {
        let mut origin = ScopeOrigin {
            resource: resource.resource,
            resource_schema: resource.schema_url,
            scope: scope.scope,
            scope_schema: scope.schema_url,
            wishes: wishes.overruled(scope.scope.attributes()),
            said: None,
            service: None,
        };
        if self.settings.index.is_some() {
            self.service = match resource.resource.attributes().find(b"service.name") {
                Some(AnyValue::Text(name)) => name,
                _ => &[],
            };
        }
        origin.service = match self.settings.mapping {
            Mapping::Otel => None,
            Mapping::Ecs => Some(self.ecs_origin(&origin)),
        };
        origin
    }

    fn logs(&mut self, raw: &'a [u8], from: u64) -> Result<(), Full> {
        let request = LogsRequest::new(raw);
        self.each(request.resources(), from, |pen, origin, record: &LogRecord<'a>| match origin.service {
            None => pen.native_log(origin, record),
            Some(service) => pen.ecs_log(origin, service, record),
        })
    }

    fn traces(&mut self, raw: &'a [u8], from: u64) -> Result<(), Full> {
        let request = TracesRequest::new(raw);
        self.each(request.resources(), from, |pen, origin, span: &Span<'a>| match origin.service {
            None => pen.native_span(origin, span),
            Some(service) => pen.ecs_span(origin, service, span),
        })
    }

    /// Writes each item from the place on, with its origin.
    fn each<T: Item<'a>>(
        &mut self,
        resources: impl Iterator<Item = ResourceGroup<'a, T>>,
        from: u64,
        mut write: impl FnMut(&mut Self, &mut ScopeOrigin<'a>, &T) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let mut count = 0;
        for resource in resources {
            let wishes = StreamOverride::default().overruled(resource.resource.attributes());
            for scope in resource.scopes() {
                let Some(done) = items_done(&mut count, from, || scope.items().count()) else { continue };
                let mut origin = self.from(&resource, &scope, wishes);
                for item in scope.items().skip(done) {
                    count += 1;
                    write(self, &mut origin, &item)?;
                    self.next(count);
                }
            }
        }
        Ok(())
    }

    fn metrics_of(&mut self, raw: &'a [u8], from: u64) -> Result<(), Full> {
        let mut group = PointGroup::new(items(Signal::Metrics, raw).saturating_sub(from));
        let mut count = 0;
        for resource in MetricsRequest::new(raw).resources() {
            let wishes = StreamOverride::default().overruled(resource.resource.attributes());
            for scope in resource.scopes() {
                let mut origin = self.from(&resource, &scope, wishes);
                group.begin(count.max(from));
                for metric in scope.items() {
                    self.points(&metric, from, &mut count, &mut origin, &mut group)?;
                }
                self.group(&mut origin, &mut group)?;
            }
        }
        Ok(())
    }

    /// Takes the points of a metric, and writes them when there are enough.
    fn points(
        &mut self,
        metric: &Metric<'a>,
        from: u64,
        count: &mut u64,
        origin: &mut ScopeOrigin<'a>,
        group: &mut PointGroup<'a>,
    ) -> Result<(), Full> {
        let Some(of) = MetricKind::metric(&metric.data) else { return Ok(()) };
        let Some(done) = items_done(count, from, || metric.data.points()) else { return Ok(()) };
        let (name, unit) = match self.settings.mapping {
            Mapping::Otel => (metric.name, metric.unit),
            Mapping::Ecs if is_nameable(metric.name) => (metric.name, &[][..]),
            Mapping::Ecs => (&[][..], &[][..]),
        };
        let mut take = |point: AnyPoint<'a>| {
            *count += 1;
            group.push(name, unit, of, &point);
            if !group.is_full() {
                return Ok(());
            }
            self.group(origin, group)?;
            group.begin(*count);
            Ok(())
        };
        match metric.data {
            Data::Empty => Ok(()),
            Data::Gauge(of) => of.points().skip(done).map(AnyPoint::Number).try_for_each(take),
            Data::Sum(of) => of.points().skip(done).map(AnyPoint::Number).try_for_each(take),
            Data::Summary(of) => of.points().skip(done).map(AnyPoint::Summary).try_for_each(take),
            Data::Histogram(data) => {
                let cumulative = of == MetricKind::Histogram { cumulative: true };
                data.points().skip(done).try_for_each(|point| take(AnyPoint::Histogram(point, cumulative)))
            }
            Data::ExponentialHistogram(data) => {
                let cumulative = of == MetricKind::Exponential { cumulative: true };
                data.points().skip(done).try_for_each(|point| take(AnyPoint::Exponential(point, cumulative)))
            }
        }
    }

    fn group(&mut self, origin: &mut ScopeOrigin<'a>, group: &mut PointGroup<'a>) -> Result<(), Full> {
        if group.looked_at == 0 {
            return Ok(());
        }
        match origin.service {
            None => self.native_points(origin, group)?,
            Some(service) => self.ecs_points(origin, service, group)?,
        }
        self.done.untranslatable.items += group.unsayable;
        self.next(group.first + group.looked_at);
        Ok(())
    }
}

/// Counts what is done of `len` items that begin at `count`, without reading them: how many of those, or nothing where
/// all are.
fn items_done(count: &mut u64, from: u64, len: impl FnOnce() -> usize) -> Option<usize> {
    let done = from.saturating_sub(*count);
    if done == 0 {
        return Some(0);
    }
    let len = len() as u64;
    *count += done.min(len);
    if done < len { usize::try_from(done).ok() } else { None }
}
