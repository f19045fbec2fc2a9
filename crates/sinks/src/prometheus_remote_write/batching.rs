//! Routes records into batches: by tenant, and by the version in which they came and go out.

use super::RemoteWriteProtocol;
use super::settings::Prefer;
use super::snappy_passthrough::{self, PREAMBLE};
use crate::batch::{self, BatchKey, BatchLimits, joined_most};
use crate::delivery::RecordRoute;
use crate::journal_consumer::Record;
use tidegate_arena::{Window, rounded};
use tidegate_journal::{Encoding, Meta, Protocol, ReadError, Signal, Tenant};
use tidegate_wire::remote_write::Version;

/// The most records of a batch.
const MAX_RECORDS: usize = 256;

/// Records that go out together: bodies behind [`PREAMBLE`], those that pass without their own preambles.
pub(super) type Batch = batch::Batch<Key>;

/// The shared properties of a batch's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) mode: BatchMode,
    tenant: Tenant,
}

/// How records go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchMode {
    /// As they are, joined without decoding: 1.0 as 1.0.
    Pass,
    /// Decoded and encoded again.
    Recode {
        /// The format of the records.
        from: BodyFormat,
        /// The version they go out in.
        to: Version,
    },
}

/// The format of received records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFormat {
    /// Remote write of this version.
    RemoteWrite(Version),
    /// OTLP metrics.
    Otlp,
}

impl BodyFormat {
    /// The format of a record, if this protocol can express it.
    fn of(meta: &Meta) -> Option<BodyFormat> {
        match (meta.protocol, meta.signal) {
            (Protocol::RemoteWrite1, _) => Some(BodyFormat::RemoteWrite(Version::V1)),
            (Protocol::RemoteWrite2, _) => Some(BodyFormat::RemoteWrite(Version::V2)),
            (Protocol::Otlp, Signal::Metrics) => Some(BodyFormat::Otlp),
            _ => None,
        }
    }

    /// The version that it goes out in when nothing else is asked for.
    pub(super) fn version(self) -> Version {
        match self {
            BodyFormat::RemoteWrite(version) => version,
            // Every peer takes that.
            BodyFormat::Otlp => Version::V1,
        }
    }
}

impl BatchKey for Key {
    fn append(
        &self,
        meta: &Meta,
        window: &mut Window,
        read: impl FnOnce(&mut Window) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        match self.mode {
            BatchMode::Pass => snappy_passthrough::append(window, meta.raw_len as usize, read),
            BatchMode::Recode { .. } => read(window),
        }
    }
}

impl RemoteWriteProtocol {
    /// Where a record goes, while requests have at most `most` bytes, in a sink with `part` bytes of its own.
    pub(super) fn route_of(&self, record: &Record, most: usize, part: usize) -> RecordRoute<Key> {
        let Some(key) = self.key_of(&record.meta, most) else { return RecordRoute::Untranslatable };
        let (raw_len, kept) = (record.meta.raw_len as usize, rounded(PREAMBLE + record.body_len as usize));
        // A recoded batch is held in both forms, beside the pieces made of it.
        let is_recodable = raw_len <= most.min(piece_of(part)) && kept <= part / 4;
        if key.mode != BatchMode::Pass && !is_recodable {
            return RecordRoute::Oversize;
        }
        RecordRoute::Batch { key, out_len: raw_len, needed: kept, single: false }
    }

    /// How a record goes out, while requests have at most `most` bytes; nothing when remote write has no form for it.
    pub(super) fn key_of(&self, meta: &Meta, most: usize) -> Option<Key> {
        let from = BodyFormat::of(meta)?;
        let wanted = match self.settings.prefer {
            Prefer::AsReceived => from.version(),
            Prefer::V1 => Version::V1,
            Prefer::V2 => Version::V2,
        };
        let to = self.known.version(wanted);
        let is_within = meta.raw_len as usize <= most && u64::from(meta.items) <= self.settings.max_items;
        let is_same = from == BodyFormat::RemoteWrite(Version::V1) && to == Version::V1;
        let passes = is_same && self.settings.lanes == 1 && is_within && self.known.takes_histograms();
        let mode = if passes && meta.encoding == Encoding::Snappy {
            BatchMode::Pass
        } else {
            BatchMode::Recode { from, to }
        };
        Some(Key { mode, tenant: meta.tenant })
    }

    /// How large a batch may become, for a sink with `part` bytes of its own.
    pub(super) fn limits_of(&self, mode: BatchMode, part: usize, usual: BatchLimits) -> BatchLimits {
        let usual =
            BatchLimits { records: usual.records.min(MAX_RECORDS), items: self.settings.max_items, ..usual };
        match mode {
            // One is on its way while the next is filled.
            BatchMode::Pass => BatchLimits { kept: part / 2, ..usual },
            BatchMode::Recode { .. } => {
                BatchLimits { out: usual.out.min(piece_of(part)), kept: part / 4, ..usual }
            }
        }
    }
}

/// The most bytes of one recoded request, for a sink with `part` bytes of its own: what is read takes a
/// quarter; what it decompresses to, two versions of a piece and the piece compressed take the rest, and leave
/// something for tables.
pub(super) const fn piece_of(part: usize) -> usize {
    joined_most(part)
}
