//! A sink's way through the journal: what comes next, its body, and what is completed.

mod reader;

use crate::cursor::{CURSOR_METADATA_LEN, CompletedItems, Cursor, CursorMetadata};
use crate::cursor_state::CursorState;
use crate::meta::Meta;
use crate::settings::Durability;
use crate::shared::Shared;
use crate::sync::lock;
use reader::Reader;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tidegate_arena::{ChargeError as NoMemory, Window};

/// One sink following the journal. It sees durable records only, in order, from its cursor on; what it has
/// taken and not completed is handed out again after a restart. Dropping it leaves the cursor where it is.
pub struct Follower {
    commit: Committer,
    reader: Reader,
    blocking: Option<Waker>,
}

/// Completes records, from whichever task finished them. A handle; clones are the same cursor.
#[derive(Clone)]
pub struct Committer {
    shared: Arc<Shared>,
    cursor: Arc<CursorState>,
}

/// An event in a sink's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A record. It is in flight until it is completed.
    Record(Record),
    /// Records that the quota has taken from this sink. They are completed.
    Dropped(Gap),
    /// Records that cannot be read any more. They are completed.
    Damaged(Gap),
}

/// A record, without its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its number: one more than that of the record appended before it.
    pub sequence: u64,
    /// The items of all records before it, since the journal was created.
    pub items_before: u64,
    /// Where it ends in the journal, in bytes, counted from when that was opened.
    pub bytes_after: u64,
    /// The items of records for this sink alone, of all that were handed out up to it.
    pub(crate) addressed_after: u64,
    /// The length of its body as it is kept, in bytes.
    pub body_len: u32,
    /// The sinks that it is for.
    pub recipient: Recipient,
    /// The body's metadata.
    pub meta: Meta,
}

/// The sinks that a record is for, as seen by the sink that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient {
    /// All of them.
    All,
    /// This one alone: it was [addressed](crate::Batch::to_sink) to it.
    This,
    /// Another one alone: it is to be completed and nothing more.
    Another,
}

/// The result of [`Follower::commit_through`] or [`Follower::commit_each`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedRecords {
    /// Items of the records that it completed: without those that the quota took in the meantime.
    pub items: u64,
    /// Those of them whose records were for this sink alone.
    pub addressed: u64,
    /// The items of all records before the cursor, which it has moved.
    pub position: u64,
    /// The items of records behind the cursor that are completed although earlier ones are not.
    pub ahead: u64,
    /// Items that the quota has taken, since the cursor began.
    pub dropped: u64,
    /// Items that could not be read, since the cursor began.
    pub damaged: u64,
}

/// Records that a sink does not get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gap {
    /// How many there are.
    pub records: u64,
    /// How many items were in them.
    pub items: u64,
    /// The bytes stepped over, where that is known.
    pub bytes: u64,
}

/// Where a sink is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorPosition {
    /// Every record before this one is completed, dropped or damaged.
    pub sequence: u64,
    /// The items of all those records.
    pub items: u64,
    /// Where the cursor began, in items.
    pub born: u64,
    /// Items that the quota has taken, since the cursor began.
    pub dropped: u64,
    /// Items that could not be read, since the cursor began.
    pub damaged: u64,
    /// The items of records behind the cursor that are completed although earlier ones are not.
    pub ahead: u64,
    /// Records taken and not completed.
    pub in_flight: usize,
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The window cannot grow; the record is still there to be read.
    #[error("no memory for a body from the journal: {0}")]
    Memory(#[from] NoMemory),
    /// It is not as it was written. The next event says so, to be counted.
    #[error("a body in the journal is damaged")]
    Damaged,
    /// There is no record to read: ask for the next event first.
    #[error("no record of the journal is being looked at")]
    NoRecord,
}

impl Follower {
    pub(crate) fn new(shared: Arc<Shared>, cursor: Arc<CursorState>) -> Follower {
        let from = cursor.with(|cursor| (cursor.low, cursor.items));
        let reader = Reader::new(from.0, from.1);
        Follower { commit: Committer { shared, cursor }, reader, blocking: None }
    }

    /// The sink's name.
    pub fn name(&self) -> &str {
        &self.commit.cursor.name
    }

    /// The next event, waiting for one; nothing when the journal is closed and everything was read. While
    /// [`MAX_IN_FLIGHT`](crate::MAX_IN_FLIGHT) records are not completed, it waits for that. A record that was not
    /// read when this is called again is passed over; it still must be completed.
    ///
    /// # Errors
    /// When a segment cannot be opened for a passing reason (too many open files, say). Nothing is lost: ask
    /// again later.
    pub async fn next(&mut self) -> io::Result<Option<Event>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`next`](Self::next), for one's own future.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Event>>> {
        let Committer { shared, cursor } = &self.commit;
        if let Some(event) = self.reader.next(shared, cursor)? {
            return Poll::Ready(Ok(Some(event)));
        }
        // A publisher looks for wakers after publishing; so look for records after registering one.
        cursor.wait(context.waker());
        let closed = shared.closed.load(Ordering::Acquire);
        match self.reader.next(shared, cursor)? {
            None if closed => Poll::Ready(Ok(None)),
            None => Poll::Pending,
            event => Poll::Ready(Ok(event)),
        }
    }

    /// As [`next`](Self::next), on a thread of its own: blocks for `patience` at most, then there is nothing.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_blocking(&mut self, patience: Duration) -> io::Result<Option<Event>> {
        let begun = Instant::now();
        let this_thread = || Waker::from(Arc::new(ThreadWaker(std::thread::current())));
        let waker = self.blocking.take().unwrap_or_else(this_thread);
        let event = loop {
            match self.poll_next(&mut Context::from_waker(&waker)) {
                Poll::Ready(event) => break event,
                Poll::Pending => match patience.checked_sub(begun.elapsed()) {
                    Some(left) if !left.is_zero() => std::thread::park_timeout(left),
                    _ => break Ok(None),
                },
            }
        };
        self.blocking = Some(waker);
        event
    }

    /// The sequence of the record that is looked for next.
    pub fn next_sequence(&self) -> u64 {
        self.reader.next_sequence()
    }

    /// The record that was handed out last, until its body turned out to be damaged.
    pub fn current(&self) -> Option<&Record> {
        self.reader.current()
    }

    /// Appends the body of the current record to `window`, charging what it lacks if that is free now: to
    /// wait for memory, reserve [`body_len`](Record::body_len) bytes before. Reading of page-cached files,
    /// so brief; may be repeated.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read_into(&mut self, window: &mut Window) -> Result<(), ReadError> {
        self.reader.read_into(&self.commit.shared, &self.commit.cursor, window)
    }

    /// A record that was handed out before and is not completed, to be read a second time by
    /// [`read_recalled`](Self::read_recalled). Nothing where it is completed, was taken by the quota, or cannot be
    /// found any more. What comes next does not change. Not for who completes records in order only.
    ///
    /// # Errors
    /// When its segment cannot be opened for a passing reason.
    pub fn recall(&mut self, sequence: u64) -> io::Result<Option<Record>> {
        self.reader.recall(&self.commit.shared, &self.commit.cursor, sequence)
    }

    /// As [`read_into`](Self::read_into), of the record that was recalled last; one that is damaged stays in flight.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read_recalled(&mut self, window: &mut Window) -> Result<(), ReadError> {
        self.reader.read_recalled(&self.commit.shared, &self.commit.cursor, window)
    }

    /// Goes back to the first record that is not completed. What was taken and not completed is handed out
    /// again.
    pub fn rewind(&mut self) {
        let (low, items) = self.commit.cursor.with(|cursor| {
            cursor.rewind();
            (cursor.low, cursor.items)
        });
        self.reader = Reader::new(low, items);
    }

    /// A handle that completes records for this sink.
    pub fn committer(&self) -> Committer {
        self.commit.clone()
    }

    /// Completes a record: [`Committer::commit`].
    pub fn commit(&self, sequence: u64) -> bool {
        self.commit.commit(sequence)
    }

    /// Completes a record and saves metadata: [`Committer::commit_with`].
    pub fn commit_with(&self, sequence: u64, metadata: &[u8; CURSOR_METADATA_LEN]) -> bool {
        self.commit.commit_with(sequence, metadata)
    }

    /// Completes every record up to and with `last`, and saves the metadata that `enter` makes of what that
    /// completed: cursor and metadata are written together, once.
    pub fn commit_through(&self, last: &Record, enter: impl FnOnce(CompletedRecords) -> CursorMetadata) {
        let items_after = last.items_before + u64::from(last.meta.items);
        let (after, received_at_ns) = ((items_after, last.bytes_after), last.meta.received_at_ns);
        let (cursor, addressed) = (&self.commit.cursor, last.addressed_after);
        cursor.commit_through(last.sequence, after, received_at_ns, addressed, |items, cursor| {
            enter(CompletedRecords::of(items, cursor))
        });
        self.commit.notify();
    }

    /// Completes each of these records, in any order, and saves the metadata that `enter` makes of what that
    /// completed: cursor and metadata are written together, once. What the quota took meanwhile is passed over.
    pub fn commit_each(
        &self,
        sequences: impl IntoIterator<Item = u64>,
        enter: impl FnOnce(CompletedRecords) -> CursorMetadata,
    ) {
        self.commit.cursor.commit_each(sequences, |items, cursor| enter(CompletedRecords::of(items, cursor)));
        self.commit.notify();
    }

    /// Promises that records are completed by [`commit_through`](Self::commit_through) only. Then any number
    /// of them may be in flight.
    pub fn in_order(&mut self) {
        self.commit.cursor.with(|cursor| cursor.set_in_order(true));
    }

    /// Items of records that are completed although earlier ones are not.
    pub fn ahead(&self) -> u64 {
        self.commit.cursor.with(|cursor| cursor.ahead())
    }

    /// Whether the journal was closed: when there is no next event, everything was read.
    pub fn is_closed(&self) -> bool {
        self.commit.shared.closed.load(Ordering::Acquire)
    }

    /// Saves `metadata` with the cursor where it is: [`Committer::save`].
    pub fn save(&self, metadata: &CursorMetadata) {
        self.commit.save(metadata);
    }

    /// the metadata saved last; zeros at first.
    pub fn metadata(&self) -> CursorMetadata {
        self.commit.metadata()
    }

    /// Where the sink is.
    pub fn position(&self) -> CursorPosition {
        self.commit.position()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.commit.cursor.leave();
    }
}

impl Committer {
    /// Completes a record, in any order. It is not handed out again: after the end of the process at once,
    /// after a power cut from about a second later on. False when the record is not in flight: it was
    /// completed already, or dropped for the quota meanwhile and counted there.
    pub fn commit(&self, sequence: u64) -> bool {
        self.complete(sequence, None)
    }

    /// As [`commit`](Self::commit), and saves `metadata` with the cursor: both survive, or neither.
    pub fn commit_with(&self, sequence: u64, metadata: &[u8; CURSOR_METADATA_LEN]) -> bool {
        self.complete(sequence, Some(metadata))
    }

    /// Saves `metadata` with the cursor where it is: after a gap was counted, say.
    pub fn save(&self, metadata: &[u8; CURSOR_METADATA_LEN]) {
        self.cursor.save(metadata);
    }

    /// the metadata saved last; zeros at first.
    pub fn metadata(&self) -> CursorMetadata {
        self.cursor.with(|cursor| cursor.metadata)
    }

    /// Where the sink is.
    pub fn position(&self) -> CursorPosition {
        self.cursor.with(|cursor| CursorPosition::of(cursor))
    }

    /// Every record before this one is completed, dropped or damaged: [`CursorPosition::sequence`], for who asks often.
    pub fn completed(&self) -> u64 {
        self.cursor.with(|cursor| cursor.low)
    }

    fn complete(&self, sequence: u64, metadata: Option<&CursorMetadata>) -> bool {
        let completed = self.cursor.commit(sequence, metadata);
        if completed {
            self.notify();
        }
        completed
    }

    /// Lets the writer know when it waits for what was completed.
    fn notify(&self) {
        let shared = &self.shared;
        let awaited =
            shared.settings.durability == Durability::Memory || shared.starved.load(Ordering::Relaxed);
        if awaited && lock(&shared.index).is_consumed(self.cursor.with(|cursor| cursor.low)) {
            shared.queue.wake_writer();
        }
    }
}

impl Recipient {
    /// Of a record with the recipient `written`, for the sink `name`.
    fn of(written: &str, name: &str) -> Recipient {
        match written {
            "" => Recipient::All,
            written if written == name => Recipient::This,
            _ => Recipient::Another,
        }
    }
}

impl CompletedRecords {
    fn of(CompletedItems { items, addressed }: CompletedItems, cursor: &Cursor) -> CompletedRecords {
        let Cursor { items: position, dropped, damaged, .. } = *cursor;
        CompletedRecords { items, addressed, position, ahead: cursor.ahead(), dropped, damaged }
    }
}

impl CursorPosition {
    pub(crate) fn of(cursor: &Cursor) -> CursorPosition {
        CursorPosition {
            sequence: cursor.low,
            items: cursor.items,
            born: cursor.born,
            dropped: cursor.dropped,
            damaged: cursor.damaged,
            ahead: cursor.ahead(),
            in_flight: cursor.in_flight(),
        }
    }
}

/// Wakes a thread.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
