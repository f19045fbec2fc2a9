//! The part of the slice that gathered rows share, and the growable memory that is paid from it.
//!
//! Nothing here is ever reallocated: what grows takes another chunk, and a chunk is paid for before it is
//! there. So what the runs hold together is never more than the pool, whoever needs most of it.

use crate::run::NotTaken;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that the runs of all tables share.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    total: usize,
    chunk: usize,
}

/// Invariant: what is given out, and what is kept beside, is never more than the whole.
#[derive(Debug)]
struct Shared {
    free: AtomicUsize,
    /// Chunks of text that nobody has now. Texts are most of what is gathered, and pages that go back and
    /// forth between the allocator and the kernel cost more than writing to them.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// The least and the largest chunk.
const CHUNK: std::ops::RangeInclusive<usize> = 8 << 10..=64 << 10;
/// Chunks of the whole pool: each run has a few that are not full.
const CHUNKS: usize = 320;

impl Pool {
    pub(crate) fn new(total: usize) -> Pool {
        let chunk = (total / CHUNKS).next_power_of_two().clamp(*CHUNK.start(), *CHUNK.end());
        let shared = Shared { free: AtomicUsize::new(total), spare: Mutex::default() };
        Pool { shared: Arc::new(shared), total, chunk }
    }

    /// Bytes of it all.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Bytes of a usual chunk.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    // One thread has the writer, so looking and taking need not be one step.
    fn take(&self, bytes: usize) -> Result<(), NotTaken> {
        let free = self.shared.free.load(Relaxed).checked_sub(bytes).ok_or(NotTaken::Full)?;
        self.shared.free.store(free, Relaxed);
        let mut spare = self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let most = free / self.text_chunk();
        spare.truncate(most);
        Ok(())
    }

    fn give(&self, bytes: usize) {
        self.shared.free.fetch_add(bytes, Relaxed);
    }

    /// Bytes that a chunk of text is paid with.
    fn text_chunk(&self) -> usize {
        self.chunk + size_of::<Vec<u8>>()
    }

    /// A chunk of text of the usual length.
    fn take_text(&self) -> Result<Vec<u8>, NotTaken> {
        let spare = self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let taken = self.take(self.text_chunk());
        taken.map(|()| spare.unwrap_or_else(|| Vec::with_capacity(self.chunk)))
    }

    /// Keeps a chunk of text that was given back, if it has the usual length.
    fn keep_text(&self, mut chunk: Vec<u8>) {
        if chunk.capacity() == self.chunk {
            chunk.clear();
            self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
        }
    }
}

/// What lists can be of.
pub(crate) trait Listed: Copy + Sized {
    /// A chunk of the usual length, paid for.
    fn take(pool: &Pool) -> Result<Vec<Self>, NotTaken>;

    /// What becomes of a chunk that was given back.
    fn keep(pool: &Pool, chunk: Vec<Self>);
}

impl Listed for u8 {
    fn take(pool: &Pool) -> Result<Vec<u8>, NotTaken> {
        pool.take_text()
    }

    fn keep(pool: &Pool, chunk: Vec<u8>) {
        pool.keep_text(chunk);
    }
}

impl Listed for i64 {
    fn take(pool: &Pool) -> Result<Vec<i64>, NotTaken> {
        numbers(pool)
    }

    fn keep(_: &Pool, _: Vec<i64>) {}
}

impl Listed for f64 {
    fn take(pool: &Pool) -> Result<Vec<f64>, NotTaken> {
        numbers(pool)
    }

    fn keep(_: &Pool, _: Vec<f64>) {}
}

fn numbers<T>(pool: &Pool) -> Result<Vec<T>, NotTaken> {
    let capacity = pool.chunk / size_of::<T>();
    pool.take(paid::<T>(capacity))?;
    Ok(Vec::with_capacity(capacity))
}

/// Bytes that a chunk of so many values is paid with.
fn paid<T>(capacity: usize) -> usize {
    capacity * size_of::<T>() + size_of::<Vec<T>>()
}

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

/// Where a list lies: the chunk, the place in it and the length, packed so that a row stays short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct List(u64);

const CHUNK_BITS: u32 = 12;
const PLACE_BITS: u32 = 26;
/// No pool has as many chunks, nor a chunk as many values, that the parts of a [`List`] could not hold them.
const MOST_CHUNKS: usize = (1 << CHUNK_BITS) - 1;
const MOST_VALUES: usize = (1 << PLACE_BITS) - 1;

impl List {
    /// No list at all: NULL in the file.
    pub(crate) const NONE: List = List(u64::MAX);
    /// A list of nothing.
    pub(crate) const EMPTY: List = List(0);

    fn new(chunk: usize, start: usize, len: usize) -> List {
        List(((chunk as u64) << (2 * PLACE_BITS)) | ((start as u64) << PLACE_BITS) | len as u64)
    }

    pub(crate) fn chunk(self) -> usize {
        (self.0 >> (2 * PLACE_BITS)) as usize
    }

    pub(crate) fn start(self) -> usize {
        (self.0 >> PLACE_BITS) as usize & MOST_VALUES
    }

    pub(crate) fn len(self) -> usize {
        if self == List::NONE { 0 } else { self.0 as usize & MOST_VALUES }
    }

    pub(crate) fn is_some(self) -> bool {
        self != List::NONE
    }
}

/// Lists of values, each in one piece: texts, bounds, counts.
#[derive(Debug)]
pub(crate) struct Lists<T> {
    pool: Pool,
    chunks: Vec<Vec<T>>,
    /// What all chunks were paid with.
    paid: usize,
}

/// Where lists ended at some moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    chunks: usize,
    end: usize,
}

impl<T: Listed> Lists<T> {
    pub(crate) fn new(pool: &Pool) -> Self {
        Lists { pool: pool.clone(), chunks: Vec::new(), paid: 0 }
    }

    /// Adds a list of at most `most` values, which `write` appends.
    #[inline]
    pub(crate) fn write(&mut self, most: usize, write: impl FnOnce(&mut Vec<T>)) -> Result<List, NotTaken> {
        let room = |chunk: &Vec<T>| chunk.capacity() - chunk.len() >= most;
        if !self.chunks.last().is_some_and(room) {
            self.grow(most)?;
        }
        let place = self.chunks.len() - 1;
        let Some(chunk) = self.chunks.last_mut() else { return Err(NotTaken::Full) };
        let start = chunk.len();
        write(chunk);
        debug_assert!(chunk.len() - start <= most, "more was written than announced");
        Ok(List::new(place, start, chunk.len() - start))
    }

    #[inline]
    pub(crate) fn add(&mut self, values: &[T]) -> Result<List, NotTaken> {
        self.write(values.len(), |out| out.extend_from_slice(values))
    }

    #[cold]
    fn grow(&mut self, most: usize) -> Result<(), NotTaken> {
        if most > MOST_VALUES || paid::<T>(most) > self.pool.total() {
            return Err(NotTaken::TooLarge);
        }
        if self.chunks.len() >= MOST_CHUNKS {
            return Err(NotTaken::Full);
        }
        let chunk = if most <= self.pool.chunk() / size_of::<T>() {
            T::take(&self.pool)?
        } else {
            self.pool.take(paid::<T>(most))?;
            Vec::with_capacity(most)
        };
        self.paid += paid::<T>(chunk.capacity());
        self.chunks.push(chunk);
        Ok(())
    }

    #[inline]
    pub(crate) fn get(&self, list: List) -> &[T] {
        if list == List::NONE {
            return &[];
        }
        let chunk = self.chunks.get(list.chunk()).map_or(&[][..], Vec::as_slice);
        chunk.get(list.start()..list.start() + list.len()).unwrap_or(&[])
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { chunks: self.chunks.len(), end: self.chunks.last().map_or(0, Vec::len) }
    }

    /// Takes back what was added after the mark.
    pub(crate) fn truncate(&mut self, mark: Mark) {
        while self.chunks.len() > mark.chunks {
            let Some(chunk) = self.chunks.pop() else { break };
            let bytes = paid::<T>(chunk.capacity());
            self.paid -= bytes;
            self.pool.give(bytes);
            T::keep(&self.pool, chunk);
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.truncate(mark.end);
        }
    }

    /// All chunks, which stay paid for until they are put back and `clear`ed.
    pub(crate) fn take(&mut self) -> Vec<Vec<T>> {
        std::mem::take(&mut self.chunks)
    }

    /// Puts a chunk back; only `clear` may follow.
    pub(crate) fn put_back(&mut self, chunk: Vec<T>) {
        self.chunks.push(chunk);
    }

    /// Bytes of the pool that they hold.
    pub(crate) fn held(&self) -> usize {
        self.paid
    }

    /// Forgets all and gives the memory back.
    pub(crate) fn clear(&mut self) {
        self.pool.give(std::mem::take(&mut self.paid));
        for chunk in std::mem::take(&mut self.chunks) {
            T::keep(&self.pool, chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is held is what was paid, and all of it comes back.
    #[test]
    fn the_pool_is_whole_again_when_all_is_cleared() {
        let pool = Pool::new(1 << 20);
        let free = || pool.shared.free.load(Relaxed);
        let mut values = Chunks::<u64>::new(&pool, 4);
        let mut lists = Lists::<u8>::new(&pool);
        let mut pushed = 0;
        let held = allocation_counter::measure(|| {
            while values.push(pushed).is_ok() && lists.add(&pushed.to_le_bytes()).is_ok() {
                pushed += 1;
            }
        });
        assert!(held.bytes_max <= 1 << 20, "{held:?}");
        assert!(pushed > (1 << 20) / 24);
        assert_eq!(values.get(pushed as usize - 1), Some(&(pushed - 1)));
        assert_eq!(values.partition_point(|&value| value < 777), 777);
        values.truncate(5);
        assert_eq!((values.len(), values.get(4), values.get(5)), (5, Some(&4), None));
        values.clear();
        lists.clear();
        assert_eq!(free(), 1 << 20);
        // What is kept for the next texts makes way for others.
        assert!(!pool.shared.spare.lock().unwrap().is_empty());
        let mut others = Chunks::<u64>::new(&pool, 0);
        let again = allocation_counter::measure(|| while others.push(0).is_ok() {});
        assert!(pool.shared.spare.lock().unwrap().is_empty());
        assert!(again.bytes_max <= 1 << 20, "{again:?}");
    }

    /// A list larger than a chunk has one of its own; one larger than the pool is refused for good.
    #[test]
    fn large_lists_are_in_one_piece() {
        let pool = Pool::new(1 << 20);
        let mut lists = Lists::<u8>::new(&pool);
        let small = lists.add(b"small").unwrap();
        let mark = lists.mark();
        let large = lists.add(&vec![7; 500_000]).unwrap();
        assert_eq!((lists.get(small), lists.get(large).len()), (&b"small"[..], 500_000));
        assert_eq!(lists.add(&vec![7; 600_000]), Err(NotTaken::Full));
        assert_eq!(lists.add(&vec![7; 2 << 20]), Err(NotTaken::TooLarge));
        lists.truncate(mark);
        assert_eq!((lists.get(small), lists.get(large)), (&b"small"[..], &[][..]));
        assert!(lists.add(&vec![7; 600_000]).is_ok());
        assert_eq!((List::NONE.len(), List::EMPTY.len(), lists.get(List::EMPTY)), (0, 0, &b""[..]));
    }
}
