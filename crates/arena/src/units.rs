//! Sizes: pages, growth steps, and bytes written for people.

use std::fmt;

/// A page, in bytes: the unit in which the kernel makes memory resident.
pub const PAGE: usize = 4 << 10;
/// The growth step of a window from 64 KiB on, in bytes. Below it, windows grow by [`PAGE`].
pub const STEP: usize = 64 << 10;

/// What a window of `bytes` is charged: whole pages up to [`STEP`], whole steps above.
pub const fn rounded(bytes: usize) -> usize {
    let unit = if bytes <= STEP { PAGE } else { STEP };
    match bytes.checked_next_multiple_of(unit) {
        Some(rounded) => rounded,
        None => usize::MAX,
    }
}

/// A number of bytes that prints as people read it: `64 MiB`, `1.5 KiB`, `17 B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let text = if unit == 0 || value.fract() == 0.0 || value >= 100.0 {
            format!("{value:.0} {}", UNITS[unit])
        } else {
            format!("{value:.1} {}", UNITS[unit])
        };
        f.pad(&text)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn charges_are_whole_pages_then_whole_steps() {
        assert_eq!(rounded(0), 0);
        assert_eq!(rounded(1), PAGE);
        assert_eq!(rounded(PAGE), PAGE);
        assert_eq!(rounded(STEP - 1), STEP);
        assert_eq!(rounded(STEP + 1), 2 * STEP);
        assert_eq!(rounded(usize::MAX), usize::MAX);
    }

    #[test]
    fn bytes_read_as_people_write_them() {
        let shown = |n| Bytes(n).to_string();
        assert_eq!(shown(17), "17 B");
        assert_eq!(shown(1536), "1.5 KiB");
        assert_eq!(shown(64 << 20), "64 MiB");
        assert_eq!(shown(5 << 30), "5 GiB");
    }
}
