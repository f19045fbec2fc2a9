//! The metadata kept of a pod.

use crate::exclusion::{Excluded, Exclusion, ExclusionRules};
use crate::log_path::LogPath;
use crate::selector::Selector;

/// The fields that are wanted beside names, owner and containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// The keys of labels; a `*` at the end stands for anything.
    pub labels: Vec<String>,
    /// Which labels and annotations exclude a pod.
    pub exclusions: ExclusionRules,
    /// Which pods are read by their labels; of the others all logs are [excluded](Pod::exclusion).
    pub selector: Selector,
}

impl Fields {
    pub(crate) fn is_wanted_label(&self, key: &str) -> bool {
        self.labels.iter().any(|wanted| matches_name(wanted, key))
    }
}

/// Whether a name is the wanted one; a `*` at the end of that stands for anything.
#[must_use]
pub fn matches_name(wanted: &str, name: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => wanted == name,
    }
}

/// The memory that pods may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodLimits {
    /// One pod, in bytes: of labels and containers beyond that none are kept, which is counted.
    pub pod_bytes: usize,
    /// All pods, in bytes.
    pub table_bytes: usize,
}

impl Default for PodLimits {
    /// A pod with some labels and two containers takes about 1 KiB. A node has at most some hundred pods, and some hundred
    /// that have ended within the last minute.
    fn default() -> PodLimits {
        PodLimits { pod_bytes: 16 << 10, table_bytes: 2 << 20 }
    }
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its uid in the API.
    pub uid: Box<str>,
    /// The uid in the path of its logs: for a static pod the hash of its configuration, otherwise [`uid`](Self::uid).
    pub log_uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// The name of its node.
    pub node: Box<str>,
    /// The labels that are wanted.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Its owner: a ReplicaSet, DaemonSet, StatefulSet, Job, or something else.
    pub owner: Option<Owner>,
    /// Its containers: ordinary, initial and ephemeral ones.
    pub containers: Vec<Container>,
    /// Whether something was left out since the pod was too large.
    pub is_cut: bool,
    pub(crate) excluded: Excluded,
    pub(crate) bytes: usize,
}

/// The controller of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// Such as `ReplicaSet`.
    pub kind: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
    /// The name of the Deployment or CronJob that has made it, where the names of both tell.
    pub controller: Option<Box<str>>,
}

/// A container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: Box<str>,
    /// The image as the pod asks for it.
    pub image: Box<str>,
    /// How often it was restarted.
    pub restart_count: u32,
    /// Its id, without the runtime's name.
    pub id: Box<str>,
    /// The id that it had before the last restart.
    pub previous_id: Box<str>,
}

impl Pod {
    /// The excluded outputs of this container.
    #[must_use]
    pub fn exclusion(&self, container: &str) -> Exclusion {
        self.excluded.of(container)
    }

    /// Whether a path is that of one of its logs.
    #[must_use]
    pub fn has_log(&self, path: &LogPath<'_>) -> bool {
        *self.log_uid == *path.uid && *self.name == *path.pod && *self.namespace == *path.namespace
    }

    /// The container of this name.
    #[must_use]
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|container| *container.name == *name)
    }

    /// The memory that it takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Container {
    /// The id that the container had after so many restarts; `None` if the API does not say.
    #[must_use]
    pub fn id_after(&self, restarts: u32) -> Option<&str> {
        let id = match self.restart_count.checked_sub(restarts)? {
            0 => &self.id,
            1 => &self.previous_id,
            _ => return None,
        };
        (!id.is_empty()).then_some(id)
    }
}
