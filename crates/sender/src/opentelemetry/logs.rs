//! Log records of the SDK.

use super::Exporter;
use super::values::{Of, show_any};
use crate::clock::nanos;
use crate::record::{Attributes, Log, Severity, SpanContext, Value};
use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter, SdkLogRecord};
use std::time::Duration;

impl LogExporter for Exporter {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        for (record, scope) in batch.iter() {
            self.log(record, scope);
        }
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.end(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.adopt(resource);
    }
}

impl Exporter {
    fn log(&self, record: &SdkLogRecord, scope: &InstrumentationScope) {
        let log = |body: Value<'_>| {
            let log = Log {
                time: record.timestamp().map_or(0, nanos),
                observed: record.observed_timestamp().map_or(0, nanos),
                severity: record
                    .severity_number()
                    .map_or(Severity::UNSPECIFIED, |number| Severity(number as u8)),
                severity_text: record.severity_text().unwrap_or(""),
                body,
                event_name: record.event_name().unwrap_or(""),
                attributes: &Of(record),
                context: record.trace_context().map(|context| SpanContext {
                    trace_id: context.trace_id.to_bytes(),
                    span_id: context.span_id.to_bytes(),
                    flags: context.trace_flags.map_or(0, |flags| flags.to_u8()),
                }),
                scope: self.scope(scope),
            };
            // Counted if it is refused; the SDK would only log it.
            let _ = self.sender.log(&log);
        };
        match record.body() {
            Some(body) => show_any(body, log),
            None => log(Value::Empty),
        }
    }
}

impl Attributes for Of<'_, SdkLogRecord> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        if let Some(target) = self.0.target() {
            visit("log.target", Value::Str(target));
        }
        for (key, value) in self.0.attributes_iter() {
            show_any(value, |value| visit(key.as_str(), value));
        }
    }
}
