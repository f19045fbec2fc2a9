//! From bodies to documents: the lines of a `_bulk`.

use super::Batch;
use super::settings::Settings;
use crate::batch::{Body, Why};
use crate::decoding::SLACK;
use crate::otlp::coder::Coder;
use crate::room::{Held, Room};
use bytes::Bytes;
use std::fmt::Write as _;
use tidegate_arena::Window;
use tidegate_elastic::documents::{self, Page, Place, Sheet as _};
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_wire::bulk::{Field, Item, Kind, checked};
use tidegate_wire::otlp as wire;
use tidegate_wire::output::SliceOutput;

/// What an `_id` takes in an action, at most: its name, the journal, the record, the item.
const ID: usize = 64;
/// How much is made before others get their turn.
const TURN: usize = 128 << 10;
/// By how much documents grow when their room is used up, at least.
const GROWTH: usize = 64 << 10;

/// Documents that were made.
pub(super) struct Made {
    /// Their lines, and the memory in which they live.
    pub(super) raw: Bytes,
    pub(super) count: u64,
    /// Items of which there are no documents.
    pub(super) untranslatable: u64,
}

/// What `_id`s begin with that are made for the documents of one journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin(String);

impl Origin {
    pub(super) fn new(journal: u64) -> Origin {
        Origin(format!("{journal:016x}-"))
    }

    /// Of one record.
    fn record(&self, sequence: u64) -> String {
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
    match meta.protocol {
        Protocol::Bulk | Protocol::Intake => true,
        Protocol::Otlp => spoken(meta.signal).is_some(),
        _ => false,
    }
}

/// About how long a record is as it goes out, before compression.
pub(super) fn outgoing_len(meta: &Meta, settings: &Settings) -> usize {
    let (raw_len, items) = (meta.raw_len as usize, meta.items as usize);
    match (meta.protocol, meta.signal) {
        (Protocol::Bulk, _) if settings.ids => raw_len.saturating_add(items.saturating_mul(ID)),
        (Protocol::Bulk, _) => raw_len,
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

/// Makes the documents of a batch.
pub(super) async fn made(
    batch: Batch,
    origin: &Origin,
    coder: &mut Coder,
    room: &Room,
    settings: &Settings,
) -> Result<Made, (Batch, Why)> {
    if passes(&batch, settings) {
        return Ok(Made { raw: Bytes::from_owner(batch.window), count: batch.items, untranslatable: 0 });
    }
    match written(&batch, origin, coder, room, settings).await {
        Ok(made) => Ok(made),
        Err(why) => Err((batch, why)),
    }
}

async fn written(
    batch: &Batch,
    origin: &Origin,
    coder: &mut Coder,
    room: &Room,
    settings: &Settings,
) -> Result<Made, Why> {
    let mut out = room.window(batch.out_len).await?;
    let encoded = batch.bodies.iter().filter(|body| body.encoding != Encoding::Identity);
    let mut scratch = match encoded.map(|body| body.raw_len).max() {
        Some(most) => Some(room.window(most + SLACK).await?),
        None => None,
    };
    let (mut count, mut untranslatable) = (0, 0);
    for body in &batch.bodies {
        let bytes = batch.window.get(body.range.clone()).ok_or(Why::Damaged)?;
        let raw = match &mut scratch {
            Some(scratch) if body.encoding != Encoding::Identity => {
                scratch.clear();
                coder.decode(body.encoding, bytes, scratch).await.map_err(|_| Why::Damaged)?;
                &***scratch
            }
            _ => bytes,
        };
        match (body.protocol, spoken(body.signal)) {
            (Protocol::Bulk, _) => {
                let copied = copied(raw, body, &origin.record(body.sequence), &mut out, settings).await?;
                count += copied;
                untranslatable += body.items.saturating_sub(copied);
            }
            (Protocol::Otlp | Protocol::Intake, signal) => {
                let prefix = origin.record(body.sequence);
                let tenant = batch.meta.tenant.as_str();
                let (documents, left_out) =
                    translated(signal, raw, body, (&prefix, tenant), &mut out, settings).await?;
                count += documents;
                untranslatable += left_out;
            }
            _ => untranslatable += body.items,
        }
        tokio::task::yield_now().await;
    }
    let raw = Bytes::from_owner(out);
    Ok(Made { raw, count, untranslatable })
}

/// Appends the documents of a `_bulk`, with an `_id` where they have none. How many there are.
async fn copied(
    raw: &[u8],
    body: &Body,
    prefix: &str,
    out: &mut Held<Window>,
    settings: &Settings,
) -> Result<u64, Why> {
    if !settings.ids {
        if !is_terminated(raw) {
            return Err(Why::Damaged);
        }
        out.try_reserve(raw.len())?;
        // Each was looked at when it came.
        return out.append(raw).map(|()| body.items).map_err(|_| Why::Damaged);
    }
    let mut count = 0;
    let mut id = String::with_capacity(ID);
    let mut turn = out.len() + TURN;
    for (number, item) in checked(raw).enumerate() {
        let item = item.map_err(|_| Why::Damaged)?;
        let needed = item.written_len(ID);
        if out.spare() < needed {
            out.try_reserve(needed)?;
        }
        let lacks_id = matches!(item.action.kind, Kind::Index | Kind::Create) && !item.action.has(Field::Id);
        id.clear();
        if lacks_id {
            // Writing to a string does not fail.
            let _ = write!(id, "\"_id\":\"{prefix}-{number:x}\"");
        }
        let mut output = SliceOutput::new(out.spare_mut());
        item.write(&[id.as_bytes()], &mut output).map_err(|_| Why::Damaged)?;
        let len = output.len();
        out.advance(len);
        count += 1;
        if out.len() > turn {
            turn = out.len() + TURN;
            tokio::task::yield_now().await;
        }
    }
    Ok(count)
}

/// Appends the documents of a body of OTLP, or of intake events: their ids' beginning and their tenant are given. How
/// many there are, and how many items are not said.
async fn translated(
    signal: Option<wire::Signal>,
    raw: &[u8],
    body: &Body,
    (prefix, tenant): (&str, &str),
    out: &mut Held<Window>,
    settings: &Settings,
) -> Result<(u64, u64), Why> {
    let settings = documents::Settings {
        mapping: settings.mapping,
        flavour: settings.flavour,
        dataset: &settings.dataset,
        namespace: &settings.namespace,
        metric_ids: settings.metric_ids,
        index: settings.index.as_ref(),
        tenant,
        received: body.received_at_ns,
    };
    let (mut place, mut turn) = (Place::START, TURN);
    let (mut count, mut left_out) = (0, 0);
    loop {
        let space = out.spare_mut();
        let end = turn.min(space.len());
        let is_all = end == space.len();
        let mut page = Page::new(space.get_mut(..end).unwrap_or_default());
        let written = match (body.protocol, signal) {
            (Protocol::Intake, _) => documents::from_intake(raw, place, prefix, &settings, &mut page),
            (_, Some(signal)) => documents::from_otlp(signal, raw, place, prefix, &settings, &mut page),
            (_, None) => return Ok((count, body.items)),
        };
        let len = page.len();
        match written {
            Ok(written) => {
                out.advance(len);
                count += written.documents;
                left_out += written.untranslatable.items;
                match written.next {
                    None => return Ok((count, left_out)),
                    Some(next) => (place, turn) = (next, TURN),
                }
            }
            // The next document is longer than that.
            Err(_) if !is_all => turn = turn.saturating_mul(2),
            Err(_) => out.try_reserve(out.spare().saturating_mul(2).max(GROWTH))?,
        }
        tokio::task::yield_now().await;
    }
}

/// A signal as the wire's formats have it, if there are documents of it.
fn spoken(signal: Signal) -> Option<wire::Signal> {
    match signal {
        Signal::Traces => Some(wire::Signal::Traces),
        Signal::Metrics => Some(wire::Signal::Metrics),
        Signal::Logs => Some(wire::Signal::Logs),
        Signal::Profiles | Signal::Events => None,
    }
}
