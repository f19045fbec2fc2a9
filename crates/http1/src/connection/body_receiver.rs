//! A body on its way in: how much room it needs next, and where it ends.

use crate::chunked::ChunkedDecoder;
use crate::head::{BodyLength, Framing};
use crate::refusal::Refusal;
use tidegate_arena::{GROWTH_STEP, PAGE, Window};

/// Room behind the body for the framing of a chunk: with less, reads get small.
const FRAMING: usize = 1 << 10;

/// A body that is being received, by how its end is known.
#[derive(Debug)]
pub(super) enum BodyReceiver {
    Sized {
        /// Where the body ends in the window.
        end: usize,
    },
    Chunked {
        chunked: ChunkedDecoder,
        /// Where the body ends so far. What lies behind is framing not yet looked at.
        body: usize,
        limit: usize,
    },
}

/// The next step.
#[derive(Debug)]
pub(super) enum ReceiveStep {
    Done(BodyRange),
    /// More has to arrive, into so many bytes of room behind the filled ones; zero when what there is will do.
    More {
        room: usize,
    },
}

/// Where a received body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BodyRange {
    pub(super) body: usize,
    /// Where what came behind the request begins.
    pub(super) rest: usize,
}

impl BodyReceiver {
    /// A body of at most `max_body` bytes, in a window that can hold `window` bytes with the head.
    pub(super) fn new(framing: &Framing, max_body: usize, window: usize) -> Result<BodyReceiver, Refusal> {
        let room = window.saturating_sub(framing.head);
        match framing.length {
            BodyLength::Sized(length) => {
                let limit = max_body.min(room);
                match usize::try_from(length) {
                    Ok(length) if length <= limit => Ok(BodyReceiver::Sized { end: framing.head + length }),
                    _ => Err(Refusal::BodyTooLarge { limit }),
                }
            }
            BodyLength::Chunked => {
                let limit = max_body.min(room.saturating_sub(FRAMING));
                Ok(BodyReceiver::Chunked { chunked: ChunkedDecoder::new(), body: framing.head, limit })
            }
        }
    }

    /// Takes in what has arrived.
    pub(super) fn step(&mut self, window: &mut Window) -> Result<ReceiveStep, Refusal> {
        match self {
            BodyReceiver::Sized { end } => Ok(match end.checked_sub(window.len()) {
                None | Some(0) => ReceiveStep::Done(BodyRange { body: *end, rest: *end }),
                Some(room) => ReceiveStep::More { room },
            }),
            BodyReceiver::Chunked { chunked, body, limit } => {
                let undone = chunked.decode(window, *body, *body, *limit)?;
                *body = undone.body;
                if chunked.is_done() {
                    return Ok(ReceiveStep::Done(BodyRange { body: undone.body, rest: undone.rest }));
                }
                // All of it has been looked at: what comes next is read where the body goes on.
                window.truncate(undone.body);
                // No more than has arrived, nor than a few steps: a chunk's size is only a claim.
                let most = window.len().clamp(PAGE, 4 * GROWTH_STEP);
                let ahead = FRAMING + chunked.missing().clamp(PAGE, most);
                let left = FRAMING + limit.saturating_sub(window.len());
                let room = if window.spare() < FRAMING { ahead.min(left) } else { 0 };
                Ok(ReceiveStep::More { room })
            }
        }
    }
}
