//! One 2.0 series with other references.

use crate::output::{Full, Output};
use crate::proto::write::{self, Encode};
use crate::proto::{Field, Fields, Malformed, Reader, Varints};
use crate::remote_write::error::RemoteWriteError;
use crate::remote_write::rewrite::RewriteError;
use crate::remote_write::v2::field;

/// Gives every reference of a series to `take`: labels, exemplars, metadata.
pub(super) fn each_reference(
    series: &[u8],
    take: &mut impl FnMut(u64) -> Result<(), RewriteError>,
) -> Result<(), RewriteError> {
    Varints::new(series, field::LABELS_REFS).try_for_each(&mut *take)?;
    let unchecked = |malformed: Malformed| RewriteError::from(RemoteWriteError::from(malformed));
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

/// The new references of a series.
pub(super) trait Numbers: Copy {
    /// The new value of a reference with `before` others before it, in the order of [`each_reference`].
    fn of(self, before: u64, reference: u64) -> u64;

    /// The numbers of the references behind the first `before`.
    fn behind(self, before: u64) -> Self;
}

/// By what they are: `self[reference]`.
impl Numbers for &[u32] {
    #[inline]
    fn of(self, _: u64, reference: u64) -> u64 {
        let number = usize::try_from(reference).ok().and_then(|reference| self.get(reference));
        number.copied().map_or(0, u64::from)
    }

    #[inline]
    fn behind(self, _: u64) -> Self {
        self
    }
}

/// A series whose references become others; all else is copied as it is.
pub(super) struct Renumbered<'a, N> {
    pub(super) message: &'a [u8],
    pub(super) numbers: N,
}

/// An exemplar, likewise.
struct Exemplar<'a, N>(Renumbered<'a, N>);

/// Metadata, likewise.
struct Metadata<'a, N>(Renumbered<'a, N>);

impl<'a, N: Numbers> Renumbered<'a, N> {
    /// The label references of the message as one packed field. Returns how many there are.
    fn put_references(&self, out: &mut impl Output) -> Result<u64, Full> {
        let mut count = 0;
        let numbers = || (0..).zip(Varints::new(self.message, field::LABELS_REFS));
        let len: u64 = numbers().map(|(before, old)| write::varint_len(self.numbers.of(before, old))).sum();
        if len > 0 {
            write::length(out, field::LABELS_REFS, len)?;
            for (before, old) in numbers() {
                write::raw_varint(out, self.numbers.of(before, old))?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// A message in this one, which has `before` references before it.
    fn nested(&self, field: &Field<'a>, before: u64) -> Self {
        Self { message: field.bytes(), numbers: self.numbers.behind(before) }
    }
}

impl<N: Numbers> Encode for Renumbered<'_, N> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let mut before = self.put_references(out)?;
        for field in Fields::checked(self.message) {
            match field.key.field {
                field::LABELS_REFS => {}
                field::EXEMPLARS => {
                    write::message(out, field::EXEMPLARS, &Exemplar(self.nested(&field, before)))?;
                    before += Varints::new(field.bytes(), field::LABELS_REFS).count() as u64;
                }
                field::METADATA => {
                    write::message(out, field::METADATA, &Metadata(self.nested(&field, before)))?;
                    before += Fields::checked(field.bytes()).filter(is_reference).count() as u64;
                }
                _ => out.put(field.whole)?,
            }
        }
        Ok(())
    }
}

impl<N: Numbers> Encode for Exemplar<'_, N> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        self.0.put_references(out)?;
        let mut others = Fields::checked(self.0.message).filter(|it| it.key.field != field::LABELS_REFS);
        others.try_for_each(|field| out.put(field.whole))
    }
}

impl<N: Numbers> Encode for Metadata<'_, N> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let mut before = 0;
        for field in Fields::checked(self.0.message) {
            if is_reference(&field) {
                write::varint(out, field.key.field, self.0.numbers.of(before, field.number()))?;
                before += 1;
            } else {
                out.put(field.whole)?;
            }
        }
        Ok(())
    }
}

/// Whether a field of metadata refers to a symbol.
fn is_reference(field: &Field<'_>) -> bool {
    matches!(field.key.field, field::HELP_REF | field::UNIT_REF)
}
