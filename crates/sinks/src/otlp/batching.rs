//! Routes records into batches: by signal, tenant and the form in which they go out.

use super::OtlpProtocol;
use super::json::OutputForm;
use super::peer::{self, PREFIX};
use super::settings::Transport;
use super::translation::{outgoing_len, version_of};
use crate::batch::BatchKey;
use crate::decoding::END_SLACK;
use crate::delivery::RecordRoute;
use crate::journal_consumer::Record;
use tidegate_arena::rounded;
use tidegate_journal::{Meta, Protocol, Signal, Tenant};
use tidegate_wire::otlp as wire;
use tidegate_wire::remote_write::Version;

/// The shared properties of a batch's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) signal: Signal,
    pub(super) tenant: Tenant,
    pub(super) way: BodyTreatment,
}

impl BatchKey for Key {}

/// How records go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyTreatment {
    /// As they are: their bytes, one after the other, are a request.
    Join,
    /// Decoded and compressed again, or only one of the two.
    Recode,
    /// Translated to OTLP: they came as remote write of this version.
    Translate(Version),
}

impl OtlpProtocol {
    /// How a record goes out; nothing when OTLP has no form for it.
    pub(super) fn way(&self, meta: &Meta) -> Option<BodyTreatment> {
        if let Some(version) = version_of(meta) {
            return (!self.is_only_for_logs()).then_some(BodyTreatment::Translate(version));
        }
        if matches!(meta.protocol, Protocol::Intake | Protocol::Bulk) {
            return Some(BodyTreatment::Recode);
        }
        if meta.protocol != Protocol::Otlp || !peer::is_spoken(meta.signal) {
            return None;
        }
        if self.is_only_for_logs() {
            return (meta.signal == Signal::Logs).then_some(BodyTreatment::Recode);
        }
        if self.settings.is_rewritten() {
            // Profiles have no JSON.
            return (meta.signal != Signal::Profiles).then_some(BodyTreatment::Recode);
        }
        let joins = self.settings.joined() == Some(meta.encoding);
        Some(if joins { BodyTreatment::Join } else { BodyTreatment::Recode })
    }

    /// Where a record goes, while requests have at most `most` bytes.
    pub(super) fn route_of(&self, record: &Record, most: usize) -> RecordRoute<Key> {
        let meta = &record.meta;
        let Some(way) = self.way(meta) else { return RecordRoute::Untranslatable };
        if self.is_cut(record, most) {
            return RecordRoute::Oversize;
        }
        RecordRoute::Batch {
            key: Key { signal: meta.signal, tenant: meta.tenant, way },
            out_len: self.outgoing_len(meta),
            needed: needed(record, way) + self.rewritten_len(meta).map_or(0, |len| rounded(PREFIX + len)),
            // Profiles have tables that the rest refers to by number.
            single: meta.signal == Signal::Profiles,
        }
    }

    /// Whether a record is to be cut, since the peer does not take it whole.
    pub(super) fn is_cut(&self, record: &Record, most: usize) -> bool {
        if matches!(record.meta.protocol, Protocol::Intake | Protocol::Bulk) {
            // They are translated first, events to a request for each signal.
            return true;
        }
        let begun = self.cut.as_ref().is_some_and(|cut| cut.sequence == record.sequence);
        let cuttable = wire_signal(record.meta.signal).is_some_and(wire::joinable);
        begun || (cuttable && self.outgoing_len(&record.meta) > most)
    }

    /// Estimates the length of a record's request before compression.
    fn outgoing_len(&self, meta: &Meta) -> usize {
        self.rewritten_len(meta).unwrap_or_else(|| outgoing_len(meta))
    }

    /// Estimates the length of a record in its form; nothing for OTLP.
    fn rewritten_len(&self, meta: &Meta) -> Option<usize> {
        self.settings.is_rewritten().then(|| self.growth.longer(meta.signal, outgoing_len(meta)))
    }

    /// The form of `raw` bytes of OTLP, of at most `most` bytes.
    pub(super) fn form(&self, signal: Signal, raw: usize, most: usize) -> Option<OutputForm> {
        let expected = self.growth.longer(signal, raw).min(most);
        self.settings.form().map(|form| OutputForm { form, expected, most })
    }

    /// Whether only logs go out, as events of Splunk or entries of Loki.
    fn is_only_for_logs(&self) -> bool {
        matches!(self.settings.transport, Transport::SplunkHec | Transport::Loki)
    }
}

/// The budget for a record sent alone, in whole steps.
fn needed(record: &Record, way: BodyTreatment) -> usize {
    let kept = rounded(PREFIX + record.body_len as usize);
    let raw = record.meta.raw_len as usize;
    match way {
        BodyTreatment::Join => kept,
        // In both forms, and what is made of it.
        BodyTreatment::Recode => kept + rounded(PREFIX + raw + END_SLACK) + rounded(PREFIX + raw / 4),
        BodyTreatment::Translate(_) => {
            let said = outgoing_len(&record.meta);
            kept + rounded(PREFIX + raw + END_SLACK) + rounded(PREFIX + said) + rounded(PREFIX + said / 4)
        }
    }
}

/// A signal as the wire's formats have it.
pub(crate) fn wire_signal(signal: Signal) -> Option<wire::Signal> {
    match signal {
        Signal::Traces => Some(wire::Signal::Traces),
        Signal::Metrics => Some(wire::Signal::Metrics),
        Signal::Logs => Some(wire::Signal::Logs),
        Signal::Profiles => Some(wire::Signal::Profiles),
        Signal::Events => None,
    }
}
