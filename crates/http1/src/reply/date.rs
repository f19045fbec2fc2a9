//! The `Date` header, made once a second and thread.

use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::ops::Range;

/// `Sun, 06 Nov 1994 08:49:37 GMT`
type DateText = [u8; 29];

/// The placeholder for a date.
pub(super) const NO_DATE: &[u8] = &[b' '; size_of::<DateText>()];

thread_local! {
    static CACHED_DATE: RefCell<CachedDate> = const { RefCell::new(CachedDate { valid: 0..0, text: [b' '; 29] }) };
}

struct CachedDate {
    /// From when until when, by the monotonic clock, it is the date.
    valid: Range<u64>,
    text: DateText,
}

/// Shows the date as HTTP writes it (RFC 9110, section 5.6.7), at a moment of the coarse monotonic clock, which is
/// now.
#[inline]
pub(super) fn with_date(now_ns: u64, look: impl FnOnce(&DateText)) {
    CACHED_DATE.with_borrow_mut(|last| {
        if !last.valid.contains(&now_ns) {
            last.advance(now_ns);
        }
        look(&last.text);
    });
}

impl CachedDate {
    #[cold]
    fn advance(&mut self, now_ns: u64) {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let left = 1_000_000_000_u64.saturating_sub(u64::try_from(now.tv_nsec).unwrap_or_default());
        self.valid = now_ns..now_ns.saturating_add(left);
        self.text = written(u64::try_from(now.tv_sec).unwrap_or_default());
    }
}

/// The date of a second since 1970, in UTC.
pub(super) fn written(second: u64) -> DateText {
    const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
    const MONTHS: [&[u8; 3]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let (day, time) = (second / 86_400, second % 86_400);
    let (year, month, of_month) = civil(day);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let name = |names: &[&'static [u8; 3]], index: u64| -> [u8; 3] {
        names.get(index as usize).map_or(*b"???", |name| **name)
    };
    put(&mut text, 0, &name(&DAYS, day % 7));
    put(&mut text, 5, &two(of_month));
    put(&mut text, 8, &name(&MONTHS, month));
    put(&mut text, 12, &two(year / 100));
    put(&mut text, 14, &two(year % 100));
    put(&mut text, 17, &two(time / 3600));
    put(&mut text, 20, &two(time / 60 % 60));
    put(&mut text, 23, &two(time % 60));
    text
}

fn put(text: &mut DateText, at: usize, bytes: &[u8]) {
    if let Some(place) = text.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn two(value: u64) -> [u8; 2] {
    [b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8]
}

/// Year, month from 0, and day of the month from 1, of a day since 1970. Walks the years within one cycle
/// of 400, which is plenty fast for once a second.
fn civil(day: u64) -> (u64, u64, u64) {
    const CYCLE: u64 = 146_097;
    let (mut year, mut left) = (1970 + day / CYCLE * 400, day % CYCLE);
    while left >= days_of(year) {
        left -= days_of(year);
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 0;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    (year, month, left + 1)
}

fn days_of(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}
