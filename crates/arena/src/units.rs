//! Sizes: pages, growth steps, and bytes written for people.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The smallest page of any kernel that this runs on, in bytes: what a small window asks for. It is charged
/// [`rounded`] to pages of the system's size.
pub const PAGE: usize = 4 << 10;
/// The growth step of a window from 64 KiB on, in bytes. Below it, windows grow by pages.
pub const GROWTH_STEP: usize = 64 << 10;

/// The unit in which the kernel makes memory resident and takes it back, in bytes: 4 KiB, or on ARM also 16 or 64.
pub fn page() -> usize {
    // 0 until it is known.
    static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);
    match PAGE_SIZE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: asks for a number.
            let answer = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let size = usize::try_from(answer).unwrap_or(PAGE).max(PAGE);
            PAGE_SIZE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}

/// The charge of a window of `bytes`: whole pages up to [`GROWTH_STEP`], whole steps above.
pub fn rounded(bytes: usize) -> usize {
    rounded_to(bytes, page())
}

/// The same where pages have this size.
fn rounded_to(bytes: usize, page: usize) -> usize {
    let unit = if bytes <= GROWTH_STEP { page } else { GROWTH_STEP.max(page) };
    bytes.checked_next_multiple_of(unit).unwrap_or(usize::MAX)
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
        for page in [PAGE, 16 << 10, 64 << 10] {
            let rounded = |bytes| rounded_to(bytes, page);
            assert_eq!(rounded(0), 0);
            assert_eq!(rounded(1), page);
            assert_eq!(rounded(page), page);
            assert_eq!(rounded(GROWTH_STEP - 1), GROWTH_STEP);
            assert_eq!(rounded(GROWTH_STEP + 1), 2 * GROWTH_STEP);
            assert_eq!(rounded(usize::MAX), usize::MAX);
        }
        assert_eq!(rounded(1), page());
    }

    /// Whatever the page, every charge is whole pages: what is given back begins and ends with one.
    #[test]
    fn charges_end_with_a_page() {
        for page in [PAGE, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10] {
            for bytes in (0..(1 << 20)).step_by(997) {
                let charged = rounded_to(bytes, page);
                assert!(charged >= bytes && charged.is_multiple_of(page), "{bytes} with pages of {page}");
            }
        }
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
