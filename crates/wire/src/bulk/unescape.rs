//! Decodes JSON strings with escapes.

use super::LineError;
use super::json::{expect, goes_on, value};
use crate::json::{Cursor, decode_escape};

/// The meaning of a checked string: `string` with its quotes, decoded into `space` if it has escapes. `None` if
/// `space` is too short, or an escape is half of a surrogate pair.
pub fn unescape<'a>(string: &'a [u8], space: &'a mut [u8]) -> Option<&'a [u8]> {
    let inner = string.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') { decoded(inner, space) } else { Some(inner) }
}

fn decoded<'a>(mut rest: &[u8], space: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut len = 0;
    while let [first, behind @ ..] = rest {
        let mut put = |bytes: &[u8]| {
            space.get_mut(len..len + bytes.len())?.copy_from_slice(bytes);
            len += bytes.len();
            Some(())
        };
        if *first != b'\\' {
            put(&[*first])?;
            rest = behind;
            continue;
        }
        let (character, behind) = decode_escape(behind).ok()?;
        put(character.encode_utf8(&mut [0; 4]).as_bytes())?;
        rest = behind;
    }
    space.get(..len)
}

/// Whether an object has a name, at its top, that begins with `prefix`.
pub(super) fn has_name_with_prefix(object: &[u8], prefix: &[u8]) -> Result<bool, LineError> {
    let mut cursor = Cursor::new(object);
    expect(&mut cursor, b'{', "no JSON object")?;
    if cursor.peek() == Some(b'}') {
        return Ok(false);
    }
    loop {
        let name = cursor.string()?;
        // Only the beginning matters; what begins with an escape that cannot be read may be anything.
        let begins = match name.is_escaped {
            false => name.raw.starts_with(prefix),
            true => decoded(name.raw, &mut [0; 128]).is_none_or(|name| name.starts_with(prefix)),
        };
        if begins {
            return Ok(true);
        }
        expect(&mut cursor, b':', "no colon behind a name")?;
        value(&mut cursor)?;
        if !goes_on(&mut cursor)? {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn undone(string: &str) -> Option<String> {
        let mut space = [0; 64];
        unescape(string.as_bytes(), &mut space).map(|text| String::from_utf8(text.to_vec()).unwrap())
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(undone(r#""a""#).unwrap(), "a");
        assert_eq!(undone(r#""\u002esecurity-7""#).unwrap(), ".security-7");
        assert_eq!(undone(r#""\u002E\/\"\\\ud83D\ude00\n""#).unwrap(), "./\"\\😀\n");
        for half in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dx""#, r#""\ud83d\u0041""#] {
            assert_eq!(undone(half), None, "{half}");
        }
        assert_eq!(unescape(br#""\u0061bc""#, &mut [0; 2]), None, "no room");
    }

    #[test]
    fn scripts_are_found_however_their_names_are_written() {
        let has = |document: &str| has_name_with_prefix(document.as_bytes(), b"script").unwrap();
        for document in [
            r#"{"script":"x"}"#,
            r#"{ "doc" : {} , "script" : {"source":"x"} }"#,
            r#"{"doc":{"a":[1,{"b":2}]},"scr\u0069pt":{}}"#,
            r#"{"scripted_upsert":true,"upsert":{}}"#,
            r#"{"\ud83d":1}"#,
        ] {
            assert!(has(document), "{document}");
        }
        for document in
            ["{}", r#"{"doc":{"script":"x"}}"#, r#"{"doc":"script"}"#, r#"{"doc":{},"a\u0020script":1}"#]
        {
            assert!(!has(document), "{document}");
        }
    }

    proptest! {
        /// Another parser reads the same text.
        #[test]
        fn strings_are_read_as_by_another_parser(meant in "\\PC{0,12}|[\"\\\\/\n\t\x08😀a]{0,12}") {
            let string = serde_json::to_string(&meant).unwrap();
            let escaped: String = meant.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            for string in [string, format!("\"{escaped}\"")] {
                prop_assert_eq!(undone(&string), Some(meant.clone()));
            }
        }
    }
}
