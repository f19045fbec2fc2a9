//! Values that are added as lists, each in one piece.

use super::Pool;
use crate::run::RowRejection;

/// Where a list lies: the chunk, the place in it and the length, packed so that a row stays short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListRef(u64);

const CHUNK_BITS: u32 = 12;
const PLACE_BITS: u32 = 26;
/// No pool has as many chunks, nor a chunk as many values, that the parts of a [`ListRef`] could not hold them.
const MOST_CHUNKS: usize = (1 << CHUNK_BITS) - 1;
const MOST_VALUES: usize = (1 << PLACE_BITS) - 1;

impl ListRef {
    /// No list at all: NULL in the file.
    pub(crate) const NONE: ListRef = ListRef(u64::MAX);
    /// A list of nothing.
    pub(crate) const EMPTY: ListRef = ListRef(0);

    fn new(chunk: usize, start: usize, len: usize) -> ListRef {
        ListRef(((chunk as u64) << (2 * PLACE_BITS)) | ((start as u64) << PLACE_BITS) | len as u64)
    }

    pub(crate) fn chunk(self) -> usize {
        (self.0 >> (2 * PLACE_BITS)) as usize
    }

    pub(crate) fn start(self) -> usize {
        (self.0 >> PLACE_BITS) as usize & MOST_VALUES
    }

    pub(crate) fn len(self) -> usize {
        if self == ListRef::NONE { 0 } else { self.0 as usize & MOST_VALUES }
    }

    pub(crate) fn is_some(self) -> bool {
        self != ListRef::NONE
    }
}

/// Lists of values, each in one piece: texts, bounds, counts.
#[derive(Debug)]
pub(crate) struct ListArena<T> {
    pool: Pool,
    chunks: Vec<Vec<T>>,
    /// The charge for all chunks.
    paid: usize,
}

/// Where lists ended at some moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListCheckpoint {
    chunks: usize,
    end: usize,
}

impl<T: ListElement> ListArena<T> {
    pub(crate) fn new(pool: &Pool) -> Self {
        ListArena { pool: pool.clone(), chunks: Vec::new(), paid: 0 }
    }

    /// Adds a list of at most `most` values, which `write` appends.
    #[inline]
    pub(crate) fn write(
        &mut self,
        most: usize,
        write: impl FnOnce(&mut Vec<T>),
    ) -> Result<ListRef, RowRejection> {
        let room = |chunk: &Vec<T>| chunk.capacity() - chunk.len() >= most;
        if !self.chunks.last().is_some_and(room) {
            self.grow(most)?;
        }
        let place = self.chunks.len() - 1;
        let Some(chunk) = self.chunks.last_mut() else { return Err(RowRejection::Full) };
        let start = chunk.len();
        write(chunk);
        debug_assert!(chunk.len() - start <= most, "more was written than announced");
        Ok(ListRef::new(place, start, chunk.len() - start))
    }

    #[inline]
    pub(crate) fn add(&mut self, values: &[T]) -> Result<ListRef, RowRejection> {
        self.write(values.len(), |out| out.extend_from_slice(values))
    }

    #[cold]
    fn grow(&mut self, most: usize) -> Result<(), RowRejection> {
        if most > MOST_VALUES || paid::<T>(most) > self.pool.total() {
            return Err(RowRejection::TooLarge);
        }
        if self.chunks.len() >= MOST_CHUNKS {
            return Err(RowRejection::Full);
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
    pub(crate) fn get(&self, list: ListRef) -> &[T] {
        if list == ListRef::NONE {
            return &[];
        }
        let chunk = self.chunks.get(list.chunk()).map_or(&[][..], Vec::as_slice);
        chunk.get(list.start()..list.start() + list.len()).unwrap_or(&[])
    }

    pub(crate) fn mark(&self) -> ListCheckpoint {
        ListCheckpoint { chunks: self.chunks.len(), end: self.chunks.last().map_or(0, Vec::len) }
    }

    /// Takes back what was added after the mark.
    pub(crate) fn truncate(&mut self, mark: ListCheckpoint) {
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

/// The element types of lists.
pub(crate) trait ListElement: Copy + Sized {
    /// A chunk of the usual length, paid for.
    fn take(pool: &Pool) -> Result<Vec<Self>, RowRejection>;

    /// The fate of a returned chunk.
    fn keep(pool: &Pool, chunk: Vec<Self>);
}

impl ListElement for u8 {
    fn take(pool: &Pool) -> Result<Vec<u8>, RowRejection> {
        pool.take_text()
    }

    fn keep(pool: &Pool, chunk: Vec<u8>) {
        pool.keep_text(chunk);
    }
}

impl ListElement for i64 {
    fn take(pool: &Pool) -> Result<Vec<i64>, RowRejection> {
        numbers(pool)
    }

    fn keep(_: &Pool, _: Vec<i64>) {}
}

impl ListElement for f64 {
    fn take(pool: &Pool) -> Result<Vec<f64>, RowRejection> {
        numbers(pool)
    }

    fn keep(_: &Pool, _: Vec<f64>) {}
}

fn numbers<T>(pool: &Pool) -> Result<Vec<T>, RowRejection> {
    let capacity = pool.chunk / size_of::<T>();
    pool.take(paid::<T>(capacity))?;
    Ok(Vec::with_capacity(capacity))
}

/// Bytes that a chunk of so many values is paid with.
fn paid<T>(capacity: usize) -> usize {
    capacity * size_of::<T>() + size_of::<Vec<T>>()
}
