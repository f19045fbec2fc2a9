//! JSON: text [read](Cursor) a token at a time; strings written a piece at a time and without the heap, looked through, and
//! their escapes undone.
//!
//! The pieces go to a closure, so that callers choose the memory, and what is to happen where there is none left. The escapes are those of `serde_json`.

mod cursor;
pub mod write;

pub use cursor::{Cursor, Expected, RawString, SyntaxError, ValueType};

use std::convert::Infallible;

/// Puts `text` between quotes. What is not UTF-8 stays as it is.
///
/// # Errors
/// The first of `put`.
#[inline]
pub fn string<E>(text: &[u8], mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    put(b"\"")?;
    escape_into(text, &mut put)?;
    put(b"\"")
}

/// Puts `text` without quotes, for a string that is put in several parts.
///
/// # Errors
/// The first of `put`.
#[inline]
pub fn escape_into<E>(text: &[u8], mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    if is_plain(text) { put(text) } else { escape_slowly(text, put) }
}

/// Appends `text` between quotes.
pub fn append_string(out: &mut Vec<u8>, text: &[u8]) {
    let Ok(()) = string(text, |piece| {
        out.extend_from_slice(piece);
        Ok::<_, Infallible>(())
    });
}

/// Whether `text` stands in a string as it is. Without jumps, so that many bytes are looked at in one step.
#[inline]
#[must_use]
pub fn is_plain(text: &[u8]) -> bool {
    text.iter().fold(true, |plain, &byte| plain & (byte >= 0x20 && byte != b'"' && byte != b'\\'))
}

/// How many bytes `text` takes between its quotes.
#[must_use]
pub fn escaped_len_of(text: &[u8]) -> usize {
    if is_plain(text) { text.len() } else { escaped_len(text) }
}

/// The escape of a byte that cannot appear itself, in the first bytes of the result, and their number.
fn escape(byte: u8) -> Option<([u8; 6], usize)> {
    let short = |letter| Some(([b'\\', letter, 0, 0, 0, 0], 2));
    match byte {
        b'"' | b'\\' => short(byte),
        b'\n' => short(b'n'),
        b'\r' => short(b'r'),
        b'\t' => short(b't'),
        0x08 => short(b'b'),
        0x0c => short(b'f'),
        0..0x20 => {
            let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
            Some(([b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)], 6))
        }
        _ => None,
    }
}

/// How many bytes come before a quote, a backslash or a control character: eight at a time, since most strings are short.
#[inline(always)]
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (blocks, rest) = bytes.as_chunks::<8>();
    let mut len = 0;
    for block in blocks {
        let word = u64::from_le_bytes(*block);
        let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = zeros(word ^ (ONES * b'"' as u64));
        let backslash = zeros(word ^ (ONES * b'\\' as u64));
        // Borrows make false marks only above a true one.
        let found = (control | quote | backslash) & HIGH;
        if found != 0 {
            return len + (found.trailing_zeros() / 8) as usize;
        }
        len += 8;
    }
    len + rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count()
}

/// Why an escape stands for no character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadEscape<'a> {
    /// JSON has no such escape.
    Unknown,
    /// It is half of a surrogate pair; this is behind it.
    Half(&'a [u8]),
}

/// The character of the escape whose backslash is right before `text`, and what is behind the escape.
///
/// # Errors
/// Why it stands for none.
pub fn decode_escape(text: &[u8]) -> Result<(char, &[u8]), BadEscape<'_>> {
    let (letter, rest) = text.split_first().ok_or(BadEscape::Unknown)?;
    let character = match letter {
        b'"' | b'\\' | b'/' => char::from(*letter),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let (unit, rest) = unit(rest).ok_or(BadEscape::Unknown)?;
            return code_point(unit, rest).ok_or(BadEscape::Half(rest));
        }
        _ => return Err(BadEscape::Unknown),
    };
    Ok((character, rest))
}

/// The number of the four hexadecimal digits that come first, and what is behind them.
fn unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_first_chunk::<4>()?;
    let digits = digits.map(hex_digit);
    let unit = digits.iter().fold(0, |sum, &digit| sum << 4 | u32::from(digit));
    digits.iter().all(|&digit| digit < 16).then_some((unit, rest))
}

/// The character that begins with `unit`, and what is behind it.
fn code_point(first: u32, rest: &[u8]) -> Option<(char, &[u8])> {
    let 0xd800..=0xdbff = first else { return Some((char::from_u32(first)?, rest)) };
    let (low, rest) = unit(rest.strip_prefix(b"\\u")?)?;
    let 0xdc00..=0xdfff = low else { return None };
    Some((char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00))?, rest))
}

/// The value of a hexadecimal digit; more than 15 for others. Without jumps, since digits are random.
#[inline(always)]
pub(crate) fn hex_digit(byte: u8) -> u8 {
    let number = byte.wrapping_sub(b'0');
    let letter = (byte | 0x20).wrapping_sub(b'a');
    let letter = if letter < 6 { letter + 10 } else { 0xff };
    if number < 10 { number } else { letter }
}

#[cold]
fn escaped_len(text: &[u8]) -> usize {
    text.iter().map(|&byte| escape(byte).map_or(1, |(_, len)| len)).sum()
}

#[cold]
fn escape_slowly<E>(text: &[u8], mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    for part in text.split_inclusive(|byte| escape(*byte).is_some()) {
        let Some((last, before)) = part.split_last() else { continue };
        match escape(*last) {
            Some((bytes, len)) => {
                put(before)?;
                put(bytes.get(..len).unwrap_or_default())?;
            }
            None => put(part)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The output equals that of `serde_json`, and has the computed length.
        #[test]
        fn strings_are_written_as_serde_json_writes_them(text in "[\\x00-\\x{ff}\"\\\\]{0,40}|[a-z\"]{0,80}") {
            let mut out = Vec::new();
            append_string(&mut out, text.as_bytes());
            let written = serde_json::to_vec(&text).unwrap();
            prop_assert_eq!(&out, &written);
            prop_assert_eq!(escaped_len_of(text.as_bytes()), written.len() - 2);
            prop_assert_eq!(is_plain(text.as_bytes()), written.len() - 2 == text.len());
        }
    }

    proptest! {
        /// A plain run ends where a byte-by-byte scan ends it.
        #[test]
        fn plain_runs_end_where_they_must(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let stops = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            prop_assert_eq!(plain_len(&text), text.iter().position(stops).unwrap_or(text.len()));
        }

        /// Escapes are undone as `serde_json` undoes them, or refused as it refuses them.
        #[test]
        fn escapes_are_undone_as_serde_json_undoes_them(
            escape in "[\"\\\\/bfnrtxu]([0-9a-fA-Fg]{0,4})?|u[dD][89abAB][0-9a-f]{2}(\\\\u[dD][c-f][0-9a-f]{2})?",
        ) {
            let expected = serde_json::from_str::<String>(&format!("\"\\{escape}\"")).ok();
            let mut found = String::new();
            let whole = decode_escape(escape.as_bytes()).ok().and_then(|(character, rest)| {
                found.push(character);
                // The bytes that the pattern puts behind a short escape, and that end the string.
                let rest = str::from_utf8(rest).ok()?;
                found.push_str(rest);
                (!rest.contains(['"', '\\'])).then_some(())
            });
            prop_assert_eq!(whole.map(|()| found), expected);
        }
    }

    #[test]
    fn half_a_pair_says_what_is_behind_it() {
        assert_eq!(decode_escape(br"ud83d\u0041"), Err(BadEscape::Half(br"\u0041")));
        assert_eq!(decode_escape(b"udc00x"), Err(BadEscape::Half(b"x")));
        assert_eq!(decode_escape(br"ud83D\ude00\n"), Ok(('😀', &br"\n"[..])));
        assert_eq!(decode_escape(b""), Err(BadEscape::Unknown));
    }

    /// Somebody else decides how much room there is: nothing is put behind the first piece that had none.
    #[test]
    fn a_full_output_ends_it() {
        for room in 0..12 {
            let mut out = Vec::new();
            let end = string(b"a\x01b\nc", |piece| {
                let fits = out.len() + piece.len() <= room;
                out.extend_from_slice(if fits { piece } else { &[] });
                if fits { Ok(()) } else { Err(room) }
            });
            assert_eq!(end, Err(room));
            assert!(br#""a\u0001b\nc""#.starts_with(&out));
        }
    }
}
