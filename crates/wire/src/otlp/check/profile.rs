//! Checking profiles: that they are messages.

use super::{Counts, whole};
use crate::otlp::error::OtlpError;
use crate::proto::Reader;

/// The request's field with what its profiles refer to.
pub(super) const DICTIONARY: u32 = 2;

pub(super) fn profile(message: Reader<'_>, counts: &mut Counts) -> Result<usize, OtlpError> {
    fields(message)?;
    counts.items += 1;
    Ok(whole(message.rest().len()))
}

/// That a message is a sequence of fields.
pub(super) fn fields(mut message: Reader<'_>) -> Result<(), OtlpError> {
    while let Some(key) = message.key()? {
        message.skip(key)?;
    }
    Ok(())
}
