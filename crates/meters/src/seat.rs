//! Each thread's seat: a small number of its own, which picks its stripe in every histogram.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const UNSEATED: usize = usize::MAX;

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SEAT: Cell<usize> = const { Cell::new(UNSEATED) };
}

/// This thread's seat, given on first use, in order. A seat is never given twice, not even after its
/// thread has ended: whoever sits on it is the only writer of its stripe and needs no locked instruction.
#[inline]
pub(crate) fn seat() -> usize {
    SEAT.with(|seat| match seat.get() {
        UNSEATED => take(seat),
        taken => taken,
    })
}

#[cold]
fn take(seat: &Cell<usize>) -> usize {
    let taken = NEXT.fetch_add(1, Relaxed);
    seat.set(taken);
    taken
}
