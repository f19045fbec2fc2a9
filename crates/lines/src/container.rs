//! The formats in which container runtimes write the lines of their containers.

mod cri;
mod docker;

use crate::settings::LineFormat;

/// A stream of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Neither, or unknown: lines of plain files.
    None,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The message of a line, or of a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The message, without the end of its line but for a `\r`. Bytes of UTF-8 that may begin or end within a character.
    pub(crate) text: &'a [u8],
    pub(crate) stream: Stream,
    /// Nanoseconds since 1970; 0: unknown.
    pub(crate) time_ns: u64,
    /// Whether the rest of the message is in a later line.
    pub(crate) is_partial: bool,
}

impl Stream {
    /// How many there are.
    pub(crate) const COUNT: usize = 3;
    /// All of them, in the order of a file's states.
    pub(crate) const ALL: [Stream; Stream::COUNT] = [Stream::None, Stream::Stdout, Stream::Stderr];

    /// The value of the attribute `log.iostream`.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Stream::None => None,
            Stream::Stdout => Some("stdout"),
            Stream::Stderr => Some("stderr"),
        }
    }

    fn of_name(name: &[u8]) -> Option<Stream> {
        match name {
            b"stdout" => Some(Stream::Stdout),
            b"stderr" => Some(Stream::Stderr),
            _ => None,
        }
    }
}

impl<'a> Entry<'a> {
    /// A line that is its message.
    pub(crate) const fn plain(line: &'a [u8]) -> Entry<'a> {
        Entry { text: line, stream: Stream::None, time_ns: 0, is_partial: false }
    }
}

/// The format of a file with this first line.
pub(crate) fn format_of(line: &[u8], unescaped: &mut Vec<u8>) -> LineFormat {
    if docker::parse(line, unescaped).is_some() {
        LineFormat::Docker
    } else if cri::parse(line).is_some() {
        LineFormat::Cri
    } else {
        LineFormat::Plain
    }
}

/// The message of `line`; `None` when it does not have the format. `unescaped` is for messages with escapes.
#[inline]
pub(crate) fn parse<'a>(line: &'a [u8], format: LineFormat, unescaped: &'a mut Vec<u8>) -> Option<Entry<'a>> {
    match format {
        LineFormat::Plain => Some(Entry::plain(line)),
        LineFormat::Docker => docker::parse(line, unescaped),
        LineFormat::Cri => cri::parse(line),
    }
}
