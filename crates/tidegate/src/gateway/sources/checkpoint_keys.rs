//! Which source a checkpoint of the journal belongs to, and the checkpoints of sources that are not configured any more.
//!
//! They are kept: a source that is configured again goes on where it was. They take no room from the others, and their memory
//! is charged. `tidegate journal forget-source` drops them.

use super::configured;
use tidegate_arena::{Arena, Charge, Share};
use tidegate_config::Config;
use tidegate_journal::{CHECKPOINT_BYTES, Journal};

pub(super) const FILE: u8 = b'f';
pub(super) const JOURNALD: u8 = b'j';
pub(super) const KUBERNETES_LOGS: u8 = b'k';

/// The sources that keep checkpoints, with the first byte of their keys.
pub(crate) const KEYS: [(&str, u8); 3] =
    [("file", FILE), ("journald", JOURNALD), ("kubernetes_logs", KUBERNETES_LOGS)];

/// The first byte of the keys of a source's checkpoints; `None` if it keeps none.
pub(crate) fn key_of(source: &str) -> Option<u8> {
    KEYS.iter().find(|(name, _)| *name == source).map(|(_, key)| *key)
}

/// Finds the checkpoints of sources that are not configured, says that they are there, and makes room for as many others.
/// The charge is for them.
pub(crate) fn keep_left_over(config: &Config, journal: &Journal, arena: &Arena) -> Option<Charge> {
    let mut all = 0;
    for (source, key) in KEYS {
        if configured(config).any(|kind| kind.name == source) {
            continue;
        }
        let count = journal.count_checkpoints(&[key]);
        if count > 0 {
            tracing::warn!(
                source,
                count,
                "the journal has checkpoints of a source that is not configured, and keeps them; if it was removed for good, \
                 stop the gateway and run `tidegate journal forget-source {source}`"
            );
        }
        all += count;
    }
    journal.allow_checkpoints(all);
    let bytes = (all * CHECKPOINT_BYTES) as u64;
    if bytes == 0 {
        return None;
    }
    let charge = arena.try_charge(Share::Ingest, bytes);
    charge.inspect_err(|error| tracing::warn!(%error, bytes, "these checkpoints exceed the memory")).ok()
}
