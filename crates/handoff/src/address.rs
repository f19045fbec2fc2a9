//! Members' addresses, and the file names made of them.

use xxhash_rust::xxh64::xxh64;

/// The longest address, in bytes.
pub const ADDRESS_MAX: usize = 256;
/// How much of an address a file name shows, in bytes.
const SHOWN: usize = 48;

/// Whether `address` can be a member's.
pub(crate) fn is_valid(address: &str) -> bool {
    (1..=ADDRESS_MAX).contains(&address.len())
}

/// The beginning of the names of a member's files: readable, and different for each address.
pub(crate) fn file_prefix(address: &str) -> String {
    let shown = address.bytes().take(SHOWN).map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => char::from(byte),
        _ => '_',
    });
    // A leading dot would hide the file.
    let mut name: String = shown.collect();
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    format!("{name}-{:016x}", xxh64(address.as_bytes(), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_distinct_and_cannot_leave_the_folder() {
        assert!(file_prefix("10.0.0.1:10901").starts_with("10.0.0.1_10901-"));
        assert!(!file_prefix("../../etc/passwd").contains('/'));
        assert!(!file_prefix(".hidden").starts_with('.'));
        let long = "a".repeat(200);
        assert_ne!(file_prefix(&long), file_prefix(&format!("{long}b")));
        assert!(file_prefix(&long).len() < 100);
        assert!(!is_valid("") && !is_valid(&"a".repeat(257)) && is_valid("a:1"));
    }
}
