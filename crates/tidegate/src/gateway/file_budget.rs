//! Open files: how many the process may have, and how many of them connections may be.
//!
//! A connection that is accepted when no file is left for anything else takes the journal's, the sinks' or the admin
//! port's. So what they need is set aside first, and no more connections are taken than the rest allows, whatever
//! `limits.connections` says.

use super::destination;
use super::fleet;
use super::head_series;
use super::ingest::ADMIN_CONNECTIONS;
use super::listeners;
use super::sinks::kinds;
use super::sources;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt;
use tidegate_config::Config;

/// The process's own: standard streams, signals, the journal's segments and locks, and what is opened for a moment, such
/// as a certificate or a page of `/proc`; and the listeners.
const OWN: u64 = 20 + listeners::KINDS.len() as u64;
/// Of a thread that serves connections: its reactor.
const WORKER: u64 = 4;
/// Of a sink beside its connections: its reactor, its cursor, a segment that it reads, a file of dead letters.
const SINK: u64 = 6;
/// The least that the admin port has, and the most that is told at a time that there are too many connections.
const LEAST_ADMIN: u64 = 4;
const LEAVING: u64 = 256;
/// With fewer connections than this nothing is worth starting.
const LEAST: u64 = 8;

/// How many files may be open, and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileBudget {
    /// How many there may be in all.
    allowed: u64,
    /// How many are needed for everything to be as the configuration says.
    needed: u64,
    /// The effective value of `limits.connections`.
    wanted: u64,
    /// Connections of senders, at most.
    pub(crate) connections: usize,
    /// Connections to the admin port, at most.
    pub(crate) admin: usize,
    /// Connections at a time, of each kind, that are being told that they are too many.
    pub(crate) leaving: usize,
    /// The reserved files.
    reserve: u64,
}

/// There may be fewer open files than the gateway needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit on open files is {allowed} (`ulimit -n`), and this configuration needs at least {least}: the journal, \
     the sinks and the admin port have {reserve} of them; raise the limit"
)]
pub(crate) struct TooFewFiles {
    allowed: u64,
    least: u64,
    reserve: u64,
}

impl FileBudget {
    /// How the files are shared out of which the process may have as many as its hard limit says.
    pub(crate) fn of(config: &Config, workers: usize, connections: u32) -> FileBudget {
        let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        FileBudget::out_of(limit, reserve(config, workers), connections)
    }

    fn out_of(allowed: u64, reserve: u64, connections: u32) -> FileBudget {
        let (wanted, admin) = (u64::from(connections), ADMIN_CONNECTIONS as u64);
        let needed = reserve + admin + 2 * LEAVING + wanted;
        let free = allowed.saturating_sub(reserve);
        // Of what there is, senders have the most part.
        let admin = (free / 8).clamp(LEAST_ADMIN, admin);
        let leaving = (free / 32).clamp(1, LEAVING);
        let connections = wanted.min(free.saturating_sub(admin + 2 * leaving));
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        FileBudget {
            allowed,
            needed,
            wanted,
            connections: count(connections),
            admin: count(admin),
            leaving: count(leaving),
            reserve,
        }
    }

    /// # Errors
    /// When there are too few for anything.
    pub(crate) fn check(&self) -> Result<(), TooFewFiles> {
        if self.connections as u64 >= LEAST.min(self.wanted) {
            return Ok(());
        }
        let least = self.reserve + LEAST_ADMIN + 2 + LEAST;
        Err(TooFewFiles { allowed: self.allowed, least, reserve: self.reserve })
    }

    /// How many files there may be in all, by the hard limit of this process.
    pub(crate) fn allowed(&self) -> u64 {
        self.allowed
    }

    /// How many are needed for everything to be as the configuration says.
    pub(crate) fn needed(&self) -> u64 {
        self.needed
    }

    /// Whether there are fewer connections than `limits.connections` says.
    pub(crate) fn is_short(&self) -> bool {
        (self.connections as u64) < self.wanted
    }

    /// Lets the process open as many.
    pub(crate) fn raise(&self) {
        let limit = getrlimit(Resource::Nofile);
        if limit.current.unwrap_or(u64::MAX) >= self.needed {
            return;
        }
        let current = Some(self.needed.min(self.allowed));
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum }) {
            tracing::warn!(%error, wanted = current, "the limit on open files could not be raised");
        }
    }
}

/// In words, where the limit on files is lower than that on connections.
impl fmt::Display for FileBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the limit on open files ({}, `ulimit -Hn`) allows {} connections of the {} in `limits.connections`; for all \
             of them it has to be {}",
            self.allowed, self.connections, self.wanted, self.needed
        )
    }
}

/// The files not available to connections.
fn reserve(config: &Config, workers: usize) -> u64 {
    let sinks: u64 = config.sinks.values().map(|sink| SINK + kinds::of(sink).files()).sum();
    let of_sources = |kind: &'static sources::SourceKind| Some((kind.runs.as_ref()?.files)(config));
    let sources: u64 = sources::configured(config).filter_map(of_sources).sum();
    OWN + WORKER * workers as u64
        + sinks
        + sources
        + destination::files(config)
        + head_series::files(config)
        + fleet::files(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However few there are, what is given out is never more than there is, and the reserve stays.
    #[test]
    fn no_more_is_given_out_than_there_is() {
        for allowed in (0..2048).chain([4096, 65_536, 1 << 20, u64::MAX]) {
            for (reserve, wanted) in [(40, 1), (40, 10_000), (200, 1024), (48, 12_000)] {
                let files = FileBudget::out_of(allowed, reserve, wanted);
                let given = files.connections + files.admin + 2 * files.leaving;
                if files.check().is_ok() {
                    assert!(reserve + given as u64 <= allowed, "{allowed}: {files:?}");
                    assert!(files.admin as u64 >= LEAST_ADMIN && files.leaving > 0, "{allowed}: {files:?}");
                    assert_eq!(files.is_short(), (files.connections as u64) < u64::from(wanted));
                } else {
                    assert!(allowed < reserve + 40, "{allowed}: {files:?}");
                }
            }
        }
        let files = FileBudget::out_of(65_536, 60, 12_000);
        assert!(!files.is_short());
        assert_eq!((files.connections, files.admin, files.leaving), (12_000, 64, 256));
    }

    /// The message names the available files, the resulting limit, and the required number.
    #[test]
    fn the_words_have_the_numbers() {
        let files = FileBudget::out_of(256, 46, 10_000);
        let words = files.to_string();
        assert!(
            words.contains("256") && words.contains("10000") && words.contains("limits.connections"),
            "{words}"
        );
        let none = FileBudget::out_of(50, 46, 10_000).check().unwrap_err().to_string();
        assert!(none.contains("is 50") && none.contains("at least 60"), "{none}");
    }
}
