//! Export requests of the three signals, for comparison.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use tidegate_wire::otlp::Signal;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Logs(ExportLogsServiceRequest),
    Traces(ExportTraceServiceRequest),
    Metrics(ExportMetricsServiceRequest),
}

impl Body {
    pub(crate) fn signal(&self) -> Signal {
        match self {
            Body::Logs(_) => Signal::Logs,
            Body::Traces(_) => Signal::Traces,
            Body::Metrics(_) => Signal::Metrics,
        }
    }

    pub(crate) fn signal_name(&self) -> &'static str {
        match self {
            Body::Logs(_) => "logs",
            Body::Traces(_) => "traces",
            Body::Metrics(_) => "metrics",
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Body::Logs(request) => request.encode_to_vec(),
            Body::Traces(request) => request.encode_to_vec(),
            Body::Metrics(request) => request.encode_to_vec(),
        }
    }

    /// Decodes a request of the same signal.
    pub(crate) fn decode(&self, body: &[u8]) -> Option<Body> {
        match self {
            Body::Logs(_) => ExportLogsServiceRequest::decode(body).ok().map(Body::Logs),
            Body::Traces(_) => ExportTraceServiceRequest::decode(body).ok().map(Body::Traces),
            Body::Metrics(_) => ExportMetricsServiceRequest::decode(body).ok().map(Body::Metrics),
        }
    }

    /// The same without the order of keys, which Go changes, and without the difference of absent and empty messages.
    pub(crate) fn normal(mut self) -> Body {
        match &mut self {
            Body::Logs(request) => {
                for resource in &mut request.resource_logs {
                    owner(&mut resource.resource);
                    for scope in &mut resource.scope_logs {
                        library(&mut scope.scope);
                        for record in &mut scope.log_records {
                            pairs(&mut record.attributes);
                            value(record.body.get_or_insert_default());
                        }
                    }
                }
            }
            Body::Traces(request) => {
                for resource in &mut request.resource_spans {
                    owner(&mut resource.resource);
                    for scope in &mut resource.scope_spans {
                        library(&mut scope.scope);
                        for span in &mut scope.spans {
                            pairs(&mut span.attributes);
                            span.status.get_or_insert_default();
                            span.events.iter_mut().for_each(|event| pairs(&mut event.attributes));
                        }
                    }
                }
            }
            Body::Metrics(request) => {
                for resource in &mut request.resource_metrics {
                    owner(&mut resource.resource);
                    for scope in &mut resource.scope_metrics {
                        library(&mut scope.scope);
                        for metric in &mut scope.metrics {
                            pairs(&mut metric.metadata);
                            metric.data.iter_mut().for_each(points);
                        }
                    }
                }
            }
        }
        self
    }

    /// The same without metrics that have no points: a body of those alone has no items, and is not delivered.
    pub(crate) fn with_items(mut self) -> Body {
        if let Body::Metrics(request) = &mut self {
            for resource in &mut request.resource_metrics {
                resource.scope_metrics.iter_mut().for_each(|scope| scope.metrics.retain(has_points));
                resource.scope_metrics.retain(|scope| !scope.metrics.is_empty());
            }
            request.resource_metrics.retain(|resource| !resource.scope_metrics.is_empty());
        }
        self
    }
}

fn has_points(metric: &Metric) -> bool {
    match &metric.data {
        None => false,
        Some(Data::Gauge(data)) => !data.data_points.is_empty(),
        Some(Data::Sum(data)) => !data.data_points.is_empty(),
        Some(Data::Histogram(data)) => !data.data_points.is_empty(),
        Some(Data::ExponentialHistogram(data)) => !data.data_points.is_empty(),
        Some(Data::Summary(data)) => !data.data_points.is_empty(),
    }
}

fn owner(resource: &mut Option<Resource>) {
    pairs(&mut resource.get_or_insert_default().attributes);
}

fn library(scope: &mut Option<InstrumentationScope>) {
    pairs(&mut scope.get_or_insert_default().attributes);
}

fn points(data: &mut Data) {
    match data {
        Data::Gauge(data) => data.data_points.iter_mut().for_each(|point| pairs(&mut point.attributes)),
        Data::Sum(data) => data.data_points.iter_mut().for_each(|point| pairs(&mut point.attributes)),
        Data::Histogram(data) => data.data_points.iter_mut().for_each(|point| pairs(&mut point.attributes)),
        Data::ExponentialHistogram(data) => data.data_points.iter_mut().for_each(|point| {
            pairs(&mut point.attributes);
            point.positive.get_or_insert_default();
            point.negative.get_or_insert_default();
        }),
        Data::Summary(data) => data.data_points.iter_mut().for_each(|point| pairs(&mut point.attributes)),
    }
}

fn pairs(list: &mut [KeyValue]) {
    for pair in &mut *list {
        value(pair.value.get_or_insert_default());
    }
    list.sort_by(|one, other| one.key.cmp(&other.key));
}

fn value(found: &mut AnyValue) {
    match &mut found.value {
        Some(any_value::Value::KvlistValue(list)) => pairs(&mut list.values),
        Some(any_value::Value::ArrayValue(list)) => list.values.iter_mut().for_each(value),
        _ => {}
    }
}
