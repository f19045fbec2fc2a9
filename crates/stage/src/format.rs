//! The records that a pipeline applies to.

use tidegate_journal::{Protocol, Signal};
use tidegate_pipeline::{Format, Pipeline, Signal as OtlpSignal};
use tidegate_wire::remote_write::Version;

/// The format of the decoded bodies of records of this protocol and signal, if `pipeline` applies to them.
#[must_use]
pub fn format_of(pipeline: &Pipeline, protocol: Protocol, signal: Signal) -> Option<Format> {
    let format = match protocol {
        Protocol::Otlp => Format::Otlp(otlp_signal(signal)?),
        Protocol::RemoteWrite1 => Format::RemoteWrite(Version::V1),
        Protocol::RemoteWrite2 => Format::RemoteWrite(Version::V2),
        _ => return None,
    };
    (pipeline.passes(format) > 0).then_some(format)
}

/// A signal of the journal as OTLP names it.
const fn otlp_signal(signal: Signal) -> Option<OtlpSignal> {
    match signal {
        Signal::Traces => Some(OtlpSignal::Traces),
        Signal::Metrics => Some(OtlpSignal::Metrics),
        Signal::Logs => Some(OtlpSignal::Logs),
        Signal::Profiles => Some(OtlpSignal::Profiles),
        Signal::Events => None,
    }
}
