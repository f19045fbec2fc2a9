//! Where encoded pages wait until their column is complete: a file without a name, not memory.

use bytes::Bytes;
use parquet::arrow::arrow_writer::{PageKey, PageStore, PageStoreArgs, PageStoreFactory};
use parquet::errors::{ParquetError, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_files::Access;

/// The file. Columns are written one after the other, so each may begin at its start again.
#[derive(Debug, Clone)]
pub(crate) struct Spill {
    file: Arc<File>,
    end: Arc<AtomicU64>,
}

impl Spill {
    /// Creates the file and takes its name away, so that nothing of it is left when the process ends.
    pub(crate) fn create(path: &Path) -> std::io::Result<Spill> {
        let file = tidegate_files::open(path, Access::Owner, |options| {
            options.read(true).write(true).create(true).truncate(true)
        })?;
        std::fs::remove_file(path)?;
        Ok(Spill { file: Arc::new(file), end: Arc::default() })
    }
}

impl PageStoreFactory for Spill {
    fn create(&self, args: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        // The first leaf of a column: the column before it is in the file for good.
        if args.column_index() == 0 {
            self.end.store(0, Relaxed);
        }
        Ok(Box::new(self.clone()))
    }
}

/// A key is the place in the upper bits and the length in the lower ones.
const LENGTH_BITS: u32 = 28;

impl PageStore for Spill {
    fn put(&mut self, page: Bytes) -> Result<PageKey> {
        let length = page.len() as u64;
        let place = self.end.fetch_add(length, Relaxed);
        if length >> LENGTH_BITS != 0 || place >> (64 - LENGTH_BITS) != 0 {
            return Err(ParquetError::General(format!("a page of {length} bytes at {place} is too large")));
        }
        self.file.write_all_at(&page, place)?;
        Ok(PageKey::new(place << LENGTH_BITS | length))
    }

    fn take(&mut self, key: PageKey) -> Result<Bytes> {
        let length = usize::try_from(key.get() & ((1 << LENGTH_BITS) - 1)).unwrap_or(0);
        let mut page = vec![0; length];
        self.file.read_exact_at(&mut page, key.get() >> LENGTH_BITS)?;
        Ok(Bytes::from(page))
    }
}
