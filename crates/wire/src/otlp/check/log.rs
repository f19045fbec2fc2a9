//! Checking log records.

use super::Counts;
use super::attribute::{attributes, key_value, value};
use super::field::{Once, optional_id, text};
use crate::otlp::attribute::MAX_DEPTH;
use crate::otlp::fault::Fault;
use crate::proto::Reader;

#[inline(always)]
pub(super) fn record(mut message: Reader<'_>, counts: &mut Counts) -> Result<(), Fault> {
    let mut once = Once::default();
    loop {
        attributes(&mut message, 0x32)?;
        let Some(key) = message.key()? else { break };
        match key.field {
            1 | 11 => drop(message.fixed64(key)?),
            2 | 7 => drop(message.varint(key)?),
            3 => text(&mut message, key, "severity_text")?,
            5 => {
                once.take(key, &message, "the body")?;
                value(message.message(key)?, MAX_DEPTH)?;
            }
            6 => key_value(message.message(key)?, MAX_DEPTH)?,
            8 => drop(message.fixed32(key)?),
            9 => optional_id(&mut message, key, 16, "trace_id")?,
            10 => optional_id(&mut message, key, 8, "span_id")?,
            12 => text(&mut message, key, "event_name")?,
            _ => message.skip(key)?,
        }
    }
    counts.items += 1;
    Ok(())
}
