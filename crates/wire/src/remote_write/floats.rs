//! Bodies without native histograms, for receivers that do not take any.

use super::{Version, v1, v2};
use crate::output::{Full, Output};
use crate::proto::write::{self, Encode};
use crate::proto::{Reader, Wire};

/// What was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Native histograms.
    pub histograms: u64,
    /// The same, and what went with them: exemplars, and in 2.0 metadata, of series that had nothing else.
    pub items: u64,
    /// Series, and entries of metadata of 1.0, that are left. Without any of them nobody could tell what body it is.
    pub left: u64,
}

/// The numbers of fields, which the versions do not share.
#[derive(Debug, Clone, Copy)]
struct Fields {
    series: u32,
    /// Of a 1.0 request.
    metadata: Option<u32>,
    samples: u32,
    histograms: u32,
    /// What is an item of its own beside those.
    others: [u32; 2],
}

impl Fields {
    fn of(version: Version) -> Fields {
        match version {
            Version::V1 => Fields {
                series: v1::field::TIMESERIES,
                metadata: Some(v1::field::METADATA),
                samples: v1::field::SAMPLES,
                histograms: v1::field::HISTOGRAMS,
                others: [v1::field::EXEMPLARS; 2],
            },
            Version::V2 => Fields {
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
    let fields = Fields::of(version);
    parts(raw).any(|part| {
        part.field == fields.series && parts(part.value).any(|part| part.field == fields.histograms)
    })
}

/// Writes the checked body `raw` without native histograms, and without the series that have nothing else.
/// Symbols of 2.0 stay, also those that nobody uses any more.
///
/// # Errors
/// [`Full`] when the output is; `raw`'s length is always enough.
pub fn without_histograms(version: Version, raw: &[u8], out: &mut impl Output) -> Result<LeftOut, Full> {
    let fields = Fields::of(version);
    let mut left_out = LeftOut::default();
    for part in parts(raw) {
        if part.field != fields.series {
            left_out.left += u64::from(Some(part.field) == fields.metadata);
            out.put(part.whole)?;
            continue;
        }
        left_out.left += 1;
        let count =
            |wanted: &[u32]| parts(part.value).filter(|part| wanted.contains(&part.field)).count() as u64;
        let histograms = count(&[fields.histograms]);
        left_out.histograms += histograms;
        if histograms == 0 {
            out.put(part.whole)?;
        } else if count(&[fields.samples]) == 0 {
            left_out.items += histograms + count(&fields.others);
            left_out.left -= 1;
        } else {
            left_out.items += histograms;
            write::message(out, fields.series, &Without { field: fields.histograms, message: part.value })?;
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
        parts(self.message).filter(|part| part.field != self.field).try_for_each(|part| out.put(part.whole))
    }
}

/// A field with its key.
struct Part<'a> {
    field: u32,
    whole: &'a [u8],
    /// What is in it, if it has a length.
    value: &'a [u8],
}

fn parts(message: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || {
        let before = reader;
        let key = reader.key().ok()??;
        let mut value = reader;
        reader.skip(key).ok()?;
        let value = if key.wire == Wire::Length { value.bytes(key).ok()? } else { &[] };
        Some(Part { field: key.field, whole: before.until(&reader), value })
    })
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
    fn only_histograms_and_what_is_theirs_go() {
        for (version, others) in [(Version::V1, 1), (Version::V2, 2)] {
            let Fields { series, samples, histograms, others: [exemplars, metadata], .. } =
                Fields::of(version);
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
            assert_eq!(left_out, LeftOut { histograms: 3, items: 3 + others, left });
            let mixed = message(&[(1, b"labels"), (samples, b"s"), (exemplars, b"e")]);
            assert_eq!(out, message(&[(series, &plain), (3, other), (series, &mixed)]));
            assert!(!has_histograms(version, &out) && out.len() < raw.len());
        }
    }
}
