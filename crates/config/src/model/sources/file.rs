//! Log files.

use std::collections::BTreeMap;

use super::source_pipeline::SourceKind;
use crate::declare::{choices, settings};
use crate::presets::Parse;
use crate::values::{Bytes, Duration, Name, TenantName};

settings! {
    /// Log files, followed through rotation, truncation, compression and restarts.
    pub struct FileSource {
        /// Sets of files, each with a unique name. A file belongs to the first set, by name, that includes it. Default: none.
        inputs: BTreeMap<Name, FileInput> = BTreeMap::new(),
        /// Most files known at a time; memory for them is planned. Others are not read, and counted.
        max_files: u32 [16..=1_000_000] = 1024,
        /// How often the directories are listed, for files of which the kernel gave no notice.
        rescan: Duration [Duration::seconds(1)..=Duration::hours(1)] = Duration::seconds(10),
        /// How long a file that was deleted, or that no pattern includes any more, is held after the last of its bytes was read. What
        /// could not be read until then is counted as lost.
        rotate_wait: Duration [Duration::seconds(1)..=Duration::days(7)] = Duration::minutes(5),
        /// The tenant of the records. Default: `tenants.default`.
        tenant: Option<TenantName> = None,
    }
}

settings! {
    /// A set of log files.
    pub struct FileInput {
        /// The files: absolute paths with `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of directories.
        include: Vec<String>,
        /// Files to leave out, in the same notation.
        exclude: Vec<String> = Vec::new(),
        /// Where reading begins in files that are there when the set is new. Files that appear later are read from their beginning.
        start_at: FileStart = FileStart::Beginning,
        /// Whether to read compressed files (gzip, Zstandard) that were not read before their compression.
        compressed: bool = false,
        /// The format of the lines.
        format: FileFormat = FileFormat::Auto,
        /// The encoding of the text. A byte order mark takes precedence.
        encoding: FileEncoding = FileEncoding::Utf8,
        /// Longest line.
        max_line: Bytes [Bytes::kib(1)..=Bytes::mib(1)] = Bytes::kib(64),
        /// Treatment of longer lines.
        on_long_line: OnLongLine = OnLongLine::Cut,
        /// Which lines make one record. Default: each line is one.
        multiline: Option<FileMultiline> = None,
        /// The format of the messages in the lines: their parts become attributes, time and severity. Default: `sources.file.parse`. See
        /// [parsing.md](parsing.md).
        parse: Option<Parse> = None,
        /// Resource attributes of all records.
        attributes: BTreeMap<String, String> = BTreeMap::new(),
    }
}

settings! {
    /// Which lines make one record: set either `start_pattern` or `end_pattern`.
    pub struct FileMultiline {
        /// A regular expression: a line that it matches begins a record.
        start_pattern: Option<String> = None,
        /// A regular expression: a line that it matches ends a record.
        end_pattern: Option<String> = None,
        /// How long a record waits for its next line.
        timeout: Duration [Duration::milliseconds(10)..=Duration::minutes(10)] = Duration::seconds(1),
        /// Longest record. A line that would make it longer begins another record.
        max_record: Bytes [Bytes::kib(1)..=Bytes::mib(1)] = Bytes::kib(64),
    }
}

choices! {
    /// Where reading begins.
    pub enum FileStart is "a place to start" {
        /// At the beginning of the file.
        Beginning = "beginning",
        /// At its end.
        End = "end",
    }
}

choices! {
    /// The format of the lines of a file.
    pub enum FileFormat is "a format" {
        /// That of the file's first line.
        Auto = "auto",
        /// The line is the message.
        Plain = "plain",
        /// JSON of Docker's logging driver `json-file`.
        Docker = "docker",
        /// The format of the Kubernetes container runtime interface.
        Cri = "cri",
    }
}

choices! {
    /// The encoding of a file's text.
    pub enum FileEncoding is "an encoding" {
        /// UTF-8. Bytes that are not become U+FFFD, and are counted.
        Utf8 = "utf-8",
        /// UTF-16, the lower byte first.
        Utf16Le = "utf-16le",
        /// UTF-16, the higher byte first.
        Utf16Be = "utf-16be",
        /// ISO 8859-1.
        Latin1 = "latin1",
    }
}

choices! {
    /// Treatment of lines that are too long.
    pub enum OnLongLine is "a way to treat long lines" {
        /// Its beginning becomes the record.
        Cut = "cut",
        /// It is dropped, and counted.
        Drop = "drop",
    }
}

impl SourceKind for FileSource {}

impl FileSource {
    /// Takes over the settings of `new` that can change while files are read: the inputs, as long as there are any, and the times.
    pub fn change_inputs(&mut self, new: &FileSource) {
        if !self.inputs.is_empty() && !new.inputs.is_empty() {
            self.inputs = new.inputs.clone();
            (self.rescan, self.rotate_wait) = (new.rescan, new.rotate_wait);
        }
    }
}
