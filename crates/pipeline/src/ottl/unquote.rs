//! Strings in double quotes, with the escapes of Go's `strconv.UnquoteChar`.

use std::ops::Range;

/// The text that `quoted`, with its quotes, stands for.
///
/// # Errors
/// The bytes of the first invalid escape.
pub(crate) fn unquote(quoted: &str) -> Result<String, Range<usize>> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let mut text = String::with_capacity(inner.len());
    let mut at = 0;
    while let Some(rest) = inner.get(at..).filter(|rest| !rest.is_empty()) {
        let plain = rest.find('\\').unwrap_or(rest.len());
        text.push_str(rest.get(..plain).unwrap_or_default());
        at += plain;
        let Some(escape) = rest.get(plain..).and_then(|escape| escape.strip_prefix('\\')) else { break };
        let Some((character, len)) = escaped(escape) else {
            let len = escape.chars().next().map_or(0, char::len_utf8);
            return Err(1 + at..1 + at + 1 + len);
        };
        text.push(character);
        at += 1 + len;
    }
    Ok(text)
}

/// The character that an escape, without its backslash, stands for, and the length of the escape.
fn escaped(escape: &str) -> Option<(char, usize)> {
    let digits = |from: usize, len: usize, radix: u32| {
        let digits = escape.get(from..from + len)?;
        let valid = digits.bytes().all(|byte| char::from(byte).is_digit(radix));
        let value = u32::from_str_radix(digits, radix).ok().filter(|_| valid)?;
        Some((char::from_u32(value)?, from + len))
    };
    let plain = |character| Some((character, 1));
    match escape.bytes().next()? {
        b'a' => plain('\x07'),
        b'b' => plain('\x08'),
        b'f' => plain('\x0c'),
        b'n' => plain('\n'),
        b'r' => plain('\r'),
        b't' => plain('\t'),
        b'v' => plain('\x0b'),
        b'\\' => plain('\\'),
        b'"' => plain('"'),
        b'x' => digits(1, 2, 16),
        b'u' => digits(1, 4, 16),
        b'U' => digits(1, 8, 16),
        b'0'..=b'7' => digits(0, 3, 8).filter(|(character, _)| u32::from(*character) <= 255),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_escapes_as_go_does() {
        for (quoted, text) in [
            (r#""""#, ""),
            (r#""a\"b\\c""#, "a\"b\\c"),
            (r#""\n\t\x41\101\u00e9\U0001F600""#, "\n\tAA\u{e9}\u{1F600}"),
            // Go makes a character of the value, not a byte.
            (r#""\xff""#, "\u{ff}"),
            ("\"é\nx\"", "é\nx"),
        ] {
            assert_eq!(unquote(quoted).as_deref(), Ok(text), "{quoted}");
        }
    }

    #[test]
    fn says_which_escape_is_invalid() {
        for (quoted, range) in [
            (r#""a\d""#, 2..4),
            (r#""\'""#, 1..3),
            (r#""\400""#, 1..3),
            (r#""\x4""#, 1..3),
            (r#""\x+4""#, 1..3),
            (r#""\ud800""#, 1..3),
            (r#""é\é""#, 3..6),
        ] {
            assert_eq!(unquote(quoted), Err(range), "{quoted}");
        }
    }
}
