//! Exemplars that came as series of their own, put where receivers of 2.0 take them.
//!
//! The specification wants exemplars in a series that has samples or histograms, and Prometheus as a receiver refuses
//! them elsewhere; Prometheus as a sender sends each as a series of its own, in both versions
//! (<https://github.com/prometheus/prometheus/issues/17857>). So they are joined to their series when that is in the same
//! body, and sent as 1.0, which has no such rule, when it is not.

use xxhash_rust::xxh3::xxh3_64;

use super::translate::series_to_v1;
use super::v2::{self, field};
use crate::output::{Full, Output};
use crate::proto::write::{self, Encode};
use crate::proto::{Fields, Messages, Varints};

/// A series of exemplars alone.
#[derive(Debug, Clone, Copy)]
pub struct OrphanExemplars<'a> {
    series: v2::Series<'a>,
    /// Of its references.
    hash: u64,
    /// Whether it was joined to its series.
    joined: bool,
}

impl OrphanExemplars<'_> {
    /// Bytes of one entry in their list.
    pub const BYTES: usize = size_of::<OrphanExemplars<'static>>();
}

/// How many series of exemplars alone a checked 2.0 body has.
#[must_use]
pub fn count_orphans(raw: &[u8]) -> usize {
    Messages::new(raw, field::TIMESERIES).filter(|series| is_orphan(series)).count()
}

/// The series of exemplars alone in a body, which must refer to each text by one symbol only.
pub fn orphans<'a>(request: &v2::Request<'a>) -> impl Iterator<Item = OrphanExemplars<'a>> + use<'a> {
    request.series().filter(|series| is_orphan(series.message())).map(|series| OrphanExemplars {
        hash: hash_of(series.message()),
        series,
        joined: false,
    })
}

/// Writes `raw`, whose series of exemplars alone are `orphans`, with those joined to the first series that has their labels
/// and more, and without those that find none. They are left in `orphans` for [`orphans_to_v1`]. The output is no longer than
/// `raw` and 16 bytes.
///
/// # Errors
/// [`Full`] when the output is; it then holds a part that is of no use.
pub fn join_orphans(
    raw: &[u8],
    orphans: &mut Vec<OrphanExemplars<'_>>,
    out: &mut impl Output,
) -> Result<(), Full> {
    orphans.sort_by_key(|orphan| orphan.hash);
    for field in Fields::checked(raw) {
        let message = field.bytes();
        if field.key.field != field::TIMESERIES {
            out.put(field.whole)?;
        } else if !is_orphan(message) {
            let hash = hash_of(message);
            let from = orphans.partition_point(|orphan| orphan.hash < hash);
            let to = orphans.partition_point(|orphan| orphan.hash <= hash);
            let alike = orphans.get_mut(from..to).unwrap_or_default();
            let is_theirs = |orphan: &OrphanExemplars<'_>| {
                !orphan.joined && same_labels(orphan.series.message(), message)
            };
            if alike.iter().any(is_theirs) {
                write::message(out, field::TIMESERIES, &Joined { message, alike })?;
                for orphan in alike {
                    orphan.joined |= same_labels(orphan.series.message(), message);
                }
            } else {
                out.put(field.whole)?;
            }
        }
    }
    orphans.retain(|orphan| !orphan.joined);
    Ok(())
}

/// Writes what [`join_orphans`] left, as a 1.0 body.
///
/// # Errors
/// [`Full`] when the output is; it then holds a part that is of no use.
pub fn orphans_to_v1(orphans: &[OrphanExemplars<'_>], out: &mut impl Output) -> Result<(), Full> {
    series_to_v1(orphans.iter().map(|orphan| orphan.series), out).map(drop)
}

/// A series with the exemplars of others.
struct Joined<'s, 'a> {
    message: &'s [u8],
    alike: &'s [OrphanExemplars<'a>],
}

impl Encode for Joined<'_, '_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        out.put(self.message)?;
        let has_metadata = |message| Messages::new(message, field::METADATA).next().is_some();
        let mut has = has_metadata(self.message);
        for orphan in self.alike {
            let theirs = orphan.series.message();
            if orphan.joined || !same_labels(theirs, self.message) {
                continue;
            }
            for exemplar in Messages::new(theirs, field::EXEMPLARS) {
                write::bytes(out, field::EXEMPLARS, exemplar)?;
            }
            if !has {
                for metadata in Messages::new(theirs, field::METADATA) {
                    write::bytes(out, field::METADATA, metadata)?;
                    has = true;
                }
            }
        }
        Ok(())
    }
}

fn is_orphan(series: &[u8]) -> bool {
    let has = |number| Messages::new(series, number).next().is_some();
    !has(field::SAMPLES) && !has(field::HISTOGRAMS) && has(field::EXEMPLARS)
}

fn same_labels(one: &[u8], other: &[u8]) -> bool {
    Varints::new(one, field::LABELS_REFS).eq(Varints::new(other, field::LABELS_REFS))
}

fn hash_of(series: &[u8]) -> u64 {
    Varints::new(series, field::LABELS_REFS)
        .fold(0, |hash: u64, reference| xxh3_64(&(hash ^ reference).to_le_bytes()))
}
