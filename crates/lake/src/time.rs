//! Points in time as the tables keep them: microseconds, and the nanoseconds beyond them.

use jiff::Timestamp;

/// Microseconds since the Unix epoch of a time in milliseconds; `None` when that is out of range.
pub(crate) fn micros_of_millis(millis: i64) -> Option<i64> {
    millis.checked_mul(1000)
}

/// RFC 3339 in UTC with nine digits; a time beyond the year 9999 as its number of microseconds.
pub(crate) fn rfc3339(micros: i64, nanos: i32) -> String {
    let nanoseconds = i128::from(micros) * 1000 + i128::from(nanos);
    match Timestamp::from_nanosecond(nanoseconds) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string(),
        Err(_) => format!("{micros}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_to_the_nanosecond() {
        assert_eq!(rfc3339(1_700_000_000_123_456, 789), "2023-11-14T22:13:20.123456789Z");
        assert_eq!(rfc3339(-1, 1), "1969-12-31T23:59:59.999999001Z");
        assert_eq!(rfc3339(i64::MAX, 0), "9223372036854775807us");
    }
}
