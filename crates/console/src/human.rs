//! Numbers as people read them.

use std::fmt;
use std::time::{Duration, SystemTime};

/// A length of time in its two largest units: `3 h 5 min`, `42 s`, `1.8 ms`.
pub(crate) struct HumanDuration(pub(crate) Duration);

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, whole) = (self.0.as_secs_f64(), self.0.as_secs());
        match whole {
            86_400.. => two(f, whole / 86_400, "d", whole / 3_600 % 24, "h"),
            3_600.. => two(f, whole / 3_600, "h", whole / 60 % 60, "min"),
            60.. => two(f, whole / 60, "min", whole % 60, "s"),
            10.. => write!(f, "{whole} s"),
            1.. => write!(f, "{seconds:.1} s"),
            0 if seconds >= 0.01 => write!(f, "{:.0} ms", seconds * 1e3),
            0 if seconds >= 0.001 => write!(f, "{:.1} ms", seconds * 1e3),
            0 if self.0.is_zero() => f.write_str("0 s"),
            0 => write!(f, "{:.0} µs", seconds * 1e6),
        }
    }
}

fn two(f: &mut fmt::Formatter<'_>, large: u64, unit: &str, small: u64, small_unit: &str) -> fmt::Result {
    write!(f, "{large} {unit}")?;
    if small > 0 { write!(f, " {small} {small_unit}") } else { Ok(()) }
}

/// A moment, seen from `now`: `3 min ago`, `in 12 s`.
pub(crate) fn moment(at: SystemTime, now: SystemTime) -> String {
    let short = |span: Duration| HumanDuration(Duration::from_secs(coarse(span.as_secs())));
    match now.duration_since(at) {
        Ok(span) if span.as_secs() == 0 => "just now".to_owned(),
        Ok(span) => format!("{} ago", short(span)),
        Err(ahead) => format!("in {}", short(ahead.duration().max(Duration::from_secs(1)))),
    }
}

/// Seconds, without the smaller units that nobody wants to know here.
fn coarse(seconds: u64) -> u64 {
    let unit = [86_400, 3_600, 60].into_iter().find(|unit| seconds >= *unit).unwrap_or(1);
    seconds / unit * unit
}

/// A count with its thousands set apart: `1,234,567`.
pub(crate) struct HumanCount(pub(crate) u64);

impl fmt::Display for HumanCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// So many of something: `1 record`, `1,234 records`.
pub(crate) struct Plural(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Plural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", HumanCount(self.0), self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// A part of a whole, in percent; a whole of nothing is full.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// The character itself, or a sign that there was one which could steer a terminal, begin a line or turn
/// the direction of writing.
pub(crate) fn harmless(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' => ' ',
        c if tidegate_plain::is_control(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_say_them() {
        let shown = |seconds: f64| HumanDuration(Duration::from_secs_f64(seconds)).to_string();
        assert_eq!(shown(0.0), "0 s");
        assert_eq!(shown(0.00045), "450 µs");
        assert_eq!(shown(0.0018), "1.8 ms");
        assert_eq!(shown(0.25), "250 ms");
        assert_eq!(shown(1.5), "1.5 s");
        assert_eq!(shown(42.9), "42 s");
        assert_eq!(shown(250.0), "4 min 10 s");
        assert_eq!(shown(3.0 * 3600.0), "3 h");
        assert_eq!(shown(26.0 * 3600.0), "1 d 2 h");
    }

    #[test]
    fn moments_are_seen_from_now() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert_eq!(moment(now, now), "just now");
        assert_eq!(moment(now - Duration::from_secs(199), now), "3 min ago");
        assert_eq!(moment(now - Duration::from_secs(90_000), now), "1 d ago");
        assert_eq!(moment(now + Duration::from_secs(12), now), "in 12 s");
        assert_eq!(moment(now + Duration::from_millis(12), now), "in 1.0 s");
    }

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0, 12, 123, 1234, 123_456, 1_234_567].map(|n| HumanCount(n).to_string());
        assert_eq!(shown, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
        assert_eq!(HumanCount(u64::MAX).to_string(), "18,446,744,073,709,551,615");
    }
}
