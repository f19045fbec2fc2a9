//! Answers of name servers: any message is read or refused, what is read has no more records than asked for, and every host
//! among them is a name.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    tidegate_members::fuzz(input, "a.b");
});
