//! The memory for delivering a record, item by item.
//!
//! The factors are those of the worst item that there can be, as tests beside the translations prove: JSON of empty names
//! that are said with the longest prefix, buckets that take ten bytes where they came in one.

use crate::need::Need;
use tidegate_arena::GROWTH_STEP;
use tidegate_journal::{Protocol, Signal};

/// Windows come in whole steps: the body as it came, decoded, and a piece; and a piece compressed.
const WORKING: usize = 4 * GROWTH_STEP;

pub(super) fn of(protocol: Protocol, signal: Signal) -> Option<Need> {
    let (more, factor) = match (protocol, signal) {
        // They cannot be cut, and are sent from where they were decoded.
        (Protocol::Otlp, Signal::Profiles) => (0, 0),
        (Protocol::Otlp, Signal::Traces | Signal::Logs | Signal::Metrics) => (0, 1),
        // Buckets between others, of which there is nothing in the body.
        (Protocol::RemoteWrite1 | Protocol::RemoteWrite2, Signal::Metrics) => (GROWTH_STEP, 12),
        (Protocol::Intake, _) => (GROWTH_STEP / 8, 10),
        (Protocol::Bulk, _) => (GROWTH_STEP / 8, 6),
        _ => return None,
    };
    Some(Need { working: WORKING + more, factor })
}
