//! The chunks of a file that is being received: which have come, and their hashes.

use super::FileError;
use ring::digest;
use std::fmt::Write as _;

/// A SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentHash([u8; 32]);

/// The chunks of a file that have arrived.
pub(super) struct Chunks {
    /// The hash of each that has come.
    hashes: Vec<Option<ContentHash>>,
    size: u64,
    chunk_bytes: u64,
    /// The end is being decided on: nothing may change meanwhile.
    pub(super) is_ending: bool,
    /// It has ended: a chunk that is still on its way changes nothing any more.
    pub(super) is_over: bool,
}

impl ContentHash {
    pub(crate) fn of(bytes: &[u8]) -> ContentHash {
        ContentHash::finish(digest::digest(&digest::SHA256, bytes))
    }

    pub(super) fn finish(digest: digest::Digest) -> ContentHash {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        ContentHash(hash)
    }

    /// Reads 64 hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<ContentHash> {
        let mut hash = [0; 32];
        if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(ContentHash(hash))
    }

    /// In lower case.
    pub(crate) fn text(&self) -> String {
        self.0.iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl Chunks {
    /// Those of a file of this size: none has come.
    pub(super) fn new(size: u64, chunk_bytes: usize) -> Chunks {
        let chunk_bytes = chunk_bytes.max(1) as u64;
        // A file has no more bytes than there is room on the disk, and the memory for its hashes is charged.
        let count = usize::try_from(size.div_ceil(chunk_bytes)).unwrap_or(usize::MAX);
        Chunks { hashes: vec![None; count], size, chunk_bytes, is_ending: false, is_over: false }
    }

    /// Memory for them, in bytes.
    pub(super) fn bytes(size: u64, chunk_bytes: usize) -> u64 {
        size.div_ceil(chunk_bytes.max(1) as u64).saturating_mul(size_of::<Option<ContentHash>>() as u64)
    }

    /// Where a chunk of this length goes in the file.
    ///
    /// # Errors
    /// When it cannot be a chunk of this file.
    pub(super) fn place(&self, number: u64, len: u64) -> Result<u64, FileError> {
        let invalid = |words: String| Err(FileError::Invalid(words));
        if number >= self.hashes.len() as u64 {
            return invalid(format!(
                "the file has {} chunks, and this is number {number}",
                self.hashes.len()
            ));
        }
        let at = number.saturating_mul(self.chunk_bytes);
        let wanted = self.chunk_bytes.min(self.size.saturating_sub(at));
        match len == wanted {
            true => Ok(at),
            false => invalid(format!("chunk {number} has {len} bytes, and must have {wanted}")),
        }
    }

    /// Takes note that a chunk is in the file.
    pub(super) fn has_come(&mut self, number: u64, hash: ContentHash) {
        let slot = usize::try_from(number).ok().and_then(|number| self.hashes.get_mut(number));
        if let Some(slot) = slot {
            *slot = Some(hash);
        }
    }

    /// The hash of all hashes in their order.
    ///
    /// # Errors
    /// When a chunk is missing.
    pub(super) fn transit_hash(&self) -> Result<ContentHash, FileError> {
        let mut all = digest::Context::new(&digest::SHA256);
        for (number, hash) in self.hashes.iter().enumerate() {
            let hash = hash.ok_or_else(|| FileError::Invalid(format!("chunk {number} is missing")))?;
            all.update(&hash.0);
        }
        Ok(ContentHash::finish(all.finish()))
    }
}
