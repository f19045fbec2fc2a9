//! Times as the protocol writes them.

use jiff::Timestamp;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u32 {
    u32::try_from(now_ms() / 1000).unwrap_or(u32::MAX)
}

/// Seconds since the first call, by a clock that nobody sets.
pub(crate) fn uptime_s() -> u32 {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    u32::try_from(BEGUN.get_or_init(Instant::now).elapsed().as_secs()).unwrap_or(u32::MAX)
}

/// A time in the notation of RFC 3339.
pub(crate) fn text(ms: u64) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.unwrap_or_default().to_string()
}

/// Reads a time in that notation, in milliseconds since 1970.
pub(crate) fn parse_text(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<Timestamp>().ok()?.as_millisecond()).ok()
}

/// Reads a duration as Go writes it, such as `1h2m3.5s`.
pub(crate) fn parse_go_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut total) = (text, Duration::ZERO);
    if rest == "0" {
        return Some(total);
    }
    while !rest.is_empty() {
        let digits = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let letters = rest.find(|sign: char| sign.is_ascii_digit() || sign == '.').unwrap_or(rest.len());
        let seconds = match rest.get(..letters)? {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = rest.get(letters..)?;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, expected) in [
            ("5m0s", Some(300_000)),
            ("1h2m3.5s", Some(3_723_500)),
            ("250ms", Some(250)),
            ("0", Some(0)),
            ("", None),
            ("5", None),
            ("-5m", None),
            ("5 m", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(parse_go_duration(text), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn times_are_those_of_rfc_3339() {
        assert_eq!(text(1_700_000_000_500), "2023-11-14T22:13:20.5Z");
        assert_eq!(parse_text("2023-11-14T22:13:20.5Z"), Some(1_700_000_000_500));
        assert_eq!(parse_text("yesterday"), None);
    }
}
