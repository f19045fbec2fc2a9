//! Exporters for programs that already use the OpenTelemetry SDK.
//!
//! They write the SDK's batches into the ring, and return: what is slow, fails and is tried again is the
//! sender's affair, on its own thread. Errors and limits show in [`Sender::stats`]. The resource that the SDK
//! hands over replaces the sender's own, attribute by attribute; the first exporter that hands one over wins.
//!
//! ```
//! use opentelemetry_sdk::trace::SdkTracerProvider;
//! use tidegate_sender::opentelemetry::Exporter;
//!
//! let sender = tidegate_sender::Sender::builder().start()?;
//! let provider = SdkTracerProvider::builder().with_simple_exporter(Exporter::new(sender)).build();
//! # Ok::<(), tidegate_sender::ConfigError>(())
//! ```
//!
//! `with_simple_exporter` is the better choice here: the sender has its own queue, and a second one in front
//! of it only adds a place to lose spans at.

mod logs;
mod metrics;
mod spans;
mod values;

use crate::record::Scope;
use crate::sender::{Sender, UnsentEvents};
use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use std::time::Duration;

/// A `SpanExporter`, `LogExporter` and `PushMetricExporter` in one. Clones share the sender.
#[derive(Clone, Debug)]
pub struct Exporter {
    sender: Sender,
    temporality: opentelemetry_sdk::metrics::Temporality,
}

impl Exporter {
    /// An exporter on that sender; its metrics are cumulative.
    pub fn new(sender: Sender) -> Exporter {
        Exporter { sender, temporality: opentelemetry_sdk::metrics::Temporality::Cumulative }
    }

    /// Since when its sums and histograms count.
    #[must_use]
    pub fn temporality(mut self, temporality: opentelemetry_sdk::metrics::Temporality) -> Exporter {
        self.temporality = temporality;
        self
    }

    fn scope(&self, scope: &InstrumentationScope) -> Scope {
        self.sender.scope(scope.name(), scope.version().unwrap_or(""))
    }

    fn adopt(&self, resource: &Resource) {
        self.sender.adopt_resource(&values::Of(resource));
    }

    fn flush(&self, timeout: Duration) -> OTelSdkResult {
        done(self.sender.flush(timeout), timeout)
    }

    fn end(&self, timeout: Duration) -> OTelSdkResult {
        // The other exporters of the program may use the same sender, so it goes on.
        self.flush(timeout)
    }
}

fn done(left: UnsentEvents, timeout: Duration) -> OTelSdkResult {
    if left.is_nothing() { Ok(()) } else { Err(OTelSdkError::Timeout(timeout)) }
}
