//! The last refused requests, for people who look for a reason: 256 of them, in memory of a fixed size.
//!
//! It is no account: an entry is left out when another is being written or read, a reason gets a few entries a second, and a new entry takes
//! the place of one of the reason that has most. So a storm for one reason does not hide the requests that were refused for others.

use crate::reason::Refusal;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many refusals are kept.
pub const MOST_RECENT_REFUSALS: usize = 256;
/// The most entries of one reason within a second.
const PER_SECOND: u8 = 8;

/// What is known of a refused request beside the reason. Texts are cut to what an entry has room for.
#[derive(Clone, Copy)]
pub struct RefusalDetails<'a> {
    /// The client.
    pub peer: Option<SocketAddr>,
    /// What it asked for: `POST /v1/logs`.
    pub target: &'a dyn fmt::Display,
    /// The size of the body as announced or received, in bytes.
    pub bytes: Option<u64>,
    /// The answer's words.
    pub words: &'a dyn fmt::Display,
}

/// A refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecentRefusal {
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// The reason.
    pub reason: Refusal,
    /// The source's name.
    pub source: ShortText<24>,
    /// The tenant's name; empty if it was not known.
    pub tenant: ShortText<48>,
    /// The client, where it is known.
    pub peer: Option<SocketAddr>,
    /// What it asked for; empty where that is not known.
    pub target: ShortText<64>,
    /// The size of the body as announced or received, where it is known.
    pub bytes: Option<u64>,
    /// The answer's words; empty where they are not known.
    pub words: ShortText<128>,
}

/// A text of at most `N` bytes, cut at a character, with spaces in place of control characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShortText<const N: usize> {
    bytes: [u8; N],
    len: u8,
}

/// The refusals of all sources.
#[derive(Debug, Default)]
pub(crate) struct RecentRefusals(Mutex<Ring>);

#[derive(Debug)]
struct Ring {
    /// The oldest first.
    entries: Vec<RecentRefusal>,
    /// The second of the last entry, and how many entries each reason has had in it.
    second: u64,
    written: [u8; Refusal::COUNT],
}

impl RecentRefusals {
    /// The heap that they take at most.
    pub(crate) const BYTES: usize = MOST_RECENT_REFUSALS * size_of::<RecentRefusal>();

    /// Adds an entry, if nobody is at it and the reason has not had its entries of this second.
    pub(crate) fn note(&self, reason: Refusal, source: &str, tenant: &str, details: &RefusalDetails<'_>) {
        let Ok(mut ring) = self.0.try_lock() else { return };
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if !ring.has_turn(reason, at.as_secs()) {
            return;
        }
        ring.push(RecentRefusal {
            at_ns: u64::try_from(at.as_nanos()).unwrap_or(u64::MAX),
            reason,
            source: ShortText::of(&source),
            tenant: ShortText::of(&tenant),
            peer: details.peer,
            target: ShortText::of(details.target),
            bytes: details.bytes,
            words: ShortText::of(details.words),
        });
    }

    /// Visits the entries, the newest first. None is added meanwhile.
    pub(crate) fn visit(&self, visit: impl FnMut(&RecentRefusal)) {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.entries.iter().rev().for_each(visit);
    }
}

impl Default for Ring {
    /// An empty one, with its whole size from the start: refusing allocates nothing.
    fn default() -> Ring {
        let entries = Vec::with_capacity(MOST_RECENT_REFUSALS);
        Ring { entries, second: 0, written: [0; Refusal::COUNT] }
    }
}

impl Ring {
    fn has_turn(&mut self, reason: Refusal, second: u64) -> bool {
        if self.second != second {
            (self.second, self.written) = (second, [0; Refusal::COUNT]);
        }
        let Some(written) = self.written.get_mut(reason as usize) else { return false };
        *written = written.saturating_add(1);
        *written <= PER_SECOND
    }

    fn push(&mut self, entry: RecentRefusal) {
        if self.entries.len() >= MOST_RECENT_REFUSALS {
            let most = self.most_frequent();
            let oldest = self.entries.iter().position(|entry| entry.reason == most);
            self.entries.remove(oldest.unwrap_or(0));
        }
        self.entries.push(entry);
    }

    /// The reason of most entries.
    fn most_frequent(&self) -> Refusal {
        let entries_of =
            |reason: &&Refusal| self.entries.iter().filter(|entry| entry.reason == **reason).count();
        Refusal::ALL.iter().max_by_key(entries_of).copied().unwrap_or(Refusal::Memory)
    }
}

impl Default for RefusalDetails<'_> {
    /// Nothing is known.
    fn default() -> Self {
        RefusalDetails { peer: None, target: &"", bytes: None, words: &"" }
    }
}

impl<const N: usize> ShortText<N> {
    /// The longest that can be kept: its length is a byte.
    const CAPACITY: usize = if N < 255 { N } else { 255 };

    /// As much of `text` as there is room for, without white space at the end.
    pub fn of(text: &dyn fmt::Display) -> ShortText<N> {
        let mut short = ShortText { bytes: [0; N], len: 0 };
        // It fails where there is no more room.
        let _cut = write!(short, "{text}");
        // At most as long as before.
        short.len = short.as_str().trim_ascii_end().len() as u8;
        short
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.bytes.get(..self.len.into()).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Write for ShortText<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            // They would steer a terminal, and take six bytes each in JSON.
            let shown = if character.is_control() { ' ' } else { character };
            let start = usize::from(self.len);
            let end = start + shown.len_utf8();
            let room =
                self.bytes.get_mut(start..end.min(Self::CAPACITY)).filter(|room| room.len() == end - start);
            shown.encode_utf8(room.ok_or(fmt::Error)?);
            // At most the capacity.
            self.len = end as u8;
        }
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for ShortText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    //! Promise: the newest refusals are kept, each reason has its share of them, and texts of strangers are cut.

    use super::*;

    fn seen(recent: &RecentRefusals) -> Vec<RecentRefusal> {
        let mut seen = Vec::new();
        recent.visit(|entry| seen.push(*entry));
        seen
    }

    fn entry(number: usize) -> RecentRefusal {
        RecentRefusal {
            at_ns: number as u64,
            reason: Refusal::Memory,
            source: ShortText::of(&"otlp"),
            tenant: ShortText::of(&""),
            peer: None,
            target: ShortText::of(&""),
            bytes: None,
            words: ShortText::of(&""),
        }
    }

    #[test]
    fn the_newest_come_first_and_the_oldest_go() {
        let recent = RecentRefusals::default();
        for number in 0..2 * MOST_RECENT_REFUSALS + 100 {
            recent.0.lock().unwrap().push(entry(number));
            let seen = seen(&recent);
            let expected = (0..=number).rev().take(MOST_RECENT_REFUSALS);
            assert!(seen.iter().map(|entry| entry.at_ns as usize).eq(expected), "{number}");
        }
        assert_eq!(recent.0.lock().unwrap().entries.capacity(), MOST_RECENT_REFUSALS);
    }

    /// A storm that goes on for an hour leaves what was refused for other reasons before.
    #[test]
    fn a_storm_takes_the_places_of_its_own_reason() {
        let recent = RecentRefusals::default();
        let other = RecentRefusal { reason: Refusal::Malformed, ..entry(0) };
        recent.0.lock().unwrap().push(other);
        for number in 1..3600 * usize::from(PER_SECOND) {
            recent.0.lock().unwrap().push(entry(number));
        }
        let seen = seen(&recent);
        assert_eq!((seen.len(), seen.last()), (MOST_RECENT_REFUSALS, Some(&other)));
        assert_eq!(seen[0].at_ns, 3600 * u64::from(PER_SECOND) - 1);
    }

    #[test]
    fn a_reason_has_a_few_entries_a_second() {
        let mut ring = Ring::default();
        let turns = (0..100_000).filter(|_| ring.has_turn(Refusal::RateLimited, 7)).count();
        assert_eq!(turns, usize::from(PER_SECOND));
        assert!(ring.has_turn(Refusal::Malformed, 7) && ring.has_turn(Refusal::RateLimited, 8));
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        let details =
            RefusalDetails { words: &"é".repeat(1000), bytes: Some(5), ..RefusalDetails::default() };
        let recent = RecentRefusals::default();
        recent.note(Refusal::Malformed, &"s".repeat(99), "ténant", &details);
        let seen = seen(&recent)[0];
        assert_eq!((seen.source.as_str().len(), seen.tenant.as_str(), seen.bytes), (24, "ténant", Some(5)));
        assert_eq!(seen.words.as_str(), "é".repeat(64));
        assert_eq!(ShortText::<3>::of(&"aéé").as_str(), "aé");
        assert_eq!(ShortText::<9>::of(&format_args!("{} {}\n", 12, "ab")).as_str(), "12 ab");
        assert_eq!(ShortText::<9>::of(&"a\n\x1b[1m").as_str(), "a  [1m");
    }

    #[test]
    fn an_entry_that_would_have_to_wait_is_left_out() {
        let recent = RecentRefusals::default();
        let held = recent.0.lock().unwrap();
        recent.note(Refusal::Disk, "otlp", "", &RefusalDetails::default());
        drop(held);
        assert!(seen(&recent).is_empty());
    }
}
