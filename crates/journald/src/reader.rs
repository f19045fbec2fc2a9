//! Follows the journal and gives its entries to a [`Destination`], once each.
//!
//! Everything that fails, be it the program, the journal's files or the destination, leads to the same place: the program
//! is ended, and started again behind the last durable entry.

mod batch;

use crate::counters::Counters;
use crate::cursor::Position;
use crate::destination::{AppendError, Buffer as _, Destination, EncodedBatch};
use crate::export::{Decoder, EntryLimits, Malformed};
use crate::fields::Fields;
use crate::journalctl::{Chunk, Journalctl, JournalctlSettings, Start, StartError};
use batch::{Encoder, Resume};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::sleep;

/// The bytes read at a time: as many as a pipe holds.
const READ_BYTES: usize = 64 << 10;
/// The memory of a batch.
const BATCH_BYTES: usize = 1 << 20;
/// The most bytes of the attributes beside the message.
const FIELDS_BYTES: usize = 64 << 10;
const MOST_FIELDS: usize = 256;
/// A message that a batch has room for beside its attributes, also if each byte becomes a replacement character of three.
const MAX_MESSAGE: usize = (BATCH_BYTES - 4 * FIELDS_BYTES) / 3;
/// Waits before the program is started again.
const SHORTEST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The journal to read, and how.
#[derive(Debug, Clone)]
pub struct ReaderSettings {
    /// The journal.
    pub journalctl: JournalctlSettings,
    /// Where reading begins without a cursor.
    pub from_beginning: bool,
    /// The fields that are kept.
    pub fields: Fields,
    /// The longest message, in bytes. A longer one is cut.
    pub max_message: usize,
    /// Attributes for the resource of all records.
    pub attributes: Vec<(Box<str>, Box<str>)>,
}

/// Reads one journal.
pub struct Reader<D> {
    settings: Arc<ReaderSettings>,
    destination: D,
    counters: Arc<Counters>,
    /// The position behind the last durable entry.
    position: Option<String>,
    /// When the reader was made, in nanoseconds since 1970: entries before it are not read if there is no cursor.
    started_ns: u64,
    wait: Duration,
    /// How many batches go with one record each, after one was too large.
    single: u32,
}

/// Why the program was ended.
#[derive(Debug, thiserror::Error)]
enum Interruption {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("journalctl ended: {0}")]
    Ended(String),
    #[error("reading from journalctl: {0}")]
    Read(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl<D: Destination> Reader<D> {
    /// A reader that goes on behind `position`, which the destination was given.
    pub fn new(
        settings: ReaderSettings,
        destination: D,
        position: Option<String>,
        counters: Arc<Counters>,
    ) -> Reader<D> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let started_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let settings = Arc::new(settings);
        Reader { settings, destination, counters, position, started_ns, wait: SHORTEST_WAIT, single: 0 }
    }

    /// The heap memory of a reader whose messages have at most `max_message` bytes.
    #[must_use]
    pub fn planned_bytes(max_message: usize) -> usize {
        // A vector that grows has twice what is in it, and for a moment what it had before.
        3 * entry_limits(max_message).bytes() + 3 * FIELDS_BYTES + READ_BYTES
    }

    /// Reads until the destination ends it.
    pub async fn run(mut self) {
        loop {
            match Box::pin(self.follow()).await {
                Interruption::Append(AppendError::Stopping) => return,
                Interruption::Append(AppendError::TooLarge) => {}
                Interruption::Append(AppendError::Retry(wait)) => {
                    if self.pause(wait).await.is_break() {
                        return;
                    }
                }
                failure => {
                    self.counters.failed();
                    // Said when it begins; the counter goes on.
                    if self.wait == SHORTEST_WAIT {
                        tracing::warn!(error = %failure, "the systemd journal cannot be read; it is tried again");
                    }
                    let wait = self.wait;
                    self.wait = (2 * wait).min(LONGEST_WAIT);
                    if self.pause(wait).await.is_break() {
                        return;
                    }
                }
            }
        }
    }

    async fn pause(&self, wait: Duration) -> std::ops::ControlFlow<()> {
        tokio::select! {
            biased;
            () = self.destination.stopping() => std::ops::ControlFlow::Break(()),
            () = sleep(wait) => std::ops::ControlFlow::Continue(()),
        }
    }

    /// Runs the program once.
    async fn follow(&mut self) -> Interruption {
        match self.read_all().await {
            Ok(never) => match never {},
            Err(interruption) => interruption,
        }
    }

    async fn read_all(&mut self) -> Result<std::convert::Infallible, Interruption> {
        let position = self.position.clone();
        let (start, resume) = match position.as_deref().and_then(Position::parse) {
            Some(Position::Entry(cursor)) => (Start::At(cursor), Resume::Behind(cursor.as_str().to_owned())),
            Some(Position::Since(time_us)) => (Start::Since(time_us), Resume::Anywhere),
            None if self.settings.from_beginning => (Start::Beginning, Resume::Anywhere),
            None => {
                // There may be no entry yet: then a later start must not take those that come for old ones.
                let since = Position::since(self.started_ns / 1000);
                self.destination.skip_to(&since);
                self.position = Some(since);
                (Start::End, Resume::Since(self.started_ns))
            }
        };
        self.counters.started();
        let mut program = Journalctl::start(&self.settings.journalctl, start)?;
        let outcome = Box::pin(self.read_from(&mut program, resume)).await;
        program.end().await;
        outcome
    }

    async fn read_from(
        &mut self,
        program: &mut Journalctl,
        resume: Resume,
    ) -> Result<std::convert::Infallible, Interruption> {
        let largest = (self.destination.largest_item() / 2).min(MAX_MESSAGE);
        let mut decoder =
            Decoder::new(entry_limits(self.settings.max_message.min(largest)), self.settings.fields.clone());
        let settings = Arc::clone(&self.settings);
        let mut encoder = Encoder::new(&settings, resume);
        let mut input = Input { buffer: vec![0; READ_BYTES], start: 0, end: 0 };
        loop {
            if input.is_empty() && !encoder.is_pending() {
                let chunk = tokio::select! {
                    biased;
                    () = self.destination.stopping() => return Err(AppendError::Stopping.into()),
                    chunk = program.read(&mut input.buffer) => chunk?,
                };
                match chunk {
                    Chunk::Bytes(len) => (input.start, input.end) = (0, len),
                    Chunk::End(reason) => return Err(Interruption::Ended(reason)),
                }
            }
            let bytes = BATCH_BYTES.min(self.destination.largest_batch());
            let Some(mut buffer) = self.destination.buffer(bytes).await else {
                return Err(AppendError::Stopping.into());
            };
            let most = if self.single > 0 { 1 } else { u32::MAX };
            let filled = {
                let source = &mut Source { program: &mut *program, input: &mut input, decoder: &mut decoder };
                encoder.fill(source, buffer.bytes(), most, &self.counters)?
            };
            let too_large = filled.too_large;
            let Some(cursor) = encoder.take_cursor() else { continue };
            if filled.logs.items == 0 {
                self.destination.skip_to(&cursor);
                self.position = Some(cursor);
            } else {
                self.append(filled, buffer, cursor).await?;
            }
            // Not before: what is refused is read again, and too large entries and the gap before it are found again.
            if too_large > 0 {
                self.destination.refuse_too_large(too_large);
            }
            if let Some(gap) = encoder.take_gap() {
                self.counters.gap(gap.missing);
                tracing::warn!(
                    at_most = gap.missing,
                    "the journal no longer has the entry that was read last: entries were deleted unread"
                );
            }
        }
    }

    async fn append(
        &mut self,
        filled: batch::Filled,
        buffer: D::Buffer,
        cursor: String,
    ) -> Result<(), AppendError> {
        let (items, source_bytes) = (filled.logs.items, filled.source_bytes);
        let batch = EncodedBatch {
            buffer,
            len: filled.logs.len,
            items,
            largest_item: filled.logs.largest_item,
            source_bytes,
        };
        match self.destination.append(batch, &cursor).await {
            Ok(()) => self.counters.appended(u64::from(items), source_bytes),
            Err(AppendError::TooLarge) if items == 1 => {
                self.destination.refuse_too_large(1);
                self.destination.skip_to(&cursor);
            }
            Err(AppendError::TooLarge) => {
                self.single = items;
                return Err(AppendError::TooLarge);
            }
            Err(error) => return Err(error),
        }
        self.single = self.single.saturating_sub(1);
        if self.wait != SHORTEST_WAIT {
            tracing::info!("the systemd journal is read again");
            self.wait = SHORTEST_WAIT;
        }
        self.position = Some(cursor);
        Ok(())
    }
}

/// Where entries come from.
struct Source<'a> {
    program: &'a mut Journalctl,
    input: &'a mut Input,
    decoder: &'a mut Decoder,
}

/// Bytes of the program that were read and not decoded.
struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }
}

impl Source<'_> {
    /// Decodes up to the end of the next entry, as far as it is there already. Returns the bytes that were used up, and
    /// whether there is an entry.
    fn next(&mut self) -> Result<(usize, bool), Interruption> {
        let mut used = 0;
        loop {
            if self.input.is_empty() {
                match self.program.try_read(&mut self.input.buffer)? {
                    Some(Chunk::Bytes(len)) => (self.input.start, self.input.end) = (0, len),
                    _ => return Ok((used, false)),
                }
            }
            let progress = self.decoder.feed(self.input.bytes())?;
            self.input.start += progress.consumed;
            used += progress.consumed;
            if progress.is_complete {
                return Ok((used, true));
            }
        }
    }
}

fn entry_limits(max_message: usize) -> EntryLimits {
    EntryLimits {
        message_bytes: max_message,
        field_bytes: FIELDS_BYTES / 4,
        fields_bytes: FIELDS_BYTES,
        fields: MOST_FIELDS,
    }
}
