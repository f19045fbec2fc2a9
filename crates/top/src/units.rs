//! Numbers in few columns.

use std::fmt::Write as _;

/// A count with three digits: `999`, `12.3k`, `1.20M`.
pub(crate) fn count(count: f64) -> String {
    scaled(count, 1_000.0, &["", "k", "M", "G", "T", "P", "E"], "")
}

/// Bytes with three digits: `512 B`, `3.10 MiB`.
pub(crate) fn bytes(bytes: f64) -> String {
    scaled(bytes, 1_024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], " ")
}

/// A count that may not be known.
pub(crate) fn maybe_count(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), count)
}

/// Bytes that may not be known.
pub(crate) fn maybe_bytes(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), bytes)
}

fn scaled(value: f64, base: f64, units: &[&str], space: &str) -> String {
    let (mut value, mut index) = (value.max(0.0), 0);
    // What would be rounded up to the next unit is of that unit.
    while value >= base - 0.5 && index + 1 < units.len() {
        (value, index) = (value / base, index + 1);
    }
    let digits = match value {
        _ if index == 0 && value.fract() == 0.0 => 0,
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    format!("{value:.digits$}{space}{}", units.get(index).copied().unwrap_or_default())
}

/// A length of time in its two largest units: `3 h 5 min`, `42 s`, `1.8 ms`.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    let whole = seconds as u64;
    let mut out = String::new();
    let mut two = |large: u64, unit: &str, small: u64, small_unit: &str| {
        // Writing to a string does not fail.
        let _ = write!(out, "{large} {unit}");
        if small > 0 {
            let _ = write!(out, " {small} {small_unit}");
        }
    };
    match whole {
        86_400.. => two(whole / 86_400, "d", whole / 3_600 % 24, "h"),
        3_600.. => two(whole / 3_600, "h", whole / 60 % 60, "min"),
        60.. => two(whole / 60, "min", whole % 60, "s"),
        10.. => two(whole, "s", 0, ""),
        1.. => out = format!("{seconds:.1} s"),
        0 if seconds > 0.0 => out = format!("{:.1} ms", seconds * 1e3),
        0 => out.push_str("0 s"),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_have_three_digits() {
        let table = [
            (0.0, "0"),
            (7.0, "7"),
            (0.25, "0.25"),
            (12.34, "12.3"),
            (999.0, "999"),
            (999.6, "1.00k"),
            (12_345.0, "12.3k"),
            (999_499.0, "999k"),
            (999_600.0, "1.00M"),
            (1.2e6, "1.20M"),
            (-3.0, "0"),
        ];
        for (value, expected) in table {
            assert_eq!(count(value), expected, "{value}");
        }
        assert_eq!((maybe_count(None), maybe_count(Some(5.0))), ("-".to_owned(), "5".to_owned()));
    }

    #[test]
    fn bytes_have_units() {
        let table = [
            (0.0, "0 B"),
            (512.0, "512 B"),
            (1536.0, "1.50 KiB"),
            (67_108_864.0, "64.0 MiB"),
            (2e15, "1.78 PiB"),
        ];
        for (value, expected) in table {
            assert_eq!(bytes(value), expected, "{value}");
        }
        assert_eq!(maybe_bytes(None), "-");
    }

    #[test]
    fn durations_read_as_people_say_them() {
        let table = [
            (0.0, "0 s"),
            (0.0018, "1.8 ms"),
            (1.5, "1.5 s"),
            (42.9, "42 s"),
            (250.0, "4 min 10 s"),
            (10_800.0, "3 h"),
            (93_784.0, "1 d 2 h"),
            (-1.0, "0 s"),
        ];
        for (value, expected) in table {
            assert_eq!(duration(value), expected, "{value}");
        }
    }

    proptest! {
        /// Columns are made for so many characters.
        #[test]
        fn no_number_is_long(value in 0.0..1e19_f64) {
            prop_assert!(count(value).len() <= 6, "{}", count(value));
            prop_assert!(bytes(value).len() <= 9, "{}", bytes(value));
        }
    }
}
