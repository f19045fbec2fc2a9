//! Durations: `30s`, `1h30m`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::{Ranged, Scalar};

/// A length of time, in whole milliseconds and at most ten years.
///
/// Written with units, the largest first: `100ms`, `30s`, `1h30m`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    milliseconds: u64,
}

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

const LONGEST: Duration = Duration::days(3_650);

impl Duration {
    /// This many milliseconds; at most ten years.
    pub const fn milliseconds(count: u64) -> Duration {
        let longest = 3_650 * 86_400_000;
        Duration { milliseconds: if count < longest { count } else { longest } }
    }

    /// This many seconds; at most ten years.
    pub const fn seconds(count: u64) -> Duration {
        Duration::milliseconds(count.saturating_mul(1_000))
    }

    /// This many minutes; at most ten years.
    pub const fn minutes(count: u64) -> Duration {
        Duration::milliseconds(count.saturating_mul(60_000))
    }

    /// This many hours; at most ten years.
    pub const fn hours(count: u64) -> Duration {
        Duration::milliseconds(count.saturating_mul(3_600_000))
    }

    /// This many days; at most ten years.
    pub const fn days(count: u64) -> Duration {
        Duration::milliseconds(count.saturating_mul(86_400_000))
    }

    /// As the standard library's duration.
    pub const fn get(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.milliseconds)
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> std::time::Duration {
        duration.get()
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.milliseconds == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.milliseconds;
        for (unit, size) in UNITS {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

impl FromStr for Duration {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Duration, Invalid> {
        const HELP: &str = "write a number with a unit: `100ms`, `30s`, `5m`, `1h30m` or `7d`";
        let wrong = || Invalid::new(format!("{} is not a duration", quote(text)), HELP);
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() < 12 {
            let help = format!("write `{text}s` for seconds or `{text}ms` for milliseconds");
            return Err(Invalid::new(format!("{} has no unit", quote(text)), help));
        }
        let mut total: u64 = 0;
        let mut rest = text;
        let mut units = UNITS.as_slice();
        while !rest.is_empty() || total == 0 && units.len() == UNITS.len() {
            let (number, after) = split_while(rest, |c| c.is_ascii_digit());
            let (unit, after) = split_while(after, |c| c.is_ascii_alphabetic());
            let at = units.iter().position(|(name, _)| *name == unit).ok_or_else(wrong)?;
            let (_, size) = units.get(at).ok_or_else(wrong)?;
            let number: u64 = number.parse().map_err(|_| wrong())?;
            total = total.saturating_add(number.saturating_mul(*size));
            units = units.get(at + 1..).unwrap_or_default();
            rest = after;
        }
        if total > LONGEST.milliseconds {
            return Err(Invalid::new(
                format!("{} is too long", quote(text)),
                "write at most ten years, `3650d`",
            ));
        }
        Ok(Duration { milliseconds: total })
    }
}

fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len()))
}

impl Scalar for Duration {
    const WHAT: &'static str = "a duration";
    const EXAMPLE: &'static str = "30s";
    const NOTATION: &'static str = "Numbers with units, the largest first: `d`, `h`, `m`, `s`, `ms`, for example `100ms`, `30s`, `1h30m` or `7d`.";

    fn parse(text: &str) -> Result<Duration, Invalid> {
        text.parse()
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$" })
    }
}

impl Ranged for Duration {
    type Bound = Duration;
    fn bound(&self) -> Option<&Duration> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_single_and_joined_units() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("100ms", 100),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("1d1h1m1s1ms", 90_061_001),
            ("90m", 5_400_000),
        ] {
            assert_eq!(text.parse(), Ok(Duration { milliseconds }), "{text}");
        }
    }

    #[test]
    fn refuses_invalid_durations() {
        for text in [
            "",
            "30",
            "s",
            "1.5s",
            "-1s",
            "30m1h",
            "1s1s",
            "1 s",
            "1S",
            "1w",
            "1hm",
            "9999999999999999999999s",
            "3651d",
            "1ms1s",
            "é",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
        assert_eq!(
            "30".parse::<Duration>().unwrap_err().help,
            "write `30s` for seconds or `30ms` for milliseconds"
        );
    }

    proptest! {
        /// A displayed duration parses back to the same duration.
        #[test]
        fn display_reads_back(milliseconds in 0..=LONGEST.milliseconds) {
            let duration = Duration { milliseconds };
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        /// No text makes the parser panic.
        #[test]
        fn reads_anything_without_panic(text in "([0-9]{0,22}[dhms]{0,2}){0,3}|\\PC{0,20}") {
            let _ = text.parse::<Duration>();
        }
    }
}
