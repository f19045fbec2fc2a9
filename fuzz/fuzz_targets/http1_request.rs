//! Any bytes on a connection are answered by whole answers only, understood alike in whatever pieces they
//! arrive, and leave no memory charged.
#![no_main]
#![allow(dead_code, reason = "others use the rest of it")]

#[path = "../../crates/http1/tests/codec/pipe.rs"]
mod pipe;
#[path = "../../crates/http1/tests/codec/record.rs"]
mod record;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // The first byte says how large the pieces are.
    let Some((size, bytes)) = input.split_first() else { return };
    let whole = record::run([bytes]);
    let in_pieces = record::run(bytes.chunks(usize::from(*size).max(1)));
    // Whether a client has to be told to continue depends on how much of the body came with the head.
    if !bytes.windows(8).any(|bytes| bytes.eq_ignore_ascii_case(b"continue")) {
        assert_eq!(whole, in_pieces);
    }
});
