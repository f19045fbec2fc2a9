//! Checking metrics.

use super::attribute::{attributes, key_value};
use super::field::text;
use super::point::{exponential, histogram, number, summary};
use super::{Counts, Members, whole};
use crate::otlp::error::{OtlpError, OtlpErrorKind};
use crate::proto::Reader;

#[inline(always)]
pub(super) fn metric(mut message: Reader<'_>, counts: &mut Counts) -> Result<usize, OtlpError> {
    let mut data = false;
    let mut members = Members::default();
    let len = message.rest().len();
    loop {
        attributes(&mut message, 0x62)?;
        let from = message.rest().len();
        let Some(key) = message.key()? else { break };
        match key.field {
            1..=3 => text(&mut message, key, text_field_name(key.field))?,
            5 | 7 | 9 | 10 | 11 => {
                let points = message.message(key)?;
                if std::mem::replace(&mut data, true) {
                    return Err(OtlpError::new(points.offset(), OtlpErrorKind::Twice("the data")));
                }
                let before = counts.items;
                let largest = match key.field {
                    5 => each(points, 1, counts, number)?,
                    7 => each(points, 3, counts, number)?,
                    9 => each(points, 2, counts, histogram)?,
                    10 => each(points, 2, counts, exponential)?,
                    _ => each(points, 1, counts, summary)?,
                };
                match key.field {
                    9 | 10 => counts.histograms += counts.items - before,
                    11 => counts.summaries += counts.items - before,
                    _ => {}
                }
                members.note(from, &message, points.rest().len(), largest);
            }
            12 => key_value(message.message(key)?)?,
            _ => message.skip(key)?,
        }
    }
    counts.metrics += 1;
    Ok(members.enclosed(len))
}

/// Checks the points of one kind, beside which there are numbers in the fields up to `last`, counts them, and says
/// how long the largest is with what encloses it here.
#[inline(always)]
fn each(
    mut message: Reader<'_>,
    last: u32,
    counts: &mut Counts,
    point: impl Fn(Reader<'_>, &mut Counts) -> Result<(), OtlpError>,
) -> Result<usize, OtlpError> {
    let mut points = 0;
    let mut members = Members::default();
    let len = message.rest().len();
    let mut from = len;
    while let Some(key) = message.key()? {
        match key.field {
            1 => {
                let one = message.message(key)?;
                point(one, counts).map_err(|error| error.within("point", points))?;
                members.note(from, &message, one.rest().len(), whole(one.rest().len()));
                points += 1;
            }
            2 | 3 if key.field <= last => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
        from = message.rest().len();
    }
    counts.items += points;
    Ok(members.enclosed(len))
}

/// The name of a metric's text field.
#[inline(always)]
pub(super) fn text_field_name(field: u32) -> &'static str {
    match field {
        1 => "the name",
        2 => "the description",
        _ => "the unit",
    }
}

/// That the data in this field of a metric is what the schema says, whatever its points are.
pub(super) fn members(mut data: Reader<'_>, field: u32) -> Result<(), OtlpError> {
    let last = match field {
        5 | 11 => 1,
        7 => 3,
        _ => 2,
    };
    while let Some(key) = data.key()? {
        match key.field {
            1 => drop(data.message(key)?),
            2 | 3 if key.field <= last => drop(data.varint(key)?),
            _ => data.skip(key)?,
        }
    }
    Ok(())
}
