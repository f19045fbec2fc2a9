//! Joining bodies without decoding them.
//!
//! A 1.0 request is a protobuf message whose fields are repeated, so several one after the other are their
//! union; and the elements of several Snappy blocks one after the other, behind a preamble with the sum of
//! their lengths, decode to the concatenation (see `tidegate_wire::snappy::join`).

use crate::egress_budget::Charged;
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_wire::snappy;

/// Bytes left free at the front of a window, for the preamble of what will be in it.
pub(super) const PREAMBLE: usize = 5;

/// Has `read` append a Snappy body that decodes to `raw_len` bytes, and leaves its elements behind what is in
/// `window`, at least [`PREAMBLE`] bytes, without its preamble. Room for the whole body is to be reserved before.
///
/// A preamble is nearly always as short as it can be. So the body is read a preamble's length early, over the
/// last bytes of what is there, which are put back over the preamble: then nothing has to be moved.
///
/// # Errors
/// Returns the result of `read`; then the window is unchanged.
pub(super) fn append<E>(
    window: &mut Window,
    raw_len: usize,
    read: impl FnOnce(&mut Window) -> Result<(), E>,
) -> Result<(), E> {
    let start = window.len();
    let early = snappy::join::joined_preamble(raw_len as u64).map_or(0, |preamble| preamble.as_bytes().len());
    let mut covered = [0; PREAMBLE];
    let Some((covered, last)) = covered.get_mut(..early).zip(window.get(start.saturating_sub(early)..))
    else {
        return read(window).map(|()| strip(window, start, start));
    };
    covered.copy_from_slice(last);
    let from = start - early;
    window.truncate(from);
    let outcome = read(window);
    match outcome {
        Ok(()) => strip(window, from, start),
        Err(_) => window.skip(early),
    }
    if let Some(last) = window.get_mut(from..start) {
        last.copy_from_slice(covered);
    }
    outcome
}

/// Puts the elements of the Snappy body that begins at `from` to `to`, and ends the window behind them.
fn strip(window: &mut Window, from: usize, to: usize) {
    let body = window.get(from..).unwrap_or_default();
    let elements = snappy::join::elements(body).map_or(body.len(), <[u8]>::len);
    let (begin, end) = (window.len() - elements, window.len());
    if begin < to {
        window.skip(to - begin);
    }
    if begin != to {
        window.copy_within(begin..end, to);
    }
    window.truncate(to + elements);
}

/// The elements in `window`, behind a preamble for `raw_len` bytes. The window is returned when that is more than Snappy
/// can say.
pub(super) fn joined(mut window: Charged<Window>, raw_len: usize) -> Result<Bytes, Charged<Window>> {
    let Ok(preamble) = snappy::join::joined_preamble(raw_len as u64) else { return Err(window) };
    let preamble = preamble.as_bytes();
    let start = PREAMBLE.saturating_sub(preamble.len());
    if let Some(place) = window.get_mut(start..PREAMBLE) {
        place.copy_from_slice(preamble);
    }
    Ok(Bytes::from_owner(window).slice(start..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_arena::{Arena, Floors, Share};

    fn window(arena: &Arena) -> Window {
        let mut window = arena.try_window(Share::Egress, 100).unwrap();
        window.append(b"before").unwrap();
        window
    }

    /// Whatever the preamble's form, and whatever was thought of it, the elements are appended and nothing else.
    #[test]
    fn a_body_is_appended_without_its_preamble() {
        let arena = Arena::new(1 << 20, Floors::NONE, 1 << 16, 4, 4).unwrap();
        let shortest: &[u8] = b"\x05\x10hello";
        let padded: &[u8] = b"\x85\x80\x00\x10hello";
        for (body, raw_len) in [(shortest, 5), (padded, 5), (shortest, 5_000), (padded, 5_000)] {
            let mut window = window(&arena);
            append(&mut window, raw_len, |window| window.append(body)).unwrap();
            assert_eq!(&*window, b"before\x10hello", "{body:?}, taken for {raw_len} bytes");
        }
    }

    #[test]
    fn a_body_that_cannot_be_read_leaves_what_was_there() {
        let arena = Arena::new(1 << 20, Floors::NONE, 1 << 16, 4, 4).unwrap();
        let mut window = window(&arena);
        let failed = append(&mut window, 5, |window| {
            window.spare_mut().fill(0xff);
            Err("unreadable")
        });
        assert_eq!((failed, &*window), (Err("unreadable"), b"before".as_slice()));
    }
}
