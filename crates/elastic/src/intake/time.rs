//! Times: microseconds since 1970, and what ECS writes.

use tidegate_wire::intake::{Number, Text, Value};

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
    let text = text.plain()?;
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let &[b'T' | b't' | b' ', h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let &[y1, y2, y3, y4, b'-', o1, o2, b'-', d1, d2] = date else { return None };
    let year = number(&[y1, y2, y3, y4])?;
    let (month, day) = (number(&[o1, o2])?, number(&[d1, d2])?);
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, zone) = match rest.split_first() {
        Some((b'.' | b',', rest)) => {
            let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, zone) = rest.split_at_checked(len)?;
            (digits, zone)
        }
        _ => (&[][..], rest),
    };
    if fraction.len() > 9 {
        return None;
    }
    let nanos = number(fraction)? * 10_i64.pow(9 - u32::try_from(fraction.len()).ok()?);
    let offset = match zone {
        [b'Z' | b'z'] | [] => 0,
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let minutes = match zone {
                [h1, h2, b':', m1, m2] | [h1, h2, m1, m2] => number(&[*h1, *h2])? * 60 + number(&[*m1, *m2])?,
                _ => return None,
            };
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    let days = days_since_1970(year, month, day);
    let seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second;
    u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(u64::try_from(nanos).ok()?)
}

/// The number of these digits; 0 of none.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        Some(number * 10 + i64::from(digit))
    })
}

/// Days from 1970-01-01 in the Gregorian calendar: years begin in March here, so that a leap day ends one.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
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
