//! Requests as lists of items, each with all that encloses it, so that two that say the same are equal.
//!
//! Read with the views of `tidegate-wire`, not with what the replay writes with. The order of items, attributes and quantiles is not
//! told apart; the exceptions that the replay's documentation lists are applied.

use tidegate_wire::otlp::{
    AnyValue, Attributes, Data, Exemplar, LogsRequest, MetricsRequest, Number, Resource, Scope, Signal,
    TracesRequest, check, temporality,
};
use tidegate_wire::remote_write::{self, Count, Limits, Series, Symbols, Version, view};

/// The items of an OTLP request, sorted.
pub(super) fn otlp_items(signal: Signal, raw: &[u8], received_ns: u64) -> Vec<String> {
    check(signal, raw).unwrap();
    let mut items = match signal {
        Signal::Logs => logs(raw, received_ns),
        Signal::Traces => spans(raw),
        Signal::Metrics => metrics(raw),
        Signal::Profiles => Vec::new(),
    };
    items.sort();
    items
}

fn text(bytes: &[u8]) -> String {
    format!("{:?}", str::from_utf8(bytes).unwrap())
}

fn value(of: AnyValue<'_>) -> String {
    match of {
        AnyValue::Empty => "nothing".to_owned(),
        AnyValue::Text(of) => text(of),
        AnyValue::Bool(of) => of.to_string(),
        AnyValue::Int(of) => of.to_string(),
        AnyValue::Double(bits) => format!("double {bits:x}"),
        AnyValue::Bytes(of) => format!("bytes {of:?}"),
        AnyValue::Array(of) => format!("{:?}", of.values().map(value).collect::<Vec<_>>()),
        AnyValue::Map(of) => attributes(of.entries()),
    }
}

fn attributes(of: Attributes<'_>) -> String {
    let mut all: Vec<String> =
        of.map(|attribute| format!("{}={}", text(attribute.key), value(attribute.value))).collect();
    all.sort();
    format!("{all:?}")
}

fn origin(resource: &Resource<'_>, resource_url: &[u8], scope: &Scope<'_>, scope_url: &[u8]) -> String {
    let resource = attributes(resource.attributes());
    let (name, version) = (text(scope.name), text(scope.version));
    let scope_attributes = attributes(scope.attributes());
    format!("{resource} {} / {name} {version} {scope_attributes} {}", text(resource_url), text(scope_url))
}

fn logs(raw: &[u8], received_ns: u64) -> Vec<String> {
    let mut items = Vec::new();
    for resource in LogsRequest::new(raw).resources() {
        for scope in resource.scopes() {
            let origin = origin(&resource.resource, resource.schema_url, &scope.scope, scope.schema_url);
            for record in scope.items() {
                // Without a time it is that of its observation, or of its arrival.
                let times = [record.time, record.observed_time, received_ns];
                items.push(format!(
                    "{origin} | {:?} {} {} {} {} {} {} {} {:?} {:?} {}",
                    times.into_iter().find(|&time| time > 0),
                    record.observed_time,
                    record.severity,
                    text(record.severity_text),
                    value(record.body),
                    attributes(record.attributes()),
                    record.dropped_attributes,
                    record.flags,
                    record.trace_id,
                    record.span_id,
                    text(record.event_name),
                ));
            }
        }
    }
    items
}

fn spans(raw: &[u8]) -> Vec<String> {
    // Ids of links that are missing are zeros.
    let id = |id: &[u8], len: usize| if id.is_empty() { vec![0; len] } else { id.to_vec() };
    let mut items = Vec::new();
    for resource in TracesRequest::new(raw).resources() {
        for scope in resource.scopes() {
            let origin = origin(&resource.resource, resource.schema_url, &scope.scope, scope.schema_url);
            for span in scope.items() {
                let span: tidegate_wire::otlp::Span<'_> = span;
                let events: Vec<String> = span
                    .events()
                    .map(|event| {
                        let all = attributes(event.attributes());
                        format!("{} {} {all} {}", event.time, text(event.name), event.dropped_attributes)
                    })
                    .collect();
                let links: Vec<String> = span
                    .links()
                    .map(|link| {
                        let ids = (id(link.trace_id, 16), id(link.span_id, 8));
                        let all = attributes(link.attributes());
                        let (state, dropped) = (text(link.trace_state), link.dropped_attributes);
                        format!("{ids:?} {state} {all} {} {dropped}", link.flags)
                    })
                    .collect();
                let ids = (id(span.trace_id, 16), id(span.span_id, 8), span.parent_span_id);
                let dropped = (span.dropped_attributes, span.dropped_events, span.dropped_links);
                items.push(format!(
                    "{origin} | {ids:?} {} {} {} {} {} {} {} {dropped:?} {events:?} {links:?} {} {}",
                    text(span.trace_state),
                    span.flags,
                    text(span.name),
                    span.kind,
                    span.start_time,
                    span.end_time,
                    attributes(span.attributes()),
                    text(span.status.message),
                    span.status.code,
                ));
            }
        }
    }
    items
}

fn exemplars<'a>(of: impl Iterator<Item = Exemplar<'a>>) -> String {
    let of = of.map(|exemplar| {
        let value = exemplar.value.unwrap_or(Number::Double(0));
        let all = attributes(exemplar.filtered_attributes());
        format!("{} {value:?} {:?} {:?} {all}", exemplar.time, exemplar.trace_id, exemplar.span_id)
    });
    format!("{:?}", of.collect::<Vec<_>>())
}

fn saturated(count: u64) -> u64 {
    count.min(i64::MAX.cast_unsigned())
}

fn metrics(raw: &[u8]) -> Vec<String> {
    let mut items = Vec::new();
    for resource in MetricsRequest::new(raw).resources() {
        for scope in resource.scopes() {
            let origin = origin(&resource.resource, resource.schema_url, &scope.scope, scope.schema_url);
            for metric in scope.items() {
                let metric: tidegate_wire::otlp::Metric<'_> = metric;
                let names = (text(metric.name), text(metric.description), text(metric.unit));
                let points = points(metric.data).into_iter();
                items.extend(points.map(|point| format!("{origin} | {names:?} {point}")));
            }
        }
    }
    items
}

fn points(data: Data<'_>) -> Vec<String> {
    let number = |point: tidegate_wire::otlp::NumberPoint<'_>| {
        let times = (point.start_time, point.time, point.flags & 1);
        let all = attributes(point.attributes());
        format!("{times:?} {:?} {all} {}", point.value, exemplars(point.exemplars()))
    };
    match data {
        Data::Empty => Vec::new(),
        Data::Gauge(gauge) => gauge.points().map(|point| format!("gauge {}", number(point))).collect(),
        Data::Sum(sum) => {
            let known = [temporality::DELTA, temporality::CUMULATIVE].contains(&sum.temporality);
            let temporality = if known { sum.temporality } else { 0 };
            let kind = (temporality, sum.is_monotonic);
            sum.points().map(|point| format!("sum {kind:?} {}", number(point))).collect()
        }
        Data::Histogram(histogram) => {
            let of = |point: tidegate_wire::otlp::HistogramPoint<'_>| {
                let times = (point.start_time, point.time, point.flags & 1);
                let counts: Vec<u64> = point.bucket_counts().map(saturated).collect();
                let bounds: Vec<u64> = point.explicit_bounds().collect();
                let totals = (saturated(point.count), point.sum, point.min, point.max);
                let all = attributes(point.attributes());
                format!("{times:?} {totals:?} {counts:?} {bounds:?} {all} {}", exemplars(point.exemplars()))
            };
            let kind = histogram.temporality;
            histogram.points().map(|point| format!("histogram {kind} {}", of(point))).collect()
        }
        Data::ExponentialHistogram(histogram) => {
            let of = |point: tidegate_wire::otlp::ExponentialPoint<'_>| {
                let times = (point.start_time, point.time, point.flags & 1);
                let totals = (saturated(point.count), point.sum, point.min, point.max);
                let zero = (point.scale, saturated(point.zero_count), point.zero_threshold);
                let side = |side: tidegate_wire::otlp::Buckets<'_>| {
                    (side.offset, side.counts().map(saturated).collect::<Vec<_>>())
                };
                let sides = (side(point.positive), side(point.negative));
                let all = attributes(point.attributes());
                format!("{times:?} {totals:?} {zero:?} {sides:?} {all} {}", exemplars(point.exemplars()))
            };
            let kind = histogram.temporality;
            histogram.points().map(|point| format!("exponential {kind} {}", of(point))).collect()
        }
        Data::Summary(summary) => summary
            .points()
            .map(|point| {
                let times = (point.start_time, point.time, point.flags & 1);
                let mut quantiles: Vec<_> = point.quantiles().map(|of| (of.quantile, of.value)).collect();
                quantiles.sort_unstable();
                let all = attributes(point.attributes());
                format!("summary {times:?} {} {} {quantiles:?} {all}", saturated(point.count), point.sum)
            })
            .collect(),
    }
}

/// The samples, histograms, exemplars and metadata of a request of remote write 1.0, sorted.
pub(super) fn remote_write_items(raw: &[u8]) -> Vec<String> {
    let mut symbols = Symbols::new();
    remote_write::check(Version::V1, raw, &Limits::default(), &mut symbols).unwrap();
    let request = view(Version::V1, raw, &mut symbols).unwrap();
    let mut items = Vec::new();
    for series in request.series() {
        series_items(&series, &mut items);
    }
    items.sort();
    items
}

fn labels<'a>(of: impl Iterator<Item = tidegate_wire::remote_write::Label<'a>>) -> String {
    let mut all: Vec<_> = of.map(|label| (text(label.name), text(label.value))).collect();
    all.sort();
    format!("{all:?}")
}

fn series_items(series: &Series<'_>, items: &mut Vec<String>) {
    let of = labels(series.labels());
    items.extend(series.samples().map(|sample| format!("{of} {} {:x}", sample.timestamp, sample.bits)));
    items.extend(series.exemplars().map(|exemplar| {
        format!("{of} exemplar {} {:x} {}", exemplar.timestamp, exemplar.bits, labels(exemplar.labels))
    }));
    for histogram in series.histograms() {
        let positive = buckets(
            histogram.positive_spans().map(|span| (span.offset, span.length)),
            histogram.positive_deltas(),
            histogram.positive_counts(),
        );
        let negative = buckets(
            histogram.negative_spans().map(|span| (span.offset, span.length)),
            histogram.negative_deltas(),
            histogram.negative_counts(),
        );
        let bounds: Vec<u64> = histogram.custom_values().collect();
        let count = |count: Option<Count>| format!("{count:?}");
        items.push(format!(
            "{of} histogram {} {} {:x} {} {:x} {} {positive:?} {negative:?} {bounds:?} {}",
            histogram.timestamp,
            count(histogram.count),
            histogram.sum_bits,
            histogram.schema,
            histogram.zero_threshold_bits,
            count(histogram.zero_count),
            histogram.reset_hint,
        ));
    }
}

/// The buckets that are not empty, by index.
fn buckets(
    spans: impl Iterator<Item = (i32, u32)>,
    deltas: impl Iterator<Item = i64>,
    counts: impl Iterator<Item = u64>,
) -> Vec<(i64, u64)> {
    let mut total = 0_i64;
    let integers = deltas.map(|delta| {
        total += delta;
        total.cast_unsigned()
    });
    let mut all = integers.chain(counts);
    let mut found = Vec::new();
    let mut index = 0_i64;
    for (offset, length) in spans {
        index += i64::from(offset);
        for _ in 0..length {
            let count = all.next().unwrap();
            if count != 0 {
                found.push((index, count));
            }
            index += 1;
        }
    }
    assert_eq!(all.next(), None);
    found
}
