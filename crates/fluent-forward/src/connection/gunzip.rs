//! Decompresses the records of a message a part at a time.

use super::{End, MEMORY_PATIENCE};
use crate::msgpack::Scan;
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
        let charge = arena.charge(Share::Decode, Decoder::BYTES as u64);
        let charge = timeout(MEMORY_PATIENCE, charge).await.map_err(|_| End::Memory)??;
        let decoder = Box::new(Decoder::new());
        let is_done = compressed.is_empty();
        Ok(Gunzip { decoder, _charge: charge, compressed, window: None, arena, left: most, is_done })
    }

    /// Decompresses all of it once, to begin again: then it is known to be whole. What of a damaged message was appended would
    /// come again with each attempt of the client.
    ///
    /// # Errors
    /// When the message is too long or damaged, or there is no memory.
    pub(super) async fn verify(&mut self) -> Result<(), End> {
        let (compressed, left, is_done) = (self.compressed, self.left, self.is_done);
        let mut scan = Scan::default();
        while self.fill().await? {
            let mut done = 0;
            while let Some(len) = scan.advance(self.decoded().get(done..).unwrap_or_default())? {
                (done, scan) = (done + len, Scan::default());
            }
            self.consume(done)?;
        }
        (self.compressed, self.left, self.is_done) = (compressed, left, is_done);
        *self.decoder = Decoder::new();
        Ok(())
    }

    /// Decompresses until the window is full, or to the end; false when everything was [consumed](Self::consume).
    ///
    /// # Errors
    /// When the message is too long or damaged, or there is no memory.
    pub(super) async fn fill(&mut self) -> Result<bool, End> {
        let mut window = match self.window.take() {
            Some(window) => window,
            None => {
                let window = timeout(MEMORY_PATIENCE, self.arena.window(Share::Decode, GROWTH_STEP));
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_arena::Floors;

    /// `records` in gzip without compression: the header, stored blocks, the checksum and the length.
    fn gzip(records: &[u8]) -> Vec<u8> {
        let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        for (number, block) in records.chunks(60_000).enumerate() {
            let len = block.len() as u16;
            out.push(u8::from((number + 1) * 60_000 >= records.len()));
            out.extend(len.to_le_bytes());
            out.extend((!len).to_le_bytes());
            out.extend(block);
        }
        let sum = records.iter().fold(!0u32, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1)))
        });
        out.extend((!sum).to_le_bytes());
        out.extend((records.len() as u32).to_le_bytes());
        out
    }

    /// A mistake at the end of a long message is found before anything of it is given, and a whole message is given from its
    /// beginning.
    #[tokio::test]
    async fn a_message_is_verified_to_its_end() {
        let arena = Arena::new(8 << 20, Floors::NONE.with(Share::Decode, 4 << 20), 4 << 20, 8, 8).unwrap();
        // [1, {"log": 100,000 letters}], three times.
        let mut record = b"\x92\x01\x81\xa3log\xdb".to_vec();
        record.extend(100_000u32.to_be_bytes());
        record.resize(record.len() + 100_000, b'a');
        let records = record.repeat(3);
        let whole = gzip(&records);
        let verified = async |bytes: &[u8], most| {
            let mut gunzip = Gunzip::new(&arena, bytes, most).await.unwrap();
            gunzip.verify().await
        };
        let (cut, ends_within) = (&whole[..whole.len() - 9], gzip(&records[..records.len() - 1]));
        assert!(matches!(verified(cut, usize::MAX).await, Err(End::Gzip)));
        assert!(matches!(verified(&whole, records.len() - 1).await, Err(End::TooLong)));
        assert!(matches!(verified(&ends_within, usize::MAX).await, Err(End::Message(_))));
        let mut sum = whole.clone();
        let at = sum.len() - 5;
        sum[at] ^= 1;
        assert!(matches!(verified(&sum, usize::MAX).await, Err(End::Gzip)));

        let mut gunzip = Gunzip::new(&arena, &whole, records.len()).await.unwrap();
        gunzip.verify().await.unwrap();
        let mut found = Vec::new();
        while gunzip.fill().await.unwrap() {
            found.extend_from_slice(gunzip.decoded());
            gunzip.consume(gunzip.decoded().len()).unwrap();
        }
        assert!(found == records);
        drop(gunzip);
        assert!(arena.usage().shares.iter().all(|share| share.used == 0));
    }
}
