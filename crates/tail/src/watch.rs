//! Changes in directories, by inotify.

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tokio::io::unix::AsyncFd;

/// Bytes of changes that one call reads.
const BUFFER: usize = 16 << 10;

/// The directories watched.
pub(crate) struct Watcher {
    fd: AsyncFd<OwnedFd>,
    buffer: Box<[MaybeUninit<u8>]>,
}

/// A watched directory.
pub(crate) type Watch = i32;

/// A change of a directory's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Its content.
    Modified { watch: Watch, name: OsString },
    /// A name is there that was not, or is another file's now.
    Appeared { watch: Watch, name: OsString, is_directory: bool },
    /// A name is gone.
    Vanished { watch: Watch, name: OsString, is_directory: bool },
    /// The directory itself is gone, and the watch with it.
    Ended { watch: Watch },
    /// Changes were lost.
    Overflow,
}

impl Watcher {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// Those of `inotify_init1`: too many instances of this user, for one.
    pub(crate) fn new() -> io::Result<Watcher> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(
            deprecated,
            reason = "its successor is `unsafe`, for types that may change their descriptor: this cannot"
        )]
        let fd = AsyncFd::new(fd)?;
        Ok(Watcher { fd, buffer: vec![MaybeUninit::uninit(); BUFFER].into() })
    }

    /// Watches `directory`, through links. A directory that is watched already keeps its watch.
    ///
    /// # Errors
    /// Those of `inotify_add_watch`: no such directory, too many watches.
    pub(crate) fn add(&self, directory: &Path) -> io::Result<Watch> {
        let flags = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        Ok(inotify::add_watch(self.fd.get_ref(), directory, flags)?)
    }

    /// Ends a watch. The kernel ends it by itself when the directory goes.
    pub(crate) fn remove(&self, watch: Watch) {
        let _ = inotify::remove_watch(self.fd.get_ref(), watch);
    }

    /// Completes when there may be changes.
    pub(crate) async fn ready(&self) {
        if let Ok(mut guard) = self.fd.readable().await {
            guard.clear_ready();
        }
    }

    /// Takes the changes that are there, some of them at a time; says whether there may be more.
    pub(crate) fn take(&mut self, changes: &mut Vec<Change>) -> bool {
        /// A few KiB of them.
        const ENOUGH: usize = 256;
        let mut reader = inotify::Reader::new(self.fd.get_ref(), &mut self.buffer);
        loop {
            // The changes in the reader's buffer would be lost with it.
            if changes.len() >= ENOUGH && reader.is_buffer_empty() {
                return true;
            }
            match reader.next() {
                Ok(event) => {
                    let change = change_of(&event);
                    if let Some(change) = change.filter(|change| changes.last() != Some(change)) {
                        changes.push(change);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

fn change_of(event: &inotify::Event<'_>) -> Option<Change> {
    let (watch, flags) = (event.wd(), event.events());
    if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(Change::Overflow);
    }
    if flags.contains(ReadFlags::IGNORED) {
        return Some(Change::Ended { watch });
    }
    let name = OsStr::from_bytes(event.file_name()?.to_bytes()).to_owned();
    let is_directory = flags.contains(ReadFlags::ISDIR);
    if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
        Some(Change::Appeared { watch, name, is_directory })
    } else if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
        Some(Change::Vanished { watch, name, is_directory })
    } else {
        (!is_directory).then_some(Change::Modified { watch, name })
    }
}
