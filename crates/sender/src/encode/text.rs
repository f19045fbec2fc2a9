//! Numbers and `Display` as text, without a heap.

use crate::ring::{Counted, EventOutput};
use std::fmt::{self, Write};

/// How long `value` is when it is shown.
pub(super) fn shown_len(value: &dyn fmt::Display) -> usize {
    let mut counted = Counted::default();
    // A `Display` that fails has shown as much as it could.
    let _ = write!(counted, "{value}");
    counted.0
}

/// Shows `value` in exactly `len` bytes: cut, or filled up with spaces.
pub(super) fn show<O: EventOutput>(out: &mut O, value: &dyn fmt::Display, len: usize) {
    let mut exact = Exact { out, left: len };
    let _ = write!(exact, "{value}");
    let left = exact.left;
    for _ in 0..left {
        out.put(b" ");
    }
}

struct Exact<'a, O> {
    out: &'a mut O,
    left: usize,
}

impl<O: EventOutput> fmt::Write for Exact<'_, O> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut end = text.len().min(self.left);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (now, later) = text.split_at(end);
        self.out.put(now.as_bytes());
        self.left -= now.len();
        if later.is_empty() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// A whole number in decimals.
pub(super) fn decimal<O: EventOutput>(out: &mut O, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + (value % 10) as u8;
        }
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.put(digits.get(at..).unwrap_or_default());
}
