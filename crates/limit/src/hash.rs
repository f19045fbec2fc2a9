//! A hash for tables of fixed size, with a key of its own for each table, so that nobody outside can choose what
//! meets in it.

use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};

/// A key. Multiplying by it and folding the product mixes well enough for a table, at a tenth of what SipHash
/// costs; SipHash itself, keyed by the system, draws it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashKey(u64, u64);

impl HashKey {
    pub(crate) fn random() -> HashKey {
        let state = RandomState::new();
        // Odd, so that multiplying loses nothing.
        HashKey(state.hash_one(1_u8) | 1, state.hash_one(2_u8))
    }

    pub(crate) fn hash(self, value: &(impl Hash + ?Sized)) -> u64 {
        let mut folding = FoldHasher { key: self, state: self.1 };
        value.hash(&mut folding);
        folding.finish()
    }
}

struct FoldHasher {
    key: HashKey,
    state: u64,
}

impl FoldHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.key.0);
        // Both halves: the upper one depends on all bits of both factors.
        self.state = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for FoldHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        // With the length, so that zeros at the end count.
        self.mix(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    fn finish(&self) -> u64 {
        let product = u128::from(self.state) * u128::from(self.key.0 ^ 0x9E37_79B9_7F4A_7C15);
        (product >> 64) as u64 ^ product as u64
    }
}
