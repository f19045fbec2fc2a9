//! The checks, a file and a line each.

mod certificates;
pub(crate) mod clocks;
mod configuration;
mod dead_letters;
mod disk;
mod files;
pub(crate) mod journal;
mod lake;
pub(crate) mod memory;
mod peers;
mod ports;
pub(crate) mod running;

use crate::examination::{Examination, MARGIN, READ_LIMIT};
use crate::finding::Finding;
use crate::subject::{Lake, Setup};
use crate::system::within;
use std::time::Duration;

/// A check.
#[derive(Debug)]
pub struct Check {
    /// Its name, for people and programs.
    pub name: &'static str,
    /// Its subject, in a few words.
    pub about: &'static str,
    /// Judges what was seen. At least one finding, if only that all is fine; none if there is nothing to look at.
    pub(crate) run: fn(&Examination<'_>) -> Vec<Finding>,
}

/// All checks, in the order in which findings of one severity are told.
pub const CHECKS: [Check; 12] = [
    Check {
        name: "configuration",
        about: "the settings, the memory plan, and the files that are named",
        run: |seen| configuration::check(&seen.subject.configuration),
    },
    Check {
        name: "memory",
        about: "limits of control groups and of the process, and the memory of the machine",
        run: |seen| with(seen, |setup| memory::check(&setup.memory, seen.root, &seen.memory_owner())),
    },
    Check {
        name: "files",
        about: "limits on open files and on watched folders",
        run: |seen| with(seen, |setup| files::check(&setup.files, seen.root, seen.owner)),
    },
    Check {
        name: "disk",
        about: "folders: rights, room, file systems, and how fast the disk is",
        run: |seen| {
            with(seen, |setup| {
                let (data, root, is_in_use) = (setup.data.clone(), seen.root.to_owned(), seen.is_in_use());
                in_time(READ_LIMIT, "the folders", move || disk::check(&data, &root, is_in_use))
            })
        },
    },
    Check {
        name: "ports",
        about: "whether the addresses can be listened on",
        run: |seen| {
            with(seen, |setup| ports::check(&setup.listeners, seen.root, seen.owner, seen.is_in_use()))
        },
    },
    Check {
        name: "gateway",
        about: "the gateway that is running: its state, its sinks, what it refuses",
        run: |seen| with(seen, |setup| running::check(&seen.running, setup, seen.root, seen.owner)),
    },
    Check {
        name: "clocks",
        about: "the clock of this machine beside those of peers, and the times in the journal",
        run: clocks::of,
    },
    Check {
        name: "certificates",
        about: "certificates, keys and authorities in files: whether they fit, and until when",
        run: |seen| {
            with(seen, |setup| {
                let (certificates, now) = (setup.certificates.clone(), seen.now);
                in_time(READ_LIMIT, "the files of certificates", move || {
                    certificates::check(&certificates, now)
                })
            })
        },
    },
    Check {
        name: "peers",
        about: "the endpoints of sinks: name, connection, TLS, and a request that stores nothing",
        run: |seen| with(seen, |setup| peers::check(setup, &seen.peers, seen.options.is_offline, seen.now)),
    },
    Check {
        name: "journal",
        about: "the records on disk, the cursors of sinks, and what was set aside",
        run: |seen| {
            with(seen, |setup| journal::check(setup, seen.journal.as_ref(), seen.is_in_use(), seen.now))
        },
    },
    Check {
        name: "dead letters",
        about: "items that peers rejected",
        run: |seen| {
            with(seen, |setup| {
                let (folder, now) = (setup.data.path.join("dead-letters"), seen.now);
                in_time(READ_LIMIT + MARGIN, "the dead letters", move || dead_letters::check(&folder, now))
            })
        },
    },
    Check {
        name: "lake",
        about: "the files of the lakes",
        run: |seen| {
            with(seen, |setup| {
                let look = |lake: &Lake| {
                    let (lake, is_in_use) = (lake.clone(), seen.is_in_use());
                    // It may look twice, for so long each.
                    let limit = 2 * READ_LIMIT + MARGIN;
                    in_time(limit, "the lake", move || lake::check(&lake, is_in_use))
                };
                setup.data.lakes.iter().flat_map(look).collect()
            })
        },
    },
];

/// Judges what the configuration says, where it can be read.
fn with<'a>(seen: &'a Examination<'_>, check: impl FnOnce(&'a Setup) -> Vec<Finding>) -> Vec<Finding> {
    seen.setup().map_or_else(Vec::new, check)
}

/// The findings of a check of files, or that their disk does not answer.
fn in_time(
    limit: Duration,
    what: &str,
    check: impl FnOnce() -> Vec<Finding> + Send + 'static,
) -> Vec<Finding> {
    within(limit, check).unwrap_or_else(|| vec![silent(what, limit)])
}

/// A disk that does not answer.
pub(crate) fn silent(what: &str, limit: Duration) -> Finding {
    let evidence = format!("no answer within {} s", limit.as_secs());
    Finding::broken(format!("{what} cannot be looked at: their disk does not answer"), evidence).remedy(
        "look at the disk (`dmesg`, `mount`): a network file system whose server is gone is silent, too",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_never_answers_is_broken() {
        let (hold, held) = std::sync::mpsc::sync_channel::<()>(1);
        let check = move || held.recv().map_or_else(|_| Vec::new(), |()| Vec::new());
        let found = in_time(Duration::from_millis(1), "the folders", check);
        assert_eq!((found.len(), found[0].severity), (1, crate::Severity::Broken), "{found:?}");
        drop(hold);
    }
}
