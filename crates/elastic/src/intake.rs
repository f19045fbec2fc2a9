//! Intake events as OTLP: transactions and spans as spans, errors and logs as log records, metricsets as points of
//! metrics. `design/intake.md` has the mapping, and argues that nothing is lost in it.
//!
//! `null`, an empty object and an empty list mean the same as a missing field in an event, and are left out.

mod attributes;
mod event_requests;
mod ids;
mod logs;
mod metrics;
pub(crate) mod name_budget;
mod spans;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod time;
pub(crate) mod writer;

pub use event_requests::{EventPosition, EventRequests, Request};
use tables::METADATA;
use tidegate_wire::intake::{EventKind, Object, Value, events};
use tidegate_wire::otlp::Signal;
use tidegate_wire::output::Full;
use writer::{AttributeName, MessageWriter};

/// The output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Translation {
    /// The length of the request.
    pub bytes: usize,
    /// The events that are in it.
    pub events: u64,
}

/// How long the request of one signal is, about, that a body of `raw_len` bytes becomes: enough for what agents send.
#[must_use]
pub fn usual_len(raw_len: usize) -> usize {
    raw_len.saturating_add(raw_len / 4).saturating_add(1 << 10)
}

/// The signal as which an event is said in OTLP; nothing for the metadata, which are said with all of them.
#[must_use]
pub fn signal_of(kind: EventKind) -> Option<Signal> {
    kind.signal()
}

/// The signals that a checked body has events of.
pub fn signals(raw: &[u8]) -> impl Iterator<Item = Signal> {
    let mut found = [false; 3];
    const SIGNALS: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];
    for event in events(raw) {
        for (found, signal) in found.iter_mut().zip(SIGNALS) {
            *found |= signal_of(event.kind) == Some(signal);
        }
    }
    SIGNALS.into_iter().zip(found).filter_map(|(signal, found)| found.then_some(signal))
}

/// Writes the events of `signal` of a checked body, as one export request, to the start of `out`. Events without a time
/// have that at which the body was received. Where there are none, nothing is written. Nothing is allocated.
///
/// # Errors
/// [`Full`] when `out` has no room for all of it.
pub fn to_otlp(raw: &[u8], received_at_ns: u64, signal: Signal, out: &mut [u8]) -> Result<Translation, Full> {
    let whole = EventRequests::new(raw, received_at_ns, signal).write_whole(out)?;
    Ok(Translation { bytes: whole.bytes, events: whole.events })
}

/// The resource: what the metadata say.
fn resource(out: &mut MessageWriter<'_>, metadata: Option<Object<'_>>) {
    /// `Resource.attributes`
    const ATTRIBUTES: u8 = 1;
    let Some(metadata) = metadata else { return };
    let resource = out.open(1);
    attributes::table(out, ATTRIBUTES, metadata, &METADATA);
    if let Some(Value::Text(agent)) = metadata.at(&[b"service", b"agent", b"name"]) {
        out.with_value(ATTRIBUTES, AttributeName::fixed("telemetry.sdk.name"), |out| {
            let text = out.open(1);
            out.bytes(b"elastic-apm-");
            out.text(agent);
            out.close(text);
        });
    }
    // By which of its names a host goes; the names are said besides.
    let names: [&[u8]; 3] = [b"configured_hostname", b"detected_hostname", b"hostname"];
    if let Some(Value::Object(system)) = metadata.find(b"system")
        && let Some(host) = names.into_iter().find_map(|name| system.find(name))
    {
        out.attribute(ATTRIBUTES, AttributeName::fixed("host.name"), host);
    }
    out.close(resource);
}
