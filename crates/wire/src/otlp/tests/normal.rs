//! prost's structures with what views do not distinguish made alike: a message that is missing and an empty
//! one; indexes into the dictionary of profiles, which other signals read as nothing.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Exemplar, Metric};
use opentelemetry_proto::tonic::resource::v1::Resource;

pub(in crate::otlp) fn traces(mut request: ExportTraceServiceRequest) -> ExportTraceServiceRequest {
    for group in &mut request.resource_spans {
        resource(&mut group.resource);
        for group in &mut group.scope_spans {
            scope(&mut group.scope);
            for span in &mut group.spans {
                attributes(&mut span.attributes);
                span.status.get_or_insert_default();
                span.events.iter_mut().for_each(|event| attributes(&mut event.attributes));
                span.links.iter_mut().for_each(|link| attributes(&mut link.attributes));
            }
        }
    }
    request
}

pub(in crate::otlp) fn logs(mut request: ExportLogsServiceRequest) -> ExportLogsServiceRequest {
    for group in &mut request.resource_logs {
        resource(&mut group.resource);
        for group in &mut group.scope_logs {
            scope(&mut group.scope);
            for record in &mut group.log_records {
                attributes(&mut record.attributes);
                value(record.body.get_or_insert_default());
            }
        }
    }
    request
}

pub(in crate::otlp) fn metrics(mut request: ExportMetricsServiceRequest) -> ExportMetricsServiceRequest {
    for group in &mut request.resource_metrics {
        resource(&mut group.resource);
        for group in &mut group.scope_metrics {
            scope(&mut group.scope);
            group.metrics.iter_mut().for_each(metric);
        }
    }
    request
}

fn resource(resource: &mut Option<Resource>) {
    attributes(&mut resource.get_or_insert_default().attributes);
}

fn scope(scope: &mut Option<InstrumentationScope>) {
    attributes(&mut scope.get_or_insert_default().attributes);
}

fn attributes(list: &mut [KeyValue]) {
    for attribute in list {
        attribute.key_strindex = 0;
        value(attribute.value.get_or_insert_default());
    }
}

fn value(any: &mut AnyValue) {
    match &mut any.value {
        Some(Value::StringValueStrindex(_)) => any.value = None,
        Some(Value::ArrayValue(array)) => array.values.iter_mut().for_each(value),
        Some(Value::KvlistValue(map)) => attributes(&mut map.values),
        _ => {}
    }
}

fn metric(metric: &mut Metric) {
    attributes(&mut metric.metadata);
    match &mut metric.data {
        None => {}
        Some(Data::Gauge(gauge)) => {
            for point in &mut gauge.data_points {
                attributes(&mut point.attributes);
                exemplars(&mut point.exemplars);
            }
        }
        Some(Data::Sum(sum)) => {
            for point in &mut sum.data_points {
                attributes(&mut point.attributes);
                exemplars(&mut point.exemplars);
            }
        }
        Some(Data::Histogram(histogram)) => {
            for point in &mut histogram.data_points {
                attributes(&mut point.attributes);
                exemplars(&mut point.exemplars);
            }
        }
        Some(Data::ExponentialHistogram(histogram)) => {
            for point in &mut histogram.data_points {
                attributes(&mut point.attributes);
                exemplars(&mut point.exemplars);
                point.positive.get_or_insert_default();
                point.negative.get_or_insert_default();
            }
        }
        Some(Data::Summary(summary)) => {
            summary.data_points.iter_mut().for_each(|point| attributes(&mut point.attributes));
        }
    }
}

fn exemplars(list: &mut [Exemplar]) {
    list.iter_mut().for_each(|exemplar| attributes(&mut exemplar.filtered_attributes));
}
