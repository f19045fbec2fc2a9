//! Where a thread writes what differs between answers.

use bytes::{Bytes, BytesMut};
use std::cell::RefCell;

/// The buffers are used in turn, so that what was written to one has been sent when it is full again.
const BUFFERS: usize = 2;
/// The bytes of each: a dozen answers or more.
const LENGTH: usize = 4 << 10;
/// The most that is written at a time, about: more makes the buffer grow for once.
const ONCE: usize = 512;

/// A thread's buffers.
pub(in crate::http2) const BYTES: usize = BUFFERS * LENGTH;

#[derive(Default)]
struct Scratch {
    buffers: [BytesMut; BUFFERS],
    at: usize,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Returns the output of `write`. Allocates nothing while earlier output is free.
pub(super) fn written(write: impl FnOnce(&mut BytesMut)) -> Bytes {
    SCRATCH.with_borrow_mut(|Scratch { buffers, at }| {
        if buffers.get(*at).is_none_or(|buffer| buffer.capacity() < ONCE) {
            *at = (*at + 1) % BUFFERS;
            if let Some(buffer) = buffers.get_mut(*at)
                && buffer.capacity() < ONCE
            {
                // The same bytes again where nobody refers to them, else others.
                buffer.reserve(LENGTH);
            }
        }
        let Some(buffer) = buffers.get_mut(*at) else { return Bytes::new() };
        write(buffer);
        buffer.split().freeze()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output stays unchanged while it is referenced, however often the buffers rotate.
    #[test]
    fn referenced_output_is_not_overwritten() {
        let mut kept = Vec::new();
        for round in 0..2000_u32 {
            let text = round.to_string().repeat(20);
            let bytes = written(|out| out.extend_from_slice(text.as_bytes()));
            if round % 7 == 0 {
                kept.push((text, bytes));
            }
        }
        assert!(kept.iter().all(|(text, bytes)| text.as_bytes() == bytes));
        let long = vec![1; 3 * LENGTH];
        assert_eq!(written(|out| out.extend_from_slice(&long)), long);
    }
}
