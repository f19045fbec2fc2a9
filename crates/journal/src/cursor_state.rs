//! One sink's cursor as it is shared between the sink, which moves it, and the writer, which syncs it, frees
//! space behind it, and wakes the sink when there is more to read.

use crate::cursor::file::CursorFile;
use crate::cursor::{CompletedItems, Cursor, CursorMetadata, ENCODED_LEN, SkippedRecords};
use crate::settings::WhenFull;
use crate::sync::{Mutex, lock};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

pub(crate) struct CursorState {
    pub(crate) name: String,
    salt: u64,
    state: Mutex<LiveCursor>,
    /// Its own lock, held while the disk is written to: taken before that of the state and never together
    /// with the log's, so that who publishes never waits for a cursor to be written.
    file: Mutex<PersistedCursor>,
    write_errors: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

struct PersistedCursor {
    /// Nothing is written where the journal is kept in memory.
    file: Option<CursorFile>,
    /// The change up to which the cursor is written.
    written: u64,
}

struct LiveCursor {
    cursor: Cursor,
    /// Changes that are to be written, ever.
    changes: u64,
    /// The low-water mark that is known to be durable.
    durable_low: u64,
    followed: bool,
    when_full: WhenFull,
    /// Dropped for the quota and not told to the sink yet.
    unreported: SkippedRecords,
}

impl CursorState {
    pub(crate) fn new(name: String, salt: u64, cursor: Cursor, file: Option<CursorFile>) -> CursorState {
        let state = LiveCursor {
            durable_low: cursor.low,
            cursor,
            changes: 0,
            followed: false,
            when_full: WhenFull::Block,
            unreported: SkippedRecords::default(),
        };
        CursorState {
            name,
            salt,
            state: Mutex::new(state),
            file: Mutex::new(PersistedCursor { file, written: 0 }),
            write_errors: AtomicU64::new(0),
            waker: Mutex::new(None),
        }
    }

    /// Lets one sink have the cursor, from the low-water mark on. False when another has it.
    pub(crate) fn follow(&self, when_full: WhenFull) -> bool {
        let mut state = lock(&self.state);
        if state.followed {
            return false;
        }
        state.followed = true;
        state.when_full = when_full;
        state.cursor.set_in_order(false);
        state.cursor.rewind();
        true
    }

    pub(crate) fn leave(&self) {
        lock(&self.state).followed = false;
    }

    pub(crate) fn is_followed(&self) -> bool {
        lock(&self.state).followed
    }

    /// Looks at the cursor, or moves it in memory alone.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Cursor) -> T) -> T {
        look(&mut lock(&self.state).cursor)
    }

    pub(crate) fn write_errors(&self) -> u64 {
        self.write_errors.load(Ordering::Relaxed)
    }

    /// A loss not yet reported, once; else whether another record may be handed out.
    pub(crate) fn before_next(&self) -> Result<bool, (SkippedRecords, u64, u64)> {
        let mut state = lock(&self.state);
        match std::mem::take(&mut state.unreported) {
            SkippedRecords { records: 0, .. } => Ok(state.cursor.has_room()),
            passed => Err((passed, state.cursor.low, state.cursor.items)),
        }
    }

    /// Completes `sequence` and writes the cursor. False when the record is not in flight any more.
    pub(crate) fn commit(&self, sequence: u64, metadata: Option<&CursorMetadata>) -> bool {
        let mut state = lock(&self.state);
        let was_full = !state.cursor.has_room();
        if !state.cursor.complete(sequence) {
            return false;
        }
        if let Some(book) = metadata {
            state.cursor.metadata = *book;
        }
        let change = state.changed();
        drop(state);
        self.write(change);
        if was_full {
            self.wake();
        }
        true
    }

    /// Completes each of these records, in any order, and writes the cursor once, with the metadata that `enter`
    /// makes of the items completed.
    pub(crate) fn commit_each(
        &self,
        sequences: impl IntoIterator<Item = u64>,
        enter: impl FnOnce(CompletedItems, &Cursor) -> CursorMetadata,
    ) {
        let mut state = lock(&self.state);
        let was_full = !state.cursor.has_room();
        let completed = state.cursor.complete_each(sequences);
        state.cursor.metadata = enter(completed, &state.cursor);
        let change = state.changed();
        drop(state);
        self.write(change);
        if was_full {
            self.wake();
        }
    }

    /// Completes everything up to and with a record, and writes the cursor with the metadata that `enter` makes
    /// of the items completed and the items before the new low-water mark.
    pub(crate) fn commit_through(
        &self,
        sequence: u64,
        after: (u64, u64),
        received_at_ns: u64,
        addressed_after: u64,
        enter: impl FnOnce(CompletedItems, &Cursor) -> CursorMetadata,
    ) {
        let mut state = lock(&self.state);
        let was_full = !state.cursor.has_room();
        let completed = state.cursor.complete_through(sequence, after, received_at_ns, addressed_after);
        state.cursor.metadata = enter(completed, &state.cursor);
        let change = state.changed();
        drop(state);
        self.write(change);
        if was_full {
            self.wake();
        }
    }

    /// Writes the cursor with `metadata` where it is.
    pub(crate) fn save(&self, metadata: &CursorMetadata) {
        let mut state = lock(&self.state);
        state.cursor.metadata = *metadata;
        let change = state.changed();
        drop(state);
        self.write(change);
    }

    /// The low-water mark that is durable.
    pub(crate) fn durable_low(&self) -> u64 {
        lock(&self.state).durable_low
    }

    /// Makes the cursor durable where it is not. Called by the writer alone; takes no lock while it waits
    /// for the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut kept = lock(&self.file);
        let low = self.with(|cursor| cursor.low);
        let begun = match &mut kept.file {
            Some(file) => file.begin_sync(low, |generation| self.encode(generation))?,
            None => {
                lock(&self.state).durable_low = low;
                None
            }
        };
        let Some((open, low)) = begun else { return Ok(()) };
        drop(kept);
        let synced = open.sync();
        if let Some(file) = &mut lock(&self.file).file {
            file.end_sync(synced.is_ok());
        }
        if synced.is_ok() {
            lock(&self.state).durable_low = low;
        }
        synced
    }

    /// Whether the quota may move the sink past everything before `to`, or it is there already.
    pub(crate) fn may_skip_to(&self, to: u64) -> bool {
        let state = lock(&self.state);
        state.cursor.low >= to || (state.followed && state.when_full == WhenFull::DropOldest)
    }

    /// Moves the sink past everything before the record `to`, durably, and lets it know.
    pub(crate) fn drop_to(&self, to: u64, items: u64, bytes: u64) -> io::Result<SkippedRecords> {
        let mut state = lock(&self.state);
        let passed = state.cursor.jump(to, items, bytes);
        state.unreported.records += passed.records;
        state.unreported.items += passed.items;
        let change = state.changed();
        drop(state);
        self.write(change);
        self.wake();
        self.sync()?;
        Ok(passed)
    }

    /// Gives it the file that was created for it.
    pub(crate) fn attach(&self, file: CursorFile) {
        lock(&self.file).file = Some(file);
    }

    /// Writes the cursor as it is now, unless somebody else has written this change meanwhile. A failure costs
    /// duplicates after a restart, never data, so it is counted and the next write tries again.
    fn write(&self, change: u64) {
        let kept = &mut *lock(&self.file);
        let Some(file) = kept.file.as_mut().filter(|_| kept.written < change) else { return };
        let mut last = change;
        let written = file.write(|generation| {
            last = lock(&self.state).changes;
            self.encode(generation)
        });
        match written {
            Ok(()) => kept.written = last,
            Err(error) => {
                let errors = self.write_errors.fetch_add(1, Ordering::Relaxed) + 1;
                if errors.is_power_of_two() {
                    tracing::warn!(%error, errors, "a sink's cursor cannot be written");
                }
            }
        }
    }

    fn encode(&self, generation: u64) -> ([u8; ENCODED_LEN], u64) {
        self.with(|cursor| (cursor.encode(self.salt, generation), cursor.low))
    }

    /// Leaves `waker` to be woken when there is more to read, or room in the flight.
    pub(crate) fn wait(&self, waker: &Waker) {
        let mut kept = lock(&self.waker);
        if kept.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker() {
            waker.wake();
        }
    }

    /// The task to wake.
    pub(crate) fn waker(&self) -> Option<Waker> {
        lock(&self.waker).take()
    }
}

impl LiveCursor {
    /// Notes that something is to be written.
    fn changed(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }
}
