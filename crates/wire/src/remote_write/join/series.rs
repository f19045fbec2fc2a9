//! One 2.0 series with other references.

use crate::output::{Full, Output};
use crate::proto::write::{self, Encode};
use crate::proto::{Key, Malformed, Reader, Varints};
use crate::remote_write::fault::Fault;
use crate::remote_write::rewrite::Error;
use crate::remote_write::v2::field;

/// Gives every reference of a series to `take`: labels, exemplars, metadata.
pub(super) fn each_reference(
    series: &[u8],
    take: &mut impl FnMut(u64) -> Result<(), Error>,
) -> Result<(), Error> {
    Varints::new(series, field::LABELS_REFS).try_for_each(&mut *take)?;
    let unchecked = |malformed: Malformed| Error::from(Fault::from(malformed));
    let mut reader = Reader::new(series);
    while let Some(key) = reader.key().map_err(unchecked)? {
        match key.field {
            field::EXEMPLARS => {
                let exemplar = reader.bytes(key).map_err(unchecked)?;
                Varints::new(exemplar, field::LABELS_REFS).try_for_each(&mut *take)?;
            }
            field::METADATA => {
                let mut metadata = reader.message(key).map_err(unchecked)?;
                while let Some(key) = metadata.key().map_err(unchecked)? {
                    match key.field {
                        field::HELP_REF | field::UNIT_REF => take(metadata.varint(key).map_err(unchecked)?)?,
                        _ => metadata.skip(key).map_err(unchecked)?,
                    }
                }
            }
            _ => reader.skip(key).map_err(unchecked)?,
        }
    }
    Ok(())
}

/// A series whose references are replaced by `numbers[reference]`; all else is copied as it is.
pub(super) struct Rewritten<'a> {
    message: &'a [u8],
    numbers: &'a [u32],
}

/// An exemplar, likewise.
struct Exemplar<'a>(Rewritten<'a>);

/// Metadata, likewise.
struct Metadata<'a>(Rewritten<'a>);

impl<'a> Rewritten<'a> {
    pub(super) fn new(message: &'a [u8], numbers: &'a [u32]) -> Self {
        Self { message, numbers }
    }

    fn number(&self, reference: u64) -> u64 {
        let number = usize::try_from(reference).ok().and_then(|reference| self.numbers.get(reference));
        number.copied().map_or(0, u64::from)
    }

    /// The label references of the message as one packed field.
    fn put_references(&self, out: &mut impl Output) -> Result<(), Full> {
        let numbers = || Varints::new(self.message, field::LABELS_REFS).map(|old| self.number(old));
        let len: u64 = numbers().map(write::varint_len).sum();
        if len > 0 {
            write::length(out, field::LABELS_REFS, len)?;
            numbers().try_for_each(|number| write::raw_varint(out, number))?;
        }
        Ok(())
    }

    fn nested(&self, message: &'a [u8]) -> Self {
        Self { message, numbers: self.numbers }
    }
}

impl Encode for Rewritten<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        self.put_references(out)?;
        each_field(self.message, |field| match field.key.field {
            field::LABELS_REFS => Ok(()),
            field::EXEMPLARS => write::message(out, field::EXEMPLARS, &Exemplar(self.nested(field.bytes()))),
            field::METADATA => write::message(out, field::METADATA, &Metadata(self.nested(field.bytes()))),
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
        each_field(self.0.message, |field| match field.key.field {
            number @ (field::HELP_REF | field::UNIT_REF) => {
                write::varint(out, number, self.0.number(field.number()))
            }
            _ => out.put(field.whole),
        })
    }
}

/// A field as it stands in its message.
pub(super) struct Field<'a> {
    pub(super) key: Key,
    /// At the value.
    value: Reader<'a>,
    /// Key and value, encoded.
    pub(super) whole: &'a [u8],
}

impl<'a> Field<'a> {
    pub(super) fn bytes(&self) -> &'a [u8] {
        { self.value }.bytes(self.key).unwrap_or_default()
    }

    fn number(&self) -> u64 {
        { self.value }.varint(self.key).unwrap_or_default()
    }
}

pub(super) fn each_field<'a>(
    message: &'a [u8],
    mut take: impl FnMut(Field<'a>) -> Result<(), Full>,
) -> Result<(), Full> {
    let mut reader = Reader::new(message);
    loop {
        let before = reader;
        let Ok(Some(key)) = reader.key() else { return Ok(()) };
        let value = reader;
        if reader.skip(key).is_err() {
            return Ok(());
        }
        take(Field { key, value, whole: before.until(&reader) })?;
    }
}
