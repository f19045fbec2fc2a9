//! Sizes: `64MiB`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::{Ranged, Scalar};

/// A size in bytes.
///
/// Written as a number with a unit, `64MiB` or `1.5GB`, or as a plain count of bytes. Displayed in the
/// largest unit that gives a whole number, so that what is displayed reads back as the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// More digits than this behind the point mean nothing in bytes.
const MOST_DECIMALS: usize = 12;

impl Bytes {
    /// This many bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }

    /// This many KiB; at most `u64::MAX` bytes.
    pub const fn kib(count: u64) -> Bytes {
        Bytes(count.saturating_mul(1 << 10))
    }

    /// This many MiB; at most `u64::MAX` bytes.
    pub const fn mib(count: u64) -> Bytes {
        Bytes(count.saturating_mul(1 << 20))
    }

    /// This many GiB; at most `u64::MAX` bytes.
    pub const fn gib(count: u64) -> Bytes {
        Bytes(count.saturating_mul(1 << 30))
    }

    /// The count of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count of bytes as a length in memory; on a machine whose lengths are shorter, the longest.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size)) {
            Some((unit, size)) if *size > 1 => write!(f, "{}{unit}", self.0 / size),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Bytes {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Bytes, Invalid> {
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let size = unit_size(text, unit.trim_start())?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > MOST_DECIMALS {
            return Err(Invalid::new(format!("{} is not a size", quote(text)), HELP));
        }
        let too_large = || Invalid::new(format!("{} is too large", quote(text)), "write a smaller size");
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let part = decimals.parse::<u128>().unwrap_or_default() * u128::from(size)
            / 10_u128.pow(u32::try_from(decimals.len()).unwrap_or_default());
        let bytes = u128::from(whole) * u128::from(size) + part;
        match u64::try_from(bytes) {
            Ok(0) => Err(Invalid::new(format!("{} is not a size", quote(text)), "write at least one byte")),
            Ok(bytes) => Ok(Bytes(bytes)),
            Err(_) => Err(too_large()),
        }
    }
}

const HELP: &str = "write a number with a unit, for example `64MiB` or `1.5GiB`, or a count of bytes";

fn unit_size(text: &str, unit: &str) -> Result<u64, Invalid> {
    if unit.is_empty() {
        if text.contains('.') {
            return Err(Invalid::new(format!("{} is a fraction of a byte", quote(text)), HELP));
        }
        return Ok(1);
    }
    if let Some((_, size)) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        return Ok(*size);
    }
    let letter = unit.get(..1).unwrap_or_default().to_ascii_uppercase();
    // `M`, `Mi`, `MBytes`, `mebibytes`: ambiguous, so the user has to choose.
    let meant = "KMGT".contains(&letter) && unit.bytes().all(|byte| byte.is_ascii_alphabetic());
    let number = text.strip_suffix(unit).unwrap_or_default().trim_end();
    if meant && !number.is_empty() {
        let help =
            format!("write `{number}{letter}iB` (steps of 1024) or `{number}{letter}B` (steps of 1000)");
        let message = match unit.get(1..) {
            Some("" | "i" | "I") => format!("the unit of {} lacks its `B`", quote(text)),
            _ => format!("the unit of {} is unknown", quote(text)),
        };
        return Err(Invalid::new(message, help));
    }
    Err(Invalid::new(format!("{} is not a size", quote(text)), HELP))
}

impl Scalar for Bytes {
    const WHAT: &'static str = "a size";
    const EXAMPLE: &'static str = "64MiB";
    const NOTATION: &'static str = "A number with a unit: `KiB`, `MiB`, `GiB`, `TiB` (steps of 1024) or `KB`, `MB`, \
         `GB`, `TB` (steps of 1000), for example `64MiB` or `1.5GB`. A number without a unit is in bytes.";

    fn parse(text: &str) -> Result<Bytes, Invalid> {
        text.parse()
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn schema() -> Json {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? *([KkMmGgTt][Ii]?)?[Bb]?$" },
        ]})
    }
}

impl Ranged for Bytes {
    type Bound = Bytes;
    fn bound(&self) -> Option<&Bytes> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_every_unit_and_fractions() {
        for (text, bytes) in [
            ("1", 1),
            ("512B", 512),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("500MB", 500_000_000),
            ("1.5GiB", 3 << 29),
            ("0.5KiB", 512),
            ("1kB", 1000),
            ("64Mb", 64_000_000),
            ("64MIB", 64 << 20),
            ("64 mb", 64_000_000),
            ("2TiB", 2 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_invalid_sizes() {
        for text in [
            "",
            "MiB",
            "0",
            "0GiB",
            "-1",
            "1.5",
            "1..5MiB",
            ".5MiB",
            "5.MiB",
            "1e9",
            "64M",
            "64Mi",
            "64MiBs",
            "١MiB",
            "18446744073709551616",
            "99999999999TiB",
            "1.0000000000001GiB",
            "1 2",
            " 1",
        ] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for text in ["64M", "64Mi", "64 m", "64MBytes", "64mebibytes", "64Mbit"] {
            assert_eq!(
                text.parse::<Bytes>().unwrap_err().help,
                "write `64MiB` (steps of 1024) or `64MB` (steps of 1000)",
                "{text}"
            );
        }
    }

    proptest! {
        /// A displayed size parses back to the same size.
        #[test]
        fn display_reads_back(bytes in 1_u64.., shift in 0_u32..50) {
            let size = Bytes((bytes >> shift).max(1));
            prop_assert_eq!(size.to_string().parse(), Ok(size));
            let round = Bytes(((bytes >> 50) << (shift % 40)).max(1));
            prop_assert_eq!(round.to_string().parse(), Ok(round));
        }

        /// No text makes the parser panic, and nothing reads as zero.
        #[test]
        fn reads_anything_without_panic(text in "[0-9.]{0,25} ?[KMGTkmgtiIBb]{0,4}|\\PC{0,20}") {
            prop_assert_ne!(text.parse::<Bytes>(), Ok(Bytes(0)));
        }
    }
}
