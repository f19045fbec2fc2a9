//! Segments: their names, and what is kept in memory about each.

const SUFFIX: &str = ".seg";
const DAMAGED: &str = ".seg.damaged";
/// Not read any more, and its sequences may be given again: so never the name of a segment.
const KEPT: &str = ".seg.kept";
/// Consumed, and kept to be written over.
const SPARE: &str = ".spare";
/// Digits in a name: as many as the largest sequence has.
const DIGITS: usize = 20;

/// A segment's properties, known without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The sequence of its first record; its name says it, so damage cannot hide it.
    pub(crate) first: u64,
    /// The bytes of all segments before it, counted from when the journal was opened.
    pub(crate) start: u64,
    /// The length of its file, in bytes: what it takes from the quota.
    pub(crate) len: u64,
    /// How far it may be read, in bytes.
    pub(crate) end: u64,
    /// The items of all records before its first, and when that was received, where its header is whole.
    pub(crate) head: Option<SegmentHead>,
    /// Something in it cannot be read.
    pub(crate) damaged: bool,
    /// Its name says that it is damaged.
    pub(crate) marked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    pub(crate) items_before: u64,
    pub(crate) received_at_ns: u64,
}

impl Segment {
    pub(crate) fn file_name(&self) -> String {
        file_name(self.first, self.marked)
    }
}

/// The file name of the segment whose first record is `first`.
pub(crate) fn file_name(first: u64, damaged: bool) -> String {
    let suffix = if damaged { DAMAGED } else { SUFFIX };
    format!("{first:0DIGITS$}{suffix}")
}

/// The file name of a damaged segment kept for inspection.
pub(crate) fn quarantine_name(first: u64) -> String {
    format!("{first:0DIGITS$}{KEPT}")
}

/// The file name of a consumed segment whose file will be reused.
pub(crate) fn spare_name(first: u64) -> String {
    format!("{first:0DIGITS$}{SPARE}")
}

/// Whether a file is such a one.
pub(crate) fn is_spare(name: &str) -> bool {
    name.strip_suffix(SPARE).is_some_and(|digits| digits.len() == DIGITS)
}

/// Whether a file is one that was kept aside.
pub(crate) fn is_quarantined(name: &str) -> bool {
    name.strip_suffix(KEPT).is_some_and(|digits| digits.len() == DIGITS)
}

/// The first sequence that a file name says, and whether it is marked as damaged; nothing when it is not
/// the name of a segment.
pub(crate) fn parse_name(name: &str) -> Option<(u64, bool)> {
    let (digits, damaged) = match name.strip_suffix(DAMAGED) {
        Some(digits) => (digits, true),
        None => (name.strip_suffix(SUFFIX)?, false),
    };
    if digits.len() != DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().map(|first| (first, damaged))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_their_sequences_and_read_back() {
        assert!(file_name(9, false) < file_name(10, false));
        for first in [0, 42, u64::MAX] {
            assert_eq!(parse_name(&file_name(first, false)), Some((first, false)));
            assert_eq!(parse_name(&file_name(first, true)), Some((first, true)));
        }
        assert!(is_quarantined(&quarantine_name(7)));
        assert_eq!(parse_name(&quarantine_name(7)), None);
        assert!(is_spare(&spare_name(7)) && !is_spare(&quarantine_name(7)));
        assert_eq!(parse_name(&spare_name(7)), None);
        for other in ["", ".seg", "1.seg", "lock", "-0000000000000000001.seg", "00000000000000000001.segs"] {
            assert_eq!(parse_name(other), None);
        }
    }
}
