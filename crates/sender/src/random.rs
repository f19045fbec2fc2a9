//! Numbers for ids and jitter: quick, without a heap, not for secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    /// The state, and the fork that it was seeded after: a child must not repeat its parent's ids.
    static STATE: Cell<(u64, u64)> = const { Cell::new((0, u64::MAX)) };
}

/// SplitMix64, seeded per thread and process from the standard library's random keys.
pub(crate) fn next() -> u64 {
    let (mut state, mut generation) = STATE.get();
    let now = tidegate_sender_fork::generation();
    if generation != now {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let clock = clock.map_or(0, |since| since.as_nanos() as u64);
        state = RandomState::new().hash_one((std::process::id(), now, clock, std::thread::current().id()));
        generation = now;
    }
    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set((state, generation));
    let mut mixed = state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// An id for a span, never all zero.
pub(crate) fn span_id() -> [u8; 8] {
    next().max(1).to_le_bytes()
}

/// An id for a trace, never all zero.
pub(crate) fn trace_id() -> [u8; 16] {
    (u128::from(next()) << 64 | u128::from(next().max(1))).to_le_bytes()
}
