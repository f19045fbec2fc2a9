//! How the bytes of a file become records.

use crate::container::Stream;
use tidegate_pipeline::LinePattern;

/// The most bytes of a container's line beside its message: time, stream, attributes, and the escapes of 16 KiB of text,
/// where Docker cuts lines.
#[cfg(not(test))]
const CONTAINER_OVERHEAD: usize = 128 << 10;
/// Less, so that tests get beyond it.
#[cfg(test)]
const CONTAINER_OVERHEAD: usize = 64;

/// How the bytes of a file become records.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The format of lines.
    pub format: Format,
    /// The encoding of text. A byte order mark of UTF-16 overrides UTF-8.
    pub encoding: Encoding,
    /// The longest line in bytes of UTF-8, after the parts of a container's line are joined.
    pub longest_line: usize,
    /// Treatment of longer lines.
    pub on_long_line: OnLongLine,
    /// Which lines make one record; `None`: each line is one.
    pub multiline: Option<Multiline>,
    /// How long the rest of a container's partial line is awaited.
    pub partial_timeout_ns: u64,
}

/// The format of a file's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// That of the file's first line.
    #[default]
    Auto,
    /// The same for every file.
    Only(LineFormat),
}

/// How a line carries its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    /// The line is the message.
    Plain,
    /// JSON of Docker's logging driver `json-file`.
    Docker,
    /// The format of the Kubernetes container runtime interface.
    Cri,
}

/// The encoding of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8. Bytes that are not become U+FFFD.
    #[default]
    Utf8,
    /// UTF-16, the lower byte first.
    Utf16Le,
    /// UTF-16, the higher byte first.
    Utf16Be,
    /// ISO 8859-1.
    Latin1,
}

/// Treatment of lines that are longer than [`Settings::longest_line`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLongLine {
    /// Its beginning becomes the record.
    #[default]
    Cut,
    /// It is dropped.
    Drop,
}

/// Which lines make one record.
#[derive(Debug, Clone)]
pub struct Multiline {
    /// Where records begin or end.
    pub boundary: Boundary,
    /// How long a record waits for its next line.
    pub timeout_ns: u64,
    /// The longest record in bytes. A line that would make it longer begins another record.
    pub longest: usize,
}

/// Where records of several lines begin or end.
#[derive(Debug, Clone)]
pub enum Boundary {
    /// A line that matches begins a record.
    Start(LinePattern),
    /// A line that matches ends a record.
    End(LinePattern),
}

impl Settings {
    /// The most bytes that a reader must be able to give to [`feed`](crate::Lines::feed) at once. A reader may begin with
    /// less, and read more when nothing was consumed.
    #[must_use]
    pub fn longest_read(&self) -> usize {
        let plain_only = self.format == Format::Only(LineFormat::Plain);
        let format = if plain_only { Some(LineFormat::Plain) } else { None };
        self.frame_limit(format, Encoding::Utf16Le) + 2
    }

    /// The most bytes that one file holds on the heap for unfinished records.
    #[must_use]
    pub fn most_held(&self) -> usize {
        // A vector that grows has at most twice what it needs.
        let group = self.multiline.as_ref().map_or(0, |multiline| multiline.longest.max(self.longest_line));
        Stream::COUNT * 2 * (self.longest_line + group)
    }

    /// The most bytes of a line before its end, in the file's encoding: enough for the longest line and one `\r`. Even.
    pub(crate) fn frame_limit(&self, format: Option<LineFormat>, encoding: Encoding) -> usize {
        let overhead = if format == Some(LineFormat::Plain) { 0 } else { CONTAINER_OVERHEAD };
        let text = self.longest_line.saturating_add(1);
        let unit = match encoding {
            Encoding::Utf16Le | Encoding::Utf16Be => 2,
            Encoding::Utf8 | Encoding::Latin1 => 1,
        };
        text.saturating_mul(unit).saturating_add(overhead).next_multiple_of(2)
    }
}

impl Default for Settings {
    /// Lines of at most 1 MiB, each a record; container formats are detected.
    fn default() -> Settings {
        Settings {
            format: Format::Auto,
            encoding: Encoding::Utf8,
            longest_line: 1 << 20,
            on_long_line: OnLongLine::Cut,
            multiline: None,
            partial_timeout_ns: 30_000_000_000,
        }
    }
}
