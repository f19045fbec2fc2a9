//! Values that are added one by one.

use super::Pool;
use crate::run::RowRejection;

/// Values in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    pool: Pool,
    chunks: Vec<Vec<T>>,
    /// How many bits of a place say where in its chunk it is: a shift, since places are looked up for each row of
    /// each column.
    bits: u32,
    len: usize,
    chunk_bytes: usize,
}

impl<T> Chunks<T> {
    /// In the usual chunks. `beside` bytes for each value are paid with it, for what is needed once the run
    /// is written.
    pub(crate) fn new(pool: &Pool, beside: usize) -> Self {
        Self::with_chunk(pool, pool.chunk(), beside)
    }

    /// In small chunks, for what most rows do not have.
    pub(crate) fn sparse(pool: &Pool) -> Self {
        Self::with_chunk(pool, pool.chunk() / 4, 0)
    }

    fn with_chunk(pool: &Pool, bytes: usize, beside: usize) -> Self {
        let per_value = size_of::<T>() + beside;
        let most = (bytes / per_value).max(1);
        let bits = most.ilog2();
        let chunk_bytes = (per_value << bits) + size_of::<Vec<T>>();
        Chunks { pool: pool.clone(), chunks: Vec::new(), bits, len: 0, chunk_bytes }
    }

    /// The chunk of a place, and where it is in that.
    fn split(&self, at: usize) -> (usize, usize) {
        (at >> self.bits, at & ((1 << self.bits) - 1))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), RowRejection> {
        if self.chunks.last().is_none_or(|chunk| chunk.len() >> self.bits > 0) {
            self.pool.take(self.chunk_bytes)?;
            self.chunks.push(Vec::with_capacity(1 << self.bits));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(value);
            self.len += 1;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        let (chunk, place) = self.split(at);
        self.chunks.get(chunk)?.get(place)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let (chunk, place) = self.split(at);
        self.chunks.get_mut(chunk)?.get_mut(place)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.chunks.iter().flatten()
    }

    /// Those at these places, as far as there are any.
    pub(crate) fn range(&self, places: std::ops::Range<usize>) -> impl Iterator<Item = &T> {
        places.map_while(|at| self.get(at))
    }

    /// The first place whose value does not fulfil `before`, which all values up to there do.
    pub(crate) fn partition_point(&self, before: impl Fn(&T) -> bool) -> usize {
        let (mut least, mut most) = (0, self.len);
        while least < most {
            let middle = least.midpoint(most);
            if self.get(middle).is_some_and(&before) {
                least = middle + 1;
            } else {
                most = middle;
            }
        }
        least
    }

    /// Takes back what was added after there were `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.len > len {
            let Some(chunk) = self.chunks.last_mut() else { break };
            let excess = (self.len - len).min(chunk.len());
            chunk.truncate(chunk.len() - excess);
            self.len -= excess;
            if chunk.is_empty() {
                self.chunks.pop();
                self.pool.give(self.chunk_bytes);
            }
        }
    }

    /// Bytes of the pool that they hold.
    pub(crate) fn held(&self) -> usize {
        self.chunks.len() * self.chunk_bytes
    }

    /// Forgets all and gives the memory back.
    pub(crate) fn clear(&mut self) {
        self.pool.give(self.chunks.len() * self.chunk_bytes);
        self.chunks = Vec::new();
        self.len = 0;
    }
}
