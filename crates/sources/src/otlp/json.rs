//! Memory to translate JSON into protobuf in.

use crate::body::LARGE;
use tidegate_admission::{Gate, Rejection};
use tidegate_arena::ChargeError as NoMemory;
use tidegate_wire::otlp::{Signal, json};

/// A request's memory while its JSON is translated: of the bodies' share, and of the decode share.
#[derive(Clone, Copy)]
pub(super) struct ReservedBytes {
    pub(super) ingest: usize,
    pub(super) decode: usize,
}

/// Reserves the memory in which `json` is translated into protobuf.
///
/// Holding the body, and perhaps decode memory, it does not wait for that. Where as much as JSON can become is not
/// free, or would be much, it is translated to nowhere first, and then only what it takes is asked for.
pub(super) fn reserve(
    gate: &Gate,
    signal: Signal,
    json: &[u8],
    beside: ReservedBytes,
    mut reserve: impl FnMut(usize) -> Result<(), NoMemory>,
) -> Result<(), Rejection> {
    if json.len() <= LARGE && reserve(json::max_len(json)).is_ok() {
        return Ok(());
    }
    let needed = json::measure(signal, json).map_err(Rejection::malformed)?;
    let ingest = beside.ingest.saturating_add(needed);
    reserve(needed.max(1)).map_err(|refused| gate.short_of(refused, ingest, beside.decode, json.len() / 2))
}
