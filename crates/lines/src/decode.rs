//! Encodings: UTF-16 and Latin-1 to UTF-8, byte order marks, and the repair of what is not UTF-8.

use crate::settings::Encoding;

/// The encoding of a file by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteOrderMark {
    /// There is none.
    Absent,
    /// A mark of so many bytes, and the encoding that it means.
    Present(usize, Encoding),
    /// More bytes are needed to tell.
    Unknown,
}

/// The byte order mark that `start`, the beginning of a file, has in `encoding`.
pub(crate) fn byte_order_mark(start: &[u8], encoding: Encoding) -> ByteOrderMark {
    let marks: &[(&[u8], Encoding)] = match encoding {
        Encoding::Utf8 => &[
            (b"\xef\xbb\xbf", Encoding::Utf8),
            (b"\xff\xfe", Encoding::Utf16Le),
            (b"\xfe\xff", Encoding::Utf16Be),
        ],
        Encoding::Utf16Le => &[(b"\xff\xfe", Encoding::Utf16Le)],
        Encoding::Utf16Be => &[(b"\xfe\xff", Encoding::Utf16Be)],
        Encoding::Latin1 => &[],
    };
    for (mark, meant) in marks {
        if start.starts_with(mark) {
            return ByteOrderMark::Present(mark.len(), *meant);
        }
        if mark.starts_with(start) {
            return ByteOrderMark::Unknown;
        }
    }
    ByteOrderMark::Absent
}

/// The text of a line in UTF-8 (in that encoding, unchecked: the parts of a container's line may be cut within a character),
/// and whether all of it was text.
pub(crate) fn to_utf8<'a>(line: &'a [u8], encoding: Encoding, decoded: &'a mut Vec<u8>) -> (&'a [u8], bool) {
    let unit = match encoding {
        Encoding::Utf8 => return (line, true),
        Encoding::Latin1 => {
            if line.is_ascii() {
                return (line, true);
            }
            decoded.clear();
            for &byte in line {
                push(decoded, char::from(byte));
            }
            return (decoded, true);
        }
        Encoding::Utf16Le => u16::from_le_bytes,
        Encoding::Utf16Be => u16::from_be_bytes,
    };
    decoded.clear();
    let (pairs, half) = line.as_chunks::<2>();
    let mut is_text = half.is_empty();
    for character in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        is_text &= character.is_ok();
        push(decoded, character.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    (decoded, is_text)
}

/// `bytes` as text, and whether they were UTF-8. What is not becomes U+FFFD, in `repaired`.
#[inline]
pub(crate) fn text_of<'a>(bytes: &'a [u8], repaired: &'a mut String) -> (&'a str, bool) {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(_) => (repair(bytes, repaired), false),
    }
}

#[cold]
fn repair<'a>(bytes: &[u8], repaired: &'a mut String) -> &'a str {
    repaired.clear();
    for chunk in bytes.utf8_chunks() {
        repaired.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            repaired.push(char::REPLACEMENT_CHARACTER);
        }
    }
    repaired
}

/// The first bytes of `text`, at most `limit`, without a part of a character at their end.
pub(crate) fn cut(text: &[u8], limit: usize) -> &[u8] {
    let is_continuation = |at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    // Behind three bytes it is not UTF-8 anyway.
    let end = (limit.saturating_sub(3)..=limit).rev().find(|at| !is_continuation(*at)).unwrap_or(limit);
    text.get(..end).unwrap_or(text)
}

fn push(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_marks_choose_the_encoding() {
        use ByteOrderMark::{Absent, Present, Unknown};
        let mark = |start: &[u8]| byte_order_mark(start, Encoding::Utf8);
        assert_eq!(mark(b"\xef\xbb\xbfa"), Present(3, Encoding::Utf8));
        assert_eq!(mark(b"\xff\xfea\0"), Present(2, Encoding::Utf16Le));
        assert_eq!(mark(b"\xfe\xff\0a"), Present(2, Encoding::Utf16Be));
        assert_eq!(mark(b"\xef\xbb"), Unknown);
        assert_eq!(mark(b""), Unknown);
        assert_eq!(mark(b"\xef\xbba"), Absent);
        assert_eq!(mark(b"a"), Absent);
        assert_eq!(byte_order_mark(b"", Encoding::Latin1), Absent);
        assert_eq!(byte_order_mark(b"\xef\xbb\xbf", Encoding::Utf16Le), Absent);
    }

    #[test]
    fn utf_16_and_latin_1_become_utf_8() {
        let mut decoded = Vec::new();
        let units: Vec<u8> = "aé😀".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(to_utf8(&units, Encoding::Utf16Be, &mut decoded), ("aé😀".as_bytes(), true));
        assert_eq!(to_utf8(b"\x3d\xd8a\0", Encoding::Utf16Le, &mut decoded), ("\u{fffd}a".as_bytes(), false));
        assert_eq!(to_utf8(b"a\0b", Encoding::Utf16Le, &mut decoded), (&b"a"[..], false));
        assert_eq!(to_utf8(b"caf\xe9", Encoding::Latin1, &mut decoded), ("café".as_bytes(), true));
    }

    #[test]
    fn cuts_between_characters() {
        let text = "aé😀b".as_bytes();
        let cuts: Vec<&[u8]> = (0..=9).map(|limit| cut(text, limit)).collect();
        let lens: Vec<usize> = cuts.iter().map(|cut| cut.len()).collect();
        assert_eq!(lens, [0, 1, 1, 3, 3, 3, 3, 7, 8, 8]);
        assert_eq!(cut(&[0x80; 9], 5).len(), 5);
    }

    #[test]
    fn repairs_as_the_standard_library_does() {
        let mut repaired = String::new();
        let bytes = b"a\xff\xe2\x82b\xf0\x9f\x98\x80";
        let (text, was_text) = text_of(bytes, &mut repaired);
        assert_eq!(text, String::from_utf8_lossy(bytes));
        assert!(!was_text);
    }
}
