//! How members are served, whatever the protocol.

use std::time::Duration;
use tidegate_journal::Tenant;

/// How members are served.
#[derive(Debug, Clone)]
pub(crate) struct SpreadSettings {
    /// On how many members each item is.
    pub(crate) replication: usize,
    /// The tenant of data without one.
    pub(crate) default_tenant: Tenant,
    /// The most bytes of a request before compression.
    pub(crate) max_request_bytes: usize,
    /// The most copies of items in a request.
    pub(crate) max_request_items: u32,
    /// How long to wait for more items before a request is sent that is not full.
    pub(crate) linger: Duration,
    /// The shortest and the longest wait between attempts at a member that fails.
    pub(crate) backoff: (Duration, Duration),
    /// How long a request waits for a member before it is handed off.
    pub(crate) patience: Duration,
    /// Where and how records are handed off.
    pub(crate) handoff: tidegate_handoff::Settings,
}
