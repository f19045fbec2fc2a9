//! A text of several parts that waits for its end.

use crate::lines::Stop;
use crate::record::Output;

/// A text of several parts that waits for its end, and where it begins.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) is_active: bool,
    /// Whether the end of one of its lines is missing.
    pub(crate) is_cut: bool,
    /// The offset of its first line in the file.
    pub(crate) offset: u64,
    pub(crate) time_ns: u64,
    pub(crate) text: Vec<u8>,
}

impl Pending {
    /// The least bytes that are allocated at once.
    const LEAST: usize = 256;

    /// Appends `pieces`, if `out` grants the memory; otherwise nothing changes.
    pub(crate) fn append(&mut self, pieces: [&[u8]; 2], out: &mut dyn Output) -> Result<(), Stop> {
        let more: usize = pieces.iter().map(|piece| piece.len()).sum();
        let needed = self.text.len() + more;
        let capacity = self.text.capacity();
        if needed > capacity {
            let grown = needed.max(2 * capacity).max(Self::LEAST);
            if !out.hold(grown - capacity) {
                return Err(Stop::Memory);
            }
            self.text.reserve_exact(grown - self.text.len());
        }
        for piece in pieces {
            self.text.extend_from_slice(piece);
        }
        Ok(())
    }

    /// Ends it; its memory stays for the next.
    pub(crate) fn clear(&mut self) {
        self.is_active = false;
        self.is_cut = false;
        self.text.clear();
    }

    /// Gives its memory back unless it waits.
    pub(crate) fn shrink(&mut self) {
        if !self.is_active {
            self.text = Vec::new();
        }
    }
}
