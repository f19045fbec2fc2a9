//! JSON strings, written a piece at a time and without the heap.
//!
//! The pieces go to a closure, so that callers choose the memory, and what is to happen where there is none left. The escapes are those of `serde_json`.

use std::convert::Infallible;

/// Puts `text` between quotes. What is not UTF-8 stays as it is.
///
/// # Errors
/// The first of `put`.
#[inline]
pub fn string<E>(text: &[u8], mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    put(b"\"")?;
    inner(text, &mut put)?;
    put(b"\"")
}

/// Puts `text` without quotes, for a string that is put in several parts.
///
/// # Errors
/// The first of `put`.
#[inline]
pub fn inner<E>(text: &[u8], mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    if is_plain(text) { put(text) } else { escaped(text, put) }
}

/// Appends `text` between quotes.
pub fn append(out: &mut Vec<u8>, text: &[u8]) {
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
pub fn inner_len(text: &[u8]) -> usize {
    if is_plain(text) { text.len() } else { escaped_len(text) }
}

/// What stands for a byte that cannot stand for itself, in the first bytes of what is returned, and how many those are.
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

#[cold]
fn escaped_len(text: &[u8]) -> usize {
    text.iter().map(|&byte| escape(byte).map_or(1, |(_, len)| len)).sum()
}

#[cold]
fn escaped<E>(text: &[u8], mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
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
        /// What is written is what `serde_json` writes, and as long as was said.
        #[test]
        fn strings_are_written_as_serde_json_writes_them(text in "[\\x00-\\x{ff}\"\\\\]{0,40}|[a-z\"]{0,80}") {
            let mut out = Vec::new();
            append(&mut out, text.as_bytes());
            let written = serde_json::to_vec(&text).unwrap();
            prop_assert_eq!(&out, &written);
            prop_assert_eq!(inner_len(text.as_bytes()), written.len() - 2);
            prop_assert_eq!(is_plain(text.as_bytes()), written.len() - 2 == text.len());
        }
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
