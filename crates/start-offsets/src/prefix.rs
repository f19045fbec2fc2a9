//! The first bytes of a file, as a length and a hash.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The most bytes of a [`Prefix`].
pub const PREFIX_LEN: usize = 1024;

/// The first bytes of a file, at most [`PREFIX_LEN`]: a file that has them is taken for the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Prefix {
    len: u16,
    hash: u64,
}

impl Prefix {
    /// That of a file that begins with `first`; bytes behind [`PREFIX_LEN`] are not part of it.
    pub fn of(first: &[u8]) -> Prefix {
        let first = first.get(..PREFIX_LEN).unwrap_or(first);
        // At most `PREFIX_LEN`.
        Prefix { len: u16::try_from(first.len()).unwrap_or_default(), hash: xxh3_64(first) }
    }

    /// Its length in bytes.
    pub fn len(self) -> usize {
        usize::from(self.len)
    }

    /// Whether it is that of an empty file, which every file begins with.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    pub(crate) fn hash(self) -> u64 {
        self.hash
    }

    /// Whether a file that begins with `first` has it.
    pub fn is_of(self, first: &[u8]) -> bool {
        first.get(..self.len()).is_some_and(|first| xxh3_64(first) == self.hash)
    }
}
