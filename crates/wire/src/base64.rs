//! Bytes in base64 (RFC 4648, section 4), written a piece at a time and without the heap.

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;

/// Bytes that are encoded at a time: a multiple of three, so that only the last piece is padded.
const PIECE: usize = 48;

/// Puts `bytes` in base64, padded.
///
/// # Errors
/// The first of `put`.
pub fn encode<E>(bytes: &[u8], mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    for piece in bytes.chunks(PIECE) {
        let mut digits = [0; PIECE / 3 * 4];
        // There is always room for a piece.
        let len = STANDARD.encode_slice(piece, &mut digits).unwrap_or_default();
        put(digits.get(..len).unwrap_or_default())?;
    }
    Ok(())
}

/// `bytes` in base64, padded.
#[must_use]
pub fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Appends the bytes of `text` to `out`, and says whether it is base64 with its padding; otherwise `out` is as it was.
#[must_use]
pub fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    let len = out.len();
    let is_valid = STANDARD.decode_vec(text, out).is_ok();
    if !is_valid {
        out.truncate(len);
    }
    is_valid
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// RFC 4648, section 10.
    #[test]
    fn bytes_are_encoded_as_the_rfc_has_it() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("\u{3ff}", "z78="),
        ] {
            assert_eq!(encoded(plain.as_bytes()), text);
            let mut decoded = b"before".to_vec();
            assert!(decode(text.as_bytes(), &mut decoded));
            assert_eq!(decoded, [b"before", plain.as_bytes()].concat());
        }
    }

    #[test]
    fn what_is_no_base64_leaves_the_output_alone() {
        for text in ["Z", "Zg", "Zg=", "Zm9v!", "Zg==Zg==", "=", "Zm9vY="] {
            let mut out = b"before".to_vec();
            assert!(!decode(text.as_bytes(), &mut out), "{text}");
            assert_eq!(out, b"before");
        }
    }

    #[test]
    fn pieces_are_the_whole() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in 0..bytes.len() {
            let bytes = bytes.get(..len).unwrap();
            let mut text = Vec::new();
            let Ok(()) = encode(bytes, |piece| {
                text.extend_from_slice(piece);
                Ok::<_, Infallible>(())
            });
            assert_eq!(text, encoded(bytes).into_bytes());
        }
    }
}
