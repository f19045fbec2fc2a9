//! Memory that one reader uses for all of its files.

use crate::Counts;
use crate::settings::Settings;

/// Buffers in which lines are decoded, and the counts of irregular lines.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Irregular lines since the caller last took the counts.
    pub counts: Counts,
    pub(crate) decoded: Vec<u8>,
    pub(crate) unescaped: Vec<u8>,
    pub(crate) repaired: String,
}

impl Workspace {
    /// The most bytes that a workspace takes for files with these settings.
    #[must_use]
    pub fn most_bytes(settings: &Settings) -> usize {
        // A unit of UTF-16 becomes three bytes of UTF-8, and so does a byte that is none. A vector that grows has at most
        // twice what it needs.
        let text =
            settings.multiline.as_ref().map_or(0, |multiline| multiline.longest).max(settings.longest_line);
        2 * (2 * settings.longest_read() + settings.longest_read() + 3 * text)
    }

    /// Gives back what a rare long line needed.
    pub(crate) fn shrink(&mut self) {
        const KEPT: usize = 64 << 10;
        for buffer in [&mut self.decoded, &mut self.unescaped] {
            if buffer.capacity() > KEPT {
                buffer.clear();
                buffer.shrink_to(KEPT);
            }
        }
        if self.repaired.capacity() > KEPT {
            self.repaired.clear();
            self.repaired.shrink_to(KEPT);
        }
    }
}
