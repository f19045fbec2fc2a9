//! The last answer, and the rates that follow from it and those before.

use crate::frame::Frame;
use crate::history::{History, Step};
use std::collections::HashMap;

/// What is known of a gateway.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) frame: Frame,
    /// Items received.
    pub(crate) received: History,
    /// Bytes of bodies received.
    pub(crate) received_bytes: History,
    /// Items that sinks delivered, each sink counted.
    pub(crate) delivered: History,
    /// Bytes that sinks sent.
    pub(crate) sent_bytes: History,
    /// Requests refused.
    pub(crate) refused: History,
    sources: HashMap<String, SourceRates>,
    sinks: HashMap<String, SinkRates>,
    tenants: HashMap<String, History>,
}

/// The rates of a source.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceRates {
    pub(crate) items: History,
    pub(crate) bytes: History,
    pub(crate) requests: History,
    pub(crate) refused: History,
}

/// The rates of a sink.
#[derive(Debug, Clone, Default)]
pub(crate) struct SinkRates {
    pub(crate) items: History,
    pub(crate) bytes: History,
    pub(crate) requests: History,
    pub(crate) failures: History,
}

impl Model {
    /// Takes an answer in.
    pub(crate) fn take(&mut self, frame: Frame) {
        let seconds = frame.uptime_seconds - self.frame.uptime_seconds;
        let step = if seconds < 0.0 { Step::Restart } else { Step::Seconds(seconds) };
        self.take_sources(&frame, step);
        self.take_sinks(&frame, step);
        self.take_tenants(&frame, step);
        self.frame = frame;
    }

    fn take_sources(&mut self, frame: &Frame, step: Step) {
        let sources = &frame.books.sources;
        let sum = |of: fn(&crate::frame::SourceBook) -> u64| {
            sources.iter().fold(0_u64, |sum, source| sum.saturating_add(of(source)))
        };
        self.received.note(sum(|source| source.all_items()), step);
        self.received_bytes.note(sum(|source| source.bytes), step);
        self.refused.note(sum(|source| source.all_refused()), step);
        self.sources.retain(|name, _| sources.iter().any(|source| source.name == *name));
        for source in sources {
            let rates = self.sources.entry(source.name.clone()).or_default();
            rates.items.note(source.all_items(), step);
            rates.bytes.note(source.bytes, step);
            rates.requests.note(source.received, step);
            rates.refused.note(source.all_refused(), step);
        }
    }

    fn take_sinks(&mut self, frame: &Frame, step: Step) {
        let sinks = &frame.sinks;
        // The sum is over the sinks of both answers: one that was added brings its past with it.
        let known =
            sinks.iter().all(|sink| self.sinks.contains_key(&sink.name)) && self.sinks.len() == sinks.len();
        let step_of_all = if known { step } else { Step::Restart };
        let sum = |of: fn(&crate::frame::Sink) -> u64| {
            sinks.iter().fold(0_u64, |sum, sink| sum.saturating_add(of(sink)))
        };
        self.delivered.note(sum(|sink| sink.delivered), step_of_all);
        self.sent_bytes.note(sum(|sink| sink.bytes), step_of_all);
        self.sinks.retain(|name, _| sinks.iter().any(|sink| sink.name == *name));
        for sink in sinks {
            let rates = self.sinks.entry(sink.name.clone()).or_default();
            rates.items.note(sink.delivered, step);
            rates.bytes.note(sink.bytes, step);
            rates.requests.note(sink.requests, step);
            rates.failures.note(sink.failures, step);
        }
    }

    fn take_tenants(&mut self, frame: &Frame, step: Step) {
        let shown = frame.tenants.as_ref().map(|tenants| &tenants.shown[..]).unwrap_or_default();
        self.tenants.retain(|name, _| shown.iter().any(|tenant| tenant.name == *name));
        for tenant in shown {
            self.tenants.entry(tenant.name.clone()).or_default().note(tenant.bytes, step);
        }
    }

    /// The rates of a source.
    pub(crate) fn source(&self, name: &str) -> Option<&SourceRates> {
        self.sources.get(name)
    }

    /// The rates of a sink.
    pub(crate) fn sink(&self, name: &str) -> Option<&SinkRates> {
        self.sinks.get(name)
    }

    /// Bytes a second of a tenant.
    pub(crate) fn tenant_rate(&self, name: &str) -> Option<f64> {
        self.tenants.get(name).and_then(History::rate)
    }
}

#[cfg(test)]
mod tests;
