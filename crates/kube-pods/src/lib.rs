//! The pods of one Kubernetes node, by LIST and WATCH.
//!
//! - [`LogPath`] takes namespace, pod, container and restart count from a path below `/var/log/pods`.
//! - [`Watcher`] keeps a [`PodTable`] up to date from the API server; [`Decoder`] reads its responses.
//! - [`attributes`] writes the resource attributes of a container; [`Pod::exclusion`] says which logs nobody wants.
//!
//! It promises: responses are decoded as they arrive and no pod is ever held as JSON; a pod keeps at most
//! [`PodLimits::pod_bytes`], the table at most [`PodLimits::table_bytes`], whatever the API server sends; the table
//! survives an API server that is slow, gone, restarted or has forgotten the version, and keeps serving the last known
//! pods meanwhile.
//!
//! It leaves to others: reading the files, and how long a new file waits for its pod.
//!
//! The design is in `design/kubernetes-logs.md`.
#![deny(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")
)]

mod backoff;
mod cluster;
mod counters;
mod decoder;
mod exclusion;
mod image;
mod log_path;
mod pod;
mod resource;
mod selector;
mod synchronisation;
mod table;
mod watcher;

pub use cluster::{ClusterError, in_cluster};
pub use counters::Counters;
pub use decoder::{Change, DecodeError, Decoder, Event, Failure};
pub use exclusion::{Exclusion, ExclusionRules, Stream};
pub use log_path::{LogFile, LogPath};
pub use pod::{Container, Fields, Owner, Pod, PodLimits, matches_name};
pub use resource::{Value, attributes};
pub use selector::{Selector, SelectorError};
pub use table::{Changes, PodPin, PodTable};
pub use tidegate_json_api::{ApiError, ApiSettings, SyntaxError};
pub use watcher::{Watcher, WatcherSettings};
