//! Quantities as people read them.

/// Bytes in the unit of configurations: `1.50 GiB`.
pub fn bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut index) = (bytes.max(0.0), 0);
    while value >= 1023.5 && index + 1 < units.len() {
        (value, index) = (value / 1024.0, index + 1);
    }
    let digits = if index == 0 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.digits$} {}", units.get(index).copied().unwrap_or_default())
}

/// A count: `200 k`, `1.5 M`.
pub fn items(items: f64) -> String {
    let units = ["", " k", " M", " G", " T"];
    let (mut value, mut index) = (items.max(0.0), 0);
    while value >= 999.5 && index + 1 < units.len() {
        (value, index) = (value / 1000.0, index + 1);
    }
    let digits = if value >= 99.95 || value.fract() < 0.05 { 0 } else { 1 };
    format!("{value:.digits$}{}", units.get(index).copied().unwrap_or_default())
}

/// A length of time in its two largest units: `5 h 12 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let two = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        small => format!("{large} {unit} {small} {small_unit}"),
    };
    match whole {
        31_536_000.. => "more than a year".to_owned(),
        86_400.. => two(whole / 86_400, "d", whole / 3_600 % 24, "h"),
        3_600.. => two(whole / 3_600, "h", whole / 60 % 60, "min"),
        60.. => two(whole / 60, "min", whole % 60, "s"),
        _ => format!("{whole} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_short() {
        assert_eq!(
            [0.0, 900.0, 1536.0, 2e9, 5e12].map(bytes),
            ["0 B", "900 B", "1.5 KiB", "1.9 GiB", "4.5 TiB"]
        );
        assert_eq!([0.0, 7.0, 200_000.0, 1.5e6].map(items), ["0", "7", "200 k", "1.5 M"]);
        assert_eq!(
            [0.0, 59.9, 61.0, 18_720.0, 90_000.0, 1e12].map(duration),
            ["0 s", "59 s", "1 min 1 s", "5 h 12 min", "1 d 1 h", "more than a year"]
        );
    }
}
