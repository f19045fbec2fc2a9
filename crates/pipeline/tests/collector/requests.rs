//! Random export requests.

use super::generate::{Generator, KEYS, TEXTS};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

const NOW: u64 = 1_700_000_000_123_456_789;

impl Generator {
    /// Log records in one or two scopes.
    pub(crate) fn logs(&mut self) -> ExportLogsServiceRequest {
        let scopes = self.some(1, 2, |generator| ScopeLogs {
            scope: Some(generator.scope()),
            log_records: generator.some(1, 3, Self::record),
            schema_url: "s".into(),
        });
        let resource =
            ResourceLogs { resource: Some(self.resource()), scope_logs: scopes, schema_url: String::new() };
        ExportLogsServiceRequest { resource_logs: vec![resource] }
    }

    /// Spans with events.
    pub(crate) fn traces(&mut self) -> ExportTraceServiceRequest {
        let scopes = self.some(1, 2, |generator| ScopeSpans {
            scope: Some(generator.scope()),
            spans: generator.some(1, 3, Self::span),
            schema_url: "s".into(),
        });
        let resource =
            ResourceSpans { resource: Some(self.resource()), scope_spans: scopes, schema_url: String::new() };
        ExportTraceServiceRequest { resource_spans: vec![resource] }
    }

    /// Metrics of all kinds.
    pub(crate) fn metrics(&mut self) -> ExportMetricsServiceRequest {
        let scopes = self.some(1, 2, |generator| ScopeMetrics {
            scope: Some(generator.scope()),
            metrics: generator.some(1, 3, Self::metric),
            schema_url: "s".into(),
        });
        let resource = ResourceMetrics {
            resource: Some(self.resource()),
            scope_metrics: scopes,
            schema_url: String::new(),
        };
        ExportMetricsServiceRequest { resource_metrics: vec![resource] }
    }

    fn some<T>(&mut self, least: usize, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..least + self.below(most - least + 1)).map(|_| one(self)).collect()
    }

    fn resource(&mut self) -> Resource {
        Resource { attributes: self.attributes(3), ..Default::default() }
    }

    fn scope(&mut self) -> InstrumentationScope {
        InstrumentationScope {
            name: self.pick(&TEXTS).into(),
            version: "1".into(),
            attributes: self.attributes(2),
            dropped_attributes_count: 0,
        }
    }

    fn span(&mut self) -> Span {
        let root = self.one_in(2);
        Span {
            trace_id: vec![7; 16],
            span_id: vec![9; 8],
            trace_state: self.pick(&["", "k=v", "k=v,n=1", "bad state"]).into(),
            parent_span_id: if root { Vec::new() } else { vec![3; 8] },
            flags: self.below(3) as u32,
            name: self.pick(&TEXTS).into(),
            kind: self.below(6) as i32,
            start_time_unix_nano: NOW,
            end_time_unix_nano: NOW + self.below(1_000) as u64,
            attributes: self.attributes(4),
            dropped_attributes_count: self.below(2) as u32,
            events: self.some(0, 2, |generator| Event {
                time_unix_nano: NOW,
                name: generator.pick(&TEXTS).into(),
                attributes: generator.attributes(3),
                dropped_attributes_count: 0,
            }),
            dropped_events_count: self.below(2) as u32,
            links: Vec::new(),
            dropped_links_count: 0,
            status: (!self.one_in(3))
                .then(|| Status { message: self.pick(&["", "m"]).into(), code: self.below(3) as i32 }),
        }
    }

    fn metric(&mut self) -> Metric {
        let temporality = self.below(3) as i32;
        let data = match self.below(6) {
            0 => None,
            1 => Some(Data::Gauge(Gauge { data_points: self.some(0, 2, Self::number_point) })),
            2 => Some(Data::Sum(Sum {
                data_points: self.some(1, 2, Self::number_point),
                aggregation_temporality: temporality,
                is_monotonic: self.one_in(2),
            })),
            3 => Some(Data::Histogram(Histogram {
                data_points: self.some(1, 2, Self::histogram_point),
                aggregation_temporality: temporality,
            })),
            4 => Some(Data::ExponentialHistogram(ExponentialHistogram {
                data_points: self.some(1, 2, Self::exponential_point),
                aggregation_temporality: temporality,
            })),
            _ => Some(Data::Summary(Summary { data_points: self.some(1, 2, Self::summary_point) })),
        };
        Metric {
            name: self.pick(&["", "http.requests", "m"]).into(),
            description: self.pick(&["", "what"]).into(),
            unit: self.pick(&["", "ms"]).into(),
            metadata: self.attributes(2),
            data,
        }
    }

    fn number_point(&mut self) -> NumberDataPoint {
        let value = match self.below(5) {
            0 => None,
            1 | 2 => Some(Number::AsInt([0, 5, -3][self.below(3)])),
            _ => Some(Number::AsDouble([0.0, 1.5, -3.25][self.below(3)])),
        };
        NumberDataPoint {
            attributes: self.attributes(3),
            start_time_unix_nano: NOW - 5,
            time_unix_nano: NOW,
            exemplars: Vec::new(),
            flags: self.below(2) as u32,
            value,
        }
    }

    fn histogram_point(&mut self) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes: self.attributes(3),
            time_unix_nano: NOW,
            count: self.below(9) as u64,
            sum: self.one_in(2).then_some(4.5),
            bucket_counts: vec![1, 300, 0],
            explicit_bounds: vec![0.5, 10.0],
            min: self.one_in(2).then_some(0.25),
            ..Default::default()
        }
    }

    fn exponential_point(&mut self) -> ExponentialHistogramDataPoint {
        let buckets = |counts: &[u64]| Some(Buckets { offset: -2, bucket_counts: counts.to_vec() });
        ExponentialHistogramDataPoint {
            attributes: self.attributes(3),
            time_unix_nano: NOW,
            count: self.below(9) as u64,
            sum: self.one_in(2).then_some(4.5),
            scale: -1,
            zero_count: 3,
            positive: if self.one_in(3) { None } else { buckets(&[1, 2]) },
            negative: if self.one_in(2) { None } else { buckets(&[]) },
            ..Default::default()
        }
    }

    fn summary_point(&mut self) -> SummaryDataPoint {
        SummaryDataPoint {
            attributes: self.attributes(3),
            time_unix_nano: NOW,
            count: 4,
            sum: 2.5,
            quantile_values: vec![ValueAtQuantile { quantile: 0.5, value: 1.0 }],
            ..Default::default()
        }
    }

    fn record(&mut self) -> LogRecord {
        let long = self.below(6);
        LogRecord {
            time_unix_nano: 1_700_000_000_123_456_789,
            observed_time_unix_nano: self.next() >> 3,
            severity_number: [0, 9, 13, 17][self.below(4)],
            severity_text: self.pick(&["", "INFO", "error"]).into(),
            body: (!self.one_in(8)).then(|| self.value(3)),
            attributes: self.attributes(2 + long),
            dropped_attributes_count: self.below(3) as u32,
            flags: self.below(2) as u32,
            trace_id: if self.one_in(3) { Vec::new() } else { vec![7; 16] },
            span_id: if self.one_in(3) { Vec::new() } else { vec![9; 8] },
            event_name: self.pick(&["", "event"]).into(),
        }
    }

    fn attributes(&mut self, most: usize) -> Vec<KeyValue> {
        let mut pairs: Vec<KeyValue> = Vec::new();
        for _ in 0..most {
            let key = self.pick(&KEYS);
            if pairs.iter().all(|pair| pair.key != key) {
                pairs.push(self.pair(key, 3));
            }
        }
        pairs
    }

    fn pair(&mut self, key: &str, depth: usize) -> KeyValue {
        KeyValue { key: key.into(), value: Some(self.value(depth)), ..Default::default() }
    }

    fn value(&mut self, depth: usize) -> AnyValue {
        let value = match self.below(if depth == 0 { 8 } else { 12 }) {
            0 => return AnyValue { value: None },
            1 => Value::BoolValue(self.one_in(2)),
            2 => Value::IntValue([0, 1, 42, -7, i64::MAX, i64::MIN][self.below(6)]),
            3 => Value::DoubleValue([0.0, 1.0, -2.5, 1e-7, 1e21, 3.25][self.below(6)]),
            4 => Value::BytesValue([&b"\x01\xff"[..], b"", b"abc"][self.below(3)].to_vec()),
            5..8 => Value::StringValue(self.pick(&TEXTS).into()),
            8 | 9 => {
                let mut values: Vec<KeyValue> = Vec::new();
                for _ in 0..self.below(4) {
                    let key = self.pick(&KEYS);
                    if values.iter().all(|pair| pair.key != key) {
                        values.push(self.pair(key, depth - 1));
                    }
                }
                Value::KvlistValue(KeyValueList { values })
            }
            _ => Value::ArrayValue(ArrayValue {
                values: (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            }),
        };
        AnyValue { value: Some(value) }
    }
}
