//! Checking the points of metrics.

use super::Counts;
use super::attribute::{attributes, key_value};
use super::field::{SeenFields, fixed64s, optional_id, varints};
use crate::otlp::error::OtlpError;
use crate::proto::{Malformed, Reader};

#[inline(always)]
pub(super) fn number(mut message: Reader<'_>, counts: &mut Counts) -> Result<(), OtlpError> {
    let mut exemplars = 0;
    loop {
        attributes(&mut message, 0x3a)?;
        let Some(key) = message.key()? else { break };
        match key.field {
            2 | 3 | 4 | 6 => drop(message.fixed64(key)?),
            5 => exemplar(message.message(key)?, &mut exemplars)?,
            7 => key_value(message.message(key)?)?,
            8 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    counts.exemplars += exemplars;
    Ok(())
}

pub(super) fn histogram(mut message: Reader<'_>, counts: &mut Counts) -> Result<(), OtlpError> {
    let mut exemplars = 0;
    loop {
        attributes(&mut message, 0x4a)?;
        let Some(key) = message.key()? else { break };
        match key.field {
            2..=5 | 11 | 12 => drop(message.fixed64(key)?),
            6 | 7 => fixed64s(&mut message, key)?,
            8 => exemplar(message.message(key)?, &mut exemplars)?,
            9 => key_value(message.message(key)?)?,
            10 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    counts.exemplars += exemplars;
    Ok(())
}

pub(super) fn exponential(mut message: Reader<'_>, counts: &mut Counts) -> Result<(), OtlpError> {
    let mut exemplars = 0;
    let mut once = SeenFields::default();
    loop {
        attributes(&mut message, 0x0a)?;
        let Some(key) = message.key()? else { break };
        match key.field {
            1 => key_value(message.message(key)?)?,
            2..=5 | 7 | 12..=14 => drop(message.fixed64(key)?),
            6 | 10 => drop(message.varint(key)?),
            8 | 9 => {
                once.first(key, &message, "a side's buckets")?;
                buckets(message.message(key)?)?;
            }
            11 => exemplar(message.message(key)?, &mut exemplars)?,
            _ => message.skip(key)?,
        }
    }
    counts.exemplars += exemplars;
    Ok(())
}

fn buckets(mut message: Reader<'_>) -> Result<(), Malformed> {
    while let Some(key) = message.key()? {
        match key.field {
            1 => drop(message.varint(key)?),
            2 => varints(&mut message, key)?,
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

pub(super) fn summary(mut message: Reader<'_>, _: &mut Counts) -> Result<(), OtlpError> {
    loop {
        attributes(&mut message, 0x3a)?;
        let Some(key) = message.key()? else { return Ok(()) };
        match key.field {
            2..=5 => drop(message.fixed64(key)?),
            6 => quantile(message.message(key)?)?,
            7 => key_value(message.message(key)?)?,
            8 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
}

fn quantile(mut message: Reader<'_>) -> Result<(), Malformed> {
    while let Some(key) = message.key()? {
        match key.field {
            1 | 2 => drop(message.fixed64(key)?),
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

/// Checks an exemplar and counts it.
fn exemplar(message: Reader<'_>, exemplars: &mut u64) -> Result<(), OtlpError> {
    any_exemplar(message).map_err(|error| error.within("exemplar", *exemplars))?;
    *exemplars += 1;
    Ok(())
}

fn any_exemplar(mut message: Reader<'_>) -> Result<(), OtlpError> {
    loop {
        attributes(&mut message, 0x3a)?;
        let Some(key) = message.key()? else { return Ok(()) };
        match key.field {
            2 | 3 | 6 => drop(message.fixed64(key)?),
            4 => optional_id(&mut message, key, 8, "span_id")?,
            5 => optional_id(&mut message, key, 16, "trace_id")?,
            7 => key_value(message.message(key)?)?,
            _ => message.skip(key)?,
        }
    }
}
