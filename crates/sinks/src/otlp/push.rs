//! Writes requests as push requests of Loki, compressed as they are written: they are never whole without compression.

use super::json::{OutputForm, Written};
use super::outbound_request::Frame;
use super::peer::PREFIX;
use crate::batch::DropReason;
use crate::clock::now_ns;
use crate::egress_budget::EgressBudget;
use tidegate_arena::{GROWTH_STEP, Window};
use tidegate_wire::loki::push::{ENCODER_BYTES, Encoder, LabelRules};
use tidegate_wire::output::{Full, Output};
use tidegate_wire::snappy::{self, join};

/// The bytes that Snappy looks at at a time.
const BLOCK: usize = 64 << 10;
/// Bytes left free before the elements for the preamble, which is known last.
const PREAMBLE: usize = 5;
/// How often a request is usually shorter after compression.
const USUAL: usize = 3;

/// The heap memory of one request that is being written, beside its window, in bytes.
pub(crate) const BYTES: usize = BLOCK + snappy::Encoder::BYTES + ENCODER_BYTES;

/// Writes an OTLP request of logs as a push request in Snappy.
pub(super) async fn written(
    raw: &[u8],
    rules: &LabelRules,
    form: &OutputForm,
    room: &EgressBudget,
) -> Result<Written, DropReason> {
    let longest = room.longest_window().max(GROWTH_STEP);
    let mut frame = room.window((PREFIX + PREAMBLE + form.expected / USUAL).min(longest)).await?;
    frame.skip(PREFIX + PREAMBLE);
    let mut blocks = Blocks { block: Vec::with_capacity(BLOCK), encoder: snappy::Encoder::new() };
    // The time is for records that have none.
    let mut encoder = Encoder::new(raw, rules, now_ns());
    let mut len = 0usize;
    while let Some(stretch) = encoder.next().map_err(|_| DropReason::Damaged)? {
        let stretch = usize::try_from(stretch).map_err(|_| DropReason::TooLong)?;
        len = len.saturating_add(stretch);
        if len > form.most {
            return Err(DropReason::TooLong);
        }
        frame.reserve(longest_elements(blocks.block.len().saturating_add(stretch))).await?;
        // It has room for this.
        encoder.write(&mut blocks.writing_to(&mut frame)).map_err(|_| DropReason::Damaged)?;
        tokio::task::yield_now().await;
    }
    frame.reserve(longest_elements(blocks.block.len())).await?;
    blocks.flush(&mut frame).map_err(|_| DropReason::Damaged)?;
    put_preamble(&mut frame, len)?;
    Ok(Written { frame, len })
}

/// The most bytes that so many become in Snappy, block by block.
fn longest_elements(raw: usize) -> usize {
    // As `snappy::max_compressed_len`, for each block.
    raw.saturating_add(raw / 6).saturating_add((raw / BLOCK + 1).saturating_mul(32))
}

/// Puts the preamble right behind [`PREFIX`], and moves the elements up to it.
fn put_preamble(frame: &mut Frame, len: usize) -> Result<(), DropReason> {
    let preamble = join::joined_preamble(len as u64).map_err(|_| DropReason::TooLong)?;
    let preamble = preamble.as_bytes();
    let (end, start) = (frame.len(), PREFIX + preamble.len());
    frame.copy_within(PREFIX + PREAMBLE..end, start);
    if let Some(place) = frame.get_mut(PREFIX..start) {
        place.copy_from_slice(preamble);
    }
    frame.truncate(end - (PREAMBLE - preamble.len()));
    Ok(())
}

/// Compresses what is put, block by block.
struct Blocks {
    block: Vec<u8>,
    encoder: snappy::Encoder,
}

impl Blocks {
    fn writing_to<'b>(&'b mut self, window: &'b mut Window) -> BlockWriter<'b> {
        BlockWriter { blocks: self, window }
    }

    /// Compresses the block behind what is in the window, which has room for it.
    fn flush(&mut self, window: &mut Window) -> Result<(), Full> {
        if self.block.is_empty() {
            return Ok(());
        }
        let spare = window.spare_mut();
        let len = self.encoder.compress(&self.block, spare).map_err(|_| Full)?;
        let elements = spare.get(..len).map_or(0, |body| join::elements(body).map_or(0, <[u8]>::len));
        spare.copy_within(len - elements..len, 0);
        window.advance(elements);
        self.block.clear();
        Ok(())
    }
}

struct BlockWriter<'b> {
    blocks: &'b mut Blocks,
    window: &'b mut Window,
}

impl Output for BlockWriter<'_> {
    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Full> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.blocks.block.len()));
            self.blocks.block.extend_from_slice(now);
            bytes = later;
            if self.blocks.block.len() == BLOCK {
                self.blocks.flush(self.window)?;
            }
        }
        Ok(())
    }
}
