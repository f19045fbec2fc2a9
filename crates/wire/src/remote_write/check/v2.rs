//! Checking `io.prometheus.write.v2.Request`.

use super::labels::{Entry, LabelOrder, check_text};
use super::{CheckedSeries, Counts, InspectionReport, Limits, SeriesVerdict, histogram, sample};
use crate::proto::{Key, Malformed, Reader, Varints, WireType, low32};
use crate::remote_write::error::{ErrorSubject, Excerpt, RemoteWriteError, RemoteWriteErrorKind};
use crate::remote_write::item::Label;
use crate::remote_write::symbols::{self, Symbols, Table};
use crate::remote_write::v2::field;
use crate::remote_write::{Version, v1};
use crate::utf8::is_utf8;

/// Bytes that a label takes in a 1.0 body beside its texts: tags and lengths.
const LABEL_BYTES: usize = 8;

/// Looks at a whole body, with its symbol table in `scratch`.
pub(in crate::remote_write) fn inspect(
    raw: &[u8],
    limits: &Limits,
    scratch: &mut Symbols,
) -> Result<InspectionReport, RemoteWriteError> {
    let mut walk = SeriesReaderV2::new(raw, limits, scratch)?;
    let mut other_version = false;
    let mut request = Reader::new(raw);
    while let Some(key) = request.key()? {
        match key.field {
            field::TIMESERIES => drop(walk.series(request.message(key)?)?),
            symbols::SYMBOLS => drop(request.bytes(key)?),
            _ => {
                other_version |= matches!(key.field, v1::field::TIMESERIES | v1::field::METADATA);
                request.skip(key)?;
            }
        }
    }
    if other_version && walk.number == 0 && walk.texts.table.is_empty() {
        let (found, announced) = (Version::V1.message(), Version::V2.message());
        return Err(RemoteWriteError::new(0, RemoteWriteErrorKind::OtherVersion { found, announced }));
    }
    Ok(walk.inspected)
}

/// That every symbol is UTF-8: all that follow each other in one go, see [`is_utf8`].
fn check_symbols(raw: &[u8]) -> Result<(), RemoteWriteError> {
    let mut request = Reader::new(raw);
    let mut run: Option<Reader<'_>> = None;
    loop {
        let before = request;
        let key = request.key()?;
        if key.is_some_and(symbols::is_symbol) {
            run.get_or_insert(before);
        } else if let Some(run) = run.take()
            && !is_utf8(run.until(&before))
        {
            check_each(run, before.offset())?;
        }
        match key {
            Some(key) => request.skip(key)?,
            None => return Ok(()),
        }
    }
}

/// That each symbol from `run` up to `end` is UTF-8.
#[cold]
fn check_each(mut run: Reader<'_>, end: usize) -> Result<(), RemoteWriteError> {
    while run.offset() < end {
        let Some(key) = run.key()? else { break };
        let symbol = run.message(key)?;
        check_text(ErrorSubject::Symbol, symbol.rest(), symbol.offset())?;
    }
    Ok(())
}

/// A walk through a body, from series to series.
pub(in crate::remote_write) struct SeriesReaderV2<'a, 'l> {
    texts: Texts<'a, 'l>,
    inspected: InspectionReport,
    /// The number of the next series.
    number: u64,
    /// The labels of the last series, sorted, if they were not.
    pub(in crate::remote_write) sorted: Vec<Entry<'a>>,
}

/// The symbols that series refer to.
#[derive(Clone, Copy)]
pub(in crate::remote_write) struct Texts<'a, 'l> {
    limits: &'l Limits,
    table: Table<'a>,
    /// Whether there is a symbol that is not UTF-8, so that each is to be looked at.
    dubious: bool,
}

impl<'a, 'l> SeriesReaderV2<'a, 'l> {
    pub(in crate::remote_write) fn new(
        raw: &'a [u8],
        limits: &'l Limits,
        scratch: &'a mut Symbols,
    ) -> Result<Self, RemoteWriteError> {
        let table = scratch.index(raw, limits.symbols)?;
        let irregular = match check_symbols(raw) {
            Err(error) if error.is_of_body() => return Err(error),
            checked => checked.err(),
        };
        let texts = Texts { limits, table, dubious: irregular.is_some() };
        let counts = Counts { symbols: table.len() as u64, ..Counts::default() };
        let inspected = InspectionReport { counts, irregular, ..InspectionReport::default() };
        Ok(Self { texts, inspected, number: 0, sorted: Vec::new() })
    }

    /// The symbols that series refer to.
    pub(in crate::remote_write) fn texts(&self) -> Texts<'a, 'l> {
        self.texts
    }

    /// The verdict on the next series.
    pub(in crate::remote_write) fn series(
        &mut self,
        message: Reader<'a>,
    ) -> Result<SeriesVerdict, RemoteWriteError> {
        let found = self.texts.series(message, &mut self.sorted);
        let number = self.number;
        self.number += 1;
        self.inspected.enter(number, found, || Ok(items_of(message)?))
    }
}

/// All items of a series that is refused.
#[cold]
fn items_of(mut message: Reader<'_>) -> Result<Counts, Malformed> {
    let mut counts = Counts::default();
    while let Some(key) = message.key()? {
        match key.field {
            field::SAMPLES => counts.samples += 1,
            field::HISTOGRAMS => counts.histograms += 1,
            field::EXEMPLARS => counts.exemplars += 1,
            field::METADATA => counts.metadata += 1,
            _ => {}
        }
        message.skip(key)?;
    }
    Ok(counts)
}

impl<'a> Texts<'a, '_> {
    fn series(
        self,
        mut message: Reader<'a>,
        sorted: &mut Vec<Entry<'a>>,
    ) -> Result<CheckedSeries, RemoteWriteError> {
        let start = message;
        let mut order = LabelOrder::new(self.limits);
        let mut pairs = Pairs::default();
        let mut found = CheckedSeries::default();
        let mut bytes = start.rest().len();
        while let Some(key) = message.key()? {
            match key.field {
                field::LABELS_REFS => {
                    each_reference(&mut message, key, |reference, offset| {
                        let symbol = self.symbol(reference, ErrorSubject::LabelName, offset)?;
                        bytes = bytes.saturating_add(symbol.0.len() + LABEL_BYTES / 2);
                        match pairs.push(symbol) {
                            Some((label, tail)) => order.push(label, tail, offset),
                            None => Ok(()),
                        }
                    })?;
                    if found.counts.values() > 0 {
                        order.note_unsorted(message.offset());
                    }
                }
                field::SAMPLES => {
                    sample::check(message.message(key)?, true)?;
                    found.counts.samples += 1;
                }
                field::HISTOGRAMS => match histogram::check(message.message(key)?, true) {
                    Ok(()) => found.counts.histograms += 1,
                    Err(error) => found.malformed.note(error, |malformed| &mut malformed.histograms)?,
                },
                field::EXEMPLARS => match self.exemplar(message.message(key)?) {
                    Ok(texts) => {
                        found.counts.exemplars += 1;
                        bytes = bytes.saturating_add(texts);
                    }
                    Err(error) => found.malformed.note(error, |malformed| &mut malformed.exemplars)?,
                },
                field::METADATA => {
                    bytes = bytes.saturating_add(self.metadata(message.message(key)?)?);
                    found.counts.metadata += 1;
                }
                field::CREATED_TIMESTAMP => drop(message.varint(key)?),
                _ => message.skip(key)?,
            }
        }
        pairs.finish(start.offset())?;
        let unsorted = order.finish(start.offset())?;
        let histograms = found.counts.histograms + found.malformed.histograms;
        let exemplars = found.counts.exemplars + found.malformed.exemplars;
        match (found.counts.samples, histograms) {
            // Prometheus sends exemplars as series of their own (prometheus/prometheus#17857).
            (0, 0) if exemplars == 0 => {
                return Err(RemoteWriteError::new(start.offset(), RemoteWriteErrorKind::NoSamples));
            }
            (1.., 1..) => return Err(RemoteWriteError::new(start.offset(), RemoteWriteErrorKind::Mixed)),
            _ => {}
        }
        if let Some(unsorted) = unsorted {
            found.unsorted = Some(unsorted.sorted(self.entries_of(start.rest()), sorted)?);
        }
        found.counts.series = 1;
        found.bytes = bytes;
        Ok(found)
    }

    /// The labels of a series, to be sorted.
    fn entries_of(self, series: &'a [u8]) -> impl Iterator<Item = Entry<'a>> {
        let mut references = Varints::new(series, field::LABELS_REFS);
        std::iter::from_fn(move || {
            let (name, value) = (references.next()?, references.next()?);
            let label = Label { name: self.table.get(name)?, value: self.table.get(value)? };
            Some(Entry { label, references: [low32(name), low32(value)] })
        })
    }

    /// Whether a histogram or an exemplar of a series, which was found well-formed, is accepted.
    pub(in crate::remote_write) fn accepts(self, number: u32, message: Reader<'_>) -> bool {
        match number {
            field::EXEMPLARS => self.exemplar(message).is_ok(),
            field::HISTOGRAMS => histogram::check(message, true).is_ok(),
            _ => true,
        }
    }

    /// Checks an exemplar. Says how many bytes its labels take when they are spelled out.
    fn exemplar(self, mut message: Reader<'_>) -> Result<usize, RemoteWriteError> {
        let start = message.offset();
        let mut pairs = Pairs::default();
        let mut bytes = 0usize;
        while let Some(key) = message.key()? {
            match key.field {
                field::LABELS_REFS => each_reference(&mut message, key, |reference, offset| {
                    let symbol = self.symbol(reference, ErrorSubject::ExemplarLabel, offset)?;
                    bytes = bytes.saturating_add(symbol.0.len() + LABEL_BYTES / 2);
                    match pairs.push(symbol) {
                        Some((Label { name: [], value }, _)) => Err(RemoteWriteError::new(
                            offset,
                            RemoteWriteErrorKind::EmptyName { value: Excerpt::new(value) },
                        )),
                        _ => Ok(()),
                    }
                })?,
                2 => drop(message.fixed64(key)?),
                3 => drop(message.varint(key)?),
                _ => message.skip(key)?,
            }
        }
        pairs.finish(start)?;
        Ok(bytes)
    }

    /// Checks metadata. Says how many bytes its texts take.
    fn metadata(self, mut message: Reader<'_>) -> Result<usize, RemoteWriteError> {
        let mut bytes = 0usize;
        while let Some(key) = message.key()? {
            match key.field {
                1 => drop(message.varint(key)?),
                field::HELP_REF | field::UNIT_REF => {
                    let offset = message.offset();
                    let (text, _) = self.symbol(message.varint(key)?, ErrorSubject::Metadata, offset)?;
                    bytes = bytes.saturating_add(text.len());
                }
                _ => message.skip(key)?,
            }
        }
        Ok(bytes)
    }

    /// The symbol that `reference` means, with what begins at it.
    #[inline(always)]
    fn symbol(
        self,
        reference: u64,
        subject: ErrorSubject,
        offset: usize,
    ) -> Result<(&'a [u8], &'a [u8]), RemoteWriteError> {
        match self.table.get_with_tail(reference) {
            Some(symbol) if !self.dubious => Ok(symbol),
            Some(symbol) => check_text(subject, symbol.0, offset).map(|()| symbol),
            None => Err(self.missing(reference, subject, offset)),
        }
    }

    #[cold]
    fn missing(self, reference: u64, subject: ErrorSubject, offset: usize) -> RemoteWriteError {
        RemoteWriteError::new(
            offset,
            RemoteWriteErrorKind::Reference { subject, reference, symbols: self.table.len() },
        )
    }
}

/// Makes labels of symbols that come one by one.
#[derive(Default)]
struct Pairs<'a> {
    name: Option<(&'a [u8], &'a [u8])>,
    symbols: usize,
}

impl<'a> Pairs<'a> {
    /// Takes the next symbol; returns the label that it completes, with what begins at the label's name.
    #[inline(always)]
    fn push(&mut self, symbol: (&'a [u8], &'a [u8])) -> Option<(Label<'a>, &'a [u8])> {
        self.symbols += 1;
        match self.name.take() {
            Some((name, tail)) => Some((Label { name, value: symbol.0 }, tail)),
            None => {
                self.name = Some(symbol);
                None
            }
        }
    }

    fn finish(&self, offset: usize) -> Result<(), RemoteWriteError> {
        match self.name {
            Some(_) => Err(RemoteWriteError::new(offset, RemoteWriteErrorKind::OddReferences(self.symbols))),
            None => Ok(()),
        }
    }
}

/// Gives each number behind `key`, packed or not, and its offset to `take`.
#[inline(always)]
fn each_reference(
    message: &mut Reader<'_>,
    key: Key,
    mut take: impl FnMut(u64, usize) -> Result<(), RemoteWriteError>,
) -> Result<(), RemoteWriteError> {
    if key.wire == WireType::Varint {
        let offset = message.offset();
        return take(message.varint(key)?, offset);
    }
    let mut packed: Reader<'_> = message.message(key)?;
    while !packed.rest().is_empty() {
        let offset = packed.offset();
        let reference: Result<u64, Malformed> = packed.raw_varint(key.field);
        take(reference?, offset)?;
    }
    Ok(())
}
