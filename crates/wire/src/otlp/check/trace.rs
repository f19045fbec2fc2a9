//! Checking spans.

use super::attribute::{attributes, key_value};
use super::field::{SeenFields, optional_id, text};
use super::{Counts, whole};
use crate::otlp::error::OtlpError;
use crate::proto::Reader;

#[inline(always)]
pub(super) fn span(mut message: Reader<'_>, counts: &mut Counts) -> Result<usize, OtlpError> {
    let len = message.rest().len();
    let (mut events, mut links) = (0, 0);
    let mut once = SeenFields::default();
    loop {
        attributes(&mut message, 0x4a)?;
        let Some(key) = message.key()? else { break };
        match key.field {
            1 => optional_id(&mut message, key, 16, "trace_id")?,
            2 => optional_id(&mut message, key, 8, "span_id")?,
            3 => text(&mut message, key, "trace_state")?,
            4 => optional_id(&mut message, key, 8, "parent_span_id")?,
            5 => text(&mut message, key, "the name")?,
            6 | 10 | 12 | 14 => drop(message.varint(key)?),
            7 | 8 => drop(message.fixed64(key)?),
            9 => key_value(message.message(key)?)?,
            11 => {
                event(message.message(key)?).map_err(|error| error.within("event", events))?;
                events += 1;
            }
            13 => {
                link(message.message(key)?).map_err(|error| error.within("link", links))?;
                links += 1;
            }
            15 => {
                once.first(key, &message, "the status")?;
                status(message.message(key)?)?;
            }
            16 => drop(message.fixed32(key)?),
            _ => message.skip(key)?,
        }
    }
    counts.items += 1;
    counts.events += events;
    counts.links += links;
    Ok(whole(len))
}

#[inline(always)]
fn status(mut message: Reader<'_>) -> Result<(), OtlpError> {
    while let Some(key) = message.key()? {
        match key.field {
            2 => text(&mut message, key, "the status' message")?,
            3 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

fn event(mut message: Reader<'_>) -> Result<(), OtlpError> {
    loop {
        attributes(&mut message, 0x1a)?;
        let Some(key) = message.key()? else { return Ok(()) };
        match key.field {
            1 => drop(message.fixed64(key)?),
            2 => text(&mut message, key, "the name")?,
            3 => key_value(message.message(key)?)?,
            4 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
}

fn link(mut message: Reader<'_>) -> Result<(), OtlpError> {
    loop {
        attributes(&mut message, 0x22)?;
        let Some(key) = message.key()? else { return Ok(()) };
        match key.field {
            1 => optional_id(&mut message, key, 16, "trace_id")?,
            2 => optional_id(&mut message, key, 8, "span_id")?,
            3 => text(&mut message, key, "trace_state")?,
            4 => key_value(message.message(key)?)?,
            5 => drop(message.varint(key)?),
            6 => drop(message.fixed32(key)?),
            _ => message.skip(key)?,
        }
    }
}
