//! Numbers as two words.

use tidegate_pipeline::Number;

const INT: u64 = 1;
const DOUBLE: u64 = 2;

/// The number in two words: its kind and its bits. `None` in words that are zero.
pub(crate) fn from_words([kind, bits]: [u64; 2]) -> Option<Number> {
    match kind {
        INT => Some(Number::Int(bits.cast_signed())),
        DOUBLE => Some(Number::Double(f64::from_bits(bits))),
        _ => None,
    }
}

pub(crate) fn to_words(number: Number) -> [u64; 2] {
    match number {
        Number::Int(number) => [INT, number.cast_unsigned()],
        Number::Double(number) => [DOUBLE, number.to_bits()],
    }
}

/// The number as a finite double.
pub(crate) fn finite(number: Number) -> Option<f64> {
    Some(number.as_f64()).filter(|number| number.is_finite())
}

/// A sum with `count` times a value. It ends at the largest numbers: an infinite one would become none at all with the next of the other sign.
pub(crate) fn added(sum: f64, value: f64, count: u64) -> f64 {
    let more = (value * count as f64).clamp(f64::MIN, f64::MAX);
    (sum + more).clamp(f64::MIN, f64::MAX)
}
