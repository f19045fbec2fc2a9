//! Numbers of JSON as doubles.

use super::NOT_JSON;
use crate::value::Failure;
use tidegate_wire::json::Cursor;

/// A number.
pub(super) fn number(cursor: &mut Cursor<'_>) -> Result<f64, Failure> {
    let digits = cursor.number()?;
    if let Some(number) = short_number(digits) {
        return Ok(number);
    }
    let number: f64 = str::from_utf8(digits).unwrap_or_default().parse().map_err(|_| NOT_JSON)?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(Failure::Invalid("a number of the JSON is out of range"))
    }
}

/// A number of at most 16 bytes without an exponent: its digits are an integer that a double holds exactly, and so is the
/// power of ten, so their quotient is rounded as the number is.
#[inline(always)]
fn short_number(text: &[u8]) -> Option<f64> {
    const POWERS: [f64; 16] =
        [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    if text.len() > 16 {
        return None;
    }
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (mut integer, mut decimals) = (0_u64, None);
    for byte in digits {
        match byte {
            b'0'..=b'9' => {
                integer = integer * 10 + u64::from(byte & 15);
                decimals = decimals.map(|decimals| decimals + 1);
            }
            b'.' => decimals = Some(0_usize),
            _ => return None,
        }
    }
    if integer > 1 << f64::MANTISSA_DIGITS {
        return None;
    }
    let number = integer as f64 / POWERS.get(decimals.unwrap_or(0))?;
    Some(if is_negative { -number } else { number })
}

/// The `AnyValue` of a number.
#[inline(always)]
pub(super) fn double(number: f64) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
    [0x21, a, b, c, d, e, f, g, h]
}
