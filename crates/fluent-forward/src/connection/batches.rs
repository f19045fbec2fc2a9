//! Encodes a batch from messages that are whole.

use crate::message::{Entries, Message, Packing};
use crate::msgpack::{Cursor, MsgpackError};
use crate::records::{RecordError, SCOPE};
use crate::service::Shared;
use std::time::SystemTime;
use tidegate_arena::Window;
use tidegate_log_intake::LogBatch;
use tidegate_wire::otlp::logs::{EncodedLogs, LogsEncoder};

/// The most messages that end in a batch: their acknowledgements are sent together.
const MAX_FINISHED: usize = 1024;

/// A place in a row of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    /// Where the message begins.
    pub(super) message: usize,
    /// The bytes of its entries that are done.
    pub(super) entry: usize,
}

/// A batch that was encoded.
#[derive(Debug)]
pub(super) struct BatchOutcome<'m> {
    pub(super) len: usize,
    pub(super) items: u32,
    pub(super) largest_item: usize,
    /// The bytes of messages that it was made of.
    pub(super) source_bytes: u64,
    /// Records that were left out.
    pub(super) too_large: u64,
    pub(super) malformed: u64,
    /// The messages that end in the batch, with the name of their acknowledgement.
    pub(super) finished: Vec<Option<&'m [u8]>>,
    /// Where the next batch begins.
    pub(super) next: Position,
    /// A record did not fit: it is the next.
    pub(super) is_full: bool,
    /// The length of that record's entry.
    next_len: usize,
}

impl BatchOutcome<'_> {
    /// Leaves out the record that does not fit.
    pub(super) fn pass_over(&mut self) {
        self.next.entry += self.next_len;
        self.too_large += 1;
    }

    /// The batch, which begins in `window`.
    pub(super) fn batch(&self, window: Window) -> LogBatch {
        let BatchOutcome { len, items, largest_item, source_bytes, .. } = *self;
        LogBatch { window, from: 0, len, items, largest_item, source_bytes }
    }
}

/// Encodes `messages` from `from` on, to the first that is compressed, or as many records as there is space for.
///
/// # Errors
/// When the first entry ends beyond its message.
pub(super) fn encode<'m>(
    mut writer: BatchWriter<'_, '_>,
    messages: &'m [u8],
    from: Position,
) -> Result<BatchOutcome<'m>, MsgpackError> {
    let (mut next, mut finished) = (from, Vec::new());
    while next.message < messages.len() && finished.len() < MAX_FINISHED {
        let mut cursor = Cursor::new(messages.get(next.message..).unwrap_or_default());
        let bytes = cursor.value()?;
        // Where it is no message, that is said when it is the first.
        let Ok(message) = Message::read(bytes) else { break };
        if let Some(message) = message {
            if message.packing == Packing::Gzip {
                break;
            }
            let rest = message.entries.get(next.entry..).unwrap_or_default();
            let outcome = writer.entries(message.tag, rest, message.packing);
            next.entry += writer.taken;
            match outcome {
                Ok(()) if writer.is_full => break,
                Ok(()) => finished.push(message.chunk),
                // The records that are encoded go first.
                Err(_) if writer.source_bytes > 0 => break,
                Err(error) => return Err(error),
            }
        }
        next = Position { message: next.message + bytes.len(), entry: 0 };
    }
    Ok(writer.finish(next, finished))
}

/// Encodes `entries` of a message with this tag, as many as there is space for. The last of them may be cut off.
///
/// # Errors
/// When an entry is no MessagePack.
pub(super) fn encode_entries(
    mut writer: BatchWriter<'_, '_>,
    tag: &[u8],
    entries: &[u8],
) -> Result<BatchOutcome<'static>, MsgpackError> {
    match writer.entries(tag, entries, Packing::Gzip) {
        Ok(()) | Err(MsgpackError::Incomplete) => {}
        Err(_) if writer.source_bytes > 0 => {}
        Err(error) => return Err(error),
    }
    let next = Position { message: 0, entry: writer.taken };
    Ok(writer.finish(next, Vec::new()))
}

/// Writes records into a batch, and counts those that it leaves out.
pub(super) struct BatchWriter<'s, 'w> {
    shared: &'s Shared,
    encoder: LogsEncoder<'w>,
    max_items: u32,
    now_ns: u64,
    /// The bytes of entries that are done, of those that were given last.
    taken: usize,
    /// The bytes of all entries that are done.
    source_bytes: u64,
    too_large: u64,
    malformed: u64,
    is_full: bool,
    next_len: usize,
}

impl<'s, 'w> BatchWriter<'s, 'w> {
    /// A batch of at most `max_items` records in `space`.
    pub(super) fn new(shared: &'s Shared, space: &'w mut [u8], max_items: u32) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut encoder = LogsEncoder::new(space);
        // Without room for that there is none for a record.
        let is_full = encoder.resource(&[], SCOPE).is_err();
        let (taken, source_bytes, too_large, malformed, next_len) = (0, 0, 0, 0, 0);
        Self {
            shared,
            encoder,
            max_items,
            now_ns,
            taken,
            source_bytes,
            too_large,
            malformed,
            is_full,
            next_len,
        }
    }

    /// Adds entries until the batch is full.
    fn entries(&mut self, tag: &[u8], bytes: &[u8], packing: Packing) -> Result<(), MsgpackError> {
        self.taken = 0;
        let mut records = self.shared.encoder();
        let mut entries = Entries::new(bytes, packing);
        while let Some(entry) = entries.read_next()? {
            let outcome = match self.encoder.items() < self.max_items {
                true => records.encode(tag, &entry, self.now_ns, &mut self.encoder),
                false => Err(RecordError::Full),
            };
            match outcome {
                Ok(()) => {}
                Err(RecordError::Full) => {
                    (self.is_full, self.next_len) = (true, entry.len);
                    break;
                }
                Err(RecordError::TooLarge) => self.too_large += 1,
                Err(RecordError::Malformed) => self.malformed += 1,
            }
            self.taken += entry.len;
            self.source_bytes += entry.len as u64;
        }
        Ok(())
    }

    fn finish<'m>(self, next: Position, finished: Vec<Option<&'m [u8]>>) -> BatchOutcome<'m> {
        let Self { encoder, source_bytes, too_large, malformed, is_full, next_len, .. } = self;
        let EncodedLogs { len, items, largest_item } = encoder.finish();
        BatchOutcome {
            len,
            items,
            largest_item,
            source_bytes,
            too_large,
            malformed,
            finished,
            next,
            is_full,
            next_len,
        }
    }
}
