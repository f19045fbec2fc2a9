//! The sink `lake`: a thread that reads the journal and writes Parquet files.
//!
//! The lake commits many records at once, so the cursor moves when a file is finished; until then the
//! records are in the journal and in the lake's unfinished files. The lake itself knows after which record
//! to go on, so a crash between its commit and the cursor's costs a few records read again, and no row
//! twice.

use crate::health::Health;
use crate::inbox::{AttachError, Inbox, Outcome, Quiet, Sinkable};
use crate::room::{Room, Turn};
use crate::stop::Stop;
use std::time::{Duration, Instant, SystemTime};
use tidegate_arena::{Charge, Window};
use tidegate_journal::{Encoding, Protocol, ReadError, Record};
use tidegate_lake::{Commit, Error, Position, Settings, Writer};
use tidegate_ledger::Dropped;
use tidegate_wire::remote_write::{Symbols, Version, view};
use tidegate_wire::snappy;
use tokio::runtime::Handle;

/// How long the thread waits for a record before it looks at the clock and at the order to stop.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long it waits after an error before it tries again.
const AFTER_ERROR: Duration = Duration::from_secs(2);

/// The sink, attached to the journal and ready to run.
pub struct Lake {
    inbox: Inbox,
    writer: Writer,
    room: Room,
    /// What the writer may allocate.
    _slice: Charge,
    health: Health,
    stop: Stop,
    /// Where waiting for memory is done.
    runtime: Handle,
    symbols: Symbols,
    /// The last record that was pushed, and what the lake could not take of all that is not committed.
    pushed: Option<Record>,
    dropped: Losses,
    ticked: Instant,
}

/// The lake could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LakeError {
    /// It could not be attached to the journal.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The lake's folder could not be opened.
    #[error(transparent)]
    Lake(#[from] Error),
}

/// Items that the lake could not take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Losses {
    too_large: u64,
    untranslatable: u64,
    damaged: u64,
}

/// Why a record did not become rows.
enum Failure {
    /// Of the record itself.
    Lost(Losses),
    /// The journal says so with the next event.
    Damaged,
    /// Of the lake.
    Lake(Error),
    /// No memory came before the order to stop.
    Stopped,
}

impl Lake {
    /// Opens the lake and attaches it to the journal. `slice` pays for what `settings.slice` allows;
    /// `runtime` is where waiting for memory is done.
    ///
    /// # Errors
    /// [`LakeError`].
    pub fn start(
        sinkable: Sinkable<'_>,
        settings: Settings,
        slice: Charge,
        room: Room,
        runtime: Handle,
        stop: Stop,
    ) -> Result<Lake, LakeError> {
        let (writer, _durable) = Writer::open(settings)?;
        let mut inbox = sinkable.attach()?;
        inbox.in_order();
        Ok(Lake {
            inbox,
            writer,
            room,
            _slice: slice,
            health: sinkable.health.clone(),
            stop,
            runtime,
            symbols: Symbols::new(),
            pushed: None,
            dropped: Losses::default(),
            ticked: Instant::now(),
        })
    }

    /// Writes until the order to stop comes, or the journal is closed and everything was read; then finishes
    /// what is begun.
    pub fn run(mut self) {
        while !self.stop.is_given() {
            let outcome = match self.inbox.next_blocking(PATIENCE) {
                Ok(record) => self.take(record),
                Err(Quiet::Nothing) => Ok(()),
                Err(Quiet::Closed) => break,
            };
            if let Err(error) = outcome.and_then(|()| self.tick()) {
                self.failed(&error);
            }
        }
        match self.writer.close_files() {
            Ok(commit) => self.committed(commit, self.dropped, self.pushed),
            Err(error) => {
                tracing::error!(sink = self.inbox.name(), %error, "the lake's last files are not finished; their rows are in the journal")
            }
        }
    }

    /// Puts a record into the lake, or into the books.
    fn take(&mut self, record: Record) -> Result<(), Error> {
        if self.writer.durable().is_some_and(|durable| record.sequence <= durable) {
            // In the lake already: a crash came before the cursor moved.
            self.inbox.settle(&record, Outcome::Delivered);
            return Ok(());
        }
        let (before, previous) = (self.dropped, self.pushed);
        let (commit, losses) = match self.push(&record) {
            Ok(pushed) => pushed,
            Err(Failure::Lost(losses)) => (None, losses),
            Err(Failure::Damaged | Failure::Stopped) => return Ok(()),
            Err(Failure::Lake(error)) => return Err(error),
        };
        self.pushed = Some(record);
        self.dropped = before.and(losses);
        // A commit covers this record, or everything before it (when the hour changed).
        match commit {
            Some(commit) if commit.through < record.sequence => {
                self.committed(Some(commit), before, previous);
                self.dropped = losses;
            }
            commit => self.committed(commit, self.dropped, self.pushed),
        }
        Ok(())
    }

    fn push(&mut self, record: &Record) -> Result<(Option<Commit>, Losses), Failure> {
        let version = match (record.meta.protocol, record.meta.encoding) {
            (Protocol::RemoteWrite1, Encoding::Snappy) => Version::V1,
            (Protocol::RemoteWrite2, Encoding::Snappy) => Version::V2,
            _ => return Err(Failure::Lost(Losses::untranslatable(record))),
        };
        let raw_len = record.meta.raw_len as usize;
        let body_len = record.body_len as usize;
        // The last is for the symbol table, at its usual largest.
        let most = body_len + raw_len + raw_len / 4;
        if most > self.room.most() {
            return Err(Failure::Lost(Losses::too_large(record)));
        }
        let _turn = if most > self.room.part() { self.wait(self.room.turn())? } else { Turn::none() };
        let mut body = self.window(body_len, record)?;
        match self.inbox.follower().read_into(&mut body) {
            Ok(()) => {}
            Err(ReadError::Damaged | ReadError::NoRecord) => return Err(Failure::Damaged),
            Err(ReadError::Memory(_)) => return Err(Failure::Lost(Losses::too_large(record))),
        }
        let mut raw = self.window(raw_len, record)?;
        match snappy::decode(&body, raw.spare_mut()) {
            Ok(len) => raw.advance(len),
            Err(_) => return Err(Failure::Lost(Losses::damaged(record))),
        }
        drop(body);
        let scratch = self.wait(self.room.charge(Symbols::bytes_for(&raw)))?;
        let _scratch = scratch.map_err(|_| Failure::Lost(Losses::too_large(record)))?;
        let position = Position { sequence: record.sequence, received_at_ns: record.meta.received_at_ns };
        let Ok(request) = view(version, &raw, &mut self.symbols) else {
            return Err(Failure::Lost(Losses::damaged(record)));
        };
        let pushed = self.writer.push(&position, &request, now_ns()).map_err(Failure::Lake)?;
        self.symbols.shrink(0);
        let losses = Losses {
            too_large: pushed.dropped.too_large,
            untranslatable: pushed.dropped.malformed,
            damaged: 0,
        };
        Ok((pushed.commit, losses))
    }

    /// A window for something of `record`.
    fn window(&self, bytes: usize, record: &Record) -> Result<Window, Failure> {
        let window = self.wait(self.room.window(bytes))?;
        window.map_err(|_| Failure::Lost(Losses::too_large(record)))
    }

    /// What `future` gives, unless the order to stop comes first.
    fn wait<F: Future>(&self, future: F) -> Result<F::Output, Failure> {
        self.runtime.block_on(self.stop.or(future)).ok_or(Failure::Stopped)
    }

    /// Once a second: finishes files that are old enough, and lets old hours go.
    fn tick(&mut self) -> Result<(), Error> {
        if self.ticked.elapsed() >= Duration::from_secs(1) {
            self.ticked = Instant::now();
            let commit = self.writer.tick(now_ns())?;
            self.committed(commit, self.dropped, self.pushed);
        }
        Ok(())
    }

    /// Moves the cursor behind what the lake has for good.
    fn committed(&mut self, commit: Option<Commit>, losses: Losses, last: Option<Record>) {
        let (Some(commit), Some(last)) = (commit, last) else { return };
        self.inbox.settle(&last, Outcome::of(&losses.entries()));
        self.dropped = Losses::default();
        let bytes = commit.files.iter().map(|file| file.bytes).sum();
        self.health.succeeded(bytes);
        tracing::debug!(sink = self.inbox.name(), through = commit.through, bytes, "files are finished");
    }

    /// After an error the lake begins again behind its last commit.
    fn failed(&mut self, error: &Error) {
        let retry_at = SystemTime::now().checked_add(AFTER_ERROR);
        if self.health.trouble().retry_at.is_none() {
            tracing::warn!(sink = self.inbox.name(), %error, "the lake cannot be written now; trying again");
        }
        self.health.failed(&error.to_string(), retry_at);
        let _ = self.wait(tokio::time::sleep(AFTER_ERROR));
        (self.pushed, self.dropped) = (None, Losses::default());
        match self.writer.recover() {
            Ok(_durable) => self.inbox.rewind(),
            Err(error) => self.health.failed(&error.to_string(), retry_at),
        }
    }
}

impl Losses {
    fn untranslatable(record: &Record) -> Losses {
        Losses { untranslatable: u64::from(record.meta.items), ..Losses::default() }
    }

    fn too_large(record: &Record) -> Losses {
        Losses { too_large: u64::from(record.meta.items), ..Losses::default() }
    }

    fn damaged(record: &Record) -> Losses {
        Losses { damaged: u64::from(record.meta.items), ..Losses::default() }
    }

    fn and(self, other: Losses) -> Losses {
        Losses {
            too_large: self.too_large + other.too_large,
            untranslatable: self.untranslatable + other.untranslatable,
            damaged: self.damaged + other.damaged,
        }
    }

    fn entries(self) -> Vec<(Dropped, u64)> {
        let all = [
            (Dropped::TooLarge, self.too_large),
            (Dropped::Untranslatable, self.untranslatable),
            (Dropped::Damaged, self.damaged),
        ];
        all.into_iter().filter(|(_, items)| *items > 0).collect()
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
