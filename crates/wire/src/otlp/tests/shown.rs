//! The views as prost's own structures, so that the two can be compared, byte by byte once encoded.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1 as common;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1 as logs;
use opentelemetry_proto::tonic::metrics::v1 as metrics;
use opentelemetry_proto::tonic::resource::v1 as resource;
use opentelemetry_proto::tonic::trace::v1 as trace;

use crate::otlp::{
    AnyValue, Attributes, Buckets, Data, Exemplar, ExponentialPoint, HistogramPoint, LogRecord, LogsRequest,
    Metric, MetricsRequest, Number, NumberPoint, Resource, Scope, Span, SummaryPoint, TracesRequest,
};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn bits(bits: Option<u64>) -> Option<f64> {
    bits.map(f64::from_bits)
}

pub(super) fn traces(raw: &[u8]) -> ExportTraceServiceRequest {
    let resource_spans = TracesRequest::new(raw)
        .resources()
        .map(|group| trace::ResourceSpans {
            resource: Some(resource(group.resource)),
            scope_spans: group
                .scopes()
                .map(|group| trace::ScopeSpans {
                    scope: Some(scope(group.scope)),
                    spans: group.items().map(span).collect(),
                    schema_url: text(group.schema_url),
                })
                .collect(),
            schema_url: text(group.schema_url),
        })
        .collect();
    ExportTraceServiceRequest { resource_spans }
}

pub(super) fn logs(raw: &[u8]) -> ExportLogsServiceRequest {
    let resource_logs = LogsRequest::new(raw)
        .resources()
        .map(|group| logs::ResourceLogs {
            resource: Some(resource(group.resource)),
            scope_logs: group
                .scopes()
                .map(|group| logs::ScopeLogs {
                    scope: Some(scope(group.scope)),
                    log_records: group.items().map(record).collect(),
                    schema_url: text(group.schema_url),
                })
                .collect(),
            schema_url: text(group.schema_url),
        })
        .collect();
    ExportLogsServiceRequest { resource_logs }
}

pub(super) fn metrics(raw: &[u8]) -> ExportMetricsServiceRequest {
    let resource_metrics = MetricsRequest::new(raw)
        .resources()
        .map(|group| metrics::ResourceMetrics {
            resource: Some(resource(group.resource)),
            scope_metrics: group
                .scopes()
                .map(|group| metrics::ScopeMetrics {
                    scope: Some(scope(group.scope)),
                    metrics: group.items().map(metric).collect(),
                    schema_url: text(group.schema_url),
                })
                .collect(),
            schema_url: text(group.schema_url),
        })
        .collect();
    ExportMetricsServiceRequest { resource_metrics }
}

fn resource(view: Resource<'_>) -> resource::Resource {
    resource::Resource {
        attributes: attributes(view.attributes()),
        dropped_attributes_count: view.dropped_attributes,
        entity_refs: view
            .entity_refs()
            .map(|entity| common::EntityRef {
                schema_url: text(entity.schema_url),
                r#type: text(entity.kind),
                id_keys: entity.id_keys().map(text).collect(),
                description_keys: entity.description_keys().map(text).collect(),
            })
            .collect(),
    }
}

fn scope(view: Scope<'_>) -> common::InstrumentationScope {
    common::InstrumentationScope {
        name: text(view.name),
        version: text(view.version),
        attributes: attributes(view.attributes()),
        dropped_attributes_count: view.dropped_attributes,
    }
}

fn attributes(view: Attributes<'_>) -> Vec<common::KeyValue> {
    view.map(|attribute| common::KeyValue {
        key: text(attribute.key),
        value: Some(value(attribute.value)),
        key_strindex: 0,
    })
    .collect()
}

fn value(view: AnyValue<'_>) -> common::AnyValue {
    let value = match view {
        AnyValue::Empty => None,
        AnyValue::Text(value) => Some(Value::StringValue(text(value))),
        AnyValue::Bool(value) => Some(Value::BoolValue(value)),
        AnyValue::Int(value) => Some(Value::IntValue(value)),
        AnyValue::Double(bits) => Some(Value::DoubleValue(f64::from_bits(bits))),
        AnyValue::Bytes(value) => Some(Value::BytesValue(value.to_vec())),
        AnyValue::Array(array) => {
            Some(Value::ArrayValue(common::ArrayValue { values: array.values().map(value).collect() }))
        }
        AnyValue::Map(map) => {
            Some(Value::KvlistValue(common::KeyValueList { values: attributes(map.entries()) }))
        }
    };
    common::AnyValue { value }
}

fn span(view: Span<'_>) -> trace::Span {
    trace::Span {
        trace_id: view.trace_id.to_vec(),
        span_id: view.span_id.to_vec(),
        trace_state: text(view.trace_state),
        parent_span_id: view.parent_span_id.to_vec(),
        flags: view.flags,
        name: text(view.name),
        kind: view.kind,
        start_time_unix_nano: view.start_time,
        end_time_unix_nano: view.end_time,
        attributes: attributes(view.attributes()),
        dropped_attributes_count: view.dropped_attributes,
        events: view
            .events()
            .map(|event| trace::span::Event {
                time_unix_nano: event.time,
                name: text(event.name),
                attributes: attributes(event.attributes()),
                dropped_attributes_count: event.dropped_attributes,
            })
            .collect(),
        dropped_events_count: view.dropped_events,
        links: view
            .links()
            .map(|link| trace::span::Link {
                trace_id: link.trace_id.to_vec(),
                span_id: link.span_id.to_vec(),
                trace_state: text(link.trace_state),
                attributes: attributes(link.attributes()),
                dropped_attributes_count: link.dropped_attributes,
                flags: link.flags,
            })
            .collect(),
        dropped_links_count: view.dropped_links,
        status: Some(trace::Status { message: text(view.status.message), code: view.status.code }),
    }
}

fn record(view: LogRecord<'_>) -> logs::LogRecord {
    logs::LogRecord {
        time_unix_nano: view.time,
        observed_time_unix_nano: view.observed_time,
        severity_number: view.severity,
        severity_text: text(view.severity_text),
        body: Some(value(view.body)),
        attributes: attributes(view.attributes()),
        dropped_attributes_count: view.dropped_attributes,
        flags: view.flags,
        trace_id: view.trace_id.to_vec(),
        span_id: view.span_id.to_vec(),
        event_name: text(view.event_name),
    }
}

fn metric(view: Metric<'_>) -> metrics::Metric {
    use metrics::metric::Data as Of;
    let data = match view.data {
        Data::Empty => None,
        Data::Gauge(gauge) => {
            Some(Of::Gauge(metrics::Gauge { data_points: gauge.points().map(number_point).collect() }))
        }
        Data::Sum(sum) => Some(Of::Sum(metrics::Sum {
            data_points: sum.points().map(number_point).collect(),
            aggregation_temporality: sum.temporality,
            is_monotonic: sum.is_monotonic,
        })),
        Data::Histogram(histogram) => Some(Of::Histogram(metrics::Histogram {
            data_points: histogram.points().map(histogram_point).collect(),
            aggregation_temporality: histogram.temporality,
        })),
        Data::ExponentialHistogram(histogram) => {
            Some(Of::ExponentialHistogram(metrics::ExponentialHistogram {
                data_points: histogram.points().map(exponential_point).collect(),
                aggregation_temporality: histogram.temporality,
            }))
        }
        Data::Summary(summary) => {
            Some(Of::Summary(metrics::Summary { data_points: summary.points().map(summary_point).collect() }))
        }
    };
    metrics::Metric {
        name: text(view.name),
        description: text(view.description),
        unit: text(view.unit),
        metadata: attributes(view.metadata()),
        data,
    }
}

fn number_point(view: NumberPoint<'_>) -> metrics::NumberDataPoint {
    use metrics::number_data_point::Value as Of;
    metrics::NumberDataPoint {
        attributes: attributes(view.attributes()),
        start_time_unix_nano: view.start_time,
        time_unix_nano: view.time,
        exemplars: view.exemplars().map(exemplar).collect(),
        flags: view.flags,
        value: view.value.map(|value| match value {
            Number::Int(value) => Of::AsInt(value),
            Number::Double(bits) => Of::AsDouble(f64::from_bits(bits)),
        }),
    }
}

fn histogram_point(view: HistogramPoint<'_>) -> metrics::HistogramDataPoint {
    metrics::HistogramDataPoint {
        attributes: attributes(view.attributes()),
        start_time_unix_nano: view.start_time,
        time_unix_nano: view.time,
        count: view.count,
        sum: bits(view.sum),
        bucket_counts: view.bucket_counts().collect(),
        explicit_bounds: view.explicit_bounds().map(f64::from_bits).collect(),
        exemplars: view.exemplars().map(exemplar).collect(),
        flags: view.flags,
        min: bits(view.min),
        max: bits(view.max),
    }
}

fn exponential_point(view: ExponentialPoint<'_>) -> metrics::ExponentialHistogramDataPoint {
    metrics::ExponentialHistogramDataPoint {
        attributes: attributes(view.attributes()),
        start_time_unix_nano: view.start_time,
        time_unix_nano: view.time,
        count: view.count,
        sum: bits(view.sum),
        scale: view.scale,
        zero_count: view.zero_count,
        positive: Some(buckets(view.positive)),
        negative: Some(buckets(view.negative)),
        flags: view.flags,
        exemplars: view.exemplars().map(exemplar).collect(),
        min: bits(view.min),
        max: bits(view.max),
        zero_threshold: f64::from_bits(view.zero_threshold),
    }
}

fn buckets(view: Buckets<'_>) -> metrics::exponential_histogram_data_point::Buckets {
    metrics::exponential_histogram_data_point::Buckets {
        offset: view.offset,
        bucket_counts: view.counts().collect(),
    }
}

fn summary_point(view: SummaryPoint<'_>) -> metrics::SummaryDataPoint {
    metrics::SummaryDataPoint {
        attributes: attributes(view.attributes()),
        start_time_unix_nano: view.start_time,
        time_unix_nano: view.time,
        count: view.count,
        sum: f64::from_bits(view.sum),
        quantile_values: view
            .quantiles()
            .map(|quantile| metrics::summary_data_point::ValueAtQuantile {
                quantile: f64::from_bits(quantile.quantile),
                value: f64::from_bits(quantile.value),
            })
            .collect(),
        flags: view.flags,
    }
}

fn exemplar(view: Exemplar<'_>) -> metrics::Exemplar {
    use metrics::exemplar::Value as Of;
    metrics::Exemplar {
        filtered_attributes: attributes(view.filtered_attributes()),
        time_unix_nano: view.time,
        span_id: view.span_id.to_vec(),
        trace_id: view.trace_id.to_vec(),
        value: view.value.map(|value| match value {
            Number::Int(value) => Of::AsInt(value),
            Number::Double(bits) => Of::AsDouble(f64::from_bits(bits)),
        }),
    }
}
