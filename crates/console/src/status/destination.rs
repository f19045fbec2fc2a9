//! The cluster that answers a `_bulk` itself.

use super::LastError;
use super::raw;
use serde::Serialize;
use std::time::SystemTime;

/// The cluster to which a source forwards items, and that answers them. Its counts begin with the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Destination {
    /// The source.
    pub source: String,
    /// The sink whose cluster it is.
    pub sink: String,
    /// Requests under way.
    pub in_flight: u64,
    /// Requests that the cluster answered.
    pub requests: u64,
    /// Requests that failed: not answered, refused as a whole, or each of their items rejected with 429 or 5xx.
    pub failures: u64,
    /// When one succeeded last, if any did.
    #[serde(serialize_with = "raw::maybe_moment")]
    pub last_success: Option<SystemTime>,
    /// The last failure, whether it is over or not.
    pub last_error: Option<LastError>,
    /// When the first request failed since the last one that succeeded: it is failing now.
    #[serde(serialize_with = "raw::maybe_moment")]
    pub failing_since: Option<SystemTime>,
}
