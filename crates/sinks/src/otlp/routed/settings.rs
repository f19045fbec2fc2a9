//! How items are spread over receivers.

use crate::otlp::Settings;
use crate::spread::SpreadSettings;
use std::time::Duration;
use tidegate_journal::Tenant;
use tidegate_wire::otlp::route::RouteKey;

/// The lengths of resources in a request have four bytes.
const LONGEST_REQUEST: usize = 128 << 20;

/// How items are spread over receivers.
#[derive(Debug, Clone)]
pub struct Routing {
    /// The key that places an item.
    pub route_by: RouteKey,
    /// At how many receivers each item is.
    pub replicas: usize,
    /// The receivers' URLs, which replace [`Settings::endpoints`].
    pub members: tidegate_members::Settings,
    /// How long a request waits for a receiver before it is handed off.
    pub patience: Duration,
    /// Where and how records are handed off.
    pub handoff: tidegate_handoff::Settings,
}

impl Routing {
    /// The engine's settings.
    pub(super) fn spread(&self, settings: &Settings) -> SpreadSettings {
        SpreadSettings {
            replication: self.replicas,
            default_tenant: Tenant::NONE,
            max_request_bytes: settings.max_request_bytes.min(LONGEST_REQUEST),
            max_request_items: u32::MAX,
            linger: settings.linger,
            backoff: settings.backoff,
            patience: self.patience,
            handoff: self.handoff.clone(),
        }
    }
}
