//! 2.0 series with a symbol table of their own that says every text as often as it is referred to: longer than a
//! [join](super::join), but made without any table in memory.

use super::series::{each_field, each_reference};
use crate::output::{Full, Output};
use crate::proto::Varints;
use crate::proto::write::{self, Encode};
use crate::remote_write::rewrite::Error;
use crate::remote_write::symbols::SYMBOLS;
use crate::remote_write::v2::{self, field};

/// Writes `series`, which are asked for twice, as a body. Fields that the schema does not know are kept.
///
/// # Errors
/// [`Error`]; the output then holds a part that is of no use.
pub fn spell<'a>(
    series: impl Iterator<Item = v2::Series<'a>> + Clone,
    out: &mut impl Output,
) -> Result<u64, Error> {
    write::bytes(out, SYMBOLS, b"")?;
    for series in series.clone() {
        each_reference(series.message(), &mut |reference| {
            Ok(write::bytes(out, SYMBOLS, series.symbols().get(reference).unwrap_or_default())?)
        })?;
    }
    let (mut first, mut written) = (1, 0);
    for series in series {
        let message = series.message();
        write::message(out, field::TIMESERIES, &Spelled { message, first })?;
        each_reference(message, &mut |_| {
            first += 1;
            Ok(())
        })?;
        written += 1;
    }
    Ok(written)
}

/// A series, an exemplar or metadata whose references count up from `first`, in the order of `each_reference`.
struct Spelled<'a> {
    message: &'a [u8],
    first: u64,
}

struct Exemplar<'a>(Spelled<'a>);

struct Metadata<'a>(Spelled<'a>);

impl Spelled<'_> {
    /// The label references as one packed field. Returns the number of the next reference.
    fn put_references(&self, out: &mut impl Output) -> Result<u64, Full> {
        let next = self.first + Varints::new(self.message, field::LABELS_REFS).count() as u64;
        let len: u64 = (self.first..next).map(write::varint_len).sum();
        if len > 0 {
            write::length(out, field::LABELS_REFS, len)?;
            (self.first..next).try_for_each(|number| write::raw_varint(out, number))?;
        }
        Ok(next)
    }
}

impl Encode for Spelled<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let mut first = self.put_references(out)?;
        each_field(self.message, |field| match field.key.field {
            field::LABELS_REFS => Ok(()),
            field::EXEMPLARS => {
                let message = field.bytes();
                write::message(out, field::EXEMPLARS, &Exemplar(Spelled { message, first }))?;
                first += Varints::new(message, field::LABELS_REFS).count() as u64;
                Ok(())
            }
            field::METADATA => {
                let message = field.bytes();
                write::message(out, field::METADATA, &Metadata(Spelled { message, first }))?;
                each_field(message, |field| {
                    first += u64::from(is_text(field.key.field));
                    Ok(())
                })
            }
            _ => out.put(field.whole),
        })
    }
}

impl Encode for Exemplar<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        self.0.put_references(out)?;
        each_field(self.0.message, |field| match field.key.field {
            field::LABELS_REFS => Ok(()),
            _ => out.put(field.whole),
        })
    }
}

impl Encode for Metadata<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let mut first = self.0.first;
        each_field(self.0.message, |field| match field.key.field {
            number if is_text(number) => {
                first += 1;
                write::varint(out, number, first - 1)
            }
            _ => out.put(field.whole),
        })
    }
}

fn is_text(number: u32) -> bool {
    matches!(number, field::HELP_REF | field::UNIT_REF)
}
