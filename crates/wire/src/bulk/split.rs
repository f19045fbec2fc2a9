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

/// An iterator over the pieces of a checked body, which is cut between items.
#[derive(Debug, Clone)]
pub struct Split<'a> {
    rest: &'a [u8],
    most_bytes: usize,
    most_items: usize,
}

impl<'a> Split<'a> {
    /// Pieces of at most `most_bytes` bytes each, or of one item where that alone is longer; and of at most
    /// `most_items` items.
    pub const fn new(body: &'a [u8], most_bytes: usize, most_items: usize) -> Split<'a> {
        Split { rest: body, most_bytes, most_items }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let (mut end, mut items) = (0, 0);
        while let Some(next) = item_len(self.rest.get(end..).unwrap_or_default()) {
            if items > 0 && (end.saturating_add(next) > self.most_bytes || items >= self.most_items) {
                break;
            }
            end += next;
            items += 1;
        }
        let (bytes, behind) = self.rest.split_at_checked(end)?;
        self.rest = behind;
        (items > 0).then_some(Piece { bytes, items })
    }
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
