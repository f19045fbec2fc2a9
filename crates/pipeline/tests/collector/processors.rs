//! Statements with the functions of the transform and filter processors, and requests that they change.

use super::generate::Generator;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::exemplar::Value as ExemplarValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{Exemplar, HistogramDataPoint, NumberDataPoint};
use opentelemetry_proto::tonic::trace::v1::span::Link;

/// The attributes that names of spans are made of.
const NAMING: [&str; 30] = [
    "http.request.method",
    "http.method",
    "http.route",
    "url.template",
    "rpc.system.name",
    "rpc.system",
    "rpc.method",
    "rpc.grpc.method",
    "rpc.service",
    "rpc.grpc.service",
    "db.system.name",
    "db.system",
    "db.query.summary",
    "db.operation.name",
    "db.operation",
    "db.namespace",
    "db.name",
    "db.collection.name",
    "db.stored_procedure.name",
    "server.address",
    "server.port",
    "messaging.system",
    "messaging.operation.name",
    "messaging.operation",
    "messaging.destination.temporary",
    "messaging.destination.anonymous",
    "messaging.destination.template",
    "messaging.destination.name",
    "messaging.destination",
    "other",
];

impl Generator {
    /// One to four statements on metrics.
    pub(crate) fn metric_functions(&mut self) -> Vec<String> {
        let mut statements: Vec<String> = (0..1 + self.below(4)).map(|_| self.metric_function()).collect();
        // A path says what they are for.
        statements.push("set(metric.unit, metric.unit)".into());
        statements
    }

    fn metric_function(&mut self) -> String {
        let temporality = self.pick(&["delta", "cumulative"]);
        let factor = self.pick(&["10.0", "0.1", "1.0", "0.0", "1e300", ".5"]).replace("1e300", "1000000.0");
        let editor = match self.below(8) {
            0 | 1 => "convert_sum_to_gauge()".to_owned(),
            2 | 3 => format!("convert_gauge_to_sum(\"{temporality}\", {})", self.one_in(2)),
            4 => format!("scale_metric({factor})"),
            5 => format!("scale_metric({factor}, {})", self.pick(&["\"s\"", "metric.name", "metric.type"])),
            6 => format!("set(metric.aggregation_temporality, {})", self.below(3)),
            _ => self.pick(&["set(metric.name, \"n\")", "set(metric.is_monotonic, true)"]).to_owned(),
        };
        match self.below(5) {
            0 => format!("{editor} where metric.type == {}", self.below(6)),
            1 => format!("{editor} where metric.is_monotonic == true"),
            2 => format!("{editor} where {}", self.point_condition()),
            _ => editor,
        }
    }

    /// One to three statements on data points.
    pub(crate) fn point_functions(&mut self) -> Vec<String> {
        let mut statements: Vec<String> = (0..1 + self.below(3))
            .map(|_| {
                let bound = self.pick(&["0.5", "10.0", "2.0", "0.0"]);
                let editor = format!("merge_histogram_buckets({bound})");
                if self.one_in(3) { format!("{editor} where datapoint.count > 3") } else { editor }
            })
            .collect();
        statements.push("set(datapoint.flags, datapoint.flags)".into());
        statements
    }

    /// A condition on the points of a metric.
    pub(crate) fn point_conditions(&mut self) -> Vec<String> {
        vec![format!("{} and metric.type >= 0", self.point_condition())]
    }

    fn point_condition(&mut self) -> String {
        let key = self.pick(&["a", "b", "c", "m", "none"]);
        match self.below(3) {
            0 => format!("HasAttrKeyOnDatapoint(\"{key}\")"),
            1 => format!("not HasAttrKeyOnDatapoint(\"{key}\")"),
            _ => format!("HasAttrOnDatapoint(\"{key}\", \"{}\")", self.pick(&["", "x", "abc", "12"])),
        }
    }

    /// One or two statements on spans.
    pub(crate) fn span_functions(&mut self) -> Vec<String> {
        let editor = match self.below(3) {
            0 => "set_semconv_span_name(\"1.37.0\")",
            1 => "set_semconv_span_name(\"1.40\", \"original\")",
            _ => "set_semconv_span_name(\"v1.38.0\", \"other\")",
        };
        vec![format!("{editor} where span.kind >= {}", self.below(2))]
    }

    /// A statement or a condition that counts messages.
    pub(crate) fn counting(&mut self, paths: &[&str], context: &str, is_edit: bool) -> Vec<String> {
        let path = self.pick(paths);
        let condition = match self.below(4) {
            0 => format!("{path} != nil"),
            1 => format!("{path} == nil"),
            _ => format!("Len({path}) {} {}", self.pick(&["==", ">", "<="]), self.below(3)),
        };
        if !is_edit {
            return vec![format!("{condition} and {context}.cache[\"a\"] == nil")];
        }
        let map = if context == "metric" { "metric.metadata" } else { &format!("{context}.attributes") };
        vec![
            format!("set({map}[\"n\"], Len({}))", self.pick(paths)),
            format!("set({map}[\"m\"], true) where {condition}"),
        ]
    }

    /// Metrics with all that can be multiplied.
    pub(crate) fn full_metrics(&mut self) -> ExportMetricsServiceRequest {
        let mut request = self.metrics();
        let scopes = request.resource_metrics.iter_mut().flat_map(|resource| &mut resource.scope_metrics);
        for metric in scopes.flat_map(|scope| &mut scope.metrics) {
            match &mut metric.data {
                Some(Data::Gauge(data)) => data.data_points.iter_mut().for_each(|point| self.fill(point)),
                Some(Data::Sum(data)) => data.data_points.iter_mut().for_each(|point| self.fill(point)),
                Some(Data::Histogram(data)) => {
                    data.data_points.iter_mut().for_each(|point| self.fill_histogram(point))
                }
                Some(Data::Summary(data)) => {
                    for point in &mut data.data_points {
                        let value = |at| ValueAtQuantile {
                            quantile: f64::from(at) / 4.0,
                            value: f64::from(at) - 1.5,
                        };
                        point.quantile_values = (0..self.below(4) as u32).map(value).collect();
                    }
                }
                _ => {}
            }
        }
        request
    }

    fn fill(&mut self, point: &mut NumberDataPoint) {
        point.exemplars = (0..self.below(3)).map(|_| self.exemplar()).collect();
    }

    fn fill_histogram(&mut self, point: &mut HistogramDataPoint) {
        point.exemplars = (0..self.below(3)).map(|_| self.exemplar()).collect();
        point.max = self.one_in(2).then_some(12.0);
        let bounds = [0.0, 0.5, 2.0, 10.0, 100.0];
        point.explicit_bounds = bounds[..self.below(6)].to_vec();
        let buckets = point.explicit_bounds.len() + usize::from(!self.one_in(5));
        point.bucket_counts = (0..buckets).map(|_| self.below(300) as u64).collect();
    }

    fn exemplar(&mut self) -> Exemplar {
        Exemplar {
            time_unix_nano: 7,
            span_id: vec![1; 8],
            value: match self.below(3) {
                0 => None,
                1 => Some(ExemplarValue::AsInt(self.below(100) as i64 - 50)),
                _ => Some(ExemplarValue::AsDouble(1.25)),
            },
            ..Exemplar::default()
        }
    }

    /// Spans with the attributes of the semantic conventions.
    pub(crate) fn conventional_traces(&mut self) -> ExportTraceServiceRequest {
        let mut request = self.traces();
        let scopes = request.resource_spans.iter_mut().flat_map(|resource| &mut resource.scope_spans);
        for span in scopes.flat_map(|scope| &mut scope.spans) {
            span.links = (0..self.below(3)).map(|_| Link::default()).collect();
            let most = 1 + self.below(8);
            for _ in 0..most {
                let key = self.pick(&NAMING);
                if span.attributes.iter().any(|pair| pair.key == key) {
                    continue;
                }
                let value = match self.below(6) {
                    0 => Value::StringValue(String::new()),
                    1 => Value::IntValue(8080),
                    2 | 3 => Value::BoolValue(self.one_in(2)),
                    _ => Value::StringValue(self.pick(&["GET", "orders", "a.b.C"]).into()),
                };
                let value = Some(AnyValue { value: Some(value) });
                span.attributes.push(KeyValue { key: key.into(), value, ..KeyValue::default() });
            }
        }
        request
    }
}
