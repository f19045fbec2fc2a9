//! Positions in the journal.
//!
//! Source: `sd_journal_get_cursor(3)`: opaque by contract, and since 2012
//! `s=SEQNUM_ID;i=SEQNUM;b=BOOT;m=MONOTONIC;t=REALTIME;x=HASH` with hexadecimal numbers.

/// A cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor<'a> {
    text: &'a str,
}

/// The longest cursor: those of systemd have some 130 bytes. A checkpoint holds no more.
const LONGEST: usize = 255;

/// How a stored position begins that is no entry.
const SINCE: &str = "since=";

/// How far a journal was read, as a checkpoint has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position<'a> {
    /// Up to this entry.
    Entry(Cursor<'a>),
    /// Up to this time, in microseconds since 1970: when reading began at the end, there was no entry.
    Since(u64),
}

impl<'a> Position<'a> {
    /// A position as it was stored.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Position<'a>> {
        match text.strip_prefix(SINCE) {
            Some(time) => time.parse().ok().map(Position::Since),
            None => Cursor::parse(text.as_bytes()).map(Position::Entry),
        }
    }

    /// The text of [`Position::Since`].
    #[must_use]
    pub fn since(time_us: u64) -> String {
        format!("{SINCE}{time_us}")
    }
}

impl<'a> Cursor<'a> {
    /// A cursor as `journalctl` writes it; `None` if it is too long for a checkpoint, or could be read as an option.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Option<Cursor<'a>> {
        let text = str::from_utf8(text).ok()?;
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"=;-_".contains(&byte));
        (is_plain && !text.is_empty() && !text.starts_with('-') && text.len() <= LONGEST)
            .then_some(Cursor { text })
    }

    /// Its text.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// Whether both are of the same entry.
    #[must_use]
    pub fn is_same(self, other: Cursor<'_>) -> bool {
        match (self.sequence(), other.sequence()) {
            (Some(own), Some(other)) => own == other,
            _ => self.text == other.text,
        }
    }

    /// How many entries there are between this one and a later one at most, of all units and priorities; `None` if they are
    /// of different journals.
    #[must_use]
    pub fn entries_before(self, later: Cursor<'_>) -> Option<u64> {
        let ((id, number), (later_id, later_number)) = (self.sequence()?, later.sequence()?);
        let between = later_number.checked_sub(number)?.checked_sub(1)?;
        (id == later_id).then_some(between)
    }

    /// The id of the sequence and the number in it.
    fn sequence(self) -> Option<(&'a str, u64)> {
        let part =
            |name: &str| self.text.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        Some((part("s")?, u64::from_str_radix(part("i")?, 16).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_back() {
        assert_eq!(Position::parse(&Position::since(17)), Some(Position::Since(17)));
        let entry = Cursor::parse(b"s=ab;i=4").unwrap();
        assert_eq!(Position::parse("s=ab;i=4"), Some(Position::Entry(entry)));
        assert_eq!(Position::parse("since=-1"), None);
        assert_eq!(Position::parse("--after"), None);
    }

    fn cursor(text: &str) -> Cursor<'_> {
        Cursor::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn tells_how_many_are_between() {
        let (first, later) =
            (cursor("s=ab;i=4;b=7;m=fa0;t=6471;x=69"), cursor("s=ab;i=1a;b=7;m=1388;t=6472;x=88"));
        assert_eq!(first.entries_before(later), Some(21));
        assert_eq!(later.entries_before(first), None);
        assert_eq!(first.entries_before(first), None);
        assert_eq!(first.entries_before(cursor("s=cd;i=1a")), None);
        assert_eq!(first.entries_before(cursor("other")), None);
    }

    #[test]
    fn the_same_entry_has_the_same_number() {
        assert!(cursor("s=ab;i=4;x=1").is_same(cursor("s=ab;i=4;x=2")));
        assert!(!cursor("s=ab;i=4").is_same(cursor("s=ab;i=5")));
        assert!(!cursor("s=ab;i=4").is_same(cursor("other")));
        assert!(cursor("other").is_same(cursor("other")));
    }

    #[test]
    fn refuses_what_is_no_cursor() {
        for text in ["", "--rotate", "a b", "s=é", "a\nb", &"x".repeat(256)] {
            assert_eq!(Cursor::parse(text.as_bytes()), None, "{text}");
        }
    }
}
