//! Bodies decoded a piece at a time, so that others get their turn between.

use tidegate_arena::Window;
use tidegate_wire::coding::{Decode, Needs};

/// The most bytes that are decoded or compressed before others get their turn: about a millisecond.
pub(crate) const YIELD_BYTES: usize = 32 << 10;
/// Room beyond what a body decodes to, so that a decoder can see its end.
pub(crate) const END_SLACK: usize = 64;

/// A body is not what its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DamagedBody;

/// Appends what `body` decodes to, for which there is room, and [`END_SLACK`] beyond: in steps of at most `most` bytes.
pub(crate) async fn steps(
    decoder: &mut impl Decode,
    body: &[u8],
    most: usize,
    out: &mut Window,
) -> Result<(), DamagedBody> {
    decoder.reset();
    let (mut rest, mut idle) = (body, 0);
    loop {
        let room = out.spare_mut();
        let end = most.min(room.len());
        let progress =
            decoder.step(rest, room.get_mut(..end).unwrap_or_default()).map_err(|_| DamagedBody)?;
        out.advance(progress.written);
        rest = rest.get(progress.read..).unwrap_or_default();
        idle = if progress.read + progress.written > 0 { 0 } else { idle + 1 };
        match progress.needs {
            Needs::Nothing if rest.is_empty() => return Ok(()),
            Needs::Input => return Err(DamagedBody),
            // It asks for what it guesses, and does with what there is; there is as much as the record says.
            _ if idle > 2 => return Err(DamagedBody),
            _ => {}
        }
        tokio::task::yield_now().await;
    }
}
