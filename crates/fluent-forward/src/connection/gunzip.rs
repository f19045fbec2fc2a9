//! Decompresses the records of a message a part at a time.

use super::{End, MEMORY_PATIENCE};
use tidegate_arena::{Arena, Charge, GROWTH_STEP, Share, Window};
use tidegate_wire::coding::{Decode, Needs};
use tidegate_wire::gzip::Decoder;
use tokio::time::timeout;

/// The decompressed records of one message.
pub(super) struct Gunzip<'a> {
    decoder: Box<Decoder>,
    _charge: Charge,
    compressed: &'a [u8],
    window: Option<Window>,
    arena: &'a Arena,
    /// Bytes that may still be decompressed.
    left: usize,
    is_done: bool,
}

impl<'a> Gunzip<'a> {
    /// Reads `compressed`, which may have at most `most` bytes once decompressed. Waits for the decoder's memory.
    ///
    /// # Errors
    /// When there is none in time.
    pub(super) async fn new(arena: &'a Arena, compressed: &'a [u8], most: usize) -> Result<Gunzip<'a>, End> {
        let charge = arena.charge(Share::Ingest, Decoder::BYTES as u64);
        let charge = timeout(MEMORY_PATIENCE, charge).await.map_err(|_| End::Memory)??;
        let decoder = Box::new(Decoder::new());
        let is_done = compressed.is_empty();
        Ok(Gunzip { decoder, _charge: charge, compressed, window: None, arena, left: most, is_done })
    }

    /// Decompresses until the window is full, or to the end; false when everything was [consumed](Self::consume).
    ///
    /// # Errors
    /// When the message is too long or damaged, or there is no memory.
    pub(super) async fn fill(&mut self) -> Result<bool, End> {
        let mut window = match self.window.take() {
            Some(window) => window,
            None => {
                let window = timeout(MEMORY_PATIENCE, self.arena.window(Share::Ingest, GROWTH_STEP));
                window.await.map_err(|_| End::Memory)??
            }
        };
        if window.spare() == 0 {
            // One record fills it.
            let more = window.len().max(GROWTH_STEP);
            timeout(MEMORY_PATIENCE, window.reserve(more)).await.map_err(|_| End::Memory)??;
        }
        while !self.is_done && window.spare() > 0 {
            let progress = self.decoder.step(self.compressed, window.spare_mut()).map_err(|_| End::Gzip)?;
            self.compressed = self.compressed.get(progress.read..).unwrap_or_default();
            window.advance(progress.written);
            self.left = self.left.checked_sub(progress.written).ok_or(End::TooLong)?;
            match progress.needs {
                Needs::Nothing if self.compressed.is_empty() => self.is_done = true,
                Needs::Input if self.compressed.is_empty() => return Err(End::Gzip),
                _ => {}
            }
            tokio::task::yield_now().await;
        }
        let has_more = !window.is_empty();
        self.window = Some(window);
        Ok(has_more)
    }

    /// Decompressed bytes that are not consumed.
    pub(super) fn decoded(&self) -> &[u8] {
        self.window.as_deref().unwrap_or_default()
    }

    /// The first `bytes` of what is decompressed are done.
    ///
    /// # Errors
    /// When nothing is done of a message that has no more: it ends within a record.
    pub(super) fn consume(&mut self, bytes: usize) -> Result<(), End> {
        let Some(window) = &mut self.window else { return Ok(()) };
        let left = window.len().saturating_sub(bytes);
        if self.is_done && left > 0 {
            return Err(crate::msgpack::MsgpackError::Incomplete.into());
        }
        window.copy_within(bytes.., 0);
        window.truncate(left);
        Ok(())
    }
}
