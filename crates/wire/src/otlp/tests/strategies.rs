//! Random requests that a receiver must accept. The tests of `tidegate-elastic` make theirs of this file too.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    self as metrics, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
    HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary,
    SummaryDataPoint,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, span};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Prometheus's marker for the end of a series.
const STALE_NAN: u64 = 0x7ff0_0000_0000_0002;

/// A double, odd ones more often than chance would have it.
pub(crate) fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-1000i32..1000).prop_map(|value| f64::from(value) / 8.0),
        2 => any::<u64>().prop_map(f64::from_bits),
        1 => Just(f64::from_bits(STALE_NAN)),
        1 => Just(f64::INFINITY),
        1 => Just(-0.0),
    ]
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{0,4}",
        1 => "[a-z]{120,140}",
        1 => "\\PC{0,9}",
        1 => "[aé☃\u{0}]{1,40}",
    ]
}

pub(crate) fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{1,2}([._][a-c])?",
        1 => "service\\.(name|namespace|instance\\.id|version)",
        1 => text(),
    ]
}

pub(crate) fn value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        6 => text().prop_map(|text| Some(Value::StringValue(text))),
        1 => any::<bool>().prop_map(|value| Some(Value::BoolValue(value))),
        1 => any::<i64>().prop_map(|value| Some(Value::IntValue(value))),
        1 => (-3i64..300).prop_map(|value| Some(Value::IntValue(value))),
        1 => double().prop_map(|value| Some(Value::DoubleValue(value))),
        1 => vec(any::<u8>(), 0..6).prop_map(|value| Some(Value::BytesValue(value))),
        1 => Just(None),
    ];
    let leaf = leaf.prop_map(|value| AnyValue { value });
    leaf.prop_recursive(3, 12, 4, |inner| {
        let entry = (key(), option::of(inner.clone())).prop_map(|(key, value)| key_value(key, value));
        prop_oneof![
            vec(inner, 0..4).prop_map(|values| Value::ArrayValue(ArrayValue { values })),
            vec(entry, 0..4).prop_map(|values| Value::KvlistValue(KeyValueList { values })),
        ]
        .prop_map(|value| AnyValue { value: Some(value) })
    })
}

pub(crate) fn key_value(key: String, value: Option<AnyValue>) -> KeyValue {
    KeyValue { key, value, key_strindex: 0 }
}

pub(crate) fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    vec((key(), option::weighted(0.95, value())).prop_map(|(key, value)| key_value(key, value)), 0..6)
}

fn id(len: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), len)
}

fn optional_id(len: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(vec![]), id(len)]
}

fn resource() -> impl Strategy<Value = Option<Resource>> {
    let texts = || vec(text(), 0..3);
    let entity =
        (text(), text(), texts(), texts()).prop_map(|(schema_url, r#type, id_keys, description_keys)| {
            EntityRef { schema_url, r#type, id_keys, description_keys }
        });
    option::of((attributes(), any::<u32>(), vec(entity, 0..2)).prop_map(
        |(attributes, dropped_attributes_count, entity_refs)| Resource {
            attributes,
            dropped_attributes_count,
            entity_refs,
        },
    ))
}

fn scope() -> impl Strategy<Value = Option<InstrumentationScope>> {
    option::of((text(), text(), attributes(), any::<u32>()).prop_map(
        |(name, version, attributes, dropped_attributes_count)| InstrumentationScope {
            name,
            version,
            attributes,
            dropped_attributes_count,
        },
    ))
}

prop_compose! {
    fn event()(
        time_unix_nano in any::<u64>(),
        name in text(),
        attributes in attributes(),
        dropped_attributes_count in any::<u32>(),
    ) -> span::Event {
        span::Event { time_unix_nano, name, attributes, dropped_attributes_count }
    }
}

prop_compose! {
    fn link()(
        (trace_id, span_id, trace_state) in (optional_id(16), optional_id(8), text()),
        attributes in attributes(),
        (dropped_attributes_count, flags) in any::<(u32, u32)>(),
    ) -> span::Link {
        span::Link { trace_id, span_id, trace_state, attributes, dropped_attributes_count, flags }
    }
}

prop_compose! {
    fn span()(
        (trace_id, span_id, parent_span_id) in (id(16), id(8), optional_id(8)),
        (trace_state, name, kind, flags) in (text(), text(), any::<i32>(), any::<u32>()),
        (start_time_unix_nano, end_time_unix_nano) in any::<(u64, u64)>(),
        (dropped_attributes_count, dropped_events_count, dropped_links_count) in any::<(u32, u32, u32)>(),
        attributes in attributes(),
        events in vec(event(), 0..3),
        links in vec(link(), 0..3),
        status in option::of((text(), any::<i32>()).prop_map(|(message, code)| Status { message, code })),
    ) -> Span {
        Span {
            trace_id, span_id, trace_state, parent_span_id, flags, name, kind, start_time_unix_nano,
            end_time_unix_nano, attributes, dropped_attributes_count, events, dropped_events_count, links,
            dropped_links_count, status,
        }
    }
}

prop_compose! {
    fn record()(
        (time_unix_nano, observed_time_unix_nano, severity_number) in any::<(u64, u64, i32)>(),
        (severity_text, event_name, body) in (text(), text(), option::of(value())),
        attributes in attributes(),
        (dropped_attributes_count, flags) in any::<(u32, u32)>(),
        (trace_id, span_id) in (optional_id(16), optional_id(8)),
    ) -> LogRecord {
        LogRecord {
            time_unix_nano, observed_time_unix_nano, severity_number, severity_text, body, attributes,
            dropped_attributes_count, flags, trace_id, span_id, event_name,
        }
    }
}

prop_compose! {
    fn exemplar()(
        filtered_attributes in attributes(),
        time_unix_nano in any::<u64>(),
        (trace_id, span_id) in (optional_id(16), optional_id(8)),
        value in option::of(prop_oneof![
            any::<i64>().prop_map(metrics::exemplar::Value::AsInt),
            double().prop_map(metrics::exemplar::Value::AsDouble),
        ]),
    ) -> metrics::Exemplar {
        metrics::Exemplar { filtered_attributes, time_unix_nano, span_id, trace_id, value }
    }
}

fn flags() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(0), 1 => Just(1), 1 => any::<u32>()]
}

/// Nanoseconds, of a start and a point.
fn times() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![any::<(u64, u64)>(), (0u64..1 << 61, 0u64..1 << 61), (Just(0), 0u64..1 << 61)]
}

prop_compose! {
    fn number_point()(
        attributes in attributes(),
        (start_time_unix_nano, time_unix_nano) in times(),
        flags in flags(),
        exemplars in vec(exemplar(), 0..3),
        value in option::of(prop_oneof![
            any::<i64>().prop_map(metrics::number_data_point::Value::AsInt),
            double().prop_map(metrics::number_data_point::Value::AsDouble),
        ]),
    ) -> NumberDataPoint {
        NumberDataPoint { attributes, start_time_unix_nano, time_unix_nano, exemplars, flags, value }
    }
}

/// Counts of buckets whose sum does not overflow.
fn bucket_counts() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![Just(0), 0u64..1000, 0u64..1 << 50], 0..8)
}

prop_compose! {
    fn histogram_point()(
        attributes in attributes(),
        (start_time_unix_nano, time_unix_nano) in times(),
        (count, sum, min, max) in (any::<u64>(), option::of(double()), option::of(double()), option::of(double())),
        bucket_counts in bucket_counts(),
        explicit_bounds in vec(double(), 0..8),
        exemplars in vec(exemplar(), 0..3),
        flags in flags(),
    ) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes, start_time_unix_nano, time_unix_nano, count, sum, bucket_counts, explicit_bounds,
            exemplars, flags, min, max,
        }
    }
}

fn buckets() -> impl Strategy<Value = Option<metrics::exponential_histogram_data_point::Buckets>> {
    let offset = prop_oneof![-20i32..20, any::<i32>()];
    option::of((offset, bucket_counts()).prop_map(|(offset, bucket_counts)| {
        metrics::exponential_histogram_data_point::Buckets { offset, bucket_counts }
    }))
}

prop_compose! {
    fn exponential_point()(
        attributes in attributes(),
        (start_time_unix_nano, time_unix_nano) in times(),
        (count, sum, min, max) in (any::<u64>(), option::of(double()), option::of(double()), option::of(double())),
        (scale, zero_count, zero_threshold) in
            (prop_oneof![-6i32..14, any::<i32>()], prop_oneof![0u64..100, any::<u64>()], double()),
        (positive, negative) in (buckets(), buckets()),
        exemplars in vec(exemplar(), 0..3),
        flags in flags(),
    ) -> ExponentialHistogramDataPoint {
        ExponentialHistogramDataPoint {
            attributes, start_time_unix_nano, time_unix_nano, count, sum, scale, zero_count, positive,
            negative, flags, exemplars, min, max, zero_threshold,
        }
    }
}

prop_compose! {
    fn summary_point()(
        attributes in attributes(),
        (start_time_unix_nano, time_unix_nano) in times(),
        (count, sum) in (any::<u64>(), double()),
        quantiles in vec((double(), double()), 0..4),
        flags in flags(),
    ) -> SummaryDataPoint {
        let quantile_values = quantiles
            .into_iter()
            .map(|(quantile, value)| metrics::summary_data_point::ValueAtQuantile { quantile, value })
            .collect();
        SummaryDataPoint { attributes, start_time_unix_nano, time_unix_nano, count, sum, quantile_values, flags }
    }
}

fn data() -> impl Strategy<Value = Option<metrics::metric::Data>> {
    use metrics::metric::Data;
    let temporality = || prop_oneof![3 => Just(2), 1 => Just(1), 1 => any::<i32>()];
    option::weighted(
        0.95,
        prop_oneof![
            vec(number_point(), 0..4).prop_map(|data_points| Data::Gauge(Gauge { data_points })),
            (vec(number_point(), 0..4), temporality(), any::<bool>()).prop_map(
                |(data_points, aggregation_temporality, is_monotonic)| Data::Sum(Sum {
                    data_points,
                    aggregation_temporality,
                    is_monotonic
                })
            ),
            (vec(histogram_point(), 0..4), temporality()).prop_map(
                |(data_points, aggregation_temporality)| {
                    Data::Histogram(Histogram { data_points, aggregation_temporality })
                }
            ),
            (vec(exponential_point(), 0..4), temporality()).prop_map(
                |(data_points, aggregation_temporality)| Data::ExponentialHistogram(ExponentialHistogram {
                    data_points,
                    aggregation_temporality
                })
            ),
            vec(summary_point(), 0..4).prop_map(|data_points| Data::Summary(Summary { data_points })),
        ],
    )
}

prop_compose! {
    fn metric()(
        name in prop_oneof![4 => "[a-c_./1]{1,6}(_total|_seconds|_ratio)?", 1 => text()],
        description in text(),
        unit in prop_oneof![
            "|1|s|ms|By|By/s|%|\\{request\\}|\\{req\\}/s|m/min|°|k[a-c]/h|KiBy/s|a/b/c", text()
        ],
        metadata in attributes(),
        data in data(),
    ) -> Metric {
        Metric { name, description, unit, metadata, data }
    }
}

/// A request of traces.
pub(crate) fn traces() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let scope = (scope(), vec(span(), 0..4), text()).prop_map(|(scope, spans, schema_url)| ScopeSpans {
        scope,
        spans,
        schema_url,
    });
    let resource = (resource(), vec(scope, 0..3), text())
        .prop_map(|(resource, scope_spans, schema_url)| ResourceSpans { resource, scope_spans, schema_url });
    vec(resource, 0..3).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

/// A request of logs.
pub(crate) fn logs() -> impl Strategy<Value = ExportLogsServiceRequest> {
    let scope = (scope(), vec(record(), 0..4), text())
        .prop_map(|(scope, log_records, schema_url)| ScopeLogs { scope, log_records, schema_url });
    let resource = (resource(), vec(scope, 0..3), text())
        .prop_map(|(resource, scope_logs, schema_url)| ResourceLogs { resource, scope_logs, schema_url });
    vec(resource, 0..3).prop_map(|resource_logs| ExportLogsServiceRequest { resource_logs })
}

/// A request of metrics.
pub(crate) fn metrics() -> impl Strategy<Value = ExportMetricsServiceRequest> {
    let scope = (scope(), vec(metric(), 0..4), text())
        .prop_map(|(scope, metrics, schema_url)| ScopeMetrics { scope, metrics, schema_url });
    let resource =
        (resource(), vec(scope, 0..3), text()).prop_map(|(resource, scope_metrics, schema_url)| {
            ResourceMetrics { resource, scope_metrics, schema_url }
        });
    vec(resource, 0..3).prop_map(|resource_metrics| ExportMetricsServiceRequest { resource_metrics })
}
