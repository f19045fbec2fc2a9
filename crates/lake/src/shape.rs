//! How one slice of memory is divided.
//!
//! Everything that grows with what comes in has its bound here, derived from the slice. What each part may
//! take together with the others is measured by `tests/memory.rs`.

use crate::Error;

const MIB: u64 = 1 << 20;

/// The least slice: below it row groups become so short that files are mostly footers.
pub(crate) const SMALLEST: u64 = 6 * MIB;
/// Of the smallest slice: what zstd, one column's encoder, footers and metadata need.
const ENCODING: usize = 5 << 19;
/// More does not make better files.
const LARGEST: u64 = 64 * MIB;

/// The bounds that follow from a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Metric points in a row group.
    pub(crate) point_rows: usize,
    /// Exemplars in a row group.
    pub(crate) exemplars: usize,
    /// Native histograms in a row group.
    pub(crate) histogram_rows: usize,
    /// Bucket counts and bounds in a row group, integers and doubles each.
    pub(crate) histogram_numbers: usize,
    /// Series and text of the points' row group.
    pub(crate) point_keys: Keys,
    /// Series and text of the histograms' row group.
    pub(crate) histogram_keys: Keys,
    /// Metric families whose metadata is remembered.
    pub(crate) families: usize,
    /// Bytes of that metadata.
    pub(crate) family_bytes: usize,
    /// Bytes of one column's dictionary; the attributes' may have four times as much.
    pub(crate) dictionary_bytes: usize,
    /// Bytes of a page.
    pub(crate) page_bytes: usize,
    /// Rows of a page.
    pub(crate) page_rows: usize,
    /// Bytes that all row groups of one open file may take in its footer.
    pub(crate) footer_bytes: usize,
}

/// The bounds of what rows of one row group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Series.
    pub(crate) series: usize,
    /// Bytes of their names, labels, units and descriptions.
    pub(crate) text: usize,
}

impl Shape {
    pub(crate) fn of(slice: u64) -> Result<Shape, Error> {
        if slice < SMALLEST {
            return Err(Error::Slice { given: slice, smallest: SMALLEST });
        }
        let slice = usize::try_from(slice.min(LARGEST)).unwrap_or(SMALLEST as usize);
        // What encoding takes grows slowly with the slice; the rest is for rows.
        let rows = slice - ENCODING;
        let points = rows / 2;
        let histograms = rows / 4;
        Ok(Shape {
            point_rows: points / 128,
            exemplars: points / 2048,
            point_keys: Keys { series: points / 384, text: points * 2 / 5 },
            histogram_rows: histograms / 1024,
            histogram_numbers: histograms / 32,
            histogram_keys: Keys { series: histograms / 1024, text: histograms / 4 },
            families: slice / (16 << 10),
            family_bytes: (slice / 32).min(256 << 10),
            dictionary_bytes: slice / 128,
            page_bytes: (slice / 96).clamp(64 << 10, 256 << 10),
            page_rows: 8192,
            footer_bytes: slice / 12,
        })
    }
}
