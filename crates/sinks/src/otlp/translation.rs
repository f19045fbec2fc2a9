//! Remote write on its way to a peer of OTLP: said in OTLP before anything else is done with it.

use super::outbound_request::Frame;
use super::peer::PREFIX;
use crate::batch::DropReason;
use crate::egress_budget::EgressBudget;
use std::ops::Range;
use tidegate_journal::{Meta, Protocol, Signal};
use tidegate_wire::otlp::prometheus::from_remote_write;
use tidegate_wire::remote_write::{Symbols, Version, view};

/// Bodies said in OTLP, one after the other, and how many of their items OTLP has no form for.
pub(super) struct TranslatedBody {
    pub(super) frame: Frame,
    pub(super) untranslatable: u64,
}

/// The version of a record of metrics in remote write.
pub(super) fn version_of(meta: &Meta) -> Option<Version> {
    match (meta.protocol, meta.signal) {
        (Protocol::RemoteWrite1, Signal::Metrics) => Some(Version::V1),
        (Protocol::RemoteWrite2, Signal::Metrics) => Some(Version::V2),
        _ => None,
    }
}

/// How long a record is as it goes out, before compression: of remote write about, since each sample is said with
/// all labels, and what 2.0 says by reference is spelled out.
pub(super) fn outgoing_len(meta: &Meta) -> usize {
    let raw_len = meta.raw_len as usize;
    match version_of(meta) {
        None => raw_len,
        Some(Version::V1) => raw_len.saturating_mul(2),
        Some(Version::V2) => raw_len.saturating_mul(8),
    }
}

/// Says the bodies in OTLP that are in `raw`, in twice the room whenever there was not enough.
pub(super) async fn translated(
    raw: Frame,
    bodies: &[Range<usize>],
    version: Version,
    expected_len: usize,
    room: &EgressBudget,
) -> Result<TranslatedBody, DropReason> {
    let of_symbols = |range: &Range<usize>| raw.get(range.clone()).map_or(0, Symbols::bytes_for);
    let most_symbols = match version {
        Version::V1 => 0,
        Version::V2 => bodies.iter().map(of_symbols).max().unwrap_or(0),
    };
    let _charge = room.charge(most_symbols).await?;
    let mut len = PREFIX.saturating_add(expected_len);
    'larger: loop {
        let mut frame = room.window(len).await?;
        frame.skip(PREFIX);
        let mut untranslatable = 0;
        for range in bodies {
            let bytes = raw.get(range.clone()).ok_or(DropReason::Damaged)?;
            let mut symbols = Symbols::new();
            let request = view(version, bytes, &mut symbols).map_err(|_| DropReason::Damaged)?;
            let Ok(done) = from_remote_write(request, frame.spare_mut()) else {
                len = len.saturating_mul(2);
                continue 'larger;
            };
            frame.advance(done.bytes);
            untranslatable += done.dropped + done.dropped_exemplars;
            drop(symbols);
            tokio::task::yield_now().await;
        }
        return Ok(TranslatedBody { frame, untranslatable });
    }
}
