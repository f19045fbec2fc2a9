//! 2.0 to 1.0: for destinations that answer 415 to 2.0.

use xxhash_rust::xxh3::xxh3_64;

use super::Dropped;
use super::encode::WithStart;
use super::family::family_of;
use crate::output::{Full, Output};
use crate::proto::write::{self, Encode};
use crate::remote_write::item::{Exemplar, Label, Metadata, Sample};
use crate::remote_write::v1::field;
use crate::remote_write::v2;

/// How many families are remembered so that their metadata is not written again: one number each.
const FAMILIES: usize = 256;

/// Writes a checked 2.0 body as a 1.0 body: the same series in the same order. The metadata of each family
/// goes to the top level, once (or a few times, when there are very many families).
///
/// # Errors
/// [`Full`] when the output is; it then holds a part that is of no use.
pub fn to_v1(request: v2::Request<'_>, out: &mut impl Output) -> Result<Dropped, Full> {
    series_to_v1(request.series(), out)
}

/// The same of some series.
///
/// # Errors
/// As [`to_v1`].
pub fn series_to_v1<'a>(
    series: impl Iterator<Item = v2::Series<'a>>,
    out: &mut impl Output,
) -> Result<Dropped, Full> {
    let mut dropped = Dropped::default();
    let mut written = [0u64; FAMILIES];
    for series in series {
        dropped.start_timestamps += start_timestamps(&series);
        write::message(out, field::TIMESERIES, &Series(series))?;
        if let Some(metadata) = series.metadata().filter(|metadata| !metadata.is_empty()) {
            let family = family_of(metadata.family, metadata.kind);
            let hash = xxh3_64(family).max(1);
            if let Some(slot) = written.get_mut(hash as usize % FAMILIES)
                && *slot != hash
            {
                *slot = hash;
                write::message(out, field::METADATA, &Metadata { family, ..metadata })?;
            }
        }
    }
    Ok(dropped)
}

fn start_timestamps(series: &v2::Series<'_>) -> u64 {
    let samples = series.samples().filter(|sample| sample.start_timestamp != 0).count();
    let histograms = series.histograms().filter(|histogram| histogram.start_timestamp != 0).count();
    (samples + histograms) as u64
}

struct Series<'a>(v2::Series<'a>);

impl Encode for Series<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Self(series) = self;
        for label in series.labels() {
            write::message(out, field::LABELS, &label)?;
        }
        for sample in series.samples() {
            write::message(out, field::SAMPLES, &Sample { start_timestamp: 0, ..sample })?;
        }
        for exemplar in series.exemplars() {
            write::message(out, field::EXEMPLARS, &exemplar)?;
        }
        for histogram in series.histograms() {
            write::message(out, field::HISTOGRAMS, &WithStart(histogram, 0))?;
        }
        Ok(())
    }
}

impl Encode for Label<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        write::bytes(out, 1, self.name)?;
        write::bytes(out, 2, self.value)
    }

    fn encoded_len(&self) -> Result<u64, Full> {
        Ok(write::bytes_len(self.name.len() as u64) + write::bytes_len(self.value.len() as u64))
    }
}

impl Encode for Exemplar<v2::Labels<'_>> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        for label in self.labels.clone() {
            write::message(out, field::LABELS, &label)?;
        }
        write::fixed64(out, 2, self.bits)?;
        write::varint(out, 3, self.timestamp.cast_unsigned())
    }
}

impl Encode for Metadata<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        write::varint(out, 1, u64::from(self.kind))?;
        for (field, text) in [(2, self.family), (4, self.help), (5, self.unit)] {
            if !text.is_empty() {
                write::bytes(out, field, text)?;
            }
        }
        Ok(())
    }
}
