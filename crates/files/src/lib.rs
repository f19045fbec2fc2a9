//! Files and folders for telemetry: readable by their owner alone, opened without following links.
//!
//! - [`open`] never follows a link in the last component of a path, and gives a new file the mode of its [`Access`].
//! - [`create_folder`] does the same for folders.
//! - [`replace`] replaces a small file as a whole, so that a crash leaves either the old or the new one.
//! - [`folder`] is a folder as a trait, which tests replace by one that fails; [`FolderLock`] gives one to one process.
//! - [`tighten`] takes away what an earlier version, a loose umask or a copy left to others.
//!
//! Links *on the way* to a file are followed: an administrator may move the journal to another disk with one. Nobody else
//! can put one there, because the folders on the way belong to the owner alone.

pub mod folder;
mod folder_lock;
mod loose;
mod tighten;

pub use folder_lock::{FolderLock, FolderLockError};
pub use loose::loose;
pub use tighten::{Tightened, tighten, tighten_folder};

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The permissions of new files and folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// The owner.
    #[default]
    Owner,
    /// The owner, and the group, which may not write.
    Group,
}

impl Access {
    /// The permission bits of a new file. The umask may take more away.
    pub fn file_mode(self) -> u32 {
        match self {
            Access::Owner => 0o600,
            Access::Group => 0o640,
        }
    }

    /// The permission bits of a new folder.
    pub fn folder_mode(self) -> u32 {
        match self {
            Access::Owner => 0o700,
            Access::Group => 0o750,
        }
    }
}

/// Opens the file at `path` as `how` says. A link there is not followed, whatever it points to.
///
/// # Errors
/// Those of opening a file, and [`io::ErrorKind::InvalidInput`] for a link.
pub fn open(
    path: &Path,
    access: Access,
    how: impl FnOnce(&mut OpenOptions) -> &mut OpenOptions,
) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.mode(access.file_mode()).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    how(&mut options).open(path).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => {
            io::Error::new(io::ErrorKind::InvalidInput, "it is a link, which is not followed")
        }
        _ => error,
    })
}

/// Opens the file at `path` for reading, without following a link there.
///
/// # Errors
/// Those of [`open`].
pub fn read(path: &Path) -> io::Result<File> {
    open(path, Access::Owner, |options| options.read(true))
}

/// Replaces the file at `path` by one with `content`, which is durable on return. A crash leaves the old file or the new one, and
/// perhaps a file beside it with the ending `.new`, which the next call replaces.
///
/// # Errors
/// Those of creating, writing, renaming and syncing; and [`io::ErrorKind::InvalidInput`] for a path without a file name.
pub fn replace(path: &Path, access: Access, content: &[u8]) -> io::Result<()> {
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no path of a file"));
    };
    let mut temporary = name.to_owned();
    temporary.push(".new");
    let temporary = folder.join(temporary);
    let mut file = open(&temporary, access, |options| options.write(true).create(true).truncate(true))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", temporary.display())))?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    // The rename is durable when the folder is.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// Creates the folder at `path`, and those above it that are missing. One that exists stays as it is.
///
/// # Errors
/// Those of creating a folder.
pub fn create_folder(path: &Path, access: Access) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(access.folder_mode()).create(path)
}

#[cfg(test)]
mod tests;
