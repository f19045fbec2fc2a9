//! Every part of an agent's event appears in OTLP.
#![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

mod captured;
mod otlp_fields;
mod pieces;
pub(crate) mod round_trip;

use super::*;

const RECEIVED: u64 = 1_800_000_000_000_000_000;

/// The request of one signal.
fn said(raw: &[u8], signal: Signal) -> (Vec<u8>, u64) {
    let mut out = vec![0; 8 * raw.len() + 4096];
    let done = to_otlp(raw, RECEIVED, signal, &mut out).unwrap();
    out.truncate(done.bytes);
    (out, done.events)
}
