#![allow(clippy::indexing_slicing, reason = "tests")]

use super::*;
use proptest::prelude::*;
use serde::de::IgnoredAny;

fn skipped(text: &[u8], depth: usize) -> Result<(), SyntaxError> {
    let mut cursor = Cursor::new(text);
    cursor.skip::<2>(depth)?;
    cursor.end()
}

/// JSON, and what a few bytes make of it.
fn almost_json() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\\n\"",
        "\"\\u00e9\"",
        "\"\\u12\"",
        "\"\\x\"",
        "1",
        "-0.5e+7",
        "01",
        "-",
        "1.",
        "2e",
        "true",
        "null",
        "nul",
        " ",
        "\n",
        "\"",
        "\u{1}",
    ]);
    let tokens = prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat().into_bytes());
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "\\PC{0,6}|[\"\\\\\n\u{1}]{0,3}".prop_map(Into::into)
    ];
    let value = leaf.prop_recursive(4, 30, 4, |inner| {
        let members = prop::collection::vec(("[a\"]{0,2}", inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(serde_json::Value::from),
            members.prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    });
    let mutated =
        (value, any::<prop::sample::Index>(), any::<u8>(), 0..3u8).prop_map(|(value, at, byte, how)| {
            let mut text = serde_json::to_vec(&value).unwrap();
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte & 0x7f,
                1 => text.truncate(at),
                _ => {}
            }
            text
        });
    prop_oneof![tokens, mutated]
}

proptest! {
    /// It passes what `serde_json` passes, and nothing else.
    #[test]
    fn the_cursor_accepts_the_same_json_as_another_parser(text in almost_json()) {
        if str::from_utf8(&text).is_ok() {
            let expected = serde_json::from_slice::<IgnoredAny>(&text).is_ok();
            prop_assert_eq!(skipped(&text, 100).is_ok(), expected, "{}", String::from_utf8_lossy(&text));
        }
    }
}

#[test]
fn the_depth_is_held() {
    let nested = |depth| [b"[".repeat(depth), b"]".repeat(depth)].concat();
    for depth in [1, 63, 64, 65, 128] {
        assert_eq!(skipped(&nested(depth), depth), Ok(()));
        let expected = SyntaxError { at: depth, found: Some(b'['), expected: Expected::LessDepth };
        assert_eq!(skipped(&nested(depth + 1), depth), Err(expected));
    }
    assert!(skipped(&nested(129), 1000).is_err(), "no more than there are bits for");
    let mixed = [br#"{"a":["#.repeat(40), b"1".to_vec(), b"]}".repeat(40)].concat();
    assert_eq!(skipped(&mixed, 80), Ok(()));
    let [outer @ .., _] = &mixed[..] else { unreachable!() };
    assert!(skipped(&[outer, b"]"].concat(), 80).is_err());
}

#[test]
fn errors_say_where_and_what() {
    for (text, at, found, expected) in [
        (&b" "[..], 1, None, Expected::Value),
        (b"[1 2]", 3, Some(b'2'), Expected::CommaOr(b']')),
        (b"{\"a\" 1}", 5, Some(b'1'), Expected::Byte(b':')),
        (b"{1:1}", 1, Some(b'1'), Expected::String),
        (b"\"a\\q\"", 2, Some(b'\\'), Expected::Escape),
        (b"\"a\n\"", 2, Some(b'\n'), Expected::RestOfString),
        (b"\"a", 2, None, Expected::RestOfString),
        (b"-x", 1, Some(b'x'), Expected::Digit),
        (b"nil", 0, Some(b'n'), Expected::Value),
        (b"1 2", 2, Some(b'2'), Expected::End),
    ] {
        assert_eq!(
            skipped(text, 9),
            Err(SyntaxError { at, found, expected }),
            "{}",
            String::from_utf8_lossy(text)
        );
    }
}

#[test]
fn loose_strings_end_where_they_end() {
    let mut cursor = Cursor::new(br#"["\q\"",{"\u1":"\"}"}] 1"#);
    assert_eq!(cursor.loose_skip::<1>(9), Ok(()));
    assert_eq!(cursor.rest(), b" 1");
    let error = Cursor::new(b"\"\\").loose_string().unwrap_err();
    assert_eq!((error.at, error.found), (2, None));
}
