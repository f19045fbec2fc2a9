//! Whether bytes are UTF-8: most are ASCII, and that is quick to see.

/// Whether `bytes` are UTF-8.
///
/// Many texts can be checked at once where each has a byte below 128 before and behind it (a tag, or the
/// last byte of a length): if the whole stretch is UTF-8, then each text in it is, by itself. The reverse
/// does not hold: a length above 127 is no UTF-8, and then the texts must be looked at one by one.
#[inline]
pub(crate) fn is_utf8(bytes: &[u8]) -> bool {
    is_ascii(bytes) || simdutf8::basic::from_utf8(bytes).is_ok()
}

/// Whether all bytes are below 128: in blocks that compile to vectors, the last of which overlaps the one
/// before, so that no byte is looked at by itself but in the shortest of runs.
#[inline(always)]
fn is_ascii(run: &[u8]) -> bool {
    const BLOCK: usize = 32;
    let Some(last) = run.last_chunk::<BLOCK>() else { return run.is_ascii() };
    let mut seen = *last;
    let (blocks, _) = run.as_chunks::<BLOCK>();
    for block in blocks {
        for (seen, byte) in seen.iter_mut().zip(block) {
            *seen |= byte;
        }
    }
    seen.iter().fold(0, |all, byte| all | byte) < 0x80
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

    use super::*;

    #[test]
    fn one_byte_that_is_not_ascii_is_seen_wherever_it_stands() {
        for len in 0..100 {
            assert!(is_ascii(&vec![b'a'; len]));
            for at in 0..len {
                let run: Vec<u8> = (0..len).map(|n| if n == at { 0x80 } else { b'a' }).collect();
                assert!(!is_ascii(&run), "byte {at} of {len}");
            }
        }
    }
}
