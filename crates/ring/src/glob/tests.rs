//! Patterns match as in Go.

use super::*;
use proptest::prelude::*;

const NAMES: [&str; 13] = ["", "a", "ab", "abc", "a/b", "-", "]", "[a]", "é", "日本", "a*b", "team-7", "\\"];

/// Each pattern, and Go's `filepath.Match` of it and each name: 1 for a match, `!` for an error.
#[rustfmt::skip]
const GO: &[(&str, &str)] = &[
    ("", "1000000000000"),
    ("a", "0100000000000"),
    ("*", "1111011111111"),
    ("**", "1111011111111"),
    ("a*", "0111000000100"),
    ("*b", "0010000000100"),
    ("*/*", "0000100000000"),
    ("?", "0100011010001"),
    ("??", "0010000001000"),
    ("a?c", "0001000000000"),
    ("[a-c]", "0100000000000"),
    ("[^a-c]*", "0000011111011"),
    ("[日-本]*", "0000000001000"),
    ("é", "0000000010000"),
    ("\\[a\\]", "0000000100000"),
    ("\\*", "0000000000000"),
    ("a\\*b", "0000000000100"),
    ("*[0-9]", "0000000000010"),
    ("[]a]", "!!!!!!!!!!!!!"),
    ("[-]", "!!!!!!!!!!!!!"),
    ("[a-]", "!!!!!!!!!!!!!"),
    ("[", "!!!!!!!!!!!!!"),
    ("a[", "!!!!!!!!!!!!!"),
    ("[^", "!!!!!!!!!!!!!"),
    ("[^]", "!!!!!!!!!!!!!"),
    ("*[", "!!!!!!!!!!!!!"),
    ("b*[", "0000000000000"),
    ("\\", "!!!!!!!!!!!!!"),
    ("a\\", "!!!!!!!!!!!!!"),
    ("[\\]a]", "0100001000000"),
    ("[\\-x]", "0000010000000"),
    ("[a-b-c]", "!!!!!!!!!!!!!"),
    ("[-x]", "!!!!!!!!!!!!!"),
    ("*-?", "0000000000010"),
    ("team-*[0-9]", "0000000000010"),
    ("[*]", "0000000000000"),
    ("a[*]b", "0000000000100"),
    ("\\\\", "0000000000001"),
    ("*a*b*", "0011000000100"),
];

#[test]
fn patterns_match_as_in_go() {
    for (pattern, expected) in GO {
        let found = NAMES.map(|name| match glob_matches(pattern, name) {
            Ok(true) => '1',
            Ok(false) => '0',
            Err(BadPattern) => '!',
        });
        assert_eq!(String::from_iter(found), *expected, "{pattern}");
    }
}

proptest! {
    /// No pattern and no name make the comparison panic or go on for ever.
    #[test]
    fn any_pattern_is_compared(pattern in "[a-c*?\\[\\]\\\\^/é-]{0,12}", name in "[a-c/é]{0,12}") {
        _ = glob_matches(&pattern, &name);
    }

    /// Text without special characters matches itself only.
    #[test]
    fn plain_text_matches_itself_only(pattern in "[a-c/é]{0,5}", name in "[a-c/é]{0,5}") {
        prop_assert_eq!(glob_matches(&pattern, &name), Ok(pattern == name));
    }
}
