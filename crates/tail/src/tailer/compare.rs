//! Compares a compressed file with files that were read.

use super::origin::is_derived;
use crate::compressed::Decompressor;
use crate::file::{Former, Tracked};
use crate::identity::tail_hash;
use std::collections::VecDeque;
use std::io;

/// The files that a compressed file begins like, and what the comparison with them has found. It may take several turns:
/// the file is decompressed up to where each of them was read.
pub(super) struct Comparison {
    /// Those that are not compared yet, in the order of their offsets.
    candidates: VecDeque<Former>,
    best: Option<Former>,
}

/// The outcome of a comparison.
pub(super) enum Compared {
    /// It goes on.
    Behind(Comparison),
    /// The compressed file has no end yet.
    NotWhole,
    /// It has what was read of this file, and perhaps more.
    With(Former),
    /// It has less than was read of the file of which it was made.
    WithLonger,
    /// It was made of none of them.
    WithNone,
}

impl Comparison {
    pub(super) fn with(mut formers: Vec<Former>) -> Comparison {
        formers.retain(|former| !former.checkpoint.finished);
        formers.sort_by_key(|former| former.checkpoint.offset());
        Comparison { candidates: formers.into(), best: None }
    }

    /// Decompresses some more of `file`.
    ///
    /// # Errors
    /// Those of the decompressor.
    pub(super) fn go_on(mut self, file: &Tracked, decompressor: &mut Decompressor) -> io::Result<Compared> {
        let mut is_of_longer = false;
        while let Some(former) = self.candidates.front() {
            let offset = former.checkpoint.offset();
            let read = decompressor.from(&file.handle, offset, 1)?;
            if read.behind {
                return Ok(Compared::Behind(self));
            }
            if read.at_end && !read.is_whole {
                return Ok(Compared::NotWhole);
            }
            match decompressor.before(offset) {
                Some(before) if tail_hash(before) == former.checkpoint.tail => self.best = Some(*former),
                Some(_) => {}
                // Bytes between a copy and the truncation behind it are in no copy.
                None => is_of_longer |= is_derived(&file.path, former),
            }
            self.candidates.pop_front();
        }
        Ok(match self.best {
            Some(former) => Compared::With(former),
            None if is_of_longer => Compared::WithLonger,
            None => Compared::WithNone,
        })
    }
}
