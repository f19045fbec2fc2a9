//! Takes from others what they could read.

use crate::Access;
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Deeper folders are left alone: neither the journal nor a lake has them, and a loop of mounts would not end.
const DEEPEST: usize = 16;
/// Set on folders that are everybody's by intention, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// The outcome of [`tighten`].
#[derive(Debug, Default)]
pub struct Tightened {
    /// Files and folders that others can no longer read or write.
    pub changed: u64,
    /// How many could not be changed.
    pub kept: u64,
    /// The first of those.
    pub first_kept: Option<(PathBuf, io::Error)>,
    /// A link among the files, if there is one. What it points to is left as it is.
    pub link: Option<PathBuf>,
}

/// Takes from everything at and below `path` the permissions beyond those of `access`. `path` itself may be a link;
/// links below it are not followed. What is not there is not missed.
pub fn tighten(path: &Path, access: Access) -> Tightened {
    let (mut found, top) = alone(path, access);
    let is_folder = top.is_some_and(|top| top.is_dir());
    let mut folders = if is_folder { vec![(path.to_owned(), 1)] } else { Vec::new() };
    while let Some((folder, depth)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                found.keep(&folder, error);
                continue;
            }
        };
        for entry in entries.flatten() {
            // That of the link and not of what it points to.
            let Ok(about) = entry.metadata() else { continue };
            let path = entry.path();
            if about.is_symlink() {
                found.link.get_or_insert(path);
                continue;
            }
            found.one(&path, &about, access, OFlags::NOFOLLOW);
            if about.is_dir() && depth < DEEPEST {
                folders.push((path, depth + 1));
            }
        }
    }
    found
}

/// As [`tighten`], without what is below `path`.
pub fn tighten_folder(path: &Path, access: Access) -> Tightened {
    alone(path, access).0
}

fn alone(path: &Path, access: Access) -> (Tightened, Option<Metadata>) {
    let mut found = Tightened::default();
    let Ok(top) = std::fs::metadata(path) else { return (found, None) };
    if top.mode() & STICKY != 0 {
        let error = io::Error::new(io::ErrorKind::PermissionDenied, "it is a folder that others share");
        found.keep(path, error);
        return (found, None);
    }
    found.one(path, &top, access, OFlags::empty());
    (found, Some(top))
}

impl Tightened {
    /// Adds what was found elsewhere.
    pub fn add(&mut self, other: Tightened) {
        self.changed += other.changed;
        self.kept += other.kept;
        self.first_kept = self.first_kept.take().or(other.first_kept);
        self.link = self.link.take().or(other.link);
    }

    fn one(&mut self, path: &Path, about: &Metadata, access: Access, flags: OFlags) {
        let allowed = match about.file_type() {
            kind if kind.is_dir() => access.folder_mode(),
            kind if kind.is_file() => access.file_mode(),
            _ => return,
        };
        if about.mode() & 0o077 & !allowed == 0 {
            return;
        }
        // The bits for owner and set-group-id stay.
        let mode = about.mode() & (0o7700 | allowed);
        match change(path, mode, flags) {
            Ok(()) => self.changed += 1,
            Err(error) => self.keep(path, error),
        }
    }

    fn keep(&mut self, path: &Path, error: io::Error) {
        self.kept += 1;
        self.first_kept.get_or_insert_with(|| (path.to_owned(), error));
    }
}

/// By way of the open file: a link put in its place in between is not followed.
fn change(path: &Path, mode: u32, flags: OFlags) -> io::Result<()> {
    // A pipe put in its place would block.
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))
}
