//! How one slice of memory is divided.
//!
//! Everything that grows with what comes in has its bound here, derived from the slice. What each part may
//! take together with the others is measured by `tests/memory.rs`.

use crate::Error;

const MIB: u64 = 1 << 20;

/// The least slice: below it row groups become so short that files are mostly footers.
pub(crate) const SMALLEST: u64 = 6 * MIB;
/// Of the smallest slice: what zstd, one column's encoder, footers and metadata need.
const ENCODING: usize = 3 << 20;
/// More does not make better files.
const LARGEST: u64 = 64 * MIB;

/// The bounds that follow from a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferSizes {
    /// Bytes that the gathered rows of all tables share.
    pub(crate) pool: usize,
    /// Series in a row group of points.
    pub(crate) point_series: usize,
    /// Series in a row group of histograms.
    pub(crate) histogram_series: usize,
    /// Metric families whose metadata is remembered.
    pub(crate) families: usize,
    /// Bytes of that metadata.
    pub(crate) family_bytes: usize,
    /// Bytes of one column's dictionary; that of the metrics' attributes may have four times as much.
    pub(crate) dictionary_bytes: usize,
    /// Bytes of a page.
    pub(crate) page_bytes: usize,
    /// Rows of a page.
    pub(crate) page_rows: usize,
    /// Trace ids that a row group's bloom filter is made for.
    pub(crate) traces: u64,
    /// Bytes that the row groups of one open file may take in its footer; of all open files, twice as much.
    pub(crate) footer_bytes: usize,
}

/// How many times its own length an item takes of the pool, at most: JSON writes a control character as six bytes,
/// labels may take half of the pool, and a row has its numbers besides.
const SAID: usize = 13;

/// The largest item that a writer with a slice of so many bytes takes for certain, with what encloses it, in bytes.
#[must_use]
pub fn largest_item(slice: u64) -> usize {
    BufferSizes::of(slice.max(SMALLEST)).map_or(0, |shape| shape.pool / SAID)
}

impl BufferSizes {
    pub(crate) fn of(slice: u64) -> Result<BufferSizes, Error> {
        if slice < SMALLEST {
            return Err(Error::Slice { given: slice, smallest: SMALLEST });
        }
        let slice = usize::try_from(slice.min(LARGEST)).unwrap_or(SMALLEST as usize);
        // The encoder's memory grows slowly with the slice; the rest is for rows.
        let rows = slice - ENCODING;
        Ok(BufferSizes {
            pool: rows / 20 * 13,
            point_series: rows / 768,
            histogram_series: rows / 4096,
            families: slice / (16 << 10),
            family_bytes: (slice / 32).min(256 << 10),
            dictionary_bytes: slice / 128,
            page_bytes: (slice / 96).clamp(64 << 10, 256 << 10),
            page_rows: 8192,
            traces: (slice / 512) as u64,
            footer_bytes: slice / 12,
        })
    }
}
