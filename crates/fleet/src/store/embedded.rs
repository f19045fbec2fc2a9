//! The state in one file of `redb`. One thread writes, and commits together whatever arrived while it committed before.

use super::{Batch, Changes, Expected, KeyRange, Store, StoreError, StoreFuture, Stored, Table, Write};
use crate::worker_thread::WorkerThread;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition, WriteTransaction};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tidegate_files::Access;
use tokio::sync::{mpsc, oneshot};

/// The pages that the database keeps in memory, in bytes.
pub const CACHE_BYTES: usize = 4 << 20;
/// The stack of the thread that writes, in bytes.
pub const STACK_BYTES: usize = 512 << 10;
/// Batches that may wait for the thread. Whoever comes then waits outside.
const QUEUE: usize = 256;
/// The most batches of a transaction: a conflict is found before anything is written, so there is no other bound.
const TOGETHER: usize = 1024;
/// How often it is said that the state cannot be written or opened again.
const TOLD_EVERY: Duration = Duration::from_secs(30);
/// Numbers the writes, so that no version comes twice.
const VERSIONS: TableDefinition<'static, &str, u64> = TableDefinition::new("versions");
/// The format of the file.
const FORMAT: u64 = 1;
const FORMAT_KEY: &str = "format";
const WRITES_KEY: &str = "writes";

/// The state in a file. Clones are the same.
#[derive(Clone)]
pub struct EmbeddedStore(Arc<Inner>);

struct Inner {
    file: Arc<DatabaseFile>,
    /// Taken when the store stops.
    queue: Mutex<Option<mpsc::Sender<Job>>>,
    thread: WorkerThread,
}

/// A batch, and whoever waits for it.
struct Job {
    batch: Batch,
    done: oneshot::Sender<Result<u64, StoreError>>,
}

/// The database. One that has failed to write must be opened again before it is used.
struct DatabaseFile {
    path: PathBuf,
    /// None while it is opened again, and once it is closed. Exclusively locked for a moment alone: workers wait for it.
    open: RwLock<Option<Database>>,
}

/// An error that goes on, which is said now and then.
#[derive(Default)]
struct OngoingError(Option<Instant>);

impl EmbeddedStore {
    /// Opens the file, or makes it and its folder: the owner's alone, since policies may hold credentials. A link is not followed.
    ///
    /// # Errors
    /// When it cannot be opened, or was written by a version that this one does not know.
    pub fn open(path: &Path) -> Result<EmbeddedStore, StoreError> {
        let file = DatabaseFile { path: path.to_owned(), open: RwLock::new(Some(open(path)?)) };
        let file = Arc::new(file);
        let (queue, jobs) = mpsc::channel(QUEUE);
        let writer = Arc::clone(&file);
        let thread = std::thread::Builder::new().name("fleet-store".to_owned()).stack_size(STACK_BYTES);
        let thread = thread.spawn(move || write_all(&writer, jobs));
        let thread =
            thread.map_err(|error| StoreError::Unavailable(format!("starting a thread: {error}")))?;
        let (queue, thread) = (Mutex::new(Some(queue)), WorkerThread::new(thread));
        Ok(EmbeddedStore(Arc::new(Inner { file, queue, thread })))
    }
}

impl Store for EmbeddedStore {
    fn get(&self, table: Table, key: &[u8]) -> StoreFuture<'_, Option<Stored>> {
        let read = self.0.file.read(|database| {
            let transaction = database.begin_read()?;
            let table = transaction.open_table(definition(table))?;
            Ok(table.get(key)?.map(|found| stored(found.value())))
        });
        Box::pin(std::future::ready(read))
    }

    fn list(&self, table: Table, range: KeyRange<'_>) -> StoreFuture<'_, Vec<(Vec<u8>, Stored)>> {
        let read = self.0.file.read(|database| {
            let transaction = database.begin_read()?;
            let table = transaction.open_table(definition(table))?;
            let mut found = Vec::new();
            let first = range.after.filter(|after| *after > range.prefix).unwrap_or(range.prefix);
            for entry in table.range(first..)? {
                let (key, value) = entry?;
                let key = key.value();
                if !key.starts_with(range.prefix) || found.len() >= range.limit {
                    break;
                }
                if range.after.is_none_or(|after| key > after) {
                    found.push((key.to_vec(), stored(value.value())));
                }
            }
            Ok(found)
        });
        Box::pin(std::future::ready(read))
    }

    fn commit(&self, batch: Batch) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let queue = queue.ok_or_else(stopped)?;
            let (done, committed) = oneshot::channel();
            queue.send(Job { batch, done }).await.map_err(|_| stopped())?;
            committed.await.map_err(|_| stopped())?
        })
    }

    /// This process writes alone, and knows what it has written.
    fn watch(&self, _: &'static [Table], after: Option<u64>) -> StoreFuture<'_, Changes> {
        match after {
            None => Box::pin(std::future::ready(Ok(Changes::default()))),
            Some(_) => Box::pin(std::future::pending()),
        }
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn close(&self, deadline: Instant) -> bool {
        drop(self.0.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let has_ended = self.0.thread.join(deadline);
        if has_ended {
            self.0.file.close();
        }
        has_ended
    }

    fn has_ended(&self) -> bool {
        self.0.thread.has_ended()
    }
}

impl DatabaseFile {
    fn read<T>(&self, read: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let database = open.as_ref().ok_or_else(not_open)?;
        read(database).map_err(|error| unavailable(&error))
    }

    /// Writes the batches that are as expected in one transaction; the versions of those, and none for the others.
    fn write(&self, jobs: &[Job]) -> Result<Vec<Option<u64>>, StoreError> {
        self.read(|database| {
            let transaction = database.begin_write()?;
            let mut versions = Vec::with_capacity(jobs.len());
            for job in jobs {
                versions.push(match fits(&transaction, &job.batch.writes)? {
                    true => Some(apply(&transaction, &job.batch.writes)?),
                    false => None,
                });
            }
            transaction.commit()?;
            Ok(versions)
        })
    }

    /// Opens it again, which may take long: after an error of the disk the database refuses everything until then.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn open_again(&self, open: impl FnOnce(&Path) -> Result<Database, StoreError>) -> Result<(), StoreError> {
        let failed = self.open.write().unwrap_or_else(PoisonError::into_inner).take();
        // First, since the file is locked by it.
        drop(failed);
        let opened = open(&self.path)?;
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn close(&self) {
        drop(self.open.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl OngoingError {
    /// Whether it was not said lately.
    fn is_to_be_said(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|told| now.saturating_duration_since(told) >= TOLD_EVERY);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

/// The thread that writes.
fn write_all(file: &DatabaseFile, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    let (mut unwritten, mut unopened, mut failed) = (OngoingError::default(), OngoingError::default(), 0_u64);
    let mut open_again = || {
        // Not made anew: where the file is gone, nothing must be taken for an empty state.
        if let Err(error) = file.open_again(open_existing)
            && unopened.is_to_be_said(Instant::now())
        {
            tracing::error!(%error, "the state of the fleet cannot be opened again");
        }
    };
    while let Some(first) = queue.blocking_recv() {
        jobs.push(first);
        while jobs.len() < TOGETHER
            && let Ok(next) = queue.try_recv()
        {
            jobs.push(next);
        }
        if !file.is_open() {
            open_again();
        }
        let written = file.write(&jobs);
        if let Err(error) = &written {
            if file.is_open() {
                open_again();
            }
            failed += jobs.len() as u64;
            if unwritten.is_to_be_said(Instant::now()) {
                tracing::error!(%error, batches = failed, "the state of the fleet cannot be written; clients are told to try again");
            }
        }
        for (at, job) in jobs.drain(..).enumerate() {
            let outcome = match &written {
                Ok(versions) => versions.get(at).copied().flatten().ok_or(StoreError::Conflict),
                Err(error) => Err(error.clone()),
            };
            // Whoever does not wait any more asks again.
            let _gone = job.done.send(outcome);
        }
    }
}

fn open(path: &Path) -> Result<Database, StoreError> {
    let unusable = |error: &dyn std::fmt::Display| {
        let path = path.display();
        StoreError::Unusable(format!("opening the state of the fleet, {path}: {error}"))
    };
    make(path).map_err(|error| unusable(&error))?;
    let database = Database::builder().set_cache_size(CACHE_BYTES).create(path);
    checked(path, database.map_err(|error| unusable(&error))?)
}

/// Opens a file that was open before.
fn open_existing(path: &Path) -> Result<Database, StoreError> {
    let database = Database::builder().set_cache_size(CACHE_BYTES).open(path);
    checked(path, database.map_err(|error| StoreError::Unavailable(error.to_string()))?)
}

/// Looks at the format of a database.
fn checked(path: &Path, database: Database) -> Result<Database, StoreError> {
    let format = prepare(&database).map_err(|error| unavailable(&error))?;
    if format != FORMAT {
        return Err(StoreError::Unusable(format!(
            "the state of the fleet, {}, has format {format}, and this version knows {FORMAT}: it was written by a newer tidegate",
            path.display()
        )));
    }
    Ok(database)
}

/// Makes the file where there is none, so that it is there after a power cut.
fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tidegate_files::create_folder(folder, Access::Owner)?;
    tidegate_files::open(path, Access::Owner, |options| options.read(true).write(true).create(true))?;
    File::open(folder)?.sync_all()?;
    // The folder may be new itself.
    match folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Makes the tables; the format of the file.
fn prepare(database: &Database) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let format = {
        let mut versions = transaction.open_table(VERSIONS)?;
        let known = versions.get(FORMAT_KEY)?.map(|format| format.value());
        if known.is_none() {
            versions.insert(FORMAT_KEY, FORMAT)?;
        }
        known.unwrap_or(FORMAT)
    };
    for table in Table::ALL {
        transaction.open_table(definition(table))?;
    }
    transaction.commit()?;
    Ok(format)
}

/// Whether everything is as a batch expects.
fn fits(transaction: &WriteTransaction, batch: &[Write]) -> Result<bool, redb::Error> {
    for write in batch {
        let Some(wanted) = (match write.expected {
            Expected::Anything => None,
            Expected::Absent => Some(None),
            Expected::Version(version) => Some(Some(version)),
        }) else {
            continue;
        };
        let table = transaction.open_table(definition(write.table))?;
        let version = table.get(&*write.key)?.map(|found| version(found.value()));
        if version != wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes a batch; the version of its values.
fn apply(transaction: &WriteTransaction, batch: &[Write]) -> Result<u64, redb::Error> {
    let number = {
        let mut versions = transaction.open_table(VERSIONS)?;
        let number = versions.get(WRITES_KEY)?.map_or(0, |writes| writes.value()) + 1;
        versions.insert(WRITES_KEY, number)?;
        number
    };
    for write in batch {
        let mut table = transaction.open_table(definition(write.table))?;
        match &write.value {
            Some(value) => {
                let stored = [&number.to_le_bytes()[..], value].concat();
                table.insert(&*write.key, &*stored)?;
            }
            None => {
                table.remove(&*write.key)?;
            }
        }
    }
    Ok(number)
}

const fn definition(table: Table) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(table.name())
}

fn version(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |version| u64::from_le_bytes(*version))
}

fn stored(bytes: &[u8]) -> Stored {
    Stored { version: version(bytes), value: bytes.get(8..).unwrap_or_default().to_vec() }
}

fn unavailable(error: &redb::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn stopped() -> StoreError {
    StoreError::Unavailable("it is closed".to_owned())
}

fn not_open() -> StoreError {
    StoreError::Unavailable("it is closed, or opened again after an error of the disk".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While the database is opened again, which may be a repair, reads are refused and wait for nothing.
    #[test]
    fn reads_do_not_wait_for_a_repair() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.redb");
        let file = DatabaseFile { open: RwLock::new(Some(open(&path).unwrap())), path };
        let read = || file.read(|database| Ok(database.begin_read()?.list_tables()?.count()));
        let before = read().unwrap();
        let failed = file.open_again(|_| {
            assert!(matches!(read(), Err(StoreError::Unavailable(_))));
            Err(stopped())
        });
        assert_eq!(failed, Err(stopped()));
        assert!(matches!(read(), Err(StoreError::Unavailable(_))) && !file.is_open());
        file.open_again(|path| {
            assert!(read().is_err());
            open_existing(path)
        })
        .unwrap();
        assert_eq!(read(), Ok(before));
    }

    /// An error that goes on is said every 30 s.
    #[test]
    fn an_ongoing_error_is_said_now_and_then() {
        let (mut error, begun) = (OngoingError::default(), Instant::now());
        let said = (0..=60).filter(|s| error.is_to_be_said(begun + Duration::from_secs(*s)));
        assert_eq!(said.collect::<Vec<_>>(), [0, 30, 60]);
    }
}
