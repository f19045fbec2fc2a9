//! 1.0 to 2.0.

use std::ops::Range;

use super::Dropped;
use super::encode::WithStart;
use super::family::candidates;
use crate::output::{Full, Output};
use crate::proto::write::{self, Encode};
use crate::remote_write::intern::{Interner, TextLocation, location_of};
use crate::remote_write::item::{Exemplar, Label, Metadata};
use crate::remote_write::rewrite::RewriteError;
use crate::remote_write::symbols::SYMBOLS;
use crate::remote_write::v1;
use crate::remote_write::v2::field;

/// Scratch for translations, of a size known beforehand, to be kept and reused.
#[derive(Debug)]
pub struct Scratch {
    symbols: Interner,
    /// Metadata messages by the name of their family.
    families: Interner,
    /// Whether a series was found for that entry of `families`.
    matched: Vec<bool>,
}

impl Scratch {
    /// Scratch for bodies with up to `symbols` distinct texts and up to `families` metadata entries.
    #[must_use]
    pub fn new(symbols: usize, families: usize) -> Self {
        Self {
            symbols: Interner::new(symbols.saturating_add(1)),
            families: Interner::new(families),
            matched: Vec::with_capacity(families),
        }
    }

    /// How many bytes [`new`](Self::new) takes: 24 to 32 for each symbol and family.
    #[must_use]
    pub fn bytes_for(symbols: usize, families: usize) -> usize {
        Interner::bytes_for(symbols.saturating_add(1)) + Interner::bytes_for(families) + families
    }
}

/// Writes a checked 1.0 body as a 2.0 body.
///
/// A series with both samples and histograms becomes two, the exemplars staying with the samples; exemplars alone become a
/// series of their own. Metadata goes to the series of its family: those of that name, or of that name and an ending that
/// histograms, summaries or OpenMetrics add. Of several entries for one family the first counts.
///
/// # Errors
/// [`RewriteError`]; the output then holds a part that is of no use.
pub fn to_v2(raw: &[u8], scratch: &mut Scratch, out: &mut impl Output) -> Result<Dropped, RewriteError> {
    range_to_v2(raw, 0..raw.len(), scratch, out)
}

/// Writes the whole fields of `whole` that are in `part`: their series, with the metadata that any field of `whole` has
/// for them. Metadata in `part` counts as dropped only when no series of `whole` takes it.
///
/// # Errors
/// As [`to_v2`].
pub fn range_to_v2(
    whole: &[u8],
    part: Range<usize>,
    scratch: &mut Scratch,
    out: &mut impl Output,
) -> Result<Dropped, RewriteError> {
    let (raw, part) = (whole, whole.get(part).unwrap_or_default());
    let request = v1::Request::new(part);
    let mut dropped = Dropped::default();
    scratch.begin(raw)?;
    write::bytes(out, SYMBOLS, b"")?;
    for series in request.series() {
        let exemplars = series.exemplars();
        if is_empty(&series) {
            dropped.series += 1;
            continue;
        }
        for labels in std::iter::once(series.labels()).chain(exemplars.map(|exemplar| exemplar.labels)) {
            for text in texts(labels) {
                scratch.symbol(raw, text, out)?;
            }
        }
        if let Some((number, metadata)) = metadata(raw, &scratch.families, &series) {
            scratch.symbol(raw, metadata.help, out)?;
            scratch.symbol(raw, metadata.unit, out)?;
            if let Some(matched) = scratch.matched.get_mut(number as usize) {
                *matched = true;
            }
        }
    }
    dropped.metadata = scratch.unmatched(raw, part);
    for series in request.series() {
        let metadata = metadata(raw, &scratch.families, &series).map(|(_, metadata)| metadata);
        let symbols = &scratch.symbols;
        let numbers = Numbers::of(&series, raw, symbols);
        let written = Series { raw, symbols, series, metadata, part: SeriesPart::Samples, numbers: &numbers };
        let has_samples = series.samples().next().is_some();
        if has_samples {
            write::message(out, field::TIMESERIES, &written)?;
        }
        if series.histograms().next().is_some() || !(has_samples || is_empty(&series)) {
            let part = if has_samples { SeriesPart::Histograms } else { SeriesPart::HistogramsAndExemplars };
            write::message(out, field::TIMESERIES, &Series { part, ..written })?;
        }
    }
    Ok(dropped)
}

impl Scratch {
    /// Forgets what was before, and finds the metadata of `raw`.
    fn begin(&mut self, raw: &[u8]) -> Result<(), RewriteError> {
        self.symbols.clear();
        self.families.clear();
        self.matched.clear();
        // The empty symbol comes first, as the specification demands.
        self.symbols.intern(b"", TextLocation { body: 0, offset: 0, len: 0 }, |_| b"")?;
        for message in v1::metadata_messages(raw) {
            let family = v1::metadata(message).unwrap_or_default().family;
            let place = location_of(raw, message, 0)?;
            let (_, first) = self.families.intern(family, place, |place| family_at(raw, place))?;
            if first {
                self.matched.push(false);
            }
        }
        Ok(())
    }

    /// How many entries of metadata in `part` are of families without any series in `raw`.
    fn unmatched(&mut self, raw: &[u8], part: &[u8]) -> u64 {
        let is_unmatched = |families: &Interner, matched: &[bool], message| {
            let family = v1::metadata(message).unwrap_or_default().family;
            let number = families.find(family, |place| family_at(raw, place));
            !number.and_then(|number| matched.get(number as usize)).is_some_and(|matched| *matched)
        };
        let Self { families, matched, .. } = self;
        if !v1::metadata_messages(part).any(|message| is_unmatched(families, matched, message)) {
            return 0;
        }
        // Their series may be in other parts.
        for series in v1::Request::new(raw).series().filter(|series| !is_empty(series)) {
            if let Some((number, _)) = metadata(raw, families, &series)
                && let Some(matched) = matched.get_mut(number as usize)
            {
                *matched = true;
            }
        }
        v1::metadata_messages(part).filter(|message| is_unmatched(families, matched, message)).count() as u64
    }

    /// Makes sure that `text` is in the table, which is written as it grows.
    fn symbol(&mut self, raw: &[u8], text: &[u8], out: &mut impl Output) -> Result<(), RewriteError> {
        if text.is_empty() {
            return Ok(());
        }
        let (_, first) = self.symbols.intern(text, location_of(raw, text, 0)?, |place| place.of(raw))?;
        if first {
            write::bytes(out, SYMBOLS, text)?;
        }
        Ok(())
    }
}

fn is_empty(series: &v1::Series<'_>) -> bool {
    series.samples().next().is_none()
        && series.histograms().next().is_none()
        && series.exemplars().next().is_none()
}

fn family_at(raw: &[u8], place: TextLocation) -> &[u8] {
    v1::metadata(place.of(raw)).unwrap_or_default().family
}

/// The metadata of the family that `series` belongs to, and its number.
fn metadata<'a>(raw: &'a [u8], families: &Interner, series: &v1::Series<'a>) -> Option<(u32, Metadata<'a>)> {
    if families.is_empty() {
        return None;
    }
    let name = series.labels().find(|label| label.name == b"__name__")?.value;
    let number = candidates(name).find_map(|family| families.find(family, |place| family_at(raw, place)))?;
    Some((number, v1::metadata(families.location(number)?.of(raw))?))
}

/// Which items of a 1.0 series a 2.0 series takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeriesPart {
    /// And the exemplars.
    Samples,
    Histograms,
    HistogramsAndExemplars,
}

/// The numbers of the first texts of a series' labels, which are needed several times over while its
/// lengths are worked out.
struct Numbers([u32; Self::KEPT]);

impl Numbers {
    const KEPT: usize = 64;

    fn of(series: &v1::Series<'_>, raw: &[u8], symbols: &Interner) -> Self {
        let mut numbers = [0; Self::KEPT];
        for (number, text) in numbers.iter_mut().zip(texts(series.labels())) {
            *number = number_of(text, raw, symbols);
        }
        Self(numbers)
    }
}

fn texts<'a>(labels: v1::Labels<'a>) -> impl Iterator<Item = &'a [u8]> + Clone {
    labels.flat_map(|Label { name, value }| [name, value])
}

/// The number of a text that [`Scratch::symbol`] has seen.
fn number_of(text: &[u8], raw: &[u8], symbols: &Interner) -> u32 {
    if text.is_empty() {
        return 0;
    }
    symbols.find(text, |place| place.of(raw)).unwrap_or(0)
}

#[derive(Clone, Copy)]
struct Series<'a> {
    raw: &'a [u8],
    symbols: &'a Interner,
    series: v1::Series<'a>,
    metadata: Option<Metadata<'a>>,
    part: SeriesPart,
    numbers: &'a Numbers,
}

impl Series<'_> {
    fn number(&self, text: &[u8]) -> u32 {
        number_of(text, self.raw, self.symbols)
    }

    /// The labels of the series, as references.
    fn put_labels(&self, out: &mut impl Output) -> Result<(), Full> {
        let labels = self.series.labels();
        let texts = 2 * labels.clone().count();
        match self.numbers.0.get(..texts) {
            Some(numbers) => put_references(numbers.iter().copied(), out),
            None => self.put_any_labels(labels, out),
        }
    }

    fn put_any_labels(&self, labels: v1::Labels<'_>, out: &mut impl Output) -> Result<(), Full> {
        put_references(texts(labels).map(|text| self.number(text)), out)
    }
}

fn put_references(numbers: impl Iterator<Item = u32> + Clone, out: &mut impl Output) -> Result<(), Full> {
    let len: u64 = numbers.clone().map(|number| write::varint_len(number.into())).sum();
    if len > 0 {
        write::length(out, field::LABELS_REFS, len)?;
    }
    for number in numbers {
        write::raw_varint(out, number.into())?;
    }
    Ok(())
}

impl Encode for Series<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        self.put_labels(out)?;
        if self.part == SeriesPart::Samples {
            for sample in self.series.samples() {
                write::message(out, field::SAMPLES, &sample)?;
            }
        } else {
            for histogram in self.series.histograms() {
                write::message(out, field::HISTOGRAMS, &WithStart(histogram, 0))?;
            }
        }
        if self.part != SeriesPart::Histograms {
            for exemplar in self.series.exemplars() {
                write::message(out, field::EXEMPLARS, &ExemplarOf(self, exemplar))?;
            }
        }
        match self.metadata {
            Some(metadata) => write::message(out, field::METADATA, &MetadataOf(self, metadata)),
            None => Ok(()),
        }
    }
}

struct ExemplarOf<'s, 'a>(&'s Series<'a>, Exemplar<v1::Labels<'a>>);

impl Encode for ExemplarOf<'_, '_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Self(series, exemplar) = self;
        series.put_any_labels(exemplar.labels.clone(), out)?;
        write::fixed64(out, 2, exemplar.bits)?;
        write::varint(out, 3, exemplar.timestamp.cast_unsigned())
    }
}

struct MetadataOf<'s, 'a>(&'s Series<'a>, Metadata<'a>);

impl Encode for MetadataOf<'_, '_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Self(series, metadata) = self;
        write::varint(out, 1, u64::from(metadata.kind))?;
        write::varint(out, field::HELP_REF, series.number(metadata.help).into())?;
        write::varint(out, field::UNIT_REF, series.number(metadata.unit).into())
    }
}
