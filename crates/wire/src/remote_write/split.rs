//! Cutting 1.0 bodies at series, without decoding or copying more than is cut.
//!
//! Each field of a request stands for itself, so any stretch of whole fields is a valid request. (2.0 bodies
//! need their symbols rewritten: [`join_selected`](super::join::join_selected) does that.)

use std::ops::Range;

use super::v1::{LABELS_TAG, field};
use super::{Series, lane_of, series_hash, v1};
use crate::output::{Full, Output};
use crate::proto::{Fields, Reader};

/// How large a piece may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Samples and histograms in one piece.
    pub samples: u64,
    /// Bytes of one piece.
    pub bytes: usize,
}

/// A stretch of a body that is a valid body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it is.
    pub range: Range<usize>,
    /// Series in it.
    pub series: u64,
    /// Samples and histograms in it.
    pub samples: u64,
}

/// Cuts the checked 1.0 body `raw` into pieces within `limit`. A series that is over the limit alone is a
/// piece by itself, which the caller can tell from the piece.
pub fn split(raw: &[u8], limit: Limit) -> impl Iterator<Item = Piece> {
    let mut reader = Reader::new(raw);
    std::iter::from_fn(move || {
        let start = reader.offset();
        let mut piece = Piece { range: start..start, series: 0, samples: 0 };
        // Whether there is anything in the piece that the schema knows: fields that it does not know are
        // never a piece by themselves, since nobody could tell what body that is.
        let mut known = false;
        loop {
            let before = reader;
            let Ok(Some(key)) = reader.key() else { break };
            let (series, samples) = match key.field {
                field::TIMESERIES => (1, samples(reader.bytes(key).ok()?)),
                _ => {
                    reader.skip(key).ok()?;
                    (0, 0)
                }
            };
            let cuttable = matches!(key.field, field::TIMESERIES | field::METADATA);
            let over = piece.samples + samples > limit.samples || reader.offset() - start > limit.bytes;
            if over && cuttable && known {
                reader = before;
                break;
            }
            known |= cuttable;
            piece.range.end = reader.offset();
            piece.series += series;
            piece.samples += samples;
        }
        (!piece.range.is_empty()).then_some(piece)
    })
}

/// Spreads the checked 1.0 body `raw` over `lanes` by the hash of each series' labels: a series is always
/// in the same lane. What is not a series (metadata) goes to the first lane.
///
/// # Errors
/// [`Full`] when one of the outputs is; they then hold a part that is of no use.
pub fn partition(raw: &[u8], lanes: &mut [impl Output]) -> Result<(), Full> {
    let count = lanes.len();
    for field in Fields::checked(raw) {
        let lane = match field.key.field {
            field::TIMESERIES => lane_of(series_hash(v1::Series::new(field.bytes()).labels()), count),
            _ => 0,
        };
        lanes.get_mut(lane).ok_or(Full)?.put(field.whole)?;
    }
    Ok(())
}

/// The lane of a series of either version, as [`partition`] chooses it.
#[must_use]
pub fn lane(series: &Series<'_>, lanes: usize) -> usize {
    lane_of(series_hash(series.labels()), lanes)
}

fn samples(series: &[u8]) -> u64 {
    let mut reader = Reader::new(series);
    let mut samples = 0;
    while reader.take_short(LABELS_TAG).is_some() {}
    while let Ok(Some(key)) = reader.key() {
        samples += u64::from(matches!(key.field, field::SAMPLES | field::HISTOGRAMS));
        if reader.skip(key).is_err() {
            break;
        }
    }
    samples
}
