//! Items of OTLP: spans, log records, points.

use super::{Items, RemainingItems, enough};
use crate::line::Line;
use tidegate_journal::Signal;
use tidegate_wire::otlp::{
    AnyValue, Attributes, Data, ExponentialPoint, HistogramPoint, Item, LogRecord, LogsRequest, Metric,
    MetricsRequest, NumberPoint, Request, Resource, Span, SummaryPoint, TracesRequest, temporality,
};

/// The properties that all items of a scope share.
#[derive(Clone, Copy)]
struct Origin<'a> {
    service: &'a [u8],
    scope: &'a [u8],
    resource: Resource<'a>,
}

pub(super) fn walk(items: &mut Items<'_>, signal: Signal, raw: &[u8]) -> RemainingItems {
    match signal {
        Signal::Traces => {
            enough(each(&TracesRequest::new(raw), |origin, span| self::span(items, origin, &span)))
        }
        Signal::Logs => enough(each(&LogsRequest::new(raw), |origin, record| log(items, origin, &record))),
        Signal::Metrics => {
            enough(each(&MetricsRequest::new(raw), |origin, metric| self::metric(items, origin, &metric)))
        }
        Signal::Profiles | Signal::Events => RemainingItems::all("this kind of record cannot be shown"),
    }
}

fn each<'a, T: Item<'a>>(
    request: &Request<'a, T>,
    mut show: impl FnMut(Origin<'a>, T) -> Option<()>,
) -> Option<()> {
    for group in request.resources() {
        let service = match group.resource.attributes().find(b"service.name") {
            Some(AnyValue::Text(service)) => service,
            _ => &[],
        };
        for scope in group.scopes() {
            let origin = Origin { service, scope: scope.scope.name, resource: group.resource };
            for item in scope.items() {
                show(origin, item)?;
            }
        }
    }
    Some(())
}

fn span(items: &mut Items<'_>, origin: Origin<'_>, span: &Span<'_>) -> Option<()> {
    items.item(origin.service, span.name, |line| {
        line.time("time", span.start_time);
        line.hex("trace_id", span.trace_id);
        line.hex("span_id", span.span_id);
        line.hex("parent_span_id", span.parent_span_id);
        line.text("name", span.name);
        line.text("service", origin.service);
        line.text("kind", kind(span.kind).as_bytes());
        line.plain("duration_ms", Milliseconds(span.end_time.saturating_sub(span.start_time)));
        line.text("status", status(span.status.code).as_bytes());
        line.text("status_message", span.status.message);
        line.attributes("attributes", span.attributes());
        some(line, "events", span.events().count());
        some(line, "links", span.links().count());
        end(line, origin);
    })
}

fn log(items: &mut Items<'_>, origin: Origin<'_>, record: &LogRecord<'_>) -> Option<()> {
    items.item(origin.service, record.event_name, |line| {
        line.time("time", if record.time > 0 { record.time } else { record.observed_time });
        line.text("severity", severity(record).as_bytes());
        line.text("service", origin.service);
        line.value("body", record.body);
        line.text("name", record.event_name);
        line.hex("trace_id", record.trace_id);
        line.hex("span_id", record.span_id);
        line.attributes("attributes", record.attributes());
        end(line, origin);
    })
}

fn metric(items: &mut Items<'_>, origin: Origin<'_>, metric: &Metric<'_>) -> Option<()> {
    let mut point = |kind: &'static str, time, attributes: Attributes<'_>, fill: &dyn Fn(&mut Line)| {
        items.item(origin.service, metric.name, |line| {
            line.time("time", time);
            line.text("name", metric.name);
            line.text("type", kind.as_bytes());
            line.text("unit", metric.unit);
            fill(line);
            line.text("service", origin.service);
            line.attributes("attributes", attributes);
            end(line, origin);
        })
    };
    match &metric.data {
        Data::Empty => Some(()),
        Data::Gauge(gauge) => gauge
            .points()
            .try_for_each(|it| point("gauge", it.time, it.attributes(), &|line| number(line, &it))),
        Data::Sum(sum) => sum.points().try_for_each(|it| {
            point("sum", it.time, it.attributes(), &|line| {
                number(line, &it);
                line.plain("monotonic", sum.is_monotonic);
                line.text("temporality", temporality_name(sum.temporality).as_bytes());
            })
        }),
        Data::Histogram(all) => all.points().try_for_each(|it| {
            point("histogram", it.time, it.attributes(), &|line| {
                histogram(line, &it);
                line.text("temporality", temporality_name(all.temporality).as_bytes());
            })
        }),
        Data::ExponentialHistogram(all) => all.points().try_for_each(|it| {
            point("exponential_histogram", it.time, it.attributes(), &|line| {
                exponential(line, &it);
                line.text("temporality", temporality_name(all.temporality).as_bytes());
            })
        }),
        Data::Summary(all) => all
            .points()
            .try_for_each(|it| point("summary", it.time, it.attributes(), &|line| summary(line, &it))),
    }
}

fn number(line: &mut Line, point: &NumberPoint<'_>) {
    line.number("value", point.value);
}

fn histogram(line: &mut Line, point: &HistogramPoint<'_>) {
    counted(line, point.count, [("sum", point.sum), ("min", point.min), ("max", point.max)]);
}

fn exponential(line: &mut Line, point: &ExponentialPoint<'_>) {
    counted(line, point.count, [("sum", point.sum), ("min", point.min), ("max", point.max)]);
    line.plain("scale", point.scale);
}

fn summary(line: &mut Line, point: &SummaryPoint<'_>) {
    counted(line, point.count, [("sum", Some(point.sum)), ("min", None), ("max", None)]);
}

fn counted(line: &mut Line, count: u64, values: [(&'static str, Option<u64>); 3]) {
    line.plain("count", count);
    for (name, bits) in values {
        if let Some(bits) = bits {
            line.double(name, bits);
        }
    }
}

fn end(line: &mut Line, origin: Origin<'_>) {
    line.text("scope", origin.scope);
    line.attributes("resource", origin.resource.attributes());
}

fn some(line: &mut Line, name: &'static str, count: usize) {
    if count > 0 {
        line.plain(name, count);
    }
}

/// Nanoseconds, shown in milliseconds.
struct Milliseconds(u64);

impl std::fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

fn kind(number: i32) -> &'static str {
    ["", "internal", "server", "client", "producer", "consumer"]
        .get(usize::try_from(number).unwrap_or(0))
        .copied()
        .unwrap_or_default()
}

fn status(code: i32) -> &'static str {
    match code {
        1 => "ok",
        2 => "error",
        _ => "",
    }
}

/// In the source's own words, or in those of OpenTelemetry for its number.
fn severity<'a>(record: &LogRecord<'a>) -> std::borrow::Cow<'a, str> {
    if !record.severity_text.is_empty() {
        return String::from_utf8_lossy(record.severity_text);
    }
    let names = ["trace", "debug", "info", "warn", "error", "fatal"];
    let name = usize::try_from((record.severity - 1).div_euclid(4)).ok().and_then(|at| names.get(at));
    name.copied().unwrap_or_default().into()
}

fn temporality_name(number: i32) -> &'static str {
    match number {
        temporality::DELTA => "delta",
        temporality::CUMULATIVE => "cumulative",
        _ => "",
    }
}
