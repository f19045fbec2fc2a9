//! A body without what was refused of it, and with sorted labels: what it takes to accept a request that is not quite
//! right, without a receiver behind ever seeing that.

use super::check::{self, Entry, SeriesVerdict};
use super::error::RemoteWriteError;
use super::item::Label;
use super::rewrite::RewriteError;
use super::symbols::{self, Symbols};
use super::{Limits, Version, v1, v2};
use crate::output::{Full, Output};
use crate::proto::write::{self, Encode};
use crate::proto::{Field, Fields, Reader};
use crate::utf8::is_utf8;

/// Writes what [`inspect`](super::inspect) accepts of `raw` as a body that strict receivers accept: series that are
/// refused are left out, and so are single histograms and exemplars; the labels of all others are sorted. What was
/// right is copied byte by byte. The output is never longer than `raw`.
///
/// # Errors
/// [`RewriteError::Full`] when the output is; [`RewriteError::Unchecked`] for a body that was not inspected.
pub fn repair(
    version: Version,
    raw: &[u8],
    limits: &Limits,
    symbols: &mut Symbols,
    out: &mut impl Output,
) -> Result<(), RewriteError> {
    match version {
        Version::V1 => repair_v1(raw, limits, out),
        Version::V2 => repair_v2(raw, limits, symbols, out),
    }
}

fn repair_v1(raw: &[u8], limits: &Limits, out: &mut impl Output) -> Result<(), RewriteError> {
    let mut walk = check::v1::SeriesReaderV1::new(raw, limits);
    for field in Fields::new(Reader::new(raw)) {
        let field = field.map_err(RemoteWriteError::from)?;
        let message = || field.message().map_err(RemoteWriteError::from);
        let verdict = match field.key.field {
            v1::field::TIMESERIES => walk.series(message()?)?,
            v1::field::METADATA => walk.metadata(message()?)?,
            // Means nothing here, and if nothing else is left it looks like a body of the other version.
            v2::field::TIMESERIES => SeriesVerdict::Drop,
            _ => SeriesVerdict::Keep,
        };
        match verdict {
            SeriesVerdict::Keep => out.put(field.whole)?,
            SeriesVerdict::Rewrite => {
                let series = SeriesV1 { message: message()?, sorted: &walk.sorted };
                write::message(out, v1::field::TIMESERIES, &series)?;
            }
            SeriesVerdict::Drop => {}
        }
        walk.sorted.clear();
    }
    Ok(())
}

fn repair_v2(
    raw: &[u8],
    limits: &Limits,
    scratch: &mut Symbols,
    out: &mut impl Output,
) -> Result<(), RewriteError> {
    let mut walk = check::v2::SeriesReaderV2::new(raw, limits, scratch)?;
    let texts = walk.texts();
    for field in Fields::new(Reader::new(raw)) {
        let field = field.map_err(RemoteWriteError::from)?;
        let message = || field.message().map_err(RemoteWriteError::from);
        let verdict = match field.key.field {
            v2::field::TIMESERIES => walk.series(message()?)?,
            // Its place is kept, so that all references are right; nobody that is left refers to it.
            symbols::SYMBOLS if !is_utf8(message()?.rest()) => {
                write::bytes(out, symbols::SYMBOLS, b"")?;
                SeriesVerdict::Drop
            }
            v1::field::TIMESERIES | v1::field::METADATA => SeriesVerdict::Drop,
            _ => SeriesVerdict::Keep,
        };
        match verdict {
            SeriesVerdict::Keep => out.put(field.whole)?,
            SeriesVerdict::Rewrite => {
                let series = SeriesV2 { message: message()?, sorted: &walk.sorted, texts };
                write::message(out, v2::field::TIMESERIES, &series)?;
            }
            SeriesVerdict::Drop => {}
        }
        walk.sorted.clear();
    }
    Ok(())
}

/// A 1.0 series that is written anew.
struct SeriesV1<'s, 'a> {
    message: Reader<'a>,
    /// Its labels, if they were not sorted.
    sorted: &'s [Entry<'a>],
}

impl Encode for SeriesV1<'_, '_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        for entry in self.sorted {
            write::message(out, v1::field::LABELS, &LabelV1(entry.label))?;
        }
        put_rest(self.message, out, |field| match field.key.field {
            v1::field::LABELS => self.sorted.is_empty(),
            number @ (v1::field::EXEMPLARS | v1::field::HISTOGRAMS) => {
                field.message().is_ok_and(|message| check::v1::is_accepted(number, message))
            }
            _ => true,
        })
    }
}

/// A label, no longer than any sender encodes it: without an empty value.
struct LabelV1<'a>(Label<'a>);

impl Encode for LabelV1<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Label { name, value } = self.0;
        write::bytes(out, 1, name)?;
        if value.is_empty() { Ok(()) } else { write::bytes(out, 2, value) }
    }
}

/// A 2.0 series that is written anew.
struct SeriesV2<'s, 'a, 'l> {
    message: Reader<'a>,
    /// Its labels, if they were not sorted.
    sorted: &'s [Entry<'a>],
    texts: check::v2::Texts<'a, 'l>,
}

impl Encode for SeriesV2<'_, '_, '_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let references = || self.sorted.iter().flat_map(|entry| entry.references.map(u64::from));
        if !self.sorted.is_empty() {
            write::length(out, v2::field::LABELS_REFS, references().map(write::varint_len).sum())?;
            references().try_for_each(|reference| write::raw_varint(out, reference))?;
        }
        put_rest(self.message, out, |field| match field.key.field {
            v2::field::LABELS_REFS => self.sorted.is_empty(),
            number @ (v2::field::EXEMPLARS | v2::field::HISTOGRAMS) => {
                field.message().is_ok_and(|message| self.texts.accepts(number, message))
            }
            _ => true,
        })
    }
}

/// Puts the fields that `keep` wants as they are.
fn put_rest(
    message: Reader<'_>,
    out: &mut impl Output,
    keep: impl Fn(&Field<'_>) -> bool,
) -> Result<(), Full> {
    let mut kept = Fields::new(message).map_while(Result::ok).filter(keep);
    kept.try_for_each(|field| out.put(field.whole))
}
