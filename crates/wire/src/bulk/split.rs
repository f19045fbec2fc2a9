//! A body in pieces that are bodies themselves.

use memchr::{memchr, memchr_iter};

/// A part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Its lines.
    pub bytes: &'a [u8],
    /// How many items it has.
    pub items: usize,
}

/// Splits a checked `body` between items into pieces of at most `most` bytes each, or of one item where that
/// alone is longer.
pub fn split(body: &[u8], most: usize) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let (mut end, mut items) = (0, 0);
        while let Some(next) = item_len(rest.get(end..).unwrap_or_default()) {
            if items > 0 && end.saturating_add(next) > most {
                break;
            }
            end += next;
            items += 1;
        }
        let (bytes, behind) = rest.split_at_checked(end)?;
        rest = behind;
        (items > 0).then_some(Piece { bytes, items })
    })
}

/// How long the first item of a checked body is, with the blank lines before it.
fn item_len(body: &[u8]) -> Option<usize> {
    let mut begin = 0;
    for end in memchr_iter(b'\n', body) {
        let line = body.get(begin..end)?.trim_ascii_start();
        let behind = end + 1;
        begin = behind;
        if line.is_empty() {
            continue;
        }
        if is_deletion(line) {
            return Some(behind);
        }
        let document = memchr(b'\n', body.get(behind..)?)?;
        return Some(behind + document + 1);
    }
    None
}

/// Whether an action's line, known to be one, is a deletion: the only kind that begins with a `d`.
fn is_deletion(line: &[u8]) -> bool {
    let name = line.strip_prefix(b"{").unwrap_or(line).trim_ascii_start();
    name.starts_with(b"\"d")
}
