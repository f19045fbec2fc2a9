//! The checks, a file and a line each.

mod certificates;
pub(crate) mod clocks;
mod configuration;
mod dead_letters;
mod disk;
mod files;
pub(crate) mod journal;
mod lake;
mod memory;
mod peers;
mod ports;
pub(crate) mod running;

use crate::examination::Examination;
use crate::finding::Finding;
use crate::subject::Setup;

/// A check.
#[derive(Debug)]
pub struct Check {
    /// Its name, for people and programs.
    pub name: &'static str,
    /// What it looks at, in a few words.
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
        run: |seen| with(seen, |setup| memory::check(&setup.memory, seen.root, &seen.process())),
    },
    Check {
        name: "files",
        about: "limits on open files and on watched folders",
        run: |seen| with(seen, |setup| files::check(&setup.files, seen.root, seen.owner)),
    },
    Check {
        name: "disk",
        about: "folders: rights, room, file systems, and how fast the disk is",
        run: |seen| with(seen, |setup| disk::check(&setup.data, seen.root, seen.is_in_use())),
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
        run: |seen| with(seen, |setup| certificates::check(&setup.certificates, seen.now)),
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
        run: |seen| with(seen, |setup| dead_letters::check(&setup.data.path.join("dead-letters"))),
    },
    Check {
        name: "lake",
        about: "the files of the lakes",
        run: |seen| {
            with(seen, |setup| {
                setup.data.lakes.iter().flat_map(|lake| lake::check(lake, seen.is_in_use())).collect()
            })
        },
    },
];

/// Judges what the configuration says, where it can be read.
fn with<'a>(seen: &'a Examination<'_>, check: impl FnOnce(&'a Setup) -> Vec<Finding>) -> Vec<Finding> {
    seen.setup().map_or_else(Vec::new, check)
}
