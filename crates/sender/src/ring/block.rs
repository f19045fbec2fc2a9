//! A block's bytes: events one behind the other, each with its length and scope in front.

/// Bytes in front of each event: its length (4) and its scope (2), little endian.
pub(super) const HEAD: usize = 6;

pub(super) struct Block {
    bytes: Box<[u8]>,
    /// Bytes from here on are from an earlier life of the block, and never read.
    len: usize,
    /// The block in which the event that fills this one goes on.
    pub(super) next: Option<usize>,
}

impl Block {
    pub(super) fn new(bytes: usize) -> Block {
        Block { bytes: vec![0; bytes].into_boxed_slice(), len: 0, next: None }
    }

    pub(super) fn clear(&mut self) -> Option<usize> {
        self.len = 0;
        self.next.take()
    }

    pub(super) fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(super) fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    pub(super) fn room_len(&self) -> usize {
        self.bytes.len() - self.len
    }

    /// Adds the written bytes to the block.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.len = (self.len + bytes).min(self.bytes.len());
    }
}

pub(super) fn head(len: usize, scope: u16) -> [u8; HEAD] {
    let [a, b, c, d] = u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
    let [e, f] = scope.to_le_bytes();
    [a, b, c, d, e, f]
}

/// The events of a block, as `(scope, length, the part of the event that is in this block)`.
pub(super) fn events(mut written: &[u8]) -> impl Iterator<Item = (u16, usize, &[u8])> {
    std::iter::from_fn(move || {
        let (&[a, b, c, d, e, f], rest) = written.split_first_chunk::<HEAD>()?;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        let (event, rest) = rest.split_at(len.min(rest.len()));
        written = rest;
        Some((u16::from_le_bytes([e, f]), len, event))
    })
}
