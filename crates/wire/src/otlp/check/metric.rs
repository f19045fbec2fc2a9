//! Checking metrics.

use super::Counts;
use super::attribute::{attributes, key_value};
use super::field::text;
use super::point::{exponential, histogram, number, summary};
use crate::otlp::attribute::MAX_DEPTH;
use crate::otlp::fault::{Fault, Reason};
use crate::proto::Reader;

#[inline(always)]
pub(super) fn metric(mut message: Reader<'_>, counts: &mut Counts) -> Result<(), Fault> {
    let mut data = false;
    loop {
        attributes(&mut message, 0x62)?;
        let Some(key) = message.key()? else { break };
        match key.field {
            1 => text(&mut message, key, "the name")?,
            2 => text(&mut message, key, "the description")?,
            3 => text(&mut message, key, "the unit")?,
            5 | 7 | 9 | 10 | 11 => {
                let points = message.message(key)?;
                if std::mem::replace(&mut data, true) {
                    return Err(Fault::new(points.offset(), Reason::Twice("the data")));
                }
                match key.field {
                    5 => drop(each(points, 1, counts, number)?),
                    7 => drop(each(points, 3, counts, number)?),
                    9 => counts.histograms += each(points, 2, counts, histogram)?,
                    10 => counts.histograms += each(points, 2, counts, exponential)?,
                    _ => counts.summaries += each(points, 1, counts, summary)?,
                }
            }
            12 => key_value(message.message(key)?, MAX_DEPTH)?,
            _ => message.skip(key)?,
        }
    }
    counts.metrics += 1;
    Ok(())
}

/// Checks the points of one kind, beside which there are numbers in the fields up to `last`, and counts them.
#[inline(always)]
fn each(
    mut message: Reader<'_>,
    last: u32,
    counts: &mut Counts,
    point: impl Fn(Reader<'_>, &mut Counts) -> Result<(), Fault>,
) -> Result<u64, Fault> {
    let mut points = 0;
    while let Some(key) = message.key()? {
        match key.field {
            1 => {
                point(message.message(key)?, counts).map_err(|fault| fault.within("point", points))?;
                points += 1;
            }
            2 | 3 if key.field <= last => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    counts.items += points;
    Ok(points)
}
