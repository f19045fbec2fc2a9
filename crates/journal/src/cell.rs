//! One sink's cursor as it is shared between the sink, which moves it, and the writer, which syncs it, frees
//! space behind it, and wakes the sink when there is more to read.

use crate::cursor::file::CursorFile;
use crate::cursor::{Book, Cursor, Passed};
use crate::settings::WhenFull;
use crate::sync::{Mutex, lock};
use std::io;
use std::task::Waker;

pub(crate) struct Cell {
    pub(crate) name: String,
    salt: u64,
    state: Mutex<State>,
    waker: Mutex<Option<Waker>>,
}

struct State {
    cursor: Cursor,
    /// Nothing is written where the journal is kept in memory.
    file: Option<CursorFile>,
    /// The low-water mark that is known to be durable.
    durable_low: u64,
    followed: bool,
    when_full: WhenFull,
    /// Dropped for the quota and not told to the sink yet.
    untold: Passed,
    write_errors: u64,
}

impl Cell {
    pub(crate) fn new(name: String, salt: u64, cursor: Cursor, file: Option<CursorFile>) -> Cell {
        let state = State {
            durable_low: cursor.low,
            cursor,
            file,
            followed: false,
            when_full: WhenFull::Block,
            untold: Passed::default(),
            write_errors: 0,
        };
        Cell { name, salt, state: Mutex::new(state), waker: Mutex::new(None) }
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
        lock(&self.state).write_errors
    }

    /// What was dropped and not told, once; else whether another record may be handed out.
    pub(crate) fn before_next(&self) -> Result<bool, (Passed, u64, u64)> {
        let mut state = lock(&self.state);
        match std::mem::take(&mut state.untold) {
            Passed { records: 0, .. } => Ok(state.cursor.has_room()),
            passed => Err((passed, state.cursor.low, state.cursor.items)),
        }
    }

    /// Completes `sequence` and writes the cursor. False when the record is not in flight any more.
    pub(crate) fn commit(&self, sequence: u64, book: Option<&Book>) -> bool {
        let mut state = lock(&self.state);
        let was_full = !state.cursor.has_room();
        if !state.cursor.complete(sequence) {
            return false;
        }
        if let Some(book) = book {
            state.cursor.book = *book;
        }
        state.write(self.salt);
        drop(state);
        if was_full {
            self.wake();
        }
        true
    }

    /// Completes each of these records, in any order, and writes the cursor once, with the book that `enter`
    /// makes of the items completed.
    pub(crate) fn commit_each(
        &self,
        sequences: impl IntoIterator<Item = u64>,
        enter: impl FnOnce(u64, &Cursor) -> Book,
    ) {
        let mut state = lock(&self.state);
        let was_full = !state.cursor.has_room();
        let completed = state.cursor.complete_each(sequences);
        state.cursor.book = enter(completed, &state.cursor);
        state.write(self.salt);
        drop(state);
        if was_full {
            self.wake();
        }
    }

    /// Completes everything up to and with a record, and writes the cursor with the book that `enter` makes
    /// of the items completed and the items before the new low-water mark.
    pub(crate) fn commit_through(
        &self,
        (sequence, items_after, bytes_after): (u64, u64, u64),
        enter: impl FnOnce(u64, &Cursor) -> Book,
    ) {
        let mut state = lock(&self.state);
        let was_full = !state.cursor.has_room();
        let completed = state.cursor.complete_through(sequence, items_after, bytes_after);
        state.cursor.book = enter(completed, &state.cursor);
        state.write(self.salt);
        drop(state);
        if was_full {
            self.wake();
        }
    }

    /// Writes the cursor with `book` where it is.
    pub(crate) fn save(&self, book: &Book) {
        let mut state = lock(&self.state);
        state.cursor.book = *book;
        state.write(self.salt);
    }

    /// The low-water mark that is durable.
    pub(crate) fn durable_low(&self) -> u64 {
        lock(&self.state).durable_low
    }

    /// Makes the cursor durable where it is not. Called by the writer alone; takes no lock while it waits
    /// for the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        let State { cursor, file, durable_low, .. } = &mut *state;
        let low = cursor.low;
        let Some(file) = file else {
            *durable_low = low;
            return Ok(());
        };
        let Some(open) = file.begin_sync(cursor, self.salt)? else { return Ok(()) };
        drop(state);
        let synced = open.sync();
        let mut state = lock(&self.state);
        if let Some(file) = &mut state.file {
            file.end_sync(synced.is_ok());
        }
        if synced.is_ok() {
            state.durable_low = low;
        }
        synced
    }

    /// Whether the quota may move the sink past everything before `to`, or it is there already.
    pub(crate) fn gives_way(&self, to: u64) -> bool {
        let state = lock(&self.state);
        state.cursor.low >= to || (state.followed && state.when_full == WhenFull::DropOldest)
    }

    /// Moves the sink past everything before the record `to`, durably, and lets it know.
    pub(crate) fn drop_to(&self, to: u64, items: u64, bytes: u64) -> io::Result<Passed> {
        let mut state = lock(&self.state);
        let passed = state.cursor.jump(to, items, bytes);
        state.untold.records += passed.records;
        state.untold.items += passed.items;
        state.write(self.salt);
        drop(state);
        self.wake();
        self.sync()?;
        Ok(passed)
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

    /// Who is to be woken.
    pub(crate) fn waker(&self) -> Option<Waker> {
        lock(&self.waker).take()
    }
}

impl State {
    /// Writes the cursor. A failure costs duplicates after a restart, never data, so it is counted and the
    /// next write tries again.
    fn write(&mut self, salt: u64) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write(&self.cursor, salt) {
            self.write_errors += 1;
            if self.write_errors.is_power_of_two() {
                tracing::warn!(%error, errors = self.write_errors, "a sink's cursor cannot be written");
            }
        }
    }
}
