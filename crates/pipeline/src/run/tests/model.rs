//! The steps of tests on decoded messages.

use super::programs::Action;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;

/// Outcome of a step.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) dropped: u64,
}

fn text(value: &str) -> Option<Value> {
    Some(Value::StringValue(value.into()))
}

fn find<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    attributes.iter().find(|one| one.key == key)?.value.as_ref()?.value.as_ref()
}

fn set(attributes: &mut Vec<KeyValue>, key: &str, value: Option<Value>) {
    // An empty value that is set in place of another is an empty message, as where there was none.
    let old = attributes.iter_mut().find(|one| one.key == key);
    match old {
        Some(old) if old.value.as_ref().and_then(|old| old.value.clone()) == value => {}
        Some(old) => old.value = Some(AnyValue { value }),
        None => {
            attributes.push(KeyValue { key: key.into(), value: Some(AnyValue { value }), key_strindex: 0 })
        }
    }
}

/// Keeps the messages that do not lose all of their members.
fn retain<T>(all: &mut Vec<T>, mut members: impl FnMut(&mut T) -> (bool, bool)) -> bool {
    let before = all.len();
    all.retain_mut(|one| {
        let (has_lost, is_empty) = members(one);
        !(has_lost && is_empty)
    });
    all.len() != before
}

fn is_resource(resource: Option<&Resource>, key: &str, value: &str) -> bool {
    resource.is_some_and(|resource| find(&resource.attributes, key) == text(value).as_ref())
}

fn scope_name(scope: Option<&InstrumentationScope>) -> &str {
    scope.map_or("", |scope| scope.name.as_str())
}

fn set_scope(scope: &mut Option<InstrumentationScope>, name: &str, version: &str) {
    if scope_name(scope.as_ref()) != name || scope.as_ref().map_or("", |scope| &scope.version) != version {
        let scope = scope.get_or_insert_default();
        scope.name = name.into();
        scope.version = version.into();
    }
}

macro_rules! shared {
    ($request:expr, $action:expr, $groups:ident, $scopes:ident, $items:ident, $count:expr) => {{
        let mut dropped = 0;
        let groups = &mut $request.$groups;
        match $action {
            Action::DropResourcesWith(key, value) => groups.retain(|group| {
                let is_gone = is_resource(group.resource.as_ref(), key, value);
                let items: u64 = group.$scopes.iter().flat_map(|scope| &scope.$items).map($count).sum();
                dropped += if is_gone { items } else { 0 };
                !is_gone
            }),
            Action::DropScopesNamed(name) => drop(retain(groups, |group| {
                let before = group.$scopes.len();
                group.$scopes.retain(|scope| {
                    let is_gone = scope_name(scope.scope.as_ref()) == name;
                    dropped += if is_gone { scope.$items.iter().map($count).sum() } else { 0 };
                    !is_gone
                });
                (group.$scopes.len() != before, group.$scopes.is_empty())
            })),
            Action::SetResource(key, value) => groups.iter_mut().for_each(|group| {
                set(&mut group.resource.get_or_insert_default().attributes, key, text(value))
            }),
            Action::SetScope(name, version) => groups
                .iter_mut()
                .flat_map(|group| &mut group.$scopes)
                .for_each(|scope| set_scope(&mut scope.scope, name, version)),
            Action::SetSchemas(url) => {
                for group in groups {
                    if !group.$scopes.is_empty() {
                        group.schema_url = url.clone();
                    }
                    group.$scopes.iter_mut().for_each(|scope| scope.schema_url = url.clone());
                }
            }
            _ => {}
        }
        dropped
    }};
}

pub(super) fn logs(action: &Action, request: &mut ExportLogsServiceRequest) -> Counted {
    let mut dropped = shared!(request, action, resource_logs, scope_logs, log_records, |_: &LogRecord| 1);
    let mut filter = |request: &mut ExportLogsServiceRequest, is_gone: &dyn Fn(&LogRecord) -> bool| {
        retain(&mut request.resource_logs, |group| {
            let lost = retain(&mut group.scope_logs, |scope| {
                let before = scope.log_records.len();
                scope.log_records.retain(|record| !is_gone(record));
                dropped += (before - scope.log_records.len()) as u64;
                (scope.log_records.len() != before, scope.log_records.is_empty())
            });
            (lost, group.scope_logs.is_empty())
        })
    };
    match action {
        Action::DropLogsBelow(severity) => {
            filter(request, &|record| i64::from(record.severity_number) < *severity);
        }
        Action::KeepLogsOfText(text) => {
            filter(request, &|record| record.severity_text != *text);
        }
        Action::DropLogsOrScopes(severity, name) => {
            let mut scopes = 0;
            retain(&mut request.resource_logs, |group| {
                let before = group.scope_logs.len();
                group.scope_logs.retain(|scope| {
                    let is_gone = scope_name(scope.scope.as_ref()) == name;
                    scopes += if is_gone { scope.log_records.len() as u64 } else { 0 };
                    !is_gone
                });
                (group.scope_logs.len() != before, group.scope_logs.is_empty())
            });
            filter(request, &|record| i64::from(record.severity_number) < *severity);
            dropped += scopes;
        }
        _ => {
            for group in &mut request.resource_logs {
                for scope in &mut group.scope_logs {
                    for record in &mut scope.log_records {
                        log(action, record, &mut group.resource);
                    }
                }
            }
        }
    }
    Counted { dropped }
}

fn log(action: &Action, record: &mut LogRecord, resource: &mut Option<Resource>) {
    match action {
        Action::SetLog(key, value) => set(&mut record.attributes, key, text(value)),
        Action::DeleteLog(key) => {
            if let Some(place) = record.attributes.iter().position(|one| one.key == *key) {
                record.attributes.remove(place);
            }
        }
        Action::SetLogText(text) => record.severity_text = text.clone(),
        Action::SetLogBody(number) => record.body = Some(AnyValue { value: Some(Value::IntValue(*number)) }),
        Action::SetLogNumbers(number) => {
            record.time_unix_nano = *number as u64;
            record.observed_time_unix_nano = *number as u64;
            record.flags = *number as u32;
            record.dropped_attributes_count = *number as u32;
        }
        Action::SetResourceFromLog => {
            let resource = resource.get_or_insert_default();
            set(&mut resource.attributes, "t", text(&record.severity_text));
        }
        Action::SetLogFromResource => {
            let value = resource.as_ref().and_then(|resource| find(&resource.attributes, "t").cloned());
            set(&mut record.attributes, "r", value);
        }
        _ => {}
    }
}

pub(super) fn traces(action: &Action, request: &mut ExportTraceServiceRequest) -> Counted {
    let mut dropped = shared!(request, action, resource_spans, scope_spans, spans, |_: &Span| 1);
    retain(&mut request.resource_spans, |group| {
        let lost = retain(&mut group.scope_spans, |scope| {
            let before = scope.spans.len();
            if let Action::DropSpansNamed(name) = action {
                scope.spans.retain(|span| span.name != *name);
                dropped += (before - scope.spans.len()) as u64;
            }
            scope.spans.iter_mut().for_each(|one| span(action, one));
            (scope.spans.len() != before, scope.spans.is_empty())
        });
        (lost, group.scope_spans.is_empty())
    });
    Counted { dropped }
}

fn span(action: &Action, span: &mut Span) {
    match action {
        Action::SetSpan(name) => {
            span.name = name.clone();
            span.kind = 3;
        }
        Action::SetSpanStatus(code, message) => {
            let old = span.status.clone().unwrap_or_default();
            if i64::from(old.code) != *code || old.message != *message {
                let status = span.status.get_or_insert_default();
                status.code = *code as i32;
                status.message = message.clone();
            }
        }
        Action::DropEventsNamed(name) => span.events.retain(|event| event.name != *name),
        Action::SetEvent(key, value) => {
            span.events.iter_mut().for_each(|event| set(&mut event.attributes, key, text(value)));
        }
        Action::SetSpanFromEvent => {
            if let Some(last) = span.events.last() {
                span.name = last.name.clone();
            }
        }
        _ => {}
    }
}

fn points(metric: &Metric) -> u64 {
    let count = match &metric.data {
        None => 0,
        Some(Data::Gauge(data)) => data.data_points.len(),
        Some(Data::Sum(data)) => data.data_points.len(),
        Some(Data::Histogram(data)) => data.data_points.len(),
        Some(Data::ExponentialHistogram(data)) => data.data_points.len(),
        Some(Data::Summary(data)) => data.data_points.len(),
    };
    count as u64
}

pub(super) fn metrics(action: &Action, request: &mut ExportMetricsServiceRequest) -> Counted {
    let mut dropped = shared!(request, action, resource_metrics, scope_metrics, metrics, points);
    retain(&mut request.resource_metrics, |group| {
        let lost = retain(&mut group.scope_metrics, |scope| {
            let before = scope.metrics.len();
            if let Action::DropMetricsNamed(name) = action {
                scope.metrics.retain(|metric| {
                    dropped += if metric.name == *name { points(metric) } else { 0 };
                    metric.name != *name
                });
            }
            scope.metrics.retain_mut(|one| {
                let lost = metric(action, one);
                dropped += lost;
                lost == 0 || points(one) > 0
            });
            (scope.metrics.len() != before, scope.metrics.is_empty())
        });
        (lost, group.scope_metrics.is_empty())
    });
    Counted { dropped }
}

/// Returns how many points it dropped.
fn metric(action: &Action, metric: &mut Metric) -> u64 {
    match action {
        Action::SetMetric(name) => metric.name = name.clone(),
        Action::SetMetadata(key, value) => set(&mut metric.metadata, key, text(value)),
        Action::SetTemporality(temporality, monotonic) => match &mut metric.data {
            Some(Data::Sum(sum)) => {
                sum.aggregation_temporality = *temporality as i32;
                sum.is_monotonic = *monotonic;
            }
            Some(Data::Histogram(data)) => data.aggregation_temporality = *temporality as i32,
            Some(Data::ExponentialHistogram(data)) => data.aggregation_temporality = *temporality as i32,
            _ => {}
        },
        _ => {}
    }
    let before = points(metric);
    let (unit, data) = (&mut metric.unit, &mut metric.data);
    macro_rules! each {
        ($points:expr, |$point:ident| $more:expr) => {{
            if let Action::DropPointsWith(value) = action {
                $points.retain(|point| find(&point.attributes, "a") != text(value).as_ref());
            }
            for $point in $points.iter_mut() {
                match action {
                    Action::SetPoint(key, value) => set(&mut $point.attributes, key, text(value)),
                    Action::SetPointTimes(time) => {
                        $point.start_time_unix_nano = *time as u64;
                        $point.flags = 1;
                    }
                    Action::SetMetricFromPoint => {
                        if let Some(Value::StringValue(value)) = find(&$point.attributes, "a") {
                            *unit = value.clone();
                        }
                    }
                    _ => $more,
                }
            }
        }};
    }
    match data {
        None => {}
        Some(Data::Gauge(data)) => each!(data.data_points, |point| {}),
        Some(Data::Sum(data)) => each!(data.data_points, |point| {
            if let Action::SetPointValue(value) = action {
                point.value = Some(number_data_point::Value::AsDouble(*value));
            }
        }),
        Some(Data::Histogram(data)) => each!(data.data_points, |point| {
            if let Action::SetCounts(number) = action {
                point.bucket_counts = vec![*number as u64; 2];
            }
        }),
        Some(Data::ExponentialHistogram(data)) => each!(data.data_points, |point| {
            if let Action::SetCounts(number) = action {
                point.positive.get_or_insert_default().bucket_counts = vec![*number as u64; 2];
                if *number != 0 || point.negative.is_some() {
                    point.negative.get_or_insert_default().offset = -*number as i32;
                }
            }
        }),
        Some(Data::Summary(data)) => each!(data.data_points, |point| {}),
    }
    before - points(metric)
}
