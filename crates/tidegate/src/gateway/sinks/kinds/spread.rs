//! Shared by the kinds of sinks that spread items over members.

use std::path::Path;
use tidegate_arena::Reservation;
use tidegate_config::{DiscoverySettings, HandoffFull, HandoffSettings, Url};
use tidegate_members::Entry;

/// How records are handed off for so many members at most; in `folder`, unless the settings name another.
pub(super) fn handoff(
    settings: &HandoffSettings,
    members: usize,
    folder: &Path,
) -> tidegate_handoff::Settings {
    tidegate_handoff::Settings {
        quota: settings.quota.get(),
        total_quota: settings.total_quota.get(),
        when_full: match settings.when_full {
            HandoffFull::Block => tidegate_handoff::WhenFull::Block,
            HandoffFull::DropOldest => tidegate_handoff::WhenFull::DropOldest,
        },
        // Those that leave keep theirs until others have read them, and those that come have theirs already.
        members: 2 * members,
        ..tidegate_handoff::Settings::new(settings.path.as_deref().unwrap_or(folder))
    }
}

/// The memory and files that handing off takes.
pub(super) fn handoff_overhead(settings: &HandoffSettings, members: usize) -> (Vec<Reservation>, u64) {
    let settings = handoff(settings, members, Path::new(""));
    (settings.overhead(), settings.descriptors())
}

/// Where members come from: these endpoints, and what is discovered. `check` says whether a URL of the file can be used.
pub(super) fn members(
    endpoints: &[Url],
    discovery: &DiscoverySettings,
    max_members: usize,
    check: fn(&str) -> Result<(), String>,
) -> tidegate_members::Settings {
    let literal = endpoints.iter().map(|url| Entry::Literal(url.expose().to_owned()));
    let names = discovery.dns.as_deref().unwrap_or_default();
    // The configuration has been checked.
    let names = names.iter().filter_map(|url| Entry::parse(url.expose()).ok());
    tidegate_members::Settings {
        entries: literal.chain(names).collect(),
        file: discovery.file.clone(),
        check,
        max_members,
        interval: discovery.interval.get(),
        name_servers: discovery.name_servers.clone().unwrap_or_default(),
    }
}
