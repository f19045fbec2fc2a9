//! The texts of a run: written once, shown as columns without a copy.

use super::RowRejection;
use crate::pool::{ListArena, ListCheckpoint, ListRef, Pool};
use arrow::array::{ArrayRef, AsArray, StringViewArray, make_view};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::error::ArrowError;
use std::cell::RefCell;
use std::sync::Arc;
use xxhash_rust::xxh64::xxh64;

/// Where a text lies.
pub(crate) type Text = ListRef;

/// Texts that are added, and then shown.
#[derive(Debug)]
pub(crate) struct Texts {
    bytes: ListArena<u8>,
    /// Texts seen lately, by hash: names, units and services recur from row to row.
    recent: Vec<Text>,

    /// All texts, while they are shown as columns.
    frozen: Arc<[Buffer]>,
    /// The memory of the last column that was shown. It is longer than what allocators keep at hand, and
    /// pages that go back to the kernel with every column cost more than what is written to them.
    views: RefCell<Vec<u128>>,
}

const RECENT: usize = 1024;

impl Texts {
    pub(crate) fn new(pool: &Pool) -> Self {
        Texts {
            bytes: ListArena::new(pool),
            recent: vec![Text::NONE; RECENT],
            frozen: Arc::default(),
            views: RefCell::default(),
        }
    }

    /// Adds a text.
    pub(crate) fn add(&mut self, text: &[u8]) -> Result<Text, RowRejection> {
        if text.is_empty() { Ok(Text::EMPTY) } else { self.bytes.add(text) }
    }

    /// Adds a text, or finds it among the last ones.
    pub(crate) fn keep(&mut self, text: &[u8]) -> Result<Text, RowRejection> {
        if text.is_empty() {
            return Ok(Text::EMPTY);
        }
        let slot = (xxh64(text, 0) % RECENT as u64) as usize;
        let known = self.recent.get(slot).copied().unwrap_or(Text::NONE);
        if known.len() == text.len() && self.bytes.get(known) == text {
            return Ok(known);
        }
        let kept = self.bytes.add(text)?;
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = kept;
        }
        Ok(kept)
    }

    /// Adds the text of at most `most` bytes that `write` writes.
    pub(crate) fn write(
        &mut self,
        most: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Text, RowRejection> {
        self.bytes.write(most, write)
    }

    pub(crate) fn get(&self, text: Text) -> &[u8] {
        if self.frozen.is_empty() {
            return self.bytes.get(text);
        }
        let buffer = self.frozen.get(text.chunk()).map_or(&[][..], Buffer::as_slice);
        if text.is_some() { buffer.get(text.start()..text.start() + text.len()).unwrap_or(&[]) } else { &[] }
    }

    pub(crate) fn mark(&self) -> ListCheckpoint {
        self.bytes.mark()
    }

    /// Takes back what was added after the mark. Texts that [`keep`](Self::keep) still remembers of it are
    /// compared before they are given out, so that is no harm.
    pub(crate) fn truncate(&mut self, mark: ListCheckpoint) {
        self.bytes.truncate(mark);
    }

    /// Makes the texts ready to be shown; only `get` and `clear` may follow.
    pub(crate) fn freeze(&mut self) {
        self.frozen = self.bytes.take().into_iter().map(Buffer::from_vec).collect();
    }

    /// Bytes of the pool that they hold.
    pub(crate) fn held(&self) -> usize {
        self.bytes.held()
    }

    pub(crate) fn clear(&mut self) {
        // Nobody else has them any more: columns live as long as they are encoded.
        for buffer in Arc::get_mut(&mut self.frozen).into_iter().flatten() {
            if let Ok(chunk) = std::mem::take(buffer).into_vec() {
                self.bytes.put_back(chunk);
            }
        }
        self.frozen = Arc::default();
        self.bytes.clear();
        self.views.take();
        self.recent.fill(Text::NONE);
    }

    /// A column of texts.
    pub(crate) fn view(&self, texts: impl ExactSizeIterator<Item = Text>) -> Result<ArrayRef, ArrowError> {
        let mut views = self.views.take();
        views.clear();
        views.reserve_exact(texts.len());
        let mut valid = Vec::with_capacity(texts.len());
        let mut any_null = false;
        let (mut last, mut last_view) = (Text::EMPTY, 0);
        for text in texts {
            let is_some = text.is_some();
            any_null |= !is_some;
            valid.push(is_some);
            if text != last {
                let place = u32::try_from(text.start()).unwrap_or(u32::MAX);
                let chunk = u32::try_from(text.chunk()).unwrap_or(u32::MAX);
                (last, last_view) = (text, if is_some { make_view(self.get(text), chunk, place) } else { 0 });
            }
            views.push(last_view);
        }
        let nulls = any_null.then(|| NullBuffer::from(valid));
        Ok(Arc::new(StringViewArray::try_new(ScalarBuffer::from(views), Arc::clone(&self.frozen), nulls)?))
    }

    /// Takes the memory of a column that is not needed any more.
    pub(crate) fn recycle(&self, column: ArrayRef) {
        let Some(texts) = column.as_string_view_opt().cloned() else { return };
        drop(column);
        let (views, _, _) = texts.into_parts();
        if let Ok(views) = views.into_inner().into_vec() {
            self.views.replace(views);
        }
    }
}
