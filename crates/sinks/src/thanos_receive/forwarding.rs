//! Numbers of forwarding and of the hashrings, as Thanos Receive counts them.
//!
//! Source: `pkg/receive/handler.go` and `config.go` of Thanos 0.42.

use super::settings::{Hashrings, Settings};
use crate::spread::Verdict;
use ring::digest::{SHA256, digest};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use tidegate_ring::RingConfig;

/// The most hashrings in a report.
const MOST_HASHRINGS: usize = 64;
/// The most bytes of a hashring's name in a report.
const LONGEST_NAME: usize = 128;

/// Counts of a sink `thanos_receive` since it was started, and the hashrings that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardingReport {
    /// Requests that an ingestor took.
    pub succeeded: u64,
    /// Attempts that failed, and requests that were rejected. As in Thanos, one that met with a conflict is neither.
    pub failed: u64,
    /// On how many ingestors each series is stored.
    pub replication: usize,
    /// The hashrings: 64 at most.
    pub hashrings: Vec<HashringReport>,
    /// Their file, if they are in one.
    pub file: Option<HashringFileReport>,
}

/// A hashring in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashringReport {
    /// May be empty. At most 128 bytes.
    pub name: String,
    /// How many endpoints it lists.
    pub endpoints: usize,
    /// How many names or patterns of tenants it lists.
    pub tenants: usize,
}

/// The file of hashrings, since the sink was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashringFileReport {
    /// How often it was looked at.
    pub refreshes: u64,
    /// How often it had other content that could be used.
    pub changes: u64,
    /// How often it was looked at and could not be used.
    pub errors: u64,
    /// Whether its content is in use.
    pub is_in_use: bool,
    /// When the content that is in use was read.
    pub loaded_at: SystemTime,
    /// The first 48 bits of its SHA-256, little-endian, as `hashAsMetricValue` of Thanos has them.
    pub hash: u64,
}

/// The numbers, shared by the sink and those who read them.
#[derive(Debug)]
pub(crate) struct Forwarding {
    succeeded: AtomicU64,
    failed: AtomicU64,
    replication: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    hashrings: Vec<HashringReport>,
    file: Option<HashringFileReport>,
}

/// How a look at the file of hashrings went.
pub(super) enum Look<'a> {
    /// It is as it was.
    Same,
    /// It has these hashrings, in a text with this hash, and they can be used.
    Changed(&'a [RingConfig], u64),
    /// It cannot be used.
    Unusable,
}

impl Forwarding {
    /// The memory that it holds, and a report of it.
    pub(super) const BYTES: usize =
        size_of::<Forwarding>() + 2 * MOST_HASHRINGS * (size_of::<HashringReport>() + LONGEST_NAME);

    /// The numbers of a sink that begins with these hashrings, in a text with this hash.
    pub(super) fn new(settings: &Settings, configs: &[RingConfig], hash: u64) -> Forwarding {
        let file = matches!(settings.hashrings, Hashrings::File(_)).then(|| HashringFileReport {
            refreshes: 1,
            changes: 1,
            errors: 0,
            is_in_use: true,
            loaded_at: SystemTime::now(),
            hash,
        });
        let state = State { hashrings: reports(configs), file };
        Forwarding {
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            replication: settings.ring.replication,
            state: Mutex::new(state),
        }
    }

    /// Counts the answer to a request.
    pub(super) fn answered(&self, verdict: &Verdict) {
        match verdict {
            Verdict::Accepted => self.succeeded.fetch_add(1, Relaxed),
            Verdict::Conflict { .. } => 0,
            Verdict::Rejected { .. } | Verdict::Later { .. } => self.failed.fetch_add(1, Relaxed),
        };
    }

    /// Counts a look at the file of hashrings. While it cannot be used, every look is an error, as every reading is in Thanos: its
    /// alert compares their rates.
    pub(super) fn looked(&self, look: Look<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = &mut state.file else { return };
        file.refreshes += 1;
        match look {
            Look::Same => file.errors += u64::from(!file.is_in_use),
            Look::Unusable => {
                file.errors += 1;
                file.is_in_use = false;
            }
            Look::Changed(configs, hash) => {
                file.changes += u64::from(file.hash != hash);
                (file.is_in_use, file.loaded_at, file.hash) = (true, SystemTime::now(), hash);
                state.hashrings = reports(configs);
            }
        }
    }

    /// The numbers now.
    pub(crate) fn report(&self) -> ForwardingReport {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        ForwardingReport {
            succeeded: self.succeeded.load(Relaxed),
            failed: self.failed.load(Relaxed),
            replication: self.replication,
            hashrings: state.hashrings.clone(),
            file: state.file,
        }
    }
}

/// The hash of a file's content.
pub(super) fn hash_of(text: &[u8]) -> u64 {
    let sum = digest(&SHA256, text);
    sum.as_ref().iter().take(6).rev().fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

fn reports(configs: &[RingConfig]) -> Vec<HashringReport> {
    let report = |config: &RingConfig| HashringReport {
        name: config.name.get(..config.name.floor_char_boundary(LONGEST_NAME)).unwrap_or_default().to_owned(),
        endpoints: config.endpoints.len(),
        tenants: config.tenants.len(),
    };
    configs.iter().take(MOST_HASHRINGS).map(report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thanos reads the first six bytes as a little-endian number.
    #[test]
    fn the_hash_of_a_file_is_that_of_thanos() {
        // SHA-256 of "abc" begins with ba 78 16 bf 8f 01.
        assert_eq!(hash_of(b"abc"), 0x018f_bf16_78ba);
    }
}
