//! The folders that the gateway writes: rights, room, file system, and how long the disk takes to make a record durable.

mod latency;
mod room;

use crate::finding::Finding;
use crate::subject::{DataFolder, Durability};
use crate::system::{mounts, processes};
use rustix::fs::Access;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A folder to look at.
struct Place<'a> {
    /// The setting that names it.
    setting: String,
    path: &'a Path,
    /// The most that may be in it, in bytes.
    quota: u64,
}

/// Looks at the data folder and those beside it, in the system at `root`.
pub(crate) fn check(data: &DataFolder, root: &Path, is_in_use: bool) -> Vec<Finding> {
    let places = places(data);
    let mut findings: Vec<Finding> = places.iter().flat_map(|place| look(place, root)).collect();
    let is_writable = findings.iter().all(|finding| finding.severity < crate::Severity::Broken);
    findings.extend(room::check(&places, data.journal.segment));
    if is_writable {
        findings.extend(latency::check(&data.path, data.journal.durability == Durability::Fsync));
    }
    findings.push(lock(data, root, is_in_use));
    findings
}

fn places(data: &DataFolder) -> Vec<Place<'_>> {
    let own = Place { setting: "data".to_owned(), path: &data.path, quota: data.journal.quota };
    let lakes = data.lakes.iter().map(|lake| Place {
        setting: format!("sinks.{}", lake.sink),
        path: &lake.path,
        quota: lake.retention,
    });
    let others = data.others.iter().map(|other| Place {
        setting: other.setting.clone(),
        path: &other.path,
        quota: other.quota,
    });
    std::iter::once(own).chain(lakes).chain(others).collect()
}

/// The folder, or its nearest ancestor that there is; absolute, without links.
fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        path.canonicalize().ok()
    })
}

fn look(place: &Place<'_>, root: &Path) -> Vec<Finding> {
    let Place { setting, path, .. } = place;
    let shown = path.display();
    // A folder that cannot be entered looks as if it were not there.
    if let Err(error) = std::fs::metadata(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return vec![
            Finding::broken(format!("`{setting}`: {shown} cannot be looked at"), error.to_string())
                .remedy("give the gateway's user the right to enter each folder on the way there"),
        ];
    }
    let Some(found) = nearest(path) else { return Vec::new() };
    let Ok(metadata) = std::fs::metadata(&found) else { return Vec::new() };
    if !metadata.is_dir() {
        return vec![
            Finding::broken(
                format!("`{setting}`: {} is not a folder", found.display()),
                format!("`{setting}` is {shown}"),
            )
            .remedy("name a folder"),
        ];
    }
    let mut findings = Vec::new();
    let mount = mounts::of(root, &found);
    if let Some(mount) = &mount {
        findings.push(file_system(setting, path, mount));
    }
    findings.extend(rights(setting, path, &found, &metadata, mount.is_some_and(|mount| mount.is_read_only)));
    findings
}

fn rights(
    setting: &str,
    path: &Path,
    found: &Path,
    metadata: &std::fs::Metadata,
    is_read_only: bool,
) -> Vec<Finding> {
    let (own, owner) = (rustix::process::geteuid().as_raw(), metadata.uid());
    let exists = path.exists();
    let mode = metadata.mode() & 0o7777;
    let evidence = format!(
        "{} belongs to user {owner}, mode {mode:04o}; the doctor runs as user {own}",
        found.display()
    );
    let needed = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let flags = rustix::fs::AtFlags::EACCESS;
    let mut findings = Vec::new();
    match rustix::fs::accessat(rustix::fs::CWD, found, needed, flags) {
        Err(rustix::io::Errno::ROFS) => {}
        Err(error) => {
            let what = match exists {
                true => format!("`{setting}`: this user may not write in {}", path.display()),
                false => {
                    format!("`{setting}`: {} is not there, and this user may not make it", path.display())
                }
            };
            let remedy = format!(
                "run the gateway as user {owner}, or give the folder to its user: `chown USER {}`",
                found.display()
            );
            findings.push(Finding::broken(what, format!("{error}; {evidence}")).remedy(remedy));
            return findings;
        }
        Ok(()) if !is_read_only && exists => {
            findings.push(Finding::fine(
                format!("`{setting}`: {} can be written", path.display()),
                evidence.clone(),
            ));
        }
        Ok(()) if !is_read_only => {
            let what = format!("`{setting}`: {} is not there; the gateway makes it", path.display());
            findings.push(Finding::fine(what, evidence.clone()));
        }
        Ok(()) => {}
    }
    if exists && own == 0 && owner != 0 {
        let what = format!(
            "`{setting}`: the folder belongs to user {owner}, and root may do what that user may not"
        );
        findings.push(
            Finding::note(what, evidence).remedy(format!(
                "run the doctor as the gateway's user: `sudo -u '#{owner}' tidegate doctor …`"
            )),
        );
    }
    findings
}

fn file_system(setting: &str, path: &Path, mount: &mounts::Mount) -> Finding {
    let evidence = format!(
        "{} is on {} ({}), mounted at {}",
        path.display(),
        mount.source,
        mount.kind,
        mount.point.display()
    );
    if mount.is_read_only {
        let remedy = "mount it for writing (`ro` is among its options; a kernel that found errors in it does that too: see `dmesg`)";
        return Finding::broken(format!("`{setting}`: the file system is mounted read-only"), evidence)
            .remedy(remedy);
    }
    let kind = mount.kind.as_str();
    match kind {
        "tmpfs" | "ramfs" => Finding::at_risk(format!("`{setting}` is in memory: a restart of the machine loses what was acknowledged"), evidence)
            .remedy("put the data folder on a disk; what is written here also counts against memory"),
        "overlay" | "aufs" => Finding::at_risk(format!("`{setting}` is in the container's own file system: what was acknowledged goes with the container"), evidence)
            .remedy("mount a volume there"),
        "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "fuse.sshfs" | "ceph" | "glusterfs" => {
            Finding::at_risk(format!("`{setting}` is on a network file system ({kind}): locks and durability are what its server makes of them"), evidence)
                .remedy("put the data folder on a disk of this machine")
        }
        _ => Finding::fine(format!("`{setting}` is on {kind}"), evidence),
    }
}

/// Who has the data folder.
fn lock(data: &DataFolder, root: &Path, is_in_use: bool) -> Finding {
    let file = data.path.join("journal").join("lock");
    match crate::system::lock::holder(root, &file) {
        Some(pid) => {
            let what = format!("a gateway uses the data folder: process {}", processes::shown(root, pid));
            let evidence = format!("it holds the lock {} (/proc/locks)", file.display());
            Finding::note(what, evidence)
                .remedy("a second gateway needs a data folder of its own; everything was only read")
        }
        None if is_in_use => Finding::note(
            "a gateway uses the data folder, and its process cannot be seen from here",
            "its admin address answers for this folder",
        )
        .remedy("a second gateway needs a data folder of its own; everything was only read"),
        None => Finding::fine(
            "no process uses the data folder",
            format!("nobody holds the lock {}", file.display()),
        ),
    }
}

#[cfg(test)]
mod tests;
