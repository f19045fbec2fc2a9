//! The part of the slice that gathered rows share, and the growable memory that is paid from it.
//!
//! Nothing here is ever reallocated: what grows takes another chunk, and a chunk is paid for before it is
//! there. So what the runs hold together is never more than the pool, whoever needs most of it.

mod chunks;
mod lists;

pub(crate) use chunks::Chunks;
pub(crate) use lists::{ListArena, ListCheckpoint, ListElement, ListRef};

use crate::run::RowRejection;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that the runs of all tables share.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    shared: Arc<PoolState>,
    total: usize,
    chunk: usize,
}

/// Invariant: what is given out, and what is kept beside, is never more than the whole.
#[derive(Debug)]
struct PoolState {
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
        let shared = PoolState { free: AtomicUsize::new(total), spare: Mutex::default() };
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
    fn take(&self, bytes: usize) -> Result<(), RowRejection> {
        let free = self.shared.free.load(Relaxed).checked_sub(bytes).ok_or(RowRejection::Full)?;
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
    fn take_text(&self) -> Result<Vec<u8>, RowRejection> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// All memory held is charged, and all of it is returned.
    #[test]
    fn the_pool_is_whole_again_when_all_is_cleared() {
        let pool = Pool::new(1 << 20);
        let free = || pool.shared.free.load(Relaxed);
        let mut values = Chunks::<u64>::new(&pool, 4);
        let mut lists = ListArena::<u8>::new(&pool);
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
        // Chunks kept for the next texts give way to others.
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
        let mut lists = ListArena::<u8>::new(&pool);
        let small = lists.add(b"small").unwrap();
        let mark = lists.mark();
        let large = lists.add(&vec![7; 500_000]).unwrap();
        assert_eq!((lists.get(small), lists.get(large).len()), (&b"small"[..], 500_000));
        assert_eq!(lists.add(&vec![7; 600_000]), Err(RowRejection::Full));
        assert_eq!(lists.add(&vec![7; 2 << 20]), Err(RowRejection::TooLarge));
        lists.truncate(mark);
        assert_eq!((lists.get(small), lists.get(large)), (&b"small"[..], &[][..]));
        assert!(lists.add(&vec![7; 600_000]).is_ok());
        assert_eq!((ListRef::NONE.len(), ListRef::EMPTY.len(), lists.get(ListRef::EMPTY)), (0, 0, &b""[..]));
    }
}
