//! A log record, and who takes it.

use crate::container::Stream;

/// One log record of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The message, without the end of its line. Lines of a multiline record are separated by `\n`.
    pub text: &'a str,
    /// The time that the container runtime gave the first line, in nanoseconds since 1970; 0: unknown.
    pub time_ns: u64,
    /// The stream of the container that wrote it.
    pub stream: Stream,
    /// The offset of its first line in the file.
    pub offset: u64,
    /// Whether the end of a line is missing.
    pub is_cut: bool,
}

/// Whether an output took a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It did.
    Yes,
    /// It has no room. The same record comes again with the next feed.
    Full,
}

/// Takes the records of files.
pub trait Output {
    /// Takes a record, or nothing of it.
    fn record(&mut self, record: &Record<'_>) -> Taken;

    /// Whether the file may hold `more` bytes on the heap until the end of a record comes. If not, the feed stops with
    /// [`Stop::Memory`](crate::Stop::Memory).
    fn hold(&mut self, more: usize) -> bool {
        _ = more;
        true
    }
}
