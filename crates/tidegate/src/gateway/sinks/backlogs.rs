//! Data on disk for members of sinks that are gone: the journal does not have it any more, and nobody sends it.

use super::kinds;
use std::collections::BTreeMap;
use std::path::Path;
use tidegate_config::{Name, Sink};
use tidegate_handoff::{Handoffs, Settings};

/// Says loudly what waits below `data` for sinks that are not configured, or have no members now: only a person knows whether one was
/// renamed or is gone.
pub(super) fn warn_of_orphans(data: &Path, sinks: &BTreeMap<Name, Sink>) {
    let handoff = data.join("handoff");
    let Ok(entries) = std::fs::read_dir(&handoff) else { return };
    let is_used = |folder: &Path| {
        sinks.iter().any(|(name, sink)| {
            let settings = kinds::of(sink).handoff();
            settings.is_some_and(|settings| match &settings.path {
                Some(path) => path == folder,
                None => folder == handoff.join(name.as_str()),
            })
        })
    };
    let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    for folder in folders.filter(|folder| !is_used(folder)) {
        let items = waiting(&folder);
        if items > 0 {
            tracing::warn!(
                folder = %folder.display(),
                items,
                "items wait on disk for the members of a sink that is not configured as it was; name the sink as the folder, with its former type and settings, and they are sent; or remove the folder"
            );
        }
    }
}

/// The items in the logs of a folder; none where it is in use, or nothing can be read.
fn waiting(folder: &Path) -> u64 {
    let Ok((handoffs, _)) = Handoffs::open(Settings::new(folder)) else { return 0 };
    let items = handoffs.members_with_backlog().iter().map(|log| log.backlog().items).sum();
    handoffs.close();
    items
}
