//! Counts of irregular lines.

/// How many lines were not taken as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Lines that were cut to the longest allowed.
    pub cut: u64,
    /// Lines that were dropped because they were too long.
    pub dropped: u64,
    /// Records with bytes that are not text in the file's encoding, which became U+FFFD.
    pub invalid_text: u64,
    /// Lines without the format of their file, which became records as they are.
    pub malformed: u64,
    /// Records whose end did not come in time.
    pub timed_out: u64,
    /// Records of several lines that were split because they were too long.
    pub split: u64,
}

impl Counts {
    /// Adds `other`.
    pub fn add(&mut self, other: &Counts) {
        self.cut += other.cut;
        self.dropped += other.dropped;
        self.invalid_text += other.invalid_text;
        self.malformed += other.malformed;
        self.timed_out += other.timed_out;
        self.split += other.split;
    }
}
