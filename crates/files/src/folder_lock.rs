//! One folder, one process: the lock on a folder.

use crate::{Access, create_folder};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::path::Path;

const LOCK: &str = "lock";

/// Held as long as the owner has the folder. The kernel lets go of it when the process ends, however it ends.
pub struct FolderLock {
    _lock: OwnedFd,
}

/// Why a folder could not be locked.
#[derive(Debug)]
pub enum FolderLockError {
    /// Another process has it.
    InUse {
        /// The process that has it, or `unknown`.
        pid: String,
    },
    /// The system refused something.
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl FolderLock {
    /// Whether another process has the folder now. Changes nothing.
    pub fn is_held(path: &Path) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::open(path.join(LOCK), flags, Mode::empty()) else { return false };
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
    }

    /// Makes the folder where there is none, and locks it. The file `lock` in it holds the process id, for people.
    ///
    /// # Errors
    /// When another process has it, or the system refuses.
    pub fn acquire(path: &Path) -> Result<FolderLock, FolderLockError> {
        let failed = |doing, error: Errno| FolderLockError::Io { doing, source: error.into() };
        create_folder(path, Access::Owner)
            .map_err(|source| FolderLockError::Io { doing: "make the folder", source })?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path.join(LOCK), flags, Mode::from_raw_mode(0o600))
            .map_err(|error| failed("create its lock file", error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(FolderLockError::InUse { pid: owner(&file) }),
            Err(error) => return Err(failed("lock it", error)),
        }
        // The process id is informational: failing to write it does not stop the start.
        let pid = format!("{}\n", std::process::id());
        let _ = rustix::fs::ftruncate(&file, 0).and_then(|()| rustix::io::pwrite(&file, pid.as_bytes(), 0));
        Ok(FolderLock { _lock: file })
    }
}

fn owner(file: &OwnedFd) -> String {
    let mut text = [0; 20];
    let read = rustix::io::pread(file, &mut text, 0).unwrap_or(0);
    let text = text.get(..read).and_then(|text| str::from_utf8(text).ok()).unwrap_or_default().trim();
    if text.is_empty() { "unknown".into() } else { text.into() }
}
