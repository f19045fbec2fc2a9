//! Converts bodies to documents: the lines of a `_bulk`.

use super::Batch;
use super::document_source::{DocumentSource, FillError};
use super::item_filter::{ItemChoice, filter_items};
use super::record_shares::{OutcomeRuns, RecordShare};
use super::settings::Settings;
use crate::batch::{BatchBody, DropReason};
use crate::decoding::END_SLACK;
use crate::delivery::compressor::Compressor;
use crate::egress_budget::{Charged, EgressBudget};
use crate::need::Need;
use crate::pipeline_stage::SinkPipeline;
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_wire::bulk::Item;
use tidegate_wire::otlp as wire;
use tidegate_wire::remote_write::{Symbols, Version, view};

/// Most bytes of an `_id` in an action: its name, the journal, the record, the item.
pub(super) const MAX_ID_BYTES: usize = 64;
/// By how much documents grow when their room is used up, at least.
const GROWTH: usize = 64 << 10;
/// Memory beside a record and its largest item: a window that a document begins in, whole steps, and for remote write
/// what is said in OTLP at a time.
const WORKING_BYTES: usize = 512 << 10;

/// Documents that were made.
pub(super) struct MadeDocuments {
    /// Their lines, and the memory in which they live.
    pub(super) raw: Bytes,
    /// The records that they are of, and which is whose.
    pub(super) shares: Vec<RecordShare>,
    pub(super) runs: OutcomeRuns,
}

/// The prefix of the `_id`s of one journal's documents, behind one pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdPrefix(String);

impl IdPrefix {
    /// Of the sink `name`. Behind a pipeline an item's number is its position in what the pipeline lets through. So the same
    /// number is another item behind another pipeline, and must not get the same `_id`: Elasticsearch would take the second
    /// for a resend of the first. There a hash of the sink and of its pipeline takes the place of the journal's identity.
    pub(super) fn new(journal: u64, name: &str, pipeline: Option<&SinkPipeline>) -> IdPrefix {
        let identity = pipeline.map_or(journal, |of| {
            of.pipeline.fingerprint(&[&journal.to_le_bytes(), name.as_bytes()].concat())
        });
        IdPrefix(format!("{identity:016x}-"))
    }

    /// Of one record.
    pub(super) fn record(&self, sequence: u64) -> String {
        format!("{}{sequence:x}", self.0)
    }

    /// Whether an item's `_id` was made here.
    pub(super) fn made(&self, item: &Item<'_>) -> bool {
        item.action
            .id
            .and_then(|id| id.strip_prefix(b"\""))
            .is_some_and(|id| id.starts_with(self.0.as_bytes()))
    }
}

/// Whether there is a way to say this record in documents.
pub(super) fn is_spoken(meta: &Meta) -> bool {
    need(meta.protocol, meta.signal).is_some()
}

/// The memory for delivering a record of this protocol and signal document by document, besides its own bytes.
/// `tests/elasticsearch/need.rs` proves the factors.
pub(super) fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
    let factor = match (protocol, signal) {
        // Copied, with an `_id`.
        (Protocol::Bulk, _) => 2,
        // Strings are JSON already; what stands twice in a document, and what becomes JSON in a text, do count.
        (Protocol::Intake, _) => 8,
        // Control characters take six bytes, or seven in a JSON that is a text, and ECS has some texts twice.
        (Protocol::Otlp, Signal::Logs | Signal::Traces) => 16,
        // A bucket of one byte becomes its count and its middle: 27.
        (Protocol::Otlp, Signal::Metrics) => 28,
        // Said in OTLP, and then in a document, with its name twice.
        (Protocol::RemoteWrite1 | Protocol::RemoteWrite2, Signal::Metrics) => 24,
        _ => return None,
    };
    Some(Need { working: WORKING_BYTES, factor })
}

/// About how long a record is as it goes out, before compression.
pub(super) fn outgoing_len(meta: &Meta, settings: &Settings) -> usize {
    let (raw_len, items) = (meta.raw_len as usize, meta.items as usize);
    match (meta.protocol, meta.signal) {
        (Protocol::Bulk, _) if settings.ids => raw_len.saturating_add(items.saturating_mul(MAX_ID_BYTES)),
        (Protocol::Bulk, _) => raw_len,
        // Labels are spelled out with every sample, among much that is the same in all documents.
        (Protocol::RemoteWrite1, _) => raw_len.saturating_mul(6),
        (Protocol::RemoteWrite2, _) => raw_len.saturating_mul(12),
        (Protocol::Intake, _) => raw_len.saturating_mul(4),
        // Names are said with every value, and the resource with every item.
        (_, Signal::Metrics) => raw_len.saturating_mul(6),
        _ => raw_len.saturating_mul(4),
    }
}

/// Whether the bytes of a batch are documents as they are.
fn passes(batch: &Batch, settings: &Settings) -> bool {
    !settings.ids
        && batch.bodies.iter().all(|body| {
            body.protocol == Protocol::Bulk
                && body.encoding == Encoding::Identity
                && batch.window.get(body.range.clone()).is_some_and(is_terminated)
        })
}

/// Whether what comes behind it begins with a line of its own.
fn is_terminated(raw: &[u8]) -> bool {
    raw.is_empty() || raw.ends_with(b"\n")
}

/// Makes the documents of a batch, of those that are picked.
pub(super) async fn made(
    mut batch: Batch,
    pick: &ItemChoice,
    origin: &IdPrefix,
    compressor: &mut Compressor,
    room: &EgressBudget,
    settings: &Settings,
) -> Result<MadeDocuments, (Batch, DropReason)> {
    let mut shares: Vec<RecordShare> = batch.bodies.iter().map(share).collect();
    if passes(&batch, settings) {
        let mut runs = OutcomeRuns::default();
        for (place, share) in shares.iter_mut().enumerate() {
            (share.documents, share.said) = (share.items, share.items);
            runs.push(place, 0, share.items);
        }
        filter_items(&mut batch.window, &mut runs, &mut shares, pick).await;
        return Ok(MadeDocuments { raw: Bytes::from_owner(batch.window), shares, runs });
    }
    match written(&batch, &mut shares, origin, compressor, room, settings).await {
        Ok((mut out, mut runs)) => {
            filter_items(&mut out, &mut runs, &mut shares, pick).await;
            Ok(MadeDocuments { raw: Bytes::from_owner(out), shares, runs })
        }
        Err(why) => Err((batch, why)),
    }
}

/// A record before its documents are made.
pub(super) fn share(body: &BatchBody) -> RecordShare {
    RecordShare { sequence: body.sequence, items: body.items, ..RecordShare::default() }
}

async fn written(
    batch: &Batch,
    shares: &mut [RecordShare],
    origin: &IdPrefix,
    compressor: &mut Compressor,
    room: &EgressBudget,
    settings: &Settings,
) -> Result<(Charged<Window>, OutcomeRuns), DropReason> {
    let mut out = room.window(batch.out_len).await?;
    let encoded = batch.bodies.iter().filter(|body| body.encoding != Encoding::Identity);
    let mut scratch = match encoded.map(|body| body.raw_len).max() {
        Some(most) => Some(room.window(most + END_SLACK).await?),
        None => None,
    };
    let mut runs = OutcomeRuns::default();
    let tenant = batch.meta.tenant.as_str();
    for (place, (body, share)) in batch.bodies.iter().zip(shares).enumerate() {
        let bytes = batch.window.get(body.range.clone()).ok_or(DropReason::Damaged)?;
        let raw = match &mut scratch {
            Some(scratch) if body.encoding != Encoding::Identity => {
                scratch.clear();
                compressor.decode(body.encoding, bytes, scratch).await.map_err(|_| DropReason::Damaged)?;
                &***scratch
            }
            _ => bytes,
        };
        if body.protocol == Protocol::Bulk && !settings.ids {
            if !is_terminated(raw) {
                return Err(DropReason::Damaged);
            }
            out.try_reserve(raw.len())?;
            // Each was looked at when it came.
            out.append(raw).map_err(|_| DropReason::Damaged)?;
            (share.documents, share.said) = (body.items, body.items);
            runs.push(place, 0, body.items);
            continue;
        }
        share.passed = body.taken.others(raw).await;
        let mut symbols = Symbols::new();
        let _charge = match version_of(body) {
            Some(Version::V2) => Some(room.charge(Symbols::bytes_for(raw)).await?),
            _ => None,
        };
        let request = match version_of(body) {
            Some(version) => Some(view(version, raw, &mut symbols).map_err(|_| DropReason::Damaged)?),
            None => None,
        };
        let prefix = origin.record(body.sequence);
        let mut source = DocumentSource::new(raw, body, (prefix, tenant), request, (settings, room));
        let counts = source.counts();
        loop {
            match source.fill(&mut out).await {
                Ok(filled) => {
                    share.documents += filled.documents;
                    share.said += filled.items;
                    if counts {
                        share.left_out = Some(share.left_out.unwrap_or(0) + filled.left_out);
                    }
                    if filled.ended {
                        break;
                    }
                }
                Err(FillError::Full) => out.try_reserve(out.spare().saturating_mul(2).max(GROWTH))?,
                Err(unfilled) => return Err(unfilled.into()),
            }
            tokio::task::yield_now().await;
        }
        runs.push(place, 0, share.documents);
        tokio::task::yield_now().await;
    }
    Ok((out, runs))
}

/// A signal as the wire's formats have it, if there are documents of it.
pub(super) fn document_signal(body: &BatchBody) -> Option<wire::Signal> {
    match body.signal {
        Signal::Traces => Some(wire::Signal::Traces),
        Signal::Metrics => Some(wire::Signal::Metrics),
        Signal::Logs => Some(wire::Signal::Logs),
        Signal::Profiles | Signal::Events => None,
    }
}

/// The version of a body of remote write.
pub(super) fn version_of(body: &BatchBody) -> Option<Version> {
    match body.protocol {
        Protocol::RemoteWrite1 => Some(Version::V1),
        Protocol::RemoteWrite2 => Some(Version::V2),
        _ => None,
    }
}
