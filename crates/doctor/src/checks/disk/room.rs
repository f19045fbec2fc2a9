//! Whether the disks have room for what may come to be in the folders.

use super::{Place, nearest};
use crate::finding::Finding;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tidegate_arena::Bytes;

/// With fewer inodes than that, a lake stops soon; with fewer than the other, now.
const FEW_INODES: u64 = 1000;
const NO_INODES: u64 = 10;
/// The most files whose lengths are added up in a folder.
const MOST_FILES: usize = 200_000;
/// How long adding up one folder may take.
const ADDING_LIMIT: Duration = Duration::from_secs(2);

/// Room on one file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    free: u64,
    /// `None` on file systems that make inodes as they need them.
    inodes: Option<u64>,
}

/// Folders on one file system.
struct Device {
    room: Room,
    /// What they may take yet, in bytes.
    wanted: u64,
    folders: Vec<String>,
}

/// Looks at the file systems of all places; a segment of the journal has so many bytes.
pub(super) fn check(places: &[Place<'_>], segment: u64) -> Vec<Finding> {
    // What shares a device shares its room.
    let mut devices: BTreeMap<u64, Device> = BTreeMap::new();
    for place in places {
        let Some(found) = nearest(place.path) else { continue };
        let (Ok(metadata), Ok(system)) = (fs::metadata(&found), rustix::fs::statvfs(&found)) else {
            continue;
        };
        let inodes = (system.f_files > 0).then_some(system.f_favail);
        let room = Room { free: system.f_bavail.saturating_mul(system.f_frsize), inodes };
        let used = if place.setting == "data" { used(&place.path.join("journal")) } else { used(place.path) };
        let device = devices.entry(metadata.dev()).or_insert(Device { room, wanted: 0, folders: Vec::new() });
        let setting = &place.setting;
        let Some(used) = used else {
            device.folders.push(format!("what `{setting}` has was not added up: it has too many files"));
            continue;
        };
        let wanted = place.quota.saturating_sub(used);
        device.wanted = device.wanted.saturating_add(wanted);
        device.folders.push(format!("`{setting}` may take {} more", Bytes(wanted)));
    }
    devices.values().flat_map(|device| judge(device, segment)).collect()
}

fn judge(device: &Device, segment: u64) -> Vec<Finding> {
    let Device { room: Room { free, inodes }, wanted, folders } = device;
    let evidence = format!("{} are free; {}", Bytes(*free), folders.join(", "));
    let remedy =
        "free room on the disk, or lower `journal.quota` and the `retention.bytes` of lakes to what it has";
    let mut findings = vec![if *free < segment {
        let what = format!(
            "the disk is full: {} are free, and the journal grows by segments of {}",
            Bytes(*free),
            Bytes(segment)
        );
        Finding::broken(what, evidence).remedy(remedy)
    } else if free < wanted {
        let what = format!(
            "the disk will be full before the folders are: {} are free, and they may take {} more",
            Bytes(*free),
            Bytes(*wanted)
        );
        Finding::at_risk(what, evidence).remedy(remedy)
    } else {
        Finding::fine("the disk has room for all that the folders may take", evidence)
    }];
    if let Some(left) = inodes.filter(|left| *left < FEW_INODES) {
        let what = format!("the file system has {left} inodes left, and each file takes one");
        let evidence = "statvfs: f_favail";
        let finding =
            if left < NO_INODES { Finding::broken(what, evidence) } else { Finding::at_risk(what, evidence) };
        findings.push(finding.remedy("remove files (`df -i` shows where inodes are used up)"));
    }
    findings
}

/// The bytes on disk of a folder and those below it; links are not followed. `None` if that takes too long.
fn used(folder: &Path) -> Option<u64> {
    let begun = Instant::now();
    let (mut folders, mut bytes, mut left) = (vec![folder.to_owned()], 0_u64, MOST_FILES);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            left = left.saturating_sub(1);
            if left == 0 || begun.elapsed() > ADDING_LIMIT {
                return None;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                bytes = bytes.saturating_add(metadata.blocks().saturating_mul(512));
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    #[test]
    fn room_is_compared_with_what_is_allowed() {
        let severity = |free, wanted, inodes| {
            let device = Device { room: Room { free, inodes }, wanted, folders: Vec::new() };
            judge(&device, 100).into_iter().map(|finding| finding.severity).max()
        };
        assert_eq!(severity(1000, 900, Some(5000)), Some(Severity::Fine));
        assert_eq!(severity(1000, 1100, None), Some(Severity::AtRisk));
        assert_eq!(severity(99, 0, None), Some(Severity::Broken));
        assert_eq!(severity(1000, 0, Some(500)), Some(Severity::AtRisk));
        assert_eq!(severity(1000, 0, Some(0)), Some(Severity::Broken));
    }

    #[test]
    fn what_is_there_is_not_wanted_again() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("journal/below")).unwrap();
        fs::write(dir.path().join("journal/below/a"), vec![1; 40_000]).unwrap();
        assert!(used(dir.path()).is_some_and(|used| (40_000..80_000).contains(&used)));
        let place = Place { setting: "data".into(), path: dir.path(), quota: 40_000 };
        let found = check(&[place], 1);
        assert!(found[0].evidence.contains("`data` may take 0 B more"), "{found:?}");
    }
}
