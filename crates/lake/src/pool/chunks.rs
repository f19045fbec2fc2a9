//! Values that are added one by one.

use super::Pool;
use crate::run::NotTaken;

/// Values in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    pool: Pool,
    chunks: Vec<Vec<T>>,
    per_chunk: usize,
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
        let per_chunk = if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 };
        let chunk_bytes = per_chunk * per_value + size_of::<Vec<T>>();
        Chunks { pool: pool.clone(), chunks: Vec::new(), per_chunk, len: 0, chunk_bytes }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), NotTaken> {
        if self.chunks.last().is_none_or(|chunk| chunk.len() == self.per_chunk) {
            self.pool.take(self.chunk_bytes)?;
            self.chunks.push(Vec::with_capacity(self.per_chunk));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(value);
            self.len += 1;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / self.per_chunk)?.get(at % self.per_chunk)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks.get_mut(at / self.per_chunk)?.get_mut(at % self.per_chunk)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
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
