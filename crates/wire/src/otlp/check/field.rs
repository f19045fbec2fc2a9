//! Checking single fields.

use crate::otlp::error::{OtlpError, OtlpErrorKind};
use crate::proto::{Key, Malformed, Problem, Reader};
use crate::remote_write::Excerpt;
use crate::utf8::is_utf8;

/// Which of a message's fields were there: those with numbers below 32.
#[derive(Default)]
pub(super) struct SeenFields(u32);

impl SeenFields {
    /// Notes that the field with this key was met, which may happen only once.
    #[inline(always)]
    pub(super) fn first(&mut self, key: Key, at: &Reader<'_>, what: &'static str) -> Result<(), OtlpError> {
        if self.repeats(key) {
            return Err(OtlpError::new(at.offset(), OtlpErrorKind::Twice(what)));
        }
        Ok(())
    }

    /// Notes that the field with this key was met, and says whether it was before.
    #[inline(always)]
    fn repeats(&mut self, key: Key) -> bool {
        let before = self.0;
        self.0 |= 1u32.checked_shl(key.field).unwrap_or(0);
        before == self.0
    }
}

/// A `string`. Each one is looked at, those too that a later occurrence of the same field supersedes: other
/// decoders look at them.
#[inline(always)]
pub(super) fn text(reader: &mut Reader<'_>, key: Key, what: &'static str) -> Result<(), OtlpError> {
    let text = reader.message(key)?;
    if is_utf8(text.rest()) { Ok(()) } else { Err(not_utf8(text, what)) }
}

#[cold]
fn not_utf8(text: Reader<'_>, what: &'static str) -> OtlpError {
    OtlpError::new(text.offset(), OtlpErrorKind::Utf8(what, Excerpt::new(text.rest())))
}

/// An id that has `wanted` bytes, or none.
#[inline(always)]
pub(super) fn optional_id(
    reader: &mut Reader<'_>,
    key: Key,
    wanted: usize,
    field: &'static str,
) -> Result<(), OtlpError> {
    let id = reader.message(key)?;
    let given = id.rest().len();
    if given == wanted || given == 0 {
        return Ok(());
    }
    Err(OtlpError::new(id.offset(), OtlpErrorKind::IdLength { field, given, wanted }))
}

/// Repeated numbers of eight bytes, packed or not.
pub(super) fn fixed64s(reader: &mut Reader<'_>, key: Key) -> Result<(), Malformed> {
    if key.wire == crate::proto::WireType::Fixed64 {
        return reader.fixed64(key).map(drop);
    }
    let packed = reader.message(key)?;
    if packed.rest().len() % 8 != 0 {
        return Err(packed.malformed(key.field, Problem::Truncated));
    }
    Ok(())
}

/// Repeated varints, packed or not.
pub(super) fn varints(reader: &mut Reader<'_>, key: Key) -> Result<(), Malformed> {
    if key.wire == crate::proto::WireType::Varint {
        return reader.varint(key).map(drop);
    }
    let mut packed = reader.message(key)?;
    while !packed.rest().is_empty() {
        packed.raw_varint(key.field)?;
    }
    Ok(())
}
