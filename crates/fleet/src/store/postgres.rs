//! The state in PostgreSQL, for several gateways. One thread drives the connections: one that writes, and commits together
//! whatever arrived while it committed before; some that read; one that watches for changes.

mod link;
mod read;
mod schema;
#[cfg(test)]
pub(super) mod tests;
mod tls;
mod watch;
mod write;

use super::embedded::STACK_BYTES;
use super::{Batch, Changes, KeyRange, Store, StoreError, StoreFuture, Stored, Table};
use crate::worker_thread::WorkerThread;
use link::Link;
use read::{ListedRange, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};
use watch::WatchJob;
use write::WriteJob;

/// Connections that read.
const READERS: usize = 2;
/// Connections of a gateway to the database: readers, one that writes, and one that watches.
pub const CONNECTIONS: usize = READERS + 2;
/// The buffers of a connection and what is read by it at a time, in bytes: a page of a table or of changes, in the buffer and as
/// values. Longer values, which are metadata for operators, are read one at a time, and counted by whoever reads them.
pub const CONNECTION_BYTES: usize = 3 << 20;
/// Jobs that may wait for connections. Whoever comes then waits outside.
const QUEUE: usize = 256;

/// Where the database is.
#[derive(Clone)]
pub struct PostgresSettings {
    /// `postgres://USER:PASSWORD@HOST[,HOST]/DATABASE?sslmode=require`, as libpq reads it. Without `sslmode` a host that is not this
    /// machine needs TLS.
    pub url: String,
    /// Authorities of the server's certificate, as PEM; those of the system without it.
    pub ca_file: Option<PathBuf>,
}

/// The state in a database. Clones are the same.
#[derive(Clone)]
pub struct PostgresStore(Arc<Inner>);

struct Inner {
    /// Taken when the store stops.
    queues: Mutex<Option<Queues>>,
    thread: WorkerThread,
}

#[derive(Clone)]
struct Queues {
    writes: mpsc::Sender<WriteJob>,
    reads: mpsc::Sender<Read>,
    watches: mpsc::Sender<WatchJob>,
}

impl PostgresStore {
    /// Connects, and makes the tables where there are none.
    ///
    /// # Errors
    /// When the settings cannot be used, the database cannot be reached, or it was written by a version that this one does not know.
    pub fn open(settings: &PostgresSettings) -> Result<PostgresStore, StoreError> {
        let target = Arc::new(link::Target::new(settings)?);
        let (writes, write_jobs) = mpsc::channel(QUEUE);
        let (reads, read_jobs) = mpsc::channel(QUEUE);
        let (watches, watch_jobs) = mpsc::channel(1);
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("fleet-store".to_owned()).stack_size(STACK_BYTES);
        let thread = thread.spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _gone =
                        ready.send(Err(StoreError::Unavailable(format!("starting a runtime: {error}"))));
                    return;
                }
            };
            let read_jobs = Arc::new(tokio::sync::Mutex::new(read_jobs));
            let link = || Link::new(Arc::clone(&target));
            runtime.block_on(async {
                let mut writer = link();
                let prepared = schema::prepare(&mut writer).await;
                let is_prepared = prepared.is_ok();
                if ready.send(prepared).is_err() || !is_prepared {
                    return;
                }
                // Each ends when its queue is closed and empty.
                tokio::join!(
                    write::write_all(writer, write_jobs),
                    read::read_all(link(), Arc::clone(&read_jobs)),
                    read::read_all(link(), Arc::clone(&read_jobs)),
                    watch::watch_all(link(), watch_jobs),
                );
            });
        });
        let thread =
            thread.map_err(|error| StoreError::Unavailable(format!("starting a thread: {error}")))?;
        // The thread says it, or has ended.
        is_ready.recv().map_err(|_| stopped())??;
        let queues = Mutex::new(Some(Queues { writes, reads, watches }));
        Ok(PostgresStore(Arc::new(Inner { queues, thread: WorkerThread::new(thread) })))
    }

    fn queues(&self) -> Result<Queues, StoreError> {
        self.0.queues.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(stopped)
    }
}

impl Store for PostgresStore {
    fn get(&self, table: Table, key: &[u8]) -> StoreFuture<'_, Option<Stored>> {
        let key = key.to_vec();
        Box::pin(async move {
            let (done, found) = oneshot::channel();
            let reads = self.queues()?.reads;
            reads.send(Read::Get { table, key, done }).await.map_err(|_| stopped())?;
            drop(reads);
            found.await.map_err(|_| stopped())?
        })
    }

    /// A page ends early where its values are long.
    fn list(&self, table: Table, range: KeyRange<'_>) -> StoreFuture<'_, Vec<(Vec<u8>, Stored)>> {
        let range = ListedRange::of(range);
        Box::pin(async move {
            let (done, found) = oneshot::channel();
            let reads = self.queues()?.reads;
            reads.send(Read::List { table, range, done }).await.map_err(|_| stopped())?;
            drop(reads);
            found.await.map_err(|_| stopped())?
        })
    }

    fn commit(&self, batch: Batch) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let (done, committed) = oneshot::channel();
            let writes = self.queues()?.writes;
            writes.send(WriteJob { batch, done }).await.map_err(|_| stopped())?;
            drop(writes);
            committed.await.map_err(|_| stopped())?
        })
    }

    fn watch(&self, tables: &'static [Table], after: Option<u64>) -> StoreFuture<'_, Changes> {
        Box::pin(async move {
            let (done, changes) = oneshot::channel();
            let watches = self.queues()?.watches;
            watches.send(WatchJob { tables, after, done }).await.map_err(|_| stopped())?;
            drop(watches);
            changes.await.map_err(|_| stopped())?
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn close(&self, deadline: Instant) -> bool {
        drop(self.0.queues.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.0.thread.join(deadline)
    }

    fn has_ended(&self) -> bool {
        self.0.thread.has_ended()
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("it is closed".to_owned())
}

/// A version or a position, as the database has it.
fn to_bigint(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

fn of_bigint(version: i64) -> u64 {
    u64::try_from(version).unwrap_or(0)
}
