//! Finds where lines end.

use crate::settings::Encoding;

/// The first thing in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A line of so many bytes with its end, of which the end are `end_len`.
    Line { len: usize, end_len: usize },
    /// A line longer than the limit: its first bytes, as many as the limit.
    Long,
    /// The beginning of a line.
    Partial,
}

/// Finds the first thing in `buffer`, where no line end is in the first `searched` bytes.
///
/// `buffer` begins at the start of a line, in UTF-16 at a whole unit; `limit` is even.
#[inline]
pub(crate) fn first_frame(buffer: &[u8], encoding: Encoding, searched: usize, limit: usize) -> Frame {
    let end_len = end_len(encoding);
    let reach = limit.saturating_add(end_len).min(buffer.len());
    match find_end(buffer.get(..reach).unwrap_or_default(), encoding, searched) {
        Some(at) => Frame::Line { len: at + end_len, end_len },
        None if buffer.len() > limit && reach == limit + end_len => Frame::Long,
        None => Frame::Partial,
    }
}

/// How many bytes of a line that is skipped come first, and whether its end is the last of them.
pub(crate) fn rest_of_line(buffer: &[u8], encoding: Encoding) -> (usize, bool) {
    let end_len = end_len(encoding);
    match find_end(buffer, encoding, 0) {
        Some(at) => (at + end_len, true),
        None => (buffer.len() - buffer.len() % end_len, false),
    }
}

fn end_len(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Utf8 | Encoding::Latin1 => 1,
        Encoding::Utf16Le | Encoding::Utf16Be => 2,
    }
}

/// Where the first line end is.
#[inline]
fn find_end(buffer: &[u8], encoding: Encoding, searched: usize) -> Option<usize> {
    // The byte that is not `\n` of a line end in UTF-16 is a zero, at an odd offset where the lower byte comes first.
    match encoding {
        Encoding::Utf8 | Encoding::Latin1 => Some(searched + memchr::memchr(b'\n', buffer.get(searched..)?)?),
        Encoding::Utf16Le => {
            let from = searched & !1;
            memchr::memchr_iter(b'\n', buffer.get(from..)?)
                .map(|at| from + at)
                .find(|at| at % 2 == 0 && buffer.get(at + 1) == Some(&0))
        }
        Encoding::Utf16Be => {
            let from = searched & !1;
            memchr::memchr_iter(b'\n', buffer.get(from..)?)
                .filter_map(|at| (from + at).checked_sub(1))
                .find(|at| at % 2 == 0 && buffer.get(*at) == Some(&0))
        }
    }
}
