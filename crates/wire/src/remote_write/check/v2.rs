//! Checking `io.prometheus.write.v2.Request`.

use super::labels::{Order, check_text};
use super::{Counts, Limits, histogram, sample};
use crate::proto::{Key, Malformed, Reader, Wire};
use crate::remote_write::fault::{Excerpt, Fault, Reason, Subject};
use crate::remote_write::item::Label;
use crate::remote_write::symbols::{self, Symbols, Table};
use crate::remote_write::v2::field;
use crate::remote_write::{Version, v1};
use crate::utf8::is_utf8;

/// Checks a whole body, with its symbol table in `scratch`.
pub(in crate::remote_write) fn check(
    raw: &[u8],
    limits: &Limits,
    scratch: &mut Symbols,
) -> Result<Counts, Fault> {
    let table = scratch.index(raw, limits.symbols)?;
    check_symbols(raw)?;
    let mut counts = Counts { symbols: table.len() as u64, ..Counts::default() };
    let walk = Walk { limits, table };
    let mut other_version = false;
    let mut request = Reader::new(raw);
    while let Some(key) = request.key()? {
        match key.field {
            field::TIMESERIES => {
                let message = request.message(key)?;
                walk.series(message, &mut counts).map_err(|fault| fault.in_series(counts.series))?;
                counts.series += 1;
            }
            symbols::SYMBOLS => drop(request.bytes(key)?),
            _ => {
                other_version |= matches!(key.field, v1::field::TIMESERIES | v1::field::METADATA);
                request.skip(key)?;
            }
        }
    }
    if other_version && counts == Counts::default() {
        let (found, announced) = (Version::V1.message(), Version::V2.message());
        return Err(Fault::new(0, Reason::OtherVersion { found, announced }));
    }
    if counts.series > 0 || counts.symbols > 0 {
        table.check_first()?;
    }
    Ok(counts)
}

/// That every symbol is UTF-8: all that follow each other in one go, see [`is_utf8`].
fn check_symbols(raw: &[u8]) -> Result<(), Fault> {
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
fn check_each(mut run: Reader<'_>, end: usize) -> Result<(), Fault> {
    while run.offset() < end {
        let Some(key) = run.key()? else { break };
        let symbol = run.message(key)?;
        check_text(Subject::Symbol, symbol.rest(), symbol.offset())?;
    }
    Ok(())
}

/// What the walk through the series looks at.
#[derive(Clone, Copy)]
struct Walk<'a, 'l> {
    limits: &'l Limits,
    table: Table<'a>,
}

impl<'a> Walk<'a, '_> {
    fn series(self, mut message: Reader<'_>, counts: &mut Counts) -> Result<(), Fault> {
        let start = message.offset();
        let mut order = Order::new(self.limits);
        let mut pairs = Pairs::default();
        let (mut samples, mut histograms) = (0, 0);
        while let Some(key) = message.key()? {
            match key.field {
                field::LABELS_REFS => {
                    each_reference(&mut message, key, |reference, offset| {
                        let symbol = self.symbol(reference, Subject::LabelName, offset)?;
                        match pairs.push(symbol) {
                            Some((label, tail)) => order.push(label, tail, offset),
                            None => Ok(()),
                        }
                    })?;
                }
                field::SAMPLES => {
                    sample::check(message.message(key)?, true)?;
                    samples += 1;
                }
                field::HISTOGRAMS => {
                    histogram::check(message.message(key)?, true)?;
                    histograms += 1;
                }
                field::EXEMPLARS => {
                    self.exemplar(message.message(key)?)?;
                    counts.exemplars += 1;
                }
                field::METADATA => {
                    self.metadata(message.message(key)?)?;
                    counts.metadata += 1;
                }
                field::CREATED_TIMESTAMP => drop(message.varint(key)?),
                _ => message.skip(key)?,
            }
        }
        pairs.finish(start)?;
        order.finish(start)?;
        match (samples, histograms) {
            (0, 0) => return Err(Fault::new(start, Reason::NoSamples)),
            (1.., 1..) => return Err(Fault::new(start, Reason::Mixed)),
            _ => {}
        }
        counts.samples += samples;
        counts.histograms += histograms;
        Ok(())
    }

    fn exemplar(self, mut message: Reader<'_>) -> Result<(), Fault> {
        let start = message.offset();
        let mut pairs = Pairs::default();
        while let Some(key) = message.key()? {
            match key.field {
                field::LABELS_REFS => each_reference(&mut message, key, |reference, offset| {
                    match pairs.push(self.symbol(reference, Subject::ExemplarLabel, offset)?) {
                        Some((Label { name: [], value }, _)) => {
                            Err(Fault::new(offset, Reason::EmptyName { value: Excerpt::new(value) }))
                        }
                        _ => Ok(()),
                    }
                })?,
                2 => drop(message.fixed64(key)?),
                3 => drop(message.varint(key)?),
                _ => message.skip(key)?,
            }
        }
        pairs.finish(start)
    }

    fn metadata(self, mut message: Reader<'_>) -> Result<(), Fault> {
        while let Some(key) = message.key()? {
            match key.field {
                1 => drop(message.varint(key)?),
                field::HELP_REF | field::UNIT_REF => {
                    let offset = message.offset();
                    self.symbol(message.varint(key)?, Subject::Metadata, offset)?;
                }
                _ => message.skip(key)?,
            }
        }
        Ok(())
    }

    /// The symbol that `reference` means, with what begins at it.
    #[inline(always)]
    fn symbol(self, reference: u64, subject: Subject, offset: usize) -> Result<(&'a [u8], &'a [u8]), Fault> {
        match self.table.get_with_tail(reference) {
            Some(symbol) => Ok(symbol),
            None => Err(self.missing(reference, subject, offset)),
        }
    }

    #[cold]
    fn missing(self, reference: u64, subject: Subject, offset: usize) -> Fault {
        Fault::new(offset, Reason::Reference { subject, reference, symbols: self.table.len() })
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

    fn finish(&self, offset: usize) -> Result<(), Fault> {
        match self.name {
            Some(_) => Err(Fault::new(offset, Reason::OddReferences(self.symbols))),
            None => Ok(()),
        }
    }
}

/// Gives each number behind `key`, packed or not, and its offset to `take`.
#[inline(always)]
fn each_reference(
    message: &mut Reader<'_>,
    key: Key,
    mut take: impl FnMut(u64, usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if key.wire == Wire::Varint {
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
