//! Writes JSON to an [`Output`], a piece at a time and without the heap.
//!
//! Every function fails with [`Full`] when the output is; it then holds a part that is of no use.

use crate::output::{Full, Output};
use std::fmt::{self, Write};

/// A string between quotes.
///
/// # Errors
/// [`Full`].
pub fn string(text: &[u8], out: &mut impl Output) -> Result<(), Full> {
    super::string(text, |piece| out.put(piece))
}

/// A string without its quotes.
///
/// # Errors
/// [`Full`].
#[inline]
pub fn escaped(text: &[u8], out: &mut impl Output) -> Result<(), Full> {
    super::escape_into(text, |piece| out.put(piece))
}

/// Writes into a JSON string.
pub struct StringContent<'o, O>(pub &'o mut O);

impl<O: Output> Output for StringContent<'_, O> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        escaped(bytes, self.0)
    }
}

/// An integer.
///
/// # Errors
/// [`Full`].
pub fn int(value: i64, out: &mut impl Output) -> Result<(), Full> {
    if value < 0 {
        out.put(b"-")?;
    }
    unsigned(value.unsigned_abs(), out)
}

/// An integer that is not negative.
///
/// # Errors
/// [`Full`].
pub fn unsigned(mut value: u64, out: &mut impl Output) -> Result<(), Full> {
    let mut digits = [0; 20];
    let mut len = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + low(value % 10);
        value /= 10;
        len += 1;
        if value == 0 {
            break;
        }
    }
    out.put(digits.get(digits.len() - len..).unwrap_or_default())
}

/// A finite double: the shortest digits that mean it, always with a point or an exponent, so that what reads it
/// takes it for a double. `null` otherwise, since JSON has no other number; returns whether it was finite.
///
/// # Errors
/// [`Full`].
pub fn double(bits: u64, out: &mut impl Output) -> Result<bool, Full> {
    let value = f64::from_bits(bits);
    if !value.is_finite() {
        out.put(b"null")?;
        return Ok(false);
    }
    formatted(format_args!("{value:?}"), out)?;
    Ok(true)
}

/// Formats `arguments` without escapes.
///
/// # Errors
/// [`Full`].
pub fn formatted(arguments: fmt::Arguments<'_>, out: &mut impl Output) -> Result<(), Full> {
    struct Through<'o, O>(&'o mut O);
    impl<O: Output> Write for Through<'_, O> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.put(text.as_bytes()).map_err(|_| fmt::Error)
        }
    }
    Through(out).write_fmt(arguments).map_err(|_| Full)
}

/// Bytes as hexadecimal digits, without quotes.
///
/// # Errors
/// [`Full`].
pub fn hex(bytes: &[u8], out: &mut impl Output) -> Result<(), Full> {
    for some in bytes.chunks(16) {
        let mut digits = [0; 32];
        for (byte, two) in some.iter().zip(digits.chunks_exact_mut(2)) {
            two.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        out.put(digits.get(..2 * some.len()).unwrap_or_default())?;
    }
    Ok(())
}

/// Bytes in base 64, without quotes.
///
/// # Errors
/// [`Full`].
pub fn base64(bytes: &[u8], out: &mut impl Output) -> Result<(), Full> {
    crate::base64::encode(bytes, |digits| out.put(digits))
}

/// Nanoseconds since the Unix epoch as `2026-01-31T12:34:56.123456789Z`, with as many groups of three digits after
/// the point as it takes, at least one.
///
/// # Errors
/// [`Full`].
pub fn rfc3339(nanoseconds: u64, out: &mut impl Output) -> Result<(), Full> {
    let (seconds, nanoseconds) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let (year, month, day) = civil(seconds / 86_400);
    let second_of_day = seconds % 86_400;
    let mut text = *b"0000-00-00T00:00:00.000000000Z";
    decimal(year, text.get_mut(0..4).unwrap_or_default());
    decimal(month, text.get_mut(5..7).unwrap_or_default());
    decimal(day, text.get_mut(8..10).unwrap_or_default());
    decimal(second_of_day / 3600, text.get_mut(11..13).unwrap_or_default());
    decimal(second_of_day / 60 % 60, text.get_mut(14..16).unwrap_or_default());
    decimal(second_of_day % 60, text.get_mut(17..19).unwrap_or_default());
    decimal(nanoseconds, text.get_mut(20..29).unwrap_or_default());
    let digits = match nanoseconds {
        fraction if fraction % 1_000_000 == 0 => 23,
        fraction if fraction % 1000 == 0 => 26,
        _ => 29,
    };
    out.put(b"\"")?;
    out.put(text.get(..digits).unwrap_or_default())?;
    out.put(b"Z\"")
}

/// Year, month, day and hour of a time in nanoseconds since the Unix epoch.
#[must_use]
pub fn date_and_hour(nanoseconds: u64) -> (u64, u64, u64, u64) {
    let seconds = nanoseconds / 1_000_000_000;
    let (year, month, day) = civil(seconds / 86_400);
    (year, month, day, seconds % 86_400 / 3600)
}

/// The last digits of a number, as many as there is space for.
pub fn decimal(mut value: u64, into: &mut [u8]) -> &[u8] {
    for place in into.iter_mut().rev() {
        *place = b'0' + low(value % 10);
        value /= 10;
    }
    into
}

/// Year, month and day of a number of days since 1970, by the calendar of eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let from_era = days + 719_468;
    let (era, of_era) = (from_era / 146_097, from_era % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + 400 * era + u64::from(month <= 2), month, day)
}

fn low(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

fn digit(nibble: u8) -> u8 {
    b"0123456789abcdef".get(usize::from(nibble)).copied().unwrap_or(b'0')
}

#[cfg(test)]
mod tests;
