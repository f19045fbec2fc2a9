//! Requests with names that are not field names, or that equal names derived from such.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use proptest::prelude::*;

/// Names to give, one after the other and again from the start; nothing leaves a name as it is.
#[derive(Debug, Clone)]
pub(super) struct Names {
    names: Vec<Option<String>>,
    next: usize,
}

/// Few letters, so that there are the same ones.
pub(super) fn names() -> impl Strategy<Value = Names> {
    let name = prop_oneof!["[. _]{0,2}a?[. _]?", "[ab](\\.(a|b|value)){0,3}"];
    proptest::collection::vec(proptest::option::weighted(0.7, name), 1..24)
        .prop_map(|names| Names { names, next: 0 })
}

impl Names {
    fn give(&mut self, name: &mut String) {
        self.next += 1;
        if let Some(given) = &self.names[self.next % self.names.len()] {
            name.clone_from(given);
        }
    }

    fn spoil(&mut self, attributes: &mut [KeyValue]) {
        for attribute in attributes {
            self.give(&mut attribute.key);
            self.value(attribute.value.as_mut());
        }
    }

    fn value(&mut self, value: Option<&mut AnyValue>) {
        match value.and_then(|value| value.value.as_mut()) {
            Some(Any::KvlistValue(map)) => self.spoil(&mut map.values),
            Some(Any::ArrayValue(array)) => array.values.iter_mut().for_each(|value| self.value(Some(value))),
            _ => {}
        }
    }

    pub(super) fn logs(mut self, mut request: ExportLogsServiceRequest) -> ExportLogsServiceRequest {
        for scope in request.resource_logs.iter_mut().flat_map(|resource| &mut resource.scope_logs) {
            for record in &mut scope.log_records {
                self.spoil(&mut record.attributes);
                self.value(record.body.as_mut());
            }
        }
        request
    }

    pub(super) fn traces(mut self, mut request: ExportTraceServiceRequest) -> ExportTraceServiceRequest {
        for scope in request.resource_spans.iter_mut().flat_map(|resource| &mut resource.scope_spans) {
            for span in &mut scope.spans {
                self.spoil(&mut span.attributes);
                span.events.iter_mut().for_each(|event| self.spoil(&mut event.attributes));
            }
        }
        request
    }

    pub(super) fn metrics(mut self, mut request: ExportMetricsServiceRequest) -> ExportMetricsServiceRequest {
        for scope in request.resource_metrics.iter_mut().flat_map(|resource| &mut resource.scope_metrics) {
            for metric in &mut scope.metrics {
                self.give(&mut metric.name);
            }
        }
        request
    }
}
