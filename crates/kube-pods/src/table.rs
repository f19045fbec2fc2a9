//! The pods that are known, shared between the watch and the readers.

use crate::counters::Counters;
use crate::log_path::LogPath;
use crate::pod::{Pod, PodLimits};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What a pod takes beside itself: its place in the map and in the queue of deleted ones.
const ENTRY_BYTES: usize = 256;

/// The pods of a node by the uid in the paths of their logs.
///
/// Invariant: the pods in it take at most [`PodLimits::table_bytes`]. Deleted ones go first, the oldest before others; when
/// none is left, a new pod is not kept, which is counted.
#[derive(Clone)]
pub struct PodTable {
    shared: Arc<Shared>,
}

struct Shared {
    limits: PodLimits,
    keep_deleted: Duration,
    pods: Mutex<Pods>,
    changes: watch::Sender<u64>,
    counters: Counters,
}

#[derive(Default)]
struct Pods {
    by_uid: HashMap<Box<str>, Entry>,
    bytes: usize,
    /// In the order of their deletion; an entry is stale when the pod is there again.
    deleted: VecDeque<(Instant, Box<str>)>,
    /// The current list. What is of another at its end is gone.
    generation: u64,
    is_listed: bool,
}

struct Entry {
    pod: Arc<Pod>,
    generation: u64,
    deleted_at: Option<Instant>,
}

/// Tells that the table has changed.
pub struct Changes(watch::Receiver<u64>);

impl Changes {
    /// Waits for the next change; forever if there will be none.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl PodTable {
    /// An empty table. Deleted pods stay for `keep_deleted`, for the lines that were not read yet.
    #[must_use]
    pub fn new(limits: PodLimits, keep_deleted: Duration) -> PodTable {
        let shared = Shared {
            limits,
            keep_deleted,
            pods: Mutex::default(),
            changes: watch::Sender::new(0),
            counters: Counters::default(),
        };
        PodTable { shared: Arc::new(shared) }
    }

    /// The memory to be planned for a table, in bytes.
    #[must_use]
    pub fn planned_bytes(limits: PodLimits) -> usize {
        limits.table_bytes
    }

    /// The pod whose log is at this path, as it is or was last.
    #[must_use]
    pub fn pod_of(&self, path: &LogPath<'_>) -> Option<Arc<Pod>> {
        let pods = self.lock();
        pods.by_uid.get(path.uid).map(|entry| Arc::clone(&entry.pod)).filter(|pod| pod.has_log(path))
    }

    /// Whether all pods were listed once: one that is not known is new, or the API server is behind.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.lock().is_listed
    }

    /// How many pods there are, deleted ones included, and their bytes.
    #[must_use]
    pub fn len_and_bytes(&self) -> (usize, usize) {
        let pods = self.lock();
        (pods.by_uid.len(), pods.bytes)
    }

    /// Tells of changes from now on.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes(self.shared.changes.subscribe())
    }

    /// A number that grows with every change.
    #[must_use]
    pub fn version(&self) -> u64 {
        *self.shared.changes.borrow()
    }

    /// What the watch has done.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(crate) fn limits(&self) -> PodLimits {
        self.shared.limits
    }

    /// A list begins: the pods that it does not have by its end were deleted.
    pub(crate) fn begin_list(&self) {
        self.lock().generation += 1;
    }

    /// The list is complete.
    pub(crate) fn end_list(&self, now: Instant) {
        let mut pods = self.lock();
        let generation = pods.generation;
        let gone = |entry: &Entry| entry.generation != generation && entry.deleted_at.is_none();
        let gone: Vec<_> =
            pods.by_uid.iter().filter(|(_, entry)| gone(entry)).map(|(uid, _)| uid.clone()).collect();
        for uid in gone {
            pods.delete(&uid, now);
        }
        pods.is_listed = true;
        drop(pods);
        self.tell();
    }

    /// The pod is there, in this state.
    pub fn apply(&self, pod: Pod, now: Instant) {
        self.put(pod, None, now);
    }

    /// The pod was deleted, from this state.
    pub fn delete(&self, pod: Pod, now: Instant) {
        self.put(pod, Some(now), now);
    }

    fn put(&self, pod: Pod, deleted_at: Option<Instant>, now: Instant) {
        if pod.log_uid.is_empty() {
            return Counters::add(&self.shared.counters.not_kept, 1);
        }
        let mut pods = self.lock();
        pods.forget_deleted(now.checked_sub(self.shared.keep_deleted));
        let uid = pod.log_uid.clone();
        pods.remove(&uid);
        let bytes = pod.bytes() + ENTRY_BYTES;
        while pods.bytes + bytes > self.shared.limits.table_bytes && pods.forget_oldest_deleted() {}
        if pods.bytes + bytes > self.shared.limits.table_bytes {
            drop(pods);
            return Counters::add(&self.shared.counters.not_kept, 1);
        }
        pods.bytes += bytes;
        let generation = pods.generation;
        pods.by_uid.insert(uid.clone(), Entry { pod: Arc::new(pod), generation, deleted_at: None });
        if deleted_at.is_some() {
            pods.delete(&uid, now);
        }
        drop(pods);
        self.tell();
    }

    /// Forgets pods that were deleted long enough ago. Changes do so by themselves; this is for when there are none.
    pub(crate) fn forget_deleted(&self, now: Instant) {
        self.lock().forget_deleted(now.checked_sub(self.shared.keep_deleted));
    }

    fn tell(&self) {
        self.shared.changes.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Pods> {
        self.shared.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pods {
    fn delete(&mut self, uid: &str, now: Instant) {
        if let Some(entry) = self.by_uid.get_mut(uid) {
            entry.deleted_at = Some(now);
            self.deleted.push_back((now, uid.into()));
        }
    }

    fn remove(&mut self, uid: &str) {
        if let Some(entry) = self.by_uid.remove(uid) {
            self.bytes -= entry.pod.bytes() + ENTRY_BYTES;
            if entry.deleted_at.is_some() {
                self.deleted.retain(|(_, deleted)| **deleted != *uid);
            }
        }
    }

    /// Forgets what was deleted at `before` or earlier.
    fn forget_deleted(&mut self, before: Option<Instant>) {
        let Some(before) = before else { return };
        while self.deleted.front().is_some_and(|(at, _)| *at <= before) {
            self.forget_oldest_deleted();
        }
    }

    fn forget_oldest_deleted(&mut self) -> bool {
        let Some((_, uid)) = self.deleted.pop_front() else { return false };
        if let Some(entry) = self.by_uid.remove(&uid) {
            self.bytes -= entry.pod.bytes() + ENTRY_BYTES;
        }
        true
    }
}

#[cfg(test)]
mod tests;
