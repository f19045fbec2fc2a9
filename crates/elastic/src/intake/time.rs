//! Times: microseconds since 1970, and what ECS writes.

use tidegate_wire::intake::{Number, Text, Value};
use tidegate_wire::time;

/// The time of an event in nanoseconds, if it is a whole number of microseconds that fits.
pub(super) fn of_micros(value: Option<Value<'_>>) -> Option<u64> {
    let Some(Value::Number(number)) = value else { return None };
    u64::try_from(number.integer()?).ok()?.checked_mul(1000)
}

/// A duration in milliseconds as nanoseconds, and whether it can be computed back from them.
pub(super) fn of_millis(number: Number<'_>) -> (u64, bool) {
    let millis = number.double();
    // Saturates at both ends.
    let ns = (millis * 1e6).round() as u64;
    (ns, (ns as f64 / 1e6).to_bits() == millis.to_bits())
}

/// A time as RFC 3339 has it, in nanoseconds since 1970.
pub(crate) fn of_text(text: Text<'_>) -> Option<u64> {
    time::parse_rfc3339(text.plain()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<u64> {
        let json = format!("\"{text}\"");
        Value::of(json.as_bytes()).text().and_then(of_text)
    }

    #[test]
    fn times_are_read_as_they_are_meant() {
        assert_eq!(parsed("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parsed("2024-02-29T12:34:56.789Z"), Some(1_709_210_096_789_000_000));
        assert_eq!(parsed("2024-02-29T14:34:56.789000001+02:00"), Some(1_709_210_096_789_000_001));
        assert_eq!(parsed("2024-02-29 06:34:56,5-0600"), Some(1_709_210_096_500_000_000));
        for bad in [
            "",
            "2024",
            "2024-13-01T00:00:00Z",
            "2024-01-01T00:00",
            "2024-01-01T00:00:00.1234567890Z",
            "2024-01-01T00:00:00X",
            "1969-12-31T23:59:59Z",
            "2024-01-01T00:00:00+1",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
