//! The pods that are known, shared between the watch and the readers.

use crate::counters::Counters;
use crate::log_path::LogPath;
use crate::pod::{Pod, PodLimits};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The memory of a pod beside itself: its place in the map and in the queue of deleted ones.
const ENTRY_BYTES: usize = 256;

/// The pods of a node by the uid in the paths of their logs.
///
/// Invariant: the pods in it take at most [`PodLimits::table_bytes`]. Deleted ones go first, the oldest before others; when
/// none is left, a new pod is not kept, which is counted. Pins keep a pod from being forgotten by its time, not from making way.
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
    /// How many pins keep it beyond its time.
    pins: u32,
}

/// Keeps a deleted pod in its table for as long as it is needed, if there is memory.
pub struct PodPin {
    shared: Arc<Shared>,
    uid: Box<str>,
}

impl Drop for PodPin {
    fn drop(&mut self) {
        // One that made way for another, and came again, has lost its pins: the next sweep decides.
        if let Some(entry) = self.shared.lock().by_uid.get_mut(&self.uid) {
            entry.pins = entry.pins.saturating_sub(1);
        }
    }
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

    /// Keeps the pod whose log is at this path, beyond the time that deleted ones are kept for.
    #[must_use]
    pub fn pin(&self, path: &LogPath<'_>) -> Option<PodPin> {
        let mut pods = self.lock();
        let entry = pods.by_uid.get_mut(path.uid).filter(|entry| entry.pod.has_log(path))?;
        entry.pins += 1;
        Some(PodPin { shared: Arc::clone(&self.shared), uid: path.uid.into() })
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

    /// The counters of the watch.
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
        let pins = pods.remove(&uid);
        let bytes = pod.bytes() + ENTRY_BYTES;
        while pods.bytes + bytes > self.shared.limits.table_bytes && pods.forget_oldest_deleted() {}
        if pods.bytes + bytes > self.shared.limits.table_bytes {
            drop(pods);
            return Counters::add(&self.shared.counters.not_kept, 1);
        }
        pods.bytes += bytes;
        let generation = pods.generation;
        pods.by_uid.insert(uid.clone(), Entry { pod: Arc::new(pod), generation, deleted_at: None, pins });
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
        self.shared.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pods> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pods {
    fn delete(&mut self, uid: &str, now: Instant) {
        if let Some(entry) = self.by_uid.get_mut(uid) {
            entry.deleted_at = Some(now);
            self.deleted.push_back((now, uid.into()));
        }
    }

    /// Removes a pod for a newer state of it, and returns its pins.
    fn remove(&mut self, uid: &str) -> u32 {
        let Some(entry) = self.by_uid.remove(uid) else { return 0 };
        self.bytes -= entry.pod.bytes() + ENTRY_BYTES;
        if entry.deleted_at.is_some() {
            self.deleted.retain(|(_, deleted)| **deleted != *uid);
        }
        entry.pins
    }

    /// Forgets what was deleted at `before` or earlier and has no pins.
    fn forget_deleted(&mut self, before: Option<Instant>) {
        let Some(before) = before else { return };
        if self.deleted.front().is_none_or(|(at, _)| *at > before) {
            return;
        }
        let Pods { by_uid, bytes, deleted, .. } = self;
        deleted.retain(|(at, uid)| {
            if *at > before || by_uid.get(uid).is_some_and(|entry| entry.pins > 0) {
                return true;
            }
            if let Some(entry) = by_uid.remove(uid) {
                *bytes -= entry.pod.bytes() + ENTRY_BYTES;
            }
            false
        });
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
