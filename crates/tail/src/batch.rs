//! Records of many files in one batch, with the checkpoints that hold once it is durable.

use crate::checkpoint::Checkpoint;
use crate::destination::CheckpointChange;
use crate::file::Index;
use tidegate_lines::{Counts, Output, Record, Stream, Taken};
use tidegate_wire::otlp::logs::{Attributes, Body, LogRecord, LogsEncoder};

/// A batch of OTLP logs, encoded.
#[derive(Debug)]
pub struct EncodedBatch<B> {
    /// The memory, with the batch at its start.
    pub buffer: B,
    /// Its length in bytes.
    pub len: usize,
    /// Its records.
    pub items: u32,
    /// Its longest record with resource and scope, in bytes.
    pub largest_item: usize,
    /// The bytes in the files that it was made of.
    pub source_bytes: u64,
}

/// The part that one file has in a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) file: Index,
    /// The state of the file once the batch is durable.
    pub(crate) checkpoint: Checkpoint,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// Whether the file ends with it.
    pub(crate) is_last: bool,
}

/// The changes of a batch beside its records.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) parts: Vec<Part>,
    /// Checkpoints of files that are not in the batch.
    pub(crate) others: Vec<CheckpointChange>,
    pub(crate) counts: Counts,
    /// Records that were larger than the destination takes.
    pub(crate) too_large: u64,
}

impl Effects {
    pub(crate) fn part(&mut self, file: Index) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.file == file)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.others.is_empty()
    }
}

/// Takes the records of one turn.
pub(crate) struct RecordWriter<'a, 'b> {
    pub(crate) encoder: &'a mut LogsEncoder<'b>,
    pub(crate) observed_ns: u64,
    pub(crate) streams: &'a StreamAttributes,
    /// The output whose lines are left out.
    pub(crate) without: Option<Stream>,
    pub(crate) records: u64,
    /// Heap bytes that the unfinished records of all files may still take.
    pub(crate) may_hold: usize,
    /// The longest text of a record that the destination takes, in bytes.
    pub(crate) longest: usize,
    /// Whether a record is lost that an empty batch has no room for.
    pub(crate) may_drop: bool,
    /// Records lost because they were too large.
    pub(crate) too_large: u64,
}

/// The encoded attribute `log.iostream`, for each stream that has one.
#[derive(Debug)]
pub(crate) struct StreamAttributes {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl StreamAttributes {
    pub(crate) fn new() -> StreamAttributes {
        let encoded = |value| {
            let mut bytes = Vec::new();
            // It is shorter than that.
            let _ = Attributes::new(&mut bytes, 64).text("log.iostream", value);
            bytes
        };
        StreamAttributes { stdout: encoded("stdout"), stderr: encoded("stderr") }
    }

    fn of(&self, stream: Stream) -> &[u8] {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
            Stream::None => &[],
        }
    }
}

impl Output for RecordWriter<'_, '_> {
    fn record(&mut self, record: &Record<'_>) -> Taken {
        if self.without == Some(record.stream) {
            return Taken::Yes;
        }
        let text = [record.text.as_bytes()];
        let encoded = LogRecord {
            time_ns: record.time_ns,
            observed_ns: self.observed_ns,
            body: Body::Text(&text),
            attributes: self.streams.of(record.stream),
            ..LogRecord::default()
        };
        if record.text.len() > self.longest {
            self.too_large += 1;
            return Taken::Yes;
        }
        match self.encoder.record(&encoded) {
            Ok(()) => {
                self.records += 1;
                Taken::Yes
            }
            Err(_full) if self.may_drop && self.encoder.items() == 0 => {
                self.too_large += 1;
                Taken::Yes
            }
            Err(_full) => Taken::Full,
        }
    }

    fn hold(&mut self, more: usize) -> bool {
        let granted = more <= self.may_hold;
        if granted {
            self.may_hold -= more;
        }
        granted
    }
}
