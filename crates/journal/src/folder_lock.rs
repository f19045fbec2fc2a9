//! One journal, one process: the lock on the folder.

use crate::settings::OpenError;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;
use tidegate_files::Access;

const LOCK: &str = "lock";

/// InMemoryRecord as long as the journal is open. The kernel lets go of it when the process ends, however it ends.
pub(crate) struct FolderLock {
    _lock: OwnedFd,
}

impl FolderLock {
    /// Makes the folder where there is none, and takes it.
    pub(crate) fn acquire(path: &Path) -> Result<FolderLock, OpenError> {
        let dir = path.display().to_string();
        let failed = |doing: &str, error: Errno| OpenError::Io {
            dir: dir.clone(),
            doing: doing.into(),
            source: error.into(),
        };
        tidegate_files::create_folder(path, Access::Owner).map_err(|source| OpenError::Io {
            dir: dir.clone(),
            doing: "make the folder".into(),
            source,
        })?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path.join(LOCK), flags, Mode::from_raw_mode(0o600))
            .map_err(|error| failed("create its lock file", error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(OpenError::InUse { pid: owner(&file), dir }),
            Err(error) => return Err(failed("lock it", error)),
        }
        // The lock holder's name is informational: failing to write it does not stop the start.
        let pid = format!("{}\n", std::process::id());
        let written =
            rustix::fs::ftruncate(&file, 0).and_then(|()| rustix::io::pwrite(&file, pid.as_bytes(), 0));
        if let Err(error) = written {
            tracing::warn!(%error, "the journal's lock file cannot say which process has it");
        }
        Ok(FolderLock { _lock: file })
    }
}

fn owner(file: &OwnedFd) -> String {
    let mut text = [0; 20];
    let read = rustix::io::pread(file, &mut text, 0).unwrap_or(0);
    let text = text.get(..read).and_then(|text| str::from_utf8(text).ok()).unwrap_or_default().trim();
    if text.is_empty() { "unknown".into() } else { text.into() }
}
