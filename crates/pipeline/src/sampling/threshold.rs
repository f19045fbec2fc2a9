//! Thresholds and randomness of 56 bits, and their hexadecimal texts.

use super::{HASH_BITS, HASH_BUCKETS};

/// 2⁵⁶: how many values there are.
const VALUES: u64 = 1 << 56;
/// The most hexadecimal digits of a value.
const DIGITS: usize = 14;
/// The smallest probability that a threshold can say.
pub(super) const SMALLEST_PROBABILITY: f64 = 1.0 / VALUES as f64;

/// An item is kept where its randomness is at least this: 0 keeps all, 2⁵⁶ none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Threshold(u64);

/// The randomness of an item, below 2⁵⁶.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Randomness(u64);

/// At most 14 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HexText {
    digits: [u8; DIGITS],
    len: usize,
}

impl HexText {
    /// The digits.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.digits.get(..self.len).unwrap_or_default()
    }

    /// A text of at most 14 bytes as it was written.
    fn of(text: &[u8]) -> Option<HexText> {
        let mut digits = [0; DIGITS];
        digits.get_mut(..text.len())?.copy_from_slice(text);
        Some(HexText { digits, len: text.len() })
    }

    /// All digits of a value.
    fn all(value: u64) -> HexText {
        let mut digits = [0; DIGITS];
        let mut rest = value;
        for digit in digits.iter_mut().rev() {
            *digit = b"0123456789abcdef".get((rest & 15) as usize).copied().unwrap_or(b'0');
            rest >>= 4;
        }
        HexText { digits, len: DIGITS }
    }
}

/// The value of at most 14 hexadecimal digits.
fn parsed(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > DIGITS {
        return None;
    }
    text.iter().try_fold(0, |value, digit| Some(value << 4 | u64::from(char::from(*digit).to_digit(16)?)))
}

impl Threshold {
    pub(crate) const ALWAYS: Threshold = Threshold(0);
    pub(crate) const NEVER: Threshold = Threshold(VALUES);

    pub(super) const fn from_bits(bits: u64) -> Threshold {
        Threshold(bits)
    }

    /// Reads the text of a `th` value: leading digits; the others are zeros.
    pub(crate) fn parse(text: &[u8]) -> Option<Threshold> {
        parsed(text).map(|value| Threshold(value << (4 * (DIGITS - text.len()))))
    }

    /// The threshold of a probability, rounded to so many digits behind leading zeros and leading `f`s; `None` if it is out of range.
    pub(super) fn of_probability(probability: f64, digits: i32) -> Option<Threshold> {
        if !(SMALLEST_PROBABILITY..=1.0).contains(&probability) {
            return None;
        }
        if probability == 1.0 {
            return Some(Threshold::ALWAYS);
        }
        let leading = |value: f64| exponent(value) / -4;
        let digits = (digits + leading(probability)).max(digits + leading(1.0 - probability)).clamp(0, 14);
        // At most 2⁵⁶, which a double holds exactly.
        let mut threshold = VALUES - (probability * VALUES as f64).round() as u64;
        let shift = 4 * (DIGITS as u32 - digits.unsigned_abs());
        if shift != 0 {
            threshold = ((threshold + (1 << (shift - 1))) >> shift) << shift;
        }
        Some(Threshold(threshold))
    }

    /// The share of items that it keeps.
    pub(super) fn probability(self) -> f64 {
        (VALUES - self.0.min(VALUES)) as f64 / VALUES as f64
    }

    /// Whether it keeps an item with this randomness.
    pub(crate) const fn keeps(self, randomness: Randomness) -> bool {
        self.0 <= randomness.0
    }

    /// How many items stand for all of the same sort, of which it kept these: the reciprocal of the probability. A fraction is rounded up for that
    /// share of all `random` numbers.
    pub(crate) fn adjusted_count(self, random: u64) -> u64 {
        let kept = VALUES - self.0.min(VALUES);
        let (Some(whole), Some(rest)) = (VALUES.checked_div(kept), VALUES.checked_rem(kept)) else {
            return 1;
        };
        whole + u64::from(u128::from(random) * u128::from(kept) < u128::from(rest) << 64)
    }

    /// The text of a `th` value: without trailing zeros, and empty for [`NEVER`](Self::NEVER).
    pub(crate) fn text(self) -> HexText {
        if self == Threshold::NEVER {
            return HexText { digits: [0; DIGITS], len: 0 };
        }
        let mut text = HexText::all(self.0);
        while text.len > 1 && text.as_bytes().ends_with(b"0") {
            text.len -= 1;
        }
        text
    }

    /// The text as it was written, where it is one.
    pub(super) fn original(text: &[u8]) -> Option<(Threshold, HexText)> {
        Some((Threshold::parse(text)?, HexText::of(text)?))
    }
}

impl Randomness {
    /// The random value that every threshold but [`Threshold::NEVER`] keeps.
    pub(crate) const MOST: Randomness = Randomness(VALUES - 1);

    /// Reads the 14 digits of an `rv` value.
    pub(crate) fn parse(text: &[u8]) -> Option<Randomness> {
        parsed(text).filter(|_| text.len() == DIGITS).map(Randomness)
    }

    /// The last seven bytes of a trace id that is not all zeros.
    pub(super) fn of_trace_id(id: &[u8]) -> Option<Randomness> {
        if id.iter().all(|byte| *byte == 0) {
            return None;
        }
        id.last_chunk::<8>().map(|last| Randomness(u64::from_be_bytes(*last) & (VALUES - 1)))
    }

    /// 14 bits of a hash decide; the rest fills the 56 bits in the Collector's order, so that both write the same.
    pub(super) fn of_hash(hash: u32) -> Randomness {
        let bucket = u64::from(hash & (HASH_BUCKETS - 1));
        let unused = u64::from(hash >> (32 - HASH_BITS));
        let mixed = unused ^ (unused << 10);
        Randomness((u64::from(HASH_BUCKETS) - 1 - bucket) << 42 | mixed << 14 | bucket)
    }

    /// All 14 digits.
    pub(crate) fn text(self) -> HexText {
        HexText::all(self.0)
    }

    /// The text as it was written, where it is one.
    pub(super) fn original(text: &[u8]) -> Option<(Randomness, HexText)> {
        Some((Randomness::parse(text)?, HexText::of(text)?))
    }
}

/// The exponent of a positive number whose fraction is written from ½ to 1.
fn exponent(value: f64) -> i32 {
    let bits = (value.to_bits() >> 52) & 0x7ff;
    // Probabilities are at least 2⁻⁵⁶, so none is subnormal; 0 stands for itself.
    if value == 0.0 { 0 } else { bits as i32 - 1022 }
}
