//! Files that are being received. They are in memory alone: a restart forgets them, and removes their bytes.

use super::chunks::{Chunks, ContentHash};
use super::{Client, FileError, FileName, FileRecord, FleetFiles, SHARE, counted, sync_folder};
use crate::agent_id::AgentId;
use crate::record::{decode, encode};
use crate::store::{KeyRange, Table, Write};
use crate::time;
use ring::digest;
use std::io::Read as _;
use std::ops::Deref;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_arena::Charge;
use tidegate_files::Access;

/// Unfinished files at a time, and those of one agent or of all operators.
const MOST_UNFINISHED: usize = 64;
const MOST_OF_A_CLIENT: usize = 4;
/// Finished uploads of one agent.
const MOST_UPLOADS: usize = 32;
/// The memory of an unfinished file beside its chunks, in bytes: texts, paths, places in maps.
const UNFINISHED_BYTES: u64 = 4 << 10;
/// An unfinished file is given up when no chunk of it has come for so long: its client has most likely given it up as well.
const LONGEST_IDLE_S: u32 = 10 * 60;
/// An unfinished file is given up after this time, whatever has come.
const LONGEST_S: u32 = 24 * 60 * 60;
/// Bytes that are hashed before others have a turn on the thread.
const HASHED_AT_ONCE: u64 = 4 << 20;
const HASH_BUFFER: usize = 64 << 10;

/// A file that somebody wants to send.
#[derive(Debug, Clone)]
pub(crate) struct FileOrder {
    pub(crate) client: Client,
    /// Its name in the folder and the state.
    pub(crate) file: FileName,
    /// Its record in the state, once it is finished. The hash is that of the content where it is known, and empty otherwise.
    pub(crate) record: FileRecord,
}

/// A file that is being received.
pub(crate) struct Unfinished {
    order: FileOrder,
    path: PathBuf,
    begun_s: u32,
    /// When it was begun, or its last chunk has come.
    active_s: AtomicU32,
    chunks: Mutex<Chunks>,
    _memory: Charge,
}

impl FleetFiles {
    /// Begins to receive a file: its room is taken from now on. An unfinished one of the same agent for the same action is given
    /// up: an agent begins anew only when that has failed.
    ///
    /// # Errors
    /// [`FileError`]; nothing is left then.
    pub(crate) async fn begin(&self, order: FileOrder) -> Result<(), FileError> {
        let size = order.record.size;
        let most = self.most_of(order.client);
        if size == 0 {
            return Err(FileError::Invalid("the file is empty".to_owned()));
        }
        if size > most {
            return Err(FileError::TooLarge { size, most });
        }
        let chunk_bytes = self.chunk_bytes(order.client);
        let memory = UNFINISHED_BYTES.saturating_add(Chunks::bytes(size, chunk_bytes));
        let memory = self.memory.try_charge(SHARE, memory).map_err(|_| FileError::Memory)?;
        self.replace_unfinished(&order).await;
        let (file, begun_s) = (order.file.clone(), time::uptime_s());
        let unfinished = Arc::new(Unfinished {
            path: self.path(&file),
            begun_s,
            active_s: AtomicU32::new(begun_s),
            chunks: Mutex::new(Chunks::new(size, chunk_bytes)),
            order,
            _memory: memory,
        });
        if self.store.get(Table::Files, file.as_str().as_bytes()).await?.is_some() {
            return Err(FileError::Exists(format!("`{}` is there already; remove it first", file.id())));
        }
        let finished = match unfinished.order.client {
            Client::Agent(agent) => self.uploads_of(agent).await?,
            Client::Operator => 0,
        };
        self.enter(&file, &unfinished, finished)?;
        let path = unfinished.path.clone();
        let made = self.thread.run(move || {
            tidegate_files::open(&path, Access::Owner, |options| options.write(true).create_new(true))?;
            Ok(())
        });
        if let Err(error) = made.await {
            self.give_up(&file).await;
            return Err(error);
        }
        Ok(())
    }

    /// The unfinished file with this name, if it is this client's.
    ///
    /// # Errors
    /// When there is none, or it is another's.
    pub(crate) fn unfinished(&self, file: &FileName, client: Client) -> Result<Arc<Unfinished>, FileError> {
        let found = self.state().unfinished.get(file).cloned().ok_or(FileError::Unknown)?;
        match found.order.client == client {
            true => Ok(found),
            false => Err(FileError::OfAnother),
        }
    }

    /// Writes a chunk, which must have this hash where one is given. It may have come before.
    ///
    /// # Errors
    /// [`FileError`]. When the disk takes no more, the file is given up; otherwise the chunk can be sent again.
    pub(crate) async fn write_chunk(
        &self,
        unfinished: &Arc<Unfinished>,
        number: u64,
        expected: Option<ContentHash>,
        chunk: impl Deref<Target = [u8]> + Send + 'static,
    ) -> Result<(), FileError> {
        unfinished.seen_at(time::uptime_s());
        let of_file = Arc::clone(unfinished);
        let written = self.thread.run(move || of_file.write(number, expected, &chunk)).await;
        if let Err(FileError::DiskFull | FileError::Disk(_)) = &written {
            self.abandon(unfinished).await;
        }
        written
    }

    /// Ends a file: it is there for others, and durable, when this returns. `transit_hash` is the hash of all chunks' hashes, where the
    /// client has one.
    ///
    /// # Errors
    /// [`FileError`]. The file is given up when it is not as its client says; when the state cannot be written, the end
    /// can be tried again.
    pub(crate) async fn finish(
        &self,
        file: &FileName,
        client: Client,
        transit_hash: Option<ContentHash>,
    ) -> Result<FileRecord, FileError> {
        let unfinished = match self.unfinished(file, client) {
            // The answer to the first end may have been lost.
            Err(FileError::Unknown) => return self.finished_before(file, client).await,
            found => found?,
        };
        let ending = unfinished.begin_ending()?;
        let hash = match self.checked(&unfinished, transit_hash).await {
            Ok(hash) => hash,
            Err(error) => {
                self.give_up(file).await;
                return Err(error);
            }
        };
        let record =
            FileRecord { sha256: hash.text(), created_ms: time::now_ms(), ..unfinished.order.record.clone() };
        let write = Write::put(Table::Files, file.as_str(), encode(&record));
        self.store.commit(vec![write].into()).await?;
        ending.end();
        // Its room stays taken.
        self.state().unfinished.remove(file);
        Ok(record)
    }

    /// Gives an unfinished file up, unless it is being ended.
    pub(crate) async fn abandon(&self, unfinished: &Arc<Unfinished>) {
        if let Ok(_ending) = unfinished.begin_ending() {
            self.give_up(&unfinished.order.file).await;
        }
    }

    /// Gives an unfinished file up, and removes its bytes. Nothing else may be ending it.
    async fn give_up(&self, file: &FileName) {
        let Some(unfinished) = self.state().unfinished.remove(file) else { return };
        // A commit that failed may have reached the disk: then it is finished.
        if let Ok(Some(_)) = self.store.get(Table::Files, file.as_str().as_bytes()).await {
            return;
        }
        self.remove_bytes(file).await;
        self.give_back(unfinished.order.record.size);
    }

    /// Gives up the unfinished file that this one is to replace.
    async fn replace_unfinished(&self, order: &FileOrder) {
        let Client::Agent(_) = order.client else { return };
        let Some(action) = &order.record.action_id else { return };
        let replaced: Vec<Arc<Unfinished>> = {
            let state = self.state();
            let others = state.unfinished.values().filter(|other| {
                other.order.client == order.client && other.order.record.action_id.as_ref() == Some(action)
            });
            others.cloned().collect()
        };
        for unfinished in replaced {
            self.abandon(&unfinished).await;
        }
    }

    /// Gives up what nobody goes on with, and what is not finished within a day.
    pub(super) async fn give_up_old(&self, now_s: u32) {
        let is_old = |unfinished: &Unfinished| {
            let idle_s = now_s.saturating_sub(unfinished.active_s.load(Ordering::Relaxed));
            idle_s >= LONGEST_IDLE_S || now_s.saturating_sub(unfinished.begun_s) >= LONGEST_S
        };
        let old: Vec<Arc<Unfinished>> = {
            let state = self.state();
            state.unfinished.values().filter(|unfinished| is_old(unfinished)).cloned().collect()
        };
        for unfinished in old {
            let file = &unfinished.order.file;
            tracing::info!(%file, "gave up an upload: no chunk of it came for 10 minutes, or it was not finished within a day");
            self.abandon(&unfinished).await;
        }
    }

    /// Removes the bytes of a file that nobody finds any more. What stays after a failure is removed at the next start.
    pub(super) async fn remove_bytes(&self, file: &FileName) {
        let path = self.path(file);
        let removed = self.thread.run(move || Ok(std::fs::remove_file(&path)?)).await;
        if let Err(error) = removed
            && error != FileError::Unknown
        {
            tracing::warn!(%file, %error, "a file of the fleet could not be removed; the next start removes it");
        }
    }

    /// Room that one client may have.
    fn most_of(&self, client: Client) -> u64 {
        match client {
            Client::Agent(_) => self.settings.quota / 2,
            Client::Operator => self.settings.quota,
        }
    }

    /// Room that the uploads of an agent have.
    async fn uploads_of(&self, agent: AgentId) -> Result<u64, FileError> {
        let prefix = FileName::uploads_of(agent);
        let range = KeyRange { prefix: prefix.as_bytes(), after: None, limit: MOST_UPLOADS };
        let uploads = self.store.list(Table::Files, range).await?;
        if uploads.len() >= MOST_UPLOADS {
            return Err(FileError::AgentQuota);
        }
        let sizes = uploads.iter().map(|(_, stored)| Ok(counted(decode::<FileRecord>(&stored.value)?.size)));
        sizes.sum()
    }

    /// Takes room for a file, if there is some. `finished` is what finished files of its client have.
    fn enter(&self, file: &FileName, unfinished: &Arc<Unfinished>, finished: u64) -> Result<(), FileError> {
        let (size, quota, client) =
            (unfinished.order.record.size, self.settings.quota, unfinished.order.client);
        let mut state = self.state();
        if state.unfinished.contains_key(file) {
            return Err(FileError::Exists(format!("`{}` is being received already", file.id())));
        }
        let of_client = || state.unfinished.values().filter(|other| other.order.client == client);
        if state.unfinished.len() >= MOST_UNFINISHED || of_client().count() >= MOST_OF_A_CLIENT {
            return Err(FileError::TooMany("unfinished uploads"));
        }
        let of_client: u64 = of_client().map(|other| counted(other.order.record.size)).sum();
        let of_client = of_client.saturating_add(finished).saturating_add(counted(size));
        if matches!(client, Client::Agent(_)) && of_client > self.most_of(client) {
            return Err(FileError::AgentQuota);
        }
        let used = state.used.saturating_add(counted(size));
        if used > quota {
            return Err(FileError::Quota { size, used: state.used, quota });
        }
        state.used = used;
        state.unfinished.insert(file.clone(), Arc::clone(unfinished));
        Ok(())
    }

    /// Checks that all of a file has come as its client says, and makes it durable; the hash of its content.
    async fn checked(
        &self,
        unfinished: &Arc<Unfinished>,
        transit_hash: Option<ContentHash>,
    ) -> Result<ContentHash, FileError> {
        let found = unfinished.chunks().transit_hash()?;
        if transit_hash.is_some_and(|wanted| wanted != found) {
            return Err(FileError::Invalid("the hash of the chunks' hashes is another".to_owned()));
        }
        let (mut context, mut at) = (digest::Context::new(&digest::SHA256), 0);
        while at < unfinished.order.record.size {
            let of_file = Arc::clone(unfinished);
            (context, at) = self.thread.run(move || of_file.hash_some(context, at)).await?;
        }
        let hash = ContentHash::finish(context.finish());
        let wanted = &unfinished.order.record.sha256;
        if !wanted.is_empty() && *wanted != hash.text() {
            return Err(FileError::Invalid(format!(
                "the content has the SHA-256 {}, and not {wanted}",
                hash.text()
            )));
        }
        let (of_file, folder) = (Arc::clone(unfinished), self.folder.clone());
        self.thread.run(move || of_file.sync(&folder)).await?;
        Ok(hash)
    }

    async fn finished_before(&self, file: &FileName, client: Client) -> Result<FileRecord, FileError> {
        let record = self.record(file).await?;
        match client {
            Client::Agent(agent) if record.agent_id != Some(agent.to_string()) => Err(FileError::OfAnother),
            _ => Ok(record),
        }
    }
}

impl Unfinished {
    /// A chunk of it has come at this time.
    pub(super) fn seen_at(&self, now_s: u32) {
        self.active_s.store(now_s, Ordering::Relaxed);
    }

    fn chunks(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On the thread of files.
    fn write(&self, number: u64, expected: Option<ContentHash>, chunk: &[u8]) -> Result<(), FileError> {
        let at = {
            let chunks = self.chunks();
            if chunks.is_ending || chunks.is_over {
                return Err(FileError::Exists("the upload is being ended".to_owned()));
            }
            chunks.place(number, chunk.len() as u64)?
        };
        let hash = ContentHash::of(chunk);
        if expected.is_some_and(|expected| expected != hash) {
            return Err(FileError::Invalid(format!(
                "chunk {number} does not have the SHA-256 that its header says"
            )));
        }
        // Not made anew: one that was given up meanwhile is gone.
        let file = tidegate_files::open(&self.path, Access::Owner, |options| options.write(true))?;
        file.write_all_at(chunk, at)?;
        self.chunks().has_come(number, hash);
        Ok(())
    }

    /// Goes on with the hash of the content from `at`; on the thread of files. Returns where it has come to.
    fn hash_some(&self, mut context: digest::Context, at: u64) -> Result<(digest::Context, u64), FileError> {
        let mut file = tidegate_files::read(&self.path)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(at))?;
        let (mut buffer, mut hashed) = (vec![0; HASH_BUFFER], 0);
        while hashed < HASHED_AT_ONCE {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            context.update(buffer.get(..read).unwrap_or_default());
            hashed += read as u64;
        }
        match hashed {
            0 => Err(FileError::Disk("the file is shorter than what was written".to_owned())),
            hashed => Ok((context, at + hashed)),
        }
    }

    /// Makes it durable; on the thread of files.
    fn sync(&self, folder: &Path) -> Result<(), FileError> {
        let file = tidegate_files::read(&self.path)?;
        let len = file.metadata()?.len();
        if len != self.order.record.size {
            return Err(FileError::Disk(format!("it has {len} bytes on the disk")));
        }
        file.sync_all()?;
        Ok(sync_folder(folder)?)
    }

    /// Nothing changes it while the guard is there.
    fn begin_ending(self: &Arc<Self>) -> Result<Ending, FileError> {
        let mut chunks = self.chunks();
        match std::mem::replace(&mut chunks.is_ending, true) {
            true => Err(FileError::TooMany("ends of one upload")),
            false => Ok(Ending(Arc::clone(self))),
        }
    }
}

/// The end of a file that is being decided on.
struct Ending(Arc<Unfinished>);

impl Ending {
    /// It has ended for good.
    fn end(self) {
        self.0.chunks().is_over = true;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.chunks().is_ending = false;
    }
}
