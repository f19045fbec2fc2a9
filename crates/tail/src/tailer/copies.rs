//! Which files are copies of which.

use crate::file::Index;
use std::collections::BTreeSet;

/// Pairs of an original and a copy that waits for it.
///
/// Invariant: every file in the stage `Copy` is here, so that the copies of one file are found without a look at all files.
#[derive(Debug, Default)]
pub(super) struct Copies(BTreeSet<(Index, Index)>);

impl Copies {
    pub(super) fn insert(&mut self, original: Index, copy: Index) {
        self.0.insert((original, copy));
    }

    pub(super) fn remove(&mut self, original: Index, copy: Index) {
        self.0.remove(&(original, copy));
    }

    /// The copies of a file.
    pub(super) fn of(&self, original: Index) -> Vec<Index> {
        self.0.range((original, 0)..=(original, Index::MAX)).map(|(_, copy)| *copy).collect()
    }
}
