//! Times as texts.

/// A time as RFC 3339 has it, in nanoseconds since 1970. A space may stand for the `T`, a comma for the point, and without
/// an offset it is UTC. Nothing before 1970, and no part of a nanosecond.
#[must_use]
pub fn parse_rfc3339(text: &[u8]) -> Option<u64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let &[b'T' | b't' | b' ', h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let &[y1, y2, y3, y4, b'-', o1, o2, b'-', d1, d2] = date else { return None };
    let year = number(&[y1, y2, y3, y4])?;
    let (month, day) = (number(&[o1, o2])?, number(&[d1, d2])?);
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    if !(1..=days_of(year, month)?).contains(&day) || hour > 23 || minute > 59 || second > 60 {
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
            let (hours, minutes) = match zone {
                [h1, h2, b':', m1, m2] | [h1, h2, m1, m2] => (number(&[*h1, *h2])?, number(&[*m1, *m2])?),
                _ => return None,
            };
            if hours > 23 || minutes > 59 {
                return None;
            }
            if *sign == b'+' { hours * 60 + minutes } else { -(hours * 60 + minutes) }
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

/// How many days a month has in the Gregorian calendar; nothing of a month that there is not.
fn days_of(year: i64, month: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => Some(if is_leap { 29 } else { 28 }),
        4 | 6 | 9 | 11 => Some(30),
        1..=12 => Some(31),
        _ => None,
    }
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

    #[test]
    fn times_are_read_as_they_are_meant() {
        assert_eq!(parse_rfc3339(b"1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_rfc3339(b"2024-02-29 06:34:56,5-0600"), Some(1_709_210_096_500_000_000));
        assert_eq!(parse_rfc3339(b"2024-02-29T12:34:56"), Some(1_709_210_096_000_000_000));
        for bad in ["", "2024", "2024-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "2024-01-01T00:00:00X"] {
            assert_eq!(parse_rfc3339(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn refuses_days_and_offsets_that_no_calendar_has() {
        for day in ["02-31", "02-30", "04-31", "06-31", "09-31", "11-31", "01-00", "01-32", "00-10", "13-01"]
        {
            assert_eq!(parse_rfc3339(format!("2024-{day}T00:00:00Z").as_bytes()), None, "{day}");
        }
        for (day, exists) in
            [("2023-02-29", false), ("2100-02-29", false), ("2000-02-29", true), ("2024-12-31", true)]
        {
            assert_eq!(parse_rfc3339(format!("{day}T00:00:00Z").as_bytes()).is_some(), exists, "{day}");
        }
        for (offset, exists) in [
            ("+99:99", false),
            ("+24:00", false),
            ("-00:60", false),
            ("+2400", false),
            ("-99", false),
            ("+23:59", true),
            ("-12:00", true),
        ] {
            let time = parse_rfc3339(format!("2024-06-15T12:00:00{offset}").as_bytes());
            assert_eq!(time.is_some(), exists, "{offset}");
        }
    }

    /// A leap second is the first of the next minute.
    #[test]
    fn takes_a_leap_second() {
        assert_eq!(parse_rfc3339(b"2016-12-31T23:59:60Z"), parse_rfc3339(b"2017-01-01T00:00:00Z"));
    }
}
