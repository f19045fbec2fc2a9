//! Files all of which is there: listed, removed, and removed when they are old.

use super::{FileError, FileKind, FileName, FileRecord, FleetFiles};
use crate::record::decode;
use crate::store::{KeyRange, Table, Write};
use crate::time;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// How long uploads are kept.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How often it is looked for uploads that nobody has finished, and after how many rounds for old ones.
const ROUND: Duration = Duration::from_secs(60);
const ROUNDS_PER_CLEANUP: u32 = 30;
/// Records that are read at a time.
const PAGE: usize = 100;

/// A file as operators see it.
#[derive(Debug, Serialize)]
pub(crate) struct FileView {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action_id: Option<String>,
    pub(crate) mime_type: String,
    pub(crate) sha256: String,
}

impl FleetFiles {
    /// Removes uploads that are old, and unfinished files that nobody goes on with, now and then; for ever.
    pub async fn keep_clean(self: Arc<Self>) {
        for round in 0_u32.. {
            if round.is_multiple_of(ROUNDS_PER_CLEANUP)
                && let Err(error) = self.remove_old(time::now_ms()).await
            {
                tracing::warn!(%error, "old uploads could not be removed; retrying later");
            }
            tokio::time::sleep(ROUND).await;
            self.give_up_old(time::uptime_s()).await;
        }
    }

    /// The record of a file.
    ///
    /// # Errors
    /// When there is none, or the state cannot be read.
    pub(crate) async fn record(&self, file: &FileName) -> Result<FileRecord, FileError> {
        let stored = self.store.get(Table::Files, file.as_str().as_bytes()).await?;
        Ok(decode(&stored.ok_or(FileError::Unknown)?.value)?)
    }

    /// The newest files of a kind first.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) async fn list(&self, kind: FileKind, limit: usize) -> Result<Vec<FileView>, FileError> {
        let mut newest: Vec<(u64, FileView)> = Vec::new();
        let mut after: Option<Vec<u8>> = None;
        while let Some(page) = self.page(kind, &mut after).await? {
            let view =
                |(file, record): (FileName, FileRecord)| (record.created_ms, FileView::of(&file, record));
            newest.extend(page.into_iter().map(view));
            newest.sort_by_key(|(created, _)| std::cmp::Reverse(*created));
            newest.truncate(limit);
            // Reading waits for nothing, so others get their turn here.
            tokio::task::yield_now().await;
        }
        Ok(newest.into_iter().map(|(_, view)| view).collect())
    }

    /// Removes a file: first it is found no more, then its bytes are gone.
    ///
    /// # Errors
    /// When there is none here, or the state cannot be written.
    pub(crate) async fn remove(&self, file: &FileName) -> Result<(), FileError> {
        let record = self.record(file).await?;
        // The gateway that has the bytes would keep them.
        if self.store.is_shared() && !self.is_here(file).await {
            return Err(FileError::Unknown);
        }
        self.store.commit(vec![Write::remove(Table::Files, file.as_str())].into()).await?;
        if self.is_here(file).await {
            self.remove_bytes(file).await;
            self.give_back(record.size);
        }
        Ok(())
    }

    /// Removes uploads that are older than [`RETENTION`].
    pub(super) async fn remove_old(&self, now_ms: u64) -> Result<(), FileError> {
        let oldest = now_ms.saturating_sub(u64::try_from(RETENTION.as_millis()).unwrap_or(u64::MAX));
        let mut after: Option<Vec<u8>> = None;
        while let Some(page) = self.page(FileKind::Upload, &mut after).await? {
            for (file, record) in page {
                // Those of other gateways with the same state are theirs to remove.
                if record.created_ms < oldest && self.is_here(&file).await {
                    self.remove(&file).await?;
                    tracing::info!(%file, "removed an upload that was a week old");
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Whether the bytes of a file are on this gateway.
    async fn is_here(&self, file: &FileName) -> bool {
        let path = self.path(file);
        self.thread.run(move || Ok(std::fs::metadata(&path)?)).await.is_ok()
    }

    /// Files of a kind behind the one that was read last.
    async fn page(
        &self,
        kind: FileKind,
        after: &mut Option<Vec<u8>>,
    ) -> Result<Option<Vec<(FileName, FileRecord)>>, FileError> {
        let range = KeyRange { prefix: FileName::prefix(kind), after: after.as_deref(), limit: PAGE };
        let page = self.store.list(Table::Files, range).await?;
        let Some((last, _)) = page.last() else { return Ok(None) };
        *after = Some(last.clone());
        let record = |(key, stored): (Vec<u8>, crate::store::Stored)| {
            Ok((FileName::stored(&key), decode::<FileRecord>(&stored.value)?))
        };
        page.into_iter().map(record).collect::<Result<_, FileError>>().map(Some)
    }
}

impl FileView {
    pub(crate) fn of(file: &FileName, record: FileRecord) -> FileView {
        FileView {
            id: file.id().to_owned(),
            name: record.name,
            size: record.size,
            created_at: time::text(record.created_ms),
            agent_id: record.agent_id,
            action_id: record.action_id,
            mime_type: record.mime_type,
            sha256: record.sha256,
        }
    }
}
