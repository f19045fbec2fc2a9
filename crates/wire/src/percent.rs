//! Percent escapes of URLs (RFC 3986, section 2.1), undone.

use percent_encoding::PercentDecode;

/// `text` without its escapes, byte by byte or whole. A `%` that begins none stays.
#[must_use]
pub fn decode(text: &[u8]) -> PercentDecode<'_> {
    percent_encoding::percent_decode(text)
}

/// Whether each `%` begins an escape. One too close to the end for that is let pass: clients cut texts.
#[must_use]
pub fn is_valid(text: &[u8]) -> bool {
    memchr::memchr_iter(b'%', text)
        .all(|at| text.get(at + 1..at + 3).is_none_or(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_that_are_none_stay_and_are_found() {
        for (text, decoded, valid) in [
            ("", "", true),
            ("a%20b%C3%a9", "a b\u{e9}", true),
            ("100%", "100%", true),
            ("%4", "%4", true),
            ("%zz%20", "%zz ", false),
            ("%%41", "%A", false),
            ("%2%41", "%2A", false),
        ] {
            assert_eq!(decode(text.as_bytes()).decode_utf8().unwrap(), decoded);
            assert_eq!(is_valid(text.as_bytes()), valid, "{text}");
        }
    }
}
