//! How the members of a ring of Thanos ingestors are served.

use crate::prometheus_remote_write::Translation;
use crate::spread::SpreadSettings;
use crate::tls::Tls;
use hyper::header::HeaderMap;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_journal::Tenant;
use tidegate_ring::{RingConfig, RingSettings};

/// How the members are served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the hashrings are described.
    pub hashrings: Hashrings,
    /// The algorithm and the replication factor.
    pub ring: RingSettings,
    /// The most members at a time, of the rings and of those that left with a backlog.
    pub max_members: usize,
    /// The tenant of data without one.
    pub default_tenant: Tenant,
    /// The label whose value becomes the tenant of a series; it is taken out of the series.
    pub split_tenant_label: Option<String>,
    /// How OTLP metrics become series; deltas are untranslatable.
    pub otlp: Translation,
    /// Which form of the request the members read.
    pub layout: Layout,
    /// Whether requests are compressed, with Snappy in its framing format.
    pub is_compressed: bool,
    /// Whether members are connected to with TLS.
    pub is_secure: bool,
    /// The TLS settings.
    pub tls: Tls,
    /// Metadata that goes with every request.
    pub headers: HeaderMap,
    /// The most bytes of a request before compression.
    pub max_request_bytes: usize,
    /// How long to wait for more series before a request is sent that is not full.
    pub linger: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The shortest and the longest wait between attempts at a member that fails.
    pub backoff: (Duration, Duration),
    /// How long a request waits for a member before it is handed off.
    pub patience: Duration,
    /// Where and how records are handed off.
    pub handoff: tidegate_handoff::Settings,
}

impl Settings {
    /// The engine's settings.
    pub(super) fn spread(&self) -> SpreadSettings {
        SpreadSettings {
            replication: self.ring.replication,
            default_tenant: self.default_tenant,
            max_request_bytes: self.max_request_bytes,
            max_request_items: u32::MAX,
            linger: self.linger,
            backoff: self.backoff,
            patience: self.patience,
            handoff: self.handoff.clone(),
        }
    }
}

/// Where the hashrings are described.
#[derive(Debug, Clone)]
pub enum Hashrings {
    /// In a file in Thanos' format, which is read again when it changes.
    File(PathBuf),
    /// In the configuration.
    Inline(Vec<RingConfig>),
}

/// The form of a `thanos.WriteRequest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One tenant for a request (fields 1 and 2): what all versions read.
    SingleTenant,
    /// Series with their tenant (field 4): what ingestors read since Thanos 0.43.
    TenantTuples,
}
