//! What JSON says is what the protobuf says: against a plain recursive encoder, against prost, and against the
//! schema as the specification's own descriptors have it. What is not as the specification has it is refused
//! with the place and the reason.
#![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

mod accepts;
mod descriptors;
mod generated;
mod model;
mod refuses;

use super::*;

/// The protobuf of `json`, and what is left of the room that was asked for is not needed.
fn translated(signal: Signal, json: &str) -> Result<Vec<u8>, Fault> {
    let mut out = vec![0xaa; max_len(json.as_bytes())];
    let len = translate(signal, json.as_bytes(), &mut out)?;
    out.truncate(len);
    Ok(out)
}
