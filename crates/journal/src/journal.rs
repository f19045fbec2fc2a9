//! The journal as its owner, the sources and the sinks hold it.

use crate::append::{AppendResult, PendingAppend};
use crate::checkpoints::Checkpoints;
use crate::clock::{Clock, SystemClock};
use crate::cursor::Cursor;
use crate::cursor::file::{CursorFile, file_name, is_name};
use crate::cursor_state::CursorState;
use crate::follower::Follower;
use crate::meta::Meta;
use crate::queue::SubmitError;
use crate::record::checksum;
use crate::recover::{Recovery, recover};
use crate::segment_index::SegmentIndex;
use crate::settings::{AppendError, DiskError, Durability, OpenError, Settings, StartAt, WhenFull};
use crate::shared::Shared;
use crate::stats::Stats;
use crate::sync::lock;
use crate::writer::{STACK_BYTES, Writer};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegate_arena::Window;
use tidegate_files::FolderLock;
use tidegate_files::folder::{Files, RealFiles};

/// How often [`Journal::flush`] looks.
const FLUSH_INTERVAL: Duration = Duration::from_millis(2);

/// The journal. A handle; clones are the same journal. When the last one is dropped, what is queued is
/// written, and the journal closes.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
    owner: Arc<Owner>,
}

/// The data to append: `len` bytes of a window, starting at `from` (a request's head may precede them).
pub struct Batch {
    /// The body's metadata.
    pub meta: Meta,
    /// Where the body is. It is given back when the body is durable, or refused.
    pub window: Window,
    /// Where in the window the body begins.
    pub from: usize,
    /// How long it is.
    pub len: usize,
    /// The checkpoints of its source that hold once it is appended. A source appends the next checkpoint of a key when it
    /// has the answer to the last: of two batches under way a power cut may keep the second alone.
    pub checkpoints: Checkpoints,
}

impl Batch {
    /// The batch for the sink `name` alone: to every other one its record says that it is for
    /// [another](crate::Recipient::Another). Of a sink that does not follow the journal nobody waits for it.
    ///
    /// # Errors
    /// [`AppendError::Unfit`] where no sink can have that name.
    pub fn to_sink(mut self, name: &str) -> Result<Batch, AppendError> {
        if !is_name(name) {
            return Err(AppendError::Unfit);
        }
        self.checkpoints.address(name);
        Ok(self)
    }
}

/// Ends the writer when the last handle goes.
struct Owner {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    finished: Arc<Finished>,
}

#[derive(Default)]
struct Finished {
    done: Mutex<bool>,
    changed: Condvar,
}

impl Journal {
    /// Opens the journal in `settings.dir`, making it where there is none, and starts its writer thread.
    /// Whatever state its files are in, it opens; [`Recovery`] says what was found.
    ///
    /// # Errors
    /// When another process has it open, or the folder cannot be read or written.
    pub fn open(settings: Settings) -> Result<(Journal, Recovery), OpenError> {
        Self::open_with(settings, Arc::new(SystemClock::default()))
    }

    /// As [`open`](Self::open), with the time from `clock`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(settings: Settings, clock: Arc<dyn Clock>) -> Result<(Journal, Recovery), OpenError> {
        let folder = match settings.durability {
            Durability::Memory => None,
            Durability::Fsync | Durability::PageCache => {
                let locked = FolderLock::acquire(&settings.dir);
                Some(locked.map_err(|error| OpenError::of_lock(&settings.dir, error))?)
            }
        };
        let files = Arc::new(RealFiles::new(settings.dir.clone()));
        let dir = settings.dir.display().to_string();
        let (journal, writer, recovery) = Self::assemble(settings, files, clock)?;
        let finished = journal.owner.finished.clone();
        let run = move || {
            writer.run();
            // Only now may another process take the folder.
            drop(folder);
            *finished.done.lock().unwrap_or_else(PoisonError::into_inner) = true;
            finished.changed.notify_all();
        };
        let thread = std::thread::Builder::new().name("journal".into()).stack_size(STACK_BYTES).spawn(run);
        let thread = thread.map_err(|source| OpenError::Io {
            dir,
            doing: "start the writer thread".into(),
            source,
        })?;
        *lock_std(&journal.owner.thread) = Some(thread);
        Ok((journal, recovery))
    }

    /// The journal and its writer, which the caller runs.
    pub(crate) fn assemble(
        mut settings: Settings,
        files: Arc<dyn Files>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Journal, Writer, Recovery), OpenError> {
        settings.segment_bytes = settings.segment_bytes.min(settings.quota / 4).max(4096);
        let (shared, tail, tables, recovery) = recover(settings, files, clock)?;
        let shared = Arc::new(shared);
        let writer = Writer::new(shared.clone(), tail, tables);
        let finished = Arc::new(Finished::default());
        let owner = Arc::new(Owner { shared: shared.clone(), thread: Mutex::new(None), finished });
        Ok((Journal { shared, owner }, writer, recovery))
    }

    /// How many batches can be on their way to the disk at a time; one more is refused as [`AppendError::Busy`].
    pub fn queue_len(&self) -> usize {
        self.shared.settings.queue
    }

    /// Appends a batch. It is queued when this returns; the future waits for the outcome, and dropping it
    /// does not take the batch back: it is appended or refused, unheard. Allocates nothing.
    ///
    /// `Ok` means that the batch is durable in the sense of [`Durability`].
    pub fn append(&self, batch: Batch) -> AppendFuture<'_> {
        let state = match self.submit(batch) {
            Ok(slot) => State::Queued(slot),
            Err(refused) => State::Refused(refused),
        };
        AppendFuture { shared: &self.shared, state }
    }

    /// Whether a sink of this name has a cursor, followed or not.
    pub fn has_cursor(&self, name: &str) -> bool {
        lock(&self.shared.index).cursors.iter().any(|cursor| cursor.name == name)
    }

    /// Whether a sink of this name follows the journal now.
    pub fn is_followed(&self, name: &str) -> bool {
        lock(&self.shared.index).cursors.iter().any(|cursor| cursor.name == name && cursor.is_followed())
    }

    fn submit(&self, batch: Batch) -> Result<u32, AppendError> {
        let Batch { meta, window, from, len, checkpoints } = batch;
        let end = from.checked_add(len).ok_or(AppendError::Unfit)?;
        let body = window.get(from..end).ok_or(AppendError::Unfit)?;
        let crc = checksum(&meta.tenant, checkpoints.recipient(), checkpoints.note(), body);
        let len = u32::try_from(len).map_err(|_| AppendError::Unfit)?;
        let entry = PendingAppend { meta, window, from, len, crc, checkpoints };
        if entry.size() > self.shared.settings.quota {
            return Err(AppendError::Unfit);
        }
        let held = self.hold(&entry)?;
        let now = self.shared.clock.monotonic_ns();
        self.shared.queue.submit(entry, now).map_err(|declined| {
            self.shared.held_bytes.fetch_sub(held, Ordering::Relaxed);
            match declined {
                SubmitError::Full => AppendError::Busy,
                SubmitError::Barred(Err(refused)) => refused,
                SubmitError::Closed | SubmitError::Barred(Ok(_)) => AppendError::Closed,
            }
        })
    }

    /// Counts what a batch takes of the memory that may be held, where it is held, or refuses it.
    fn hold(&self, entry: &PendingAppend) -> Result<u64, AppendError> {
        let shared = &self.shared;
        if shared.settings.durability != Durability::Memory {
            return Ok(0);
        }
        let (bytes, most) = (entry.charged(), shared.settings.held_bytes);
        if bytes > most {
            return Err(AppendError::Unfit);
        }
        let fits = |held: u64| held.checked_add(bytes).filter(|held| *held <= most);
        let held = shared.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        held.map(|_| bytes)
            .map_err(|_| AppendError::Disk { trouble: DiskError::Quota, retry_after: self.retry_after() })
    }

    /// Follows the journal as the sink `name`, from its cursor on, or from `start` where it has none yet.
    /// Blocks for the disk: to be called when a sink starts.
    ///
    /// # Errors
    /// When the name cannot be a file's, the sink is followed already, there are too many sinks, or its
    /// cursor cannot be created.
    pub fn follow(&self, name: &str, start: StartAt, when_full: WhenFull) -> Result<Follower, OpenError> {
        let shared = &self.shared;
        if !is_name(name) {
            return Err(OpenError::Name(name.into()));
        }
        let mut index = lock(&shared.index);
        let known = index.cursors.iter().find(|cursor| cursor.name == name).cloned();
        let created = match known {
            Some(_) => None,
            None => Some(self.place_cursor(&mut index, name, start)?),
        };
        let state = known.or(created.as_ref().map(|(state, _)| state.clone()));
        let followed = state.filter(|state| state.follow(when_full));
        drop(index);
        let Some(state) = followed else { return Err(OpenError::Followed(name.into())) };
        if let Some((_, cursor)) = created
            && let Err(error) = self.create_cursor(&state, &cursor)
        {
            lock(&shared.index).cursors.retain(|other| !Arc::ptr_eq(other, &state));
            return Err(error);
        }
        Ok(Follower::new(shared.clone(), state))
    }

    /// Chooses where a new cursor begins. It holds back what is behind from now on: nothing may be deleted
    /// between choosing the place and having its file.
    fn place_cursor(
        &self,
        index: &mut SegmentIndex,
        name: &str,
        start: StartAt,
    ) -> Result<(Arc<CursorState>, Cursor), OpenError> {
        let shared = &self.shared;
        if index.cursors.len() >= shared.settings.followers {
            return Err(OpenError::Crowded(index.cursors.len()));
        }
        let cursor = match start {
            StartAt::Oldest => index.oldest(),
            StartAt::Head => Cursor::new(index.head.sequence, index.head.items, index.head.bytes),
        };
        let state = Arc::new(CursorState::new(name.into(), shared.salt, cursor.clone(), None));
        index.cursors.push(state.clone());
        Ok((state, cursor))
    }

    /// Makes the file of a new cursor, where there are files.
    fn create_cursor(&self, state: &CursorState, cursor: &Cursor) -> Result<(), OpenError> {
        let shared = &self.shared;
        if shared.settings.durability == Durability::Memory {
            return Ok(());
        }
        let created = CursorFile::create(&*shared.files, &state.name, cursor, shared.salt);
        let file = created.map_err(|source| OpenError::Io {
            dir: shared.settings.dir.display().to_string(),
            doing: format!("create the cursor of `{}`", state.name),
            source,
        })?;
        state.attach(file);
        Ok(())
    }

    /// The names of all sinks that have a cursor, followed or not. One that nobody follows still holds back
    /// what it has not completed, until it is [forgotten](Self::forget).
    pub fn sinks(&self) -> Vec<String> {
        lock(&self.shared.index).cursors.iter().map(|cursor| cursor.name.clone()).collect()
    }

    /// Forgets the cursor of a sink that is gone. True when there was one and nobody follows with it.
    ///
    /// # Errors
    /// When its file cannot be deleted.
    pub fn forget(&self, name: &str) -> io::Result<bool> {
        let shared = &self.shared;
        // Followed meanwhile, by nobody: so it stays as it is, and holds back what it does.
        let known = lock(&shared.index).cursors.iter().find(|cursor| cursor.name == name).cloned();
        let Some(cursor) = known.filter(|cursor| cursor.follow(WhenFull::Block)) else { return Ok(false) };
        if shared.settings.durability != Durability::Memory {
            let gone = shared.files.remove(&file_name(name)).and_then(|()| shared.files.sync_names());
            if let Err(error) = gone {
                cursor.leave();
                return Err(error);
            }
        }
        lock(&shared.index).cursors.retain(|other| !Arc::ptr_eq(other, &cursor));
        self.shared.queue.wake_writer();
        Ok(true)
    }

    /// The value of the checkpoint `key`: that of the last durable batch that named it, or of a later
    /// [`set_checkpoints`](Self::set_checkpoints).
    pub fn checkpoint(&self, key: &[u8]) -> Option<Box<[u8]>> {
        lock(&self.shared.index).checkpoints.get(key).map(Into::into)
    }

    /// Calls `each` with the key and the value of every checkpoint, in the order of the keys, holding a lock that appends
    /// wait for: it copies what it wants.
    pub fn each_checkpoint(&self, mut each: impl FnMut(&[u8], &[u8])) {
        lock(&self.shared.index).checkpoints.iter().for_each(|(key, value)| each(key, value));
    }

    /// Changes checkpoints without a record: for data of which nothing is left to be appended. They hold at once, and are
    /// durable within about a second, or with the next segment. A crash before that brings the earlier ones back.
    pub fn set_checkpoints(&self, checkpoints: &Checkpoints) {
        if !checkpoints.is_empty() {
            let mut index = lock(&self.shared.index);
            index.checkpoints.apply(checkpoints.note());
            index.checkpoints.unsaved = true;
        }
    }

    /// The number of checkpoints whose keys begin with `prefix`.
    pub fn count_checkpoints(&self, prefix: &[u8]) -> usize {
        lock(&self.shared.index).checkpoints.keys_with(prefix).count()
    }

    /// Keeps so many checkpoints more than [`Settings::checkpoints`] says: beside those of sources that nobody runs now. The
    /// caller accounts for their memory, [`CHECKPOINT_BYTES`](crate::CHECKPOINT_BYTES) each.
    pub fn allow_checkpoints(&self, more: usize) {
        lock(&self.shared.index).checkpoints.allow(more);
    }

    /// Forgets all checkpoints whose keys begin with `prefix`, as those of a source that is gone. Returns their number. It
    /// is durable as [`set_checkpoints`](Self::set_checkpoints) is.
    pub fn forget_checkpoints(&self, prefix: &[u8]) -> usize {
        lock(&self.shared.index).checkpoints.forget(prefix)
    }

    /// The heap memory of all checkpoints, in bytes.
    pub fn checkpoint_bytes(&self) -> usize {
        lock(&self.shared.index).checkpoints.heap_bytes()
    }

    /// The error that an append would get now, if that is known without trying.
    #[inline]
    pub fn append_error(&self) -> Option<AppendError> {
        self.shared.queue.suspended(|| self.shared.clock.monotonic_ns()).and_then(Result::err)
    }

    /// Has `observer` told the items of all records, ever, whenever there are more: before they are
    /// acknowledged, and before a sink can see them. It runs on the writer's thread, so it should be brief.
    pub fn observe(&self, observer: impl Fn(u64) + Send + Sync + 'static) {
        lock(&self.shared.index).observer = Some(Box::new(observer));
    }

    /// The journal's identity: constant as long as its files exist.
    pub fn id(&self) -> u64 {
        self.shared.salt
    }

    /// Promises that no record which is not written yet is received before `floor_ns`, in nanoseconds since 1970: an earlier time becomes
    /// that, unless the clock is set back by more than five seconds. Returns the sequence of the first record that the promise is
    /// about; those before it are written, or may be refused yet. The promise ends with the process.
    pub fn advance_clock(&self, floor_ns: u64) -> u64 {
        self.shared.receive_clock.advance(floor_ns)
    }

    /// When it is worth trying again after a refusal, from how fast sinks free space: 1 to 60 seconds.
    pub fn retry_after(&self) -> Duration {
        Duration::from_millis(self.shared.retry_after_ms.load(Ordering::Relaxed))
    }

    /// The journal in numbers.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.shared)
    }

    /// Whether its writer is gone: the journal was closed, or the writer failed. Nothing is appended then, and
    /// who waits for an answer waits in vain.
    pub fn has_ended(&self) -> bool {
        lock_std(&self.owner.thread).as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until every batch that was queued before this call is appended or refused. False when that takes longer than
    /// `patience`.
    pub fn flush(&self, patience: Duration) -> bool {
        let Shared { queue, clock, .. } = &*self.shared;
        let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let (number, deadline) = (queue.submitted(), clock.monotonic_ns().saturating_add(patience));
        while queue.has_pending_before(number) {
            if clock.monotonic_ns() > deadline {
                return false;
            }
            std::thread::sleep(FLUSH_INTERVAL);
        }
        true
    }

    /// Refuses appends from now on, writes and syncs what is queued, answers everyone, and makes the cursors
    /// durable. True when that was done within `deadline`; else it goes on.
    pub fn close(&self, deadline: Duration) -> bool {
        self.shared.queue.close();
        let finished = &self.owner.finished;
        let waited = finished.changed.wait_timeout_while(lock_std(&finished.done), deadline, |done| !*done);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.queue.close();
        if let Some(thread) = lock_std(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("the journal's writer thread panicked");
        }
    }
}

/// An append under way; see [`Journal::append`].
#[must_use = "whether a batch was appended is known when this is awaited"]
pub struct AppendFuture<'a> {
    shared: &'a Shared,
    state: State,
}

enum State {
    Queued(u32),
    Refused(AppendError),
    Answered,
}

impl Future for AppendFuture<'_> {
    type Output = AppendResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<AppendResult> {
        let outcome = match self.state {
            State::Queued(slot) => self.shared.queue.poll(slot, context.waker()),
            State::Refused(refused) => Poll::Ready(Err(refused)),
            State::Answered => Poll::Pending,
        };
        if outcome.is_ready() {
            self.state = State::Answered;
        }
        outcome
    }
}

impl Drop for AppendFuture<'_> {
    fn drop(&mut self) {
        if let State::Queued(slot) = self.state {
            self.shared.queue.abandon(slot);
        }
    }
}

fn lock_std<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
