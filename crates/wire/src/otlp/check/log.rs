//! Checking log records.

use super::attribute::{attributes, key_value, value};
use super::field::{SeenFields, optional_id, text};
use super::{Counts, whole};
use crate::otlp::error::OtlpError;
use crate::proto::Reader;

#[inline(always)]
pub(super) fn record(mut message: Reader<'_>, counts: &mut Counts) -> Result<usize, OtlpError> {
    let len = message.rest().len();
    let mut once = SeenFields::default();
    loop {
        attributes(&mut message, 0x32)?;
        let Some(key) = message.key()? else { break };
        match key.field {
            1 | 11 => drop(message.fixed64(key)?),
            2 | 7 => drop(message.varint(key)?),
            3 => text(&mut message, key, "severity_text")?,
            5 => {
                once.first(key, &message, "the body")?;
                value(message.message(key)?)?;
            }
            6 => key_value(message.message(key)?)?,
            8 => drop(message.fixed32(key)?),
            9 => optional_id(&mut message, key, 16, "trace_id")?,
            10 => optional_id(&mut message, key, 8, "span_id")?,
            12 => text(&mut message, key, "event_name")?,
            _ => message.skip(key)?,
        }
    }
    counts.items += 1;
    Ok(whole(len))
}
