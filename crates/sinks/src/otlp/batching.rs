//! Routes records into batches: by signal, tenant and the form in which they go out.

use super::batch::{Batch, Key, Way};
use super::peer::{self, PREFIX};
use super::settings::Compression;
use super::translation::{outgoing_len, version_of};
use super::{OPEN, Otlp, coder};
use crate::batch::{Limits, Why, joined_most};
use crate::inbox::Record;
use crate::losses::Losses;
use tidegate_arena::rounded;
use tidegate_journal::{Encoding, IN_FLIGHT, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_wire::otlp as wire;
use tokio::time::Instant;

impl Otlp {
    /// How a record goes out; nothing when the protocol of the peer has no way to say it.
    pub(super) fn way(&self, record: &Record) -> Option<Way> {
        let meta = &record.meta;
        if let Some(version) = version_of(meta) {
            return Some(Way::Translate(version));
        }
        if matches!(meta.protocol, Protocol::Intake | Protocol::Bulk) {
            return Some(Way::Recode);
        }
        if meta.protocol != Protocol::Otlp || !peer::is_spoken(meta.signal) {
            return None;
        }
        let goes_out = match self.settings.compression {
            Compression::None => Encoding::Identity,
            Compression::Gzip(_) => Encoding::Gzip,
            Compression::Zstd(_) => Encoding::Zstd,
        };
        let joins = goes_out == Encoding::Identity || self.settings.join_members;
        Some(if meta.encoding == goes_out && joins { Way::Join } else { Way::Recode })
    }

    /// Takes the record that came last.
    pub(super) async fn take(&mut self, record: Record) {
        let Some(way) = self.way(&record) else {
            let losses = Losses::of(Dropped::Untranslatable, u64::from(record.meta.items));
            self.inbox.settle_each([record.sequence], losses);
            return;
        };
        if self.roomless == Some(record.sequence)
            || self.is_cut(&record)
            || needed(&record, way) > self.room.part()
        {
            self.oversize = Some(record);
            self.close_all();
            return;
        }
        let key = Key { signal: record.meta.signal, tenant: record.meta.tenant, way };
        let limits = self.limits();
        // Profiles have tables that the rest refers to by number.
        let alone = record.sequence < self.singly_before || key.signal == Signal::Profiles;
        if !alone && self.joins(&record, key, limits) {
            return;
        }
        let usual = if alone { 0 } else { self.usual.min(limits.kept) };
        let out_len = outgoing_len(&record.meta);
        match Batch::of(&record, key, PREFIX, out_len, usual, &self.room, &mut self.inbox).await {
            Ok(batch) if alone || batch.is_full(limits) => self.closed.push_back(batch),
            Ok(batch) => self.open.push(batch),
            // The journal counts it, and goes on to the next.
            Err(Why::Damaged) => {}
            Err(Why::Room(_)) => {
                self.close_all();
                // Something that is held is given back some day, if there is anything.
                self.crowded = !self.is_idle();
                let place = if self.crowded { &mut self.held } else { &mut self.oversize };
                *place = Some(record);
            }
        }
    }

    /// Adds the record to the batch that it belongs to. False when there is none, or none any more; then there is
    /// room for another.
    fn joins(&mut self, record: &Record, key: Key, limits: Limits) -> bool {
        let mut joined = false;
        if let Some(at) = self.open.iter().position(|batch| batch.key == key)
            && let Some(batch) = self.open.get_mut(at)
        {
            joined = batch.add(record, outgoing_len(&record.meta), limits, &mut self.inbox);
            if !joined || batch.is_full(limits) {
                self.close(at);
            }
        }
        if !joined && self.open.len() == OPEN {
            self.close(0);
        }
        joined
    }

    fn close(&mut self, at: usize) {
        let batch = self.open.remove(at);
        self.usual = batch.window.len();
        self.closed.push_back(batch);
    }

    /// How large a batch may become now.
    fn limits(&self) -> Limits {
        let kept = joined_most(self.room.part());
        // All that are on their way, and those that are being filled, are in the window of the cursor.
        let records = IN_FLIGHT / (self.settings.max_in_flight + OPEN).max(1);
        Limits { out: self.most().min(kept), kept, records: records.max(1) }
    }

    /// The most bytes of a request once decompressed: as configured, or what the peer is known to take.
    pub(super) fn most(&self) -> usize {
        let smaller = self.smaller.filter(|(_, until)| Instant::now() < *until).map(|(most, _)| most);
        self.settings.max_request_bytes.min(smaller.unwrap_or(usize::MAX))
    }

    /// Whether a record is to be cut, since the peer does not take it whole.
    pub(super) fn is_cut(&self, record: &Record) -> bool {
        if matches!(record.meta.protocol, Protocol::Intake | Protocol::Bulk) {
            // They are said in OTLP first, events in a request for each signal.
            return true;
        }
        let begun = self.cut.as_ref().is_some_and(|cut| cut.sequence == record.sequence);
        let cuttable = spoken(record.meta.signal).is_some_and(wire::joinable);
        begun || (cuttable && outgoing_len(&record.meta) > self.most())
    }
}

/// What a record needs of the room when it is sent alone, in whole steps.
fn needed(record: &Record, way: Way) -> usize {
    let kept = rounded(PREFIX + record.body_len as usize);
    let raw = record.meta.raw_len as usize;
    match way {
        Way::Join => kept,
        // In both forms, and what is made of it.
        Way::Recode => kept + rounded(PREFIX + raw + coder::SLACK) + rounded(PREFIX + raw / 4),
        Way::Translate(_) => {
            let said = outgoing_len(&record.meta);
            kept + rounded(PREFIX + raw + coder::SLACK) + rounded(PREFIX + said) + rounded(PREFIX + said / 4)
        }
    }
}

/// A signal as the wire's formats have it.
pub(crate) fn spoken(signal: Signal) -> Option<wire::Signal> {
    match signal {
        Signal::Traces => Some(wire::Signal::Traces),
        Signal::Metrics => Some(wire::Signal::Metrics),
        Signal::Logs => Some(wire::Signal::Logs),
        Signal::Profiles => Some(wire::Signal::Profiles),
        Signal::Events => None,
    }
}
