//! Files of agents and for agents: uploads, artifacts that policies list, and files that actions name.
//!
//! The bytes are in a folder, the records in the [`Store`], and each file has the same name in both. A file has a record only when all of
//! it is on the disk, so what has none at the start is left over from a crash, and removed.

mod chunk_turns;
mod chunks;
mod download;
mod finished;
mod owner;
mod record;
#[cfg(test)]
mod tests;
mod thread;
mod unfinished;

pub(crate) use chunk_turns::ChunkTurn;
pub(crate) use chunks::ContentHash;
pub(crate) use download::{ByteRange, NoSuchRange, OpenedFile};
pub(crate) use finished::FileView;
pub(crate) use record::{FileKind, FileName, FileRecord};
pub use thread::FILE_STACK_BYTES;
pub(crate) use unfinished::{FileOrder, Unfinished};

use crate::agent_id::AgentId;
use crate::store::{Store, StoreError, Table};
use chunk_turns::ChunkTurns;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thread::FileThread;
use tidegate_arena::{Arena, GROWTH_STEP, Share};
use tidegate_files::Access;
use tidegate_http1::AdmissionFuture;
use tokio::sync::Semaphore;

/// Downloads of agents at a time.
pub const DOWNLOADS: usize = 16;
/// Downloads of operators at a time.
pub const OPERATOR_DOWNLOADS: usize = 4;
/// The buffer of a download, in bytes.
pub const DOWNLOAD_BYTES: usize = 64 << 10;
/// The longest key that agents verify packages with, in bytes.
pub const LONGEST_PGP_KEY: usize = 64 << 10;
/// The longest chunk of an upload, in bytes.
const LONGEST_CHUNK: usize = 4 << 20;
/// The longest chunk from an operator, in bytes: the admin address takes no long bodies.
const LONGEST_OPERATOR_CHUNK: usize = 128 << 10;
/// The least that a file counts, in bytes: so room on the disk bounds how many there are.
const LEAST_BYTES: u64 = 4 << 10;

/// The settings of files.
#[derive(Debug, Clone, Copy)]
pub struct FileSettings {
    /// Room on the disk for all files, in bytes.
    pub quota: u64,
    /// The longest body of a request of an agent, in bytes.
    pub max_body: usize,
    /// The memory of requests and answers, in bytes.
    pub memory: u64,
}

/// The key that agents verify packages with.
#[derive(Debug, Clone, Default)]
pub struct PgpKey {
    /// Whether agents come by TLS: without, nobody gives a key out.
    pub has_tls: bool,
    /// The text, if the gateway has it.
    pub key: Option<Box<[u8]>>,
}

/// The files of the fleet.
pub struct FleetFiles {
    folder: PathBuf,
    store: Arc<dyn Store>,
    thread: FileThread,
    settings: FileSettings,
    pgp: PgpKey,
    /// Pays for what is in memory about unfinished files.
    memory: Arena,
    chunk_turns: Arc<ChunkTurns>,
    downloads: Arc<Semaphore>,
    operator_downloads: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Room that files have, or will have when they are complete.
    used: u64,
    unfinished: HashMap<FileName, Arc<Unfinished>>,
}

/// The sender or the receiver of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    Agent(AgentId),
    Operator,
}

/// Why a file is not received or delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileError {
    #[error("there is no such file here, or it was given up; begin anew")]
    Unknown,
    #[error("the upload is that of another agent")]
    OfAnother,
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Exists(String),
    #[error(
        "the file has {size} bytes, and {most} are the most: those of `listen.fleet.files`, of which an agent may have half"
    )]
    TooLarge { size: u64, most: u64 },
    #[error(
        "the agent has as many uploads here as it may: 32, and half of `listen.fleet.files`; remove some with `tidegate fleet upload rm`"
    )]
    AgentQuota,
    #[error(
        "the file has {size} bytes, and of the {quota} in `listen.fleet.files` {used} are in use; remove files with `tidegate fleet \
         upload rm`, or raise it"
    )]
    Quota { size: u64, used: u64, quota: u64 },
    #[error("the disk is full")]
    DiskFull,
    #[error("the file could not be written or read: {0}")]
    Disk(String),
    #[error("there are too many {0} at a time; try again")]
    TooMany(&'static str),
    #[error("there is no memory for another upload; try again")]
    Memory,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FleetFiles {
    /// Opens the folder, or makes it, and removes what a crash has left there.
    ///
    /// # Errors
    /// When the folder or the state cannot be read, and when the files belong to another state.
    pub async fn open(
        folder: &Path,
        store: Arc<dyn Store>,
        (settings, pgp): (FileSettings, PgpKey),
        memory: Arena,
    ) -> Result<Arc<FleetFiles>, StoreError> {
        let failed = |error: io::Error| {
            StoreError::Unavailable(format!("opening the files of the fleet, {}: {error}", folder.display()))
        };
        tidegate_files::create_folder(folder, Access::Owner).map_err(failed)?;
        // Before anything is removed: its records are elsewhere.
        owner::claim(folder, &*store).await?;
        // A chunk is a body, so as many as half of the memory holds; the other half is for other requests.
        let chunks = usize::try_from(settings.memory / 2).unwrap_or(usize::MAX) / chunk_bytes(&settings);
        // One that waits has its head, and what came with it.
        let waiting = usize::try_from(settings.memory / 4).unwrap_or(usize::MAX) / GROWTH_STEP;
        let used = remove_leftovers(folder, &*store).await.map_err(failed)?;
        Ok(Arc::new(FleetFiles {
            folder: folder.to_owned(),
            store,
            thread: FileThread::start().map_err(failed)?,
            settings,
            pgp,
            memory,
            chunk_turns: Arc::new(ChunkTurns::new(chunks, waiting)),
            downloads: Arc::new(Semaphore::new(DOWNLOADS)),
            operator_downloads: Arc::new(Semaphore::new(OPERATOR_DOWNLOADS)),
            state: Mutex::new(State { used, unfinished: HashMap::new() }),
        }))
    }

    /// How long the chunks of a file are, but for the last, in bytes.
    pub(crate) fn chunk_bytes(&self, client: Client) -> usize {
        match client {
            Client::Agent(_) => chunk_bytes(&self.settings),
            Client::Operator => LONGEST_OPERATOR_CHUNK.min(self.settings.max_body),
        }
    }

    /// Has a [turn](Self::chunk_turn) ready for the chunk of this client, which is decided on when the future has ended, or at once
    /// where there is none.
    pub(crate) fn reserve_chunk_turn(&self, agent: AgentId, client: SocketAddr) -> Option<AdmissionFuture> {
        self.chunk_turns.reserve(agent, client)
    }

    /// The turn that was reserved for the chunk of this client.
    pub(crate) fn reserved_chunk_turn(&self, client: SocketAddr) -> Option<ChunkTurn> {
        self.chunk_turns.granted_to(client)
    }

    /// A turn to receive a chunk: it is held while its body is in memory.
    ///
    /// # Errors
    /// When there are too many chunks already, or the agent has half of the turns.
    pub(crate) fn chunk_turn(&self, agent: AgentId) -> Result<ChunkTurn, FileError> {
        self.chunk_turns.take(agent)
    }

    /// The key that agents verify packages with.
    pub(crate) fn pgp(&self) -> &PgpKey {
        &self.pgp
    }

    /// Room that is in use, and all there is, in bytes.
    pub fn room(&self) -> (u64, u64) {
        (self.state().used, self.settings.quota)
    }

    /// Whether its thread has ended although it must not.
    pub fn has_ended(&self) -> bool {
        self.thread.has_ended()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &FileName) -> PathBuf {
        self.folder.join(name.as_str())
    }

    /// Gives the room of a file back.
    fn give_back(&self, size: u64) {
        let mut state = self.state();
        state.used = state.used.saturating_sub(counted(size));
    }
}

/// Bytes that a file counts.
fn counted(size: u64) -> u64 {
    size.max(LEAST_BYTES)
}

fn chunk_bytes(settings: &FileSettings) -> usize {
    LONGEST_CHUNK.min(settings.max_body)
}

/// Removes what has no record; the room of the rest.
async fn remove_leftovers(folder: &Path, store: &dyn Store) -> io::Result<u64> {
    let mut used = 0_u64;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let recorded = store.get(Table::Files, name.as_encoded_bytes()).await.map_err(io::Error::other)?;
        if recorded.is_some() {
            used = used.saturating_add(counted(entry.metadata()?.len()));
        } else if entry.file_type()?.is_file() {
            std::fs::remove_file(entry.path())?;
            tracing::info!(file = %entry.path().display(), "removed a file of the fleet that was not complete");
        }
    }
    Ok(used)
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FileError::DiskFull,
            io::ErrorKind::NotFound => FileError::Unknown,
            _ => FileError::Disk(error.to_string()),
        }
    }
}

/// The share that pays for unfinished files.
const SHARE: Share = Share::Ingest;
