//! Bodies without native histograms, for receivers that do not take any.

use super::{Version, v1, v2};
use crate::output::{Full, Output};
use crate::proto::Fields;
use crate::proto::write::{self, Encode};

/// The items left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistogramRemoval {
    /// Native histograms.
    pub histograms: u64,
    /// The same, and what went with them: exemplars, and in 2.0 metadata, of series that had nothing else.
    pub items: u64,
    /// Series, and entries of metadata of 1.0, that are left. Without any of them nobody could tell what body it is.
    pub remaining: u64,
}

/// The numbers of fields, which the versions do not share.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    series: u32,
    /// Of a 1.0 request.
    metadata: Option<u32>,
    samples: u32,
    histograms: u32,
    /// The other items.
    others: [u32; 2],
}

impl Numbers {
    fn of(version: Version) -> Numbers {
        match version {
            Version::V1 => Numbers {
                series: v1::field::TIMESERIES,
                metadata: Some(v1::field::METADATA),
                samples: v1::field::SAMPLES,
                histograms: v1::field::HISTOGRAMS,
                others: [v1::field::EXEMPLARS; 2],
            },
            Version::V2 => Numbers {
                series: v2::field::TIMESERIES,
                metadata: None,
                samples: v2::field::SAMPLES,
                histograms: v2::field::HISTOGRAMS,
                others: [v2::field::EXEMPLARS, v2::field::METADATA],
            },
        }
    }
}

/// Whether the checked body `raw` has any native histogram.
#[must_use]
pub fn has_histograms(version: Version, raw: &[u8]) -> bool {
    let numbers = Numbers::of(version);
    let mut series = Fields::checked(raw).filter(|field| field.key.field == numbers.series);
    series.any(|series| Fields::checked(series.bytes()).any(|field| field.key.field == numbers.histograms))
}

/// Writes the checked body `raw` without native histograms, and without the series that have nothing else.
/// Symbols of 2.0 stay, also those that nobody uses any more.
///
/// # Errors
/// [`Full`] when the output is; `raw`'s length is always enough.
pub fn without_histograms(
    version: Version,
    raw: &[u8],
    out: &mut impl Output,
) -> Result<HistogramRemoval, Full> {
    let numbers = Numbers::of(version);
    let mut left_out = HistogramRemoval::default();
    for field in Fields::checked(raw) {
        if field.key.field != numbers.series {
            left_out.remaining += u64::from(Some(field.key.field) == numbers.metadata);
            out.put(field.whole)?;
            continue;
        }
        left_out.remaining += 1;
        let message = field.bytes();
        let count = |wanted: &[u32]| {
            Fields::checked(message).filter(|field| wanted.contains(&field.key.field)).count() as u64
        };
        let histograms = count(&[numbers.histograms]);
        left_out.histograms += histograms;
        if histograms == 0 {
            out.put(field.whole)?;
        } else if count(&[numbers.samples]) == 0 {
            left_out.items += histograms + count(&numbers.others);
            left_out.remaining -= 1;
        } else {
            left_out.items += histograms;
            write::message(out, numbers.series, &Without { field: numbers.histograms, message })?;
        }
    }
    Ok(left_out)
}

/// A message without one of its fields.
struct Without<'a> {
    field: u32,
    message: &'a [u8],
}

impl Encode for Without<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let mut others = Fields::checked(self.message).filter(|field| field.key.field != self.field);
        others.try_for_each(|field| out.put(field.whole))
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::proto::write::bytes;

    /// A message of fields with lengths.
    fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        fields.iter().for_each(|(field, value)| bytes(&mut out, *field, value).unwrap());
        out
    }

    /// Series with nothing else go as a whole, with what they count for; all others keep what they have, byte by
    /// byte.
    #[test]
    fn only_histograms_and_their_metadata_are_removed() {
        for (version, others) in [(Version::V1, 1), (Version::V2, 2)] {
            let Numbers { series, samples, histograms, others: [exemplars, metadata], .. } =
                Numbers::of(version);
            let mut alone: Vec<(u32, &[u8])> =
                vec![(1, b"labels"), (histograms, b"h"), (histograms, b"i"), (exemplars, b"e")];
            if version == Version::V2 {
                alone.push((metadata, b"m"));
            }
            let alone = message(&alone);
            let mixed = message(&[(1, b"labels"), (samples, b"s"), (histograms, b"h"), (exemplars, b"e")]);
            let plain = message(&[(1, b"labels"), (samples, b"s")]);
            let other: &[u8] = b"a symbol, or metadata";
            let raw = message(&[(series, &plain), (3, other), (series, &alone), (series, &mixed)]);
            assert!(has_histograms(version, &raw));

            let mut out = Vec::new();
            let left_out = without_histograms(version, &raw, &mut out).unwrap();
            let left = if version == Version::V1 { 3 } else { 2 };
            assert_eq!(left_out, HistogramRemoval { histograms: 3, items: 3 + others, remaining: left });
            let mixed = message(&[(1, b"labels"), (samples, b"s"), (exemplars, b"e")]);
            assert_eq!(out, message(&[(series, &plain), (3, other), (series, &mixed)]));
            assert!(!has_histograms(version, &out) && out.len() < raw.len());
        }
    }
}
