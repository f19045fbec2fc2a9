//! Joining bodies without decoding them.
//!
//! A 1.0 request is a protobuf message whose fields are repeated, so several one after the other are their
//! union; and the elements of several Snappy blocks one after the other, behind a preamble with the sum of
//! their lengths, decode to the concatenation (see `tidegate_wire::snappy::join`).

use crate::room::Held;
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_wire::snappy;

/// Bytes left free at the front of a window, for the preamble of what will be in it.
pub(super) const PREAMBLE: usize = 5;

/// Removes the preamble of the Snappy body that begins at `start` of the window.
pub(super) fn strip(window: &mut Window, start: usize) {
    let body = window.get(start..).unwrap_or_default();
    let elements = snappy::join::elements(body).map_or(body.len(), <[u8]>::len);
    let preamble = body.len() - elements;
    let end = window.len();
    window.copy_within(start + preamble..end, start);
    window.truncate(end - preamble);
}

/// The elements in `window`, behind a preamble for `raw_len` bytes. Nothing when that is more than Snappy
/// can say.
pub(super) fn joined(mut window: Held<Window>, raw_len: usize) -> Option<Bytes> {
    let preamble = snappy::join::joined_preamble(raw_len as u64).ok()?;
    let preamble = preamble.as_bytes();
    let start = PREAMBLE.checked_sub(preamble.len())?;
    window.get_mut(start..PREAMBLE)?.copy_from_slice(preamble);
    Some(Bytes::from_owner(window).slice(start..))
}
