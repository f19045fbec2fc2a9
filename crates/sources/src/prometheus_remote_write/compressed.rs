//! A repaired body, compressed as it is written.

use std::ops::Range;
use tidegate_arena::{ChargeError, Window};
use tidegate_wire::output::{Full, Output};
use tidegate_wire::snappy::{self, join};

/// The bytes that Snappy looks at at a time.
const BLOCK: usize = 64 << 10;
/// Bytes left free at the front of the window for the preamble, which is known last.
const PREAMBLE: usize = 5;

/// Compresses what is put into it block by block, over what was in a window: the body that was decompressed before has no
/// further use, and what is written in its place is about as long. So a repaired body takes little memory of its own.
pub(super) struct Compressed<'a> {
    window: &'a mut Window,
    block: Vec<u8>,
    encoder: snappy::Encoder,
    raw_len: usize,
    failed: Option<ChargeError>,
}

impl<'a> Compressed<'a> {
    /// The memory of one, without its window, in bytes.
    pub(super) const BYTES: usize = BLOCK + snappy::Encoder::BYTES;

    /// Forgets the contents of `window`.
    pub(super) fn over(window: &'a mut Window) -> Compressed<'a> {
        window.clear();
        let failed = window.append(&[0; PREAMBLE]).err();
        let (block, encoder) = (Vec::with_capacity(BLOCK), snappy::Encoder::new());
        Compressed { window, block, encoder, raw_len: 0, failed }
    }

    /// How long the whole is when it is decompressed, and where in the window it is.
    pub(super) fn finish(mut self) -> Result<(usize, Range<usize>), ChargeError> {
        // Earlier failures are reported below.
        let _full = self.flush();
        match self.failed {
            Some(refused) => Err(refused),
            None => {
                let preamble = join::joined_preamble(self.raw_len as u64).map_err(|_| too_long())?;
                let preamble = preamble.as_bytes();
                let start = PREAMBLE.saturating_sub(preamble.len());
                if let Some(front) = self.window.get_mut(start..PREAMBLE) {
                    front.copy_from_slice(preamble);
                }
                Ok((self.raw_len, start..self.window.len()))
            }
        }
    }

    /// Compresses the block.
    fn flush(&mut self) -> Result<(), Full> {
        if self.block.is_empty() || self.failed.is_some() {
            return if self.failed.is_some() { Err(Full) } else { Ok(()) };
        }
        let longest = snappy::max_compressed_len(self.block.len()).map_err(|_| Full)?;
        if let Err(refused) = self.window.try_reserve(longest) {
            self.failed = Some(refused);
            return Err(Full);
        }
        let spare = self.window.spare_mut();
        let len = self.encoder.compress(&self.block, spare).map_err(|_| Full)?;
        let elements = spare.get(..len).map_or(0, |body| join::elements(body).map_or(0, <[u8]>::len));
        spare.copy_within(len - elements..len, 0);
        self.window.advance(elements);
        self.raw_len += self.block.len();
        self.block.clear();
        Ok(())
    }
}

impl Output for Compressed<'_> {
    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Full> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK {
                self.flush()?;
            }
        }
        Ok(())
    }
}

/// More than Snappy can say: a repaired body is never longer than it was.
fn too_long() -> ChargeError {
    let most = u64::from(u32::MAX);
    ChargeError::Never { wanted: most + 1, most }
}
