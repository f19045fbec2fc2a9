//! Where series are written: a 1.0 body, or the symbols and then the series of a 2.0 body.

use xxhash_rust::xxh3::xxh3_64;

use super::exemplars::{Exemplars, Translated};
use super::native::Native;
use super::text::Text;
use crate::output::{Full, Output};
use crate::proto::write::{self, Encode};
use crate::remote_write::intern::{Interner, TextLocation};
use crate::remote_write::symbols::SYMBOLS;
use crate::remote_write::{Label, Metadata, RewriteError, Sample, v1, v2};

/// One series, whose labels are `L` and whose exemplars are `E`.
pub(super) struct Series<'s, L, E> {
    pub(super) labels: L,
    pub(super) value: Value<'s>,
    pub(super) exemplars: E,
    pub(super) arena: &'s Exemplars,
    pub(super) family: Metadata<'s>,
}

/// The unique properties of a series.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'s> {
    Sample(Sample),
    Histogram(Native<'s>),
}

/// The labels of a series.
pub(super) trait LabelIter<'s>: Iterator<Item = Label<'s>> + Clone {}
impl<'s, T: Iterator<Item = Label<'s>> + Clone> LabelIter<'s> for T {}
/// The exemplars of a series.
pub(super) trait ExemplarIter: Iterator<Item = Translated> + Clone {}
impl<T: Iterator<Item = Translated> + Clone> ExemplarIter for T {}

/// Takes series in order, and before them the family that they are of.
pub(super) trait SeriesOutput {
    fn family(&mut self, family: Metadata<'_>) -> Result<(), RewriteError>;
    fn series<'s, L: LabelIter<'s>, E: ExemplarIter>(
        &mut self,
        series: &Series<'s, L, E>,
    ) -> Result<(), RewriteError>;
}

/// How many families are remembered so that their metadata is not written again: one number each.
const FAMILIES: usize = 256;

/// A 1.0 body.
pub(super) struct V1Output<'o, O> {
    out: &'o mut O,
    /// Hashes of families whose metadata is written, so that it seldom is again.
    written: [u64; FAMILIES],
}

impl<'o, O: Output> V1Output<'o, O> {
    pub(super) fn new(out: &'o mut O) -> Self {
        Self { out, written: [0; FAMILIES] }
    }
}

impl<O: Output> SeriesOutput for V1Output<'_, O> {
    fn family(&mut self, family: Metadata<'_>) -> Result<(), RewriteError> {
        let hash = xxh3_64(family.family).max(1);
        if let Some(slot) = self.written.get_mut(hash as usize % FAMILIES)
            && *slot != hash
        {
            *slot = hash;
            write::message(self.out, v1::field::METADATA, &family)?;
        }
        Ok(())
    }

    fn series<'s, L: LabelIter<'s>, E: ExemplarIter>(
        &mut self,
        series: &Series<'s, L, E>,
    ) -> Result<(), RewriteError> {
        Ok(write::message(self.out, v1::field::TIMESERIES, &SeriesV1(series))?)
    }
}

struct SeriesV1<'x, 's, L, E>(&'x Series<'s, L, E>);

impl<'s, L: LabelIter<'s>, E: ExemplarIter> Encode for SeriesV1<'_, 's, L, E> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Self(series) = self;
        for label in series.labels.clone() {
            write::message(out, v1::field::LABELS, &label)?;
        }
        if let Value::Sample(sample) = series.value {
            write::message(out, v1::field::SAMPLES, &Sample { start_timestamp: 0, ..sample })?;
        }
        for exemplar in series.exemplars.clone() {
            write::message(out, v1::field::EXEMPLARS, &ExemplarV1(series.arena, exemplar))?;
        }
        if let Value::Histogram(histogram) = series.value {
            write::message(out, v1::field::HISTOGRAMS, &histogram.without_start())?;
        }
        Ok(())
    }
}

struct ExemplarV1<'s>(&'s Exemplars, Translated);

impl Encode for ExemplarV1<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Self(arena, exemplar) = self;
        for label in arena.labels(exemplar) {
            write::message(out, v1::field::LABELS, &label)?;
        }
        write::fixed64(out, 2, exemplar.bits)?;
        write::varint(out, 3, exemplar.timestamp.cast_unsigned())
    }
}

/// The texts of a 2.0 body, numbered, in room that is taken once.
#[derive(Debug)]
pub(super) struct Symbols {
    numbers: Interner,
    texts: Text,
}

impl Symbols {
    pub(super) fn new(limit: usize, bytes: usize) -> Self {
        Self { numbers: Interner::new(limit.saturating_add(1)), texts: Text::new(bytes) }
    }

    pub(super) fn bytes_for(limit: usize, bytes: usize) -> usize {
        Interner::bytes_for(limit.saturating_add(1)) + bytes
    }

    /// Forgets what was before, and writes the empty symbol, which comes first.
    pub(super) fn begin(&mut self, out: &mut impl Output) -> Result<(), RewriteError> {
        self.numbers.clear();
        self.texts.truncate(0);
        self.numbers.intern(b"", TextLocation { body: 0, offset: 0, len: 0 }, |_| b"")?;
        Ok(write::bytes(out, SYMBOLS, b"")?)
    }

    /// The number of a text; 0, that of the empty one, for one that was not collected.
    fn number(&self, text: &[u8]) -> u32 {
        self.numbers.find(text, |place| place.of(self.texts.all())).unwrap_or(0)
    }

    /// Makes sure that `text` is in the table, which is written as it grows.
    fn collect(&mut self, text: &[u8], out: &mut impl Output) -> Result<(), RewriteError> {
        let Self { numbers, texts } = self;
        if numbers.find(text, |place| place.of(texts.all())).is_some() {
            return Ok(());
        }
        let full = RewriteError::Scratch { limit: numbers.limit() };
        let (offset, len) = (u32::try_from(texts.len()), u32::try_from(text.len()));
        let (Ok(offset), Ok(len), Ok(())) = (offset, len, texts.put(text)) else { return Err(full) };
        numbers.intern(text, TextLocation { body: 0, offset, len }, |place| place.of(texts.all()))?;
        Ok(write::bytes(out, SYMBOLS, text)?)
    }
}

/// The symbols of a 2.0 body.
pub(super) struct SymbolCollector<'o, O> {
    symbols: &'o mut Symbols,
    out: &'o mut O,
}

impl<'o, O: Output> SymbolCollector<'o, O> {
    pub(super) fn new(symbols: &'o mut Symbols, out: &'o mut O) -> Self {
        Self { symbols, out }
    }
}

impl<O: Output> SeriesOutput for SymbolCollector<'_, O> {
    fn family(&mut self, family: Metadata<'_>) -> Result<(), RewriteError> {
        self.symbols.collect(family.help, self.out)?;
        self.symbols.collect(family.unit, self.out)
    }

    fn series<'s, L: LabelIter<'s>, E: ExemplarIter>(
        &mut self,
        series: &Series<'s, L, E>,
    ) -> Result<(), RewriteError> {
        let of_exemplars = series.exemplars.clone();
        for label in series.labels.clone() {
            self.symbols.collect(label.name, self.out)?;
            self.symbols.collect(label.value, self.out)?;
        }
        for exemplar in of_exemplars {
            for label in series.arena.labels(&exemplar) {
                self.symbols.collect(label.name, self.out)?;
                self.symbols.collect(label.value, self.out)?;
            }
        }
        Ok(())
    }
}

/// The series of a 2.0 body.
pub(super) struct V2Output<'o, O> {
    symbols: &'o Symbols,
    out: &'o mut O,
}

impl<'o, O: Output> V2Output<'o, O> {
    pub(super) fn new(symbols: &'o Symbols, out: &'o mut O) -> Self {
        Self { symbols, out }
    }
}

impl<O: Output> SeriesOutput for V2Output<'_, O> {
    fn family(&mut self, _: Metadata<'_>) -> Result<(), RewriteError> {
        Ok(())
    }

    fn series<'s, L: LabelIter<'s>, E: ExemplarIter>(
        &mut self,
        series: &Series<'s, L, E>,
    ) -> Result<(), RewriteError> {
        Ok(write::message(self.out, v2::field::TIMESERIES, &SeriesV2(self.symbols, series))?)
    }
}

struct SeriesV2<'x, 's, L, E>(&'x Symbols, &'x Series<'s, L, E>);

impl<'s, L: LabelIter<'s>, E: ExemplarIter> Encode for SeriesV2<'_, 's, L, E> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Self(symbols, series) = self;
        put_references(symbols, series.labels.clone(), out)?;
        match &series.value {
            Value::Sample(sample) => write::message(out, v2::field::SAMPLES, sample)?,
            Value::Histogram(histogram) => write::message(out, v2::field::HISTOGRAMS, histogram)?,
        }
        for exemplar in series.exemplars.clone() {
            write::message(out, v2::field::EXEMPLARS, &ExemplarV2(symbols, series.arena, exemplar))?;
        }
        write::message(out, v2::field::METADATA, &MetadataV2(symbols, series.family))
    }
}

struct ExemplarV2<'s>(&'s Symbols, &'s Exemplars, Translated);

impl Encode for ExemplarV2<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Self(symbols, arena, exemplar) = self;
        put_references(symbols, arena.labels(exemplar), out)?;
        write::fixed64(out, 2, exemplar.bits)?;
        write::varint(out, 3, exemplar.timestamp.cast_unsigned())
    }
}

struct MetadataV2<'s>(&'s Symbols, Metadata<'s>);

impl Encode for MetadataV2<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Self(symbols, metadata) = self;
        write::varint(out, 1, u64::from(metadata.kind))?;
        write::varint(out, v2::field::HELP_REF, symbols.number(metadata.help).into())?;
        write::varint(out, v2::field::UNIT_REF, symbols.number(metadata.unit).into())
    }
}

fn put_references<'s>(
    symbols: &Symbols,
    labels: impl LabelIter<'s>,
    out: &mut impl Output,
) -> Result<(), Full> {
    let numbers = labels.flat_map(|Label { name, value }| [symbols.number(name), symbols.number(value)]);
    let len: u64 = numbers.clone().map(|number| write::varint_len(number.into())).sum();
    if len > 0 {
        write::length(out, v2::field::LABELS_REFS, len)?;
    }
    for number in numbers {
        write::raw_varint(out, number.into())?;
    }
    Ok(())
}
