//! Listens on a Unix socket: one gateway at a time, and a file that goes when the gateway does.
//!
//! The socket is made beside its place and renamed into it, so that it is never there with other rights than its own,
//! and what a killed gateway left is replaced without a gap. The lock beside it is the kernel's: it goes with the
//! process that holds it, however that ends. Its file stays, because removing it would let two gateways hold two locks.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use tidegate_files::Access;

/// Owner and group may connect.
const MODE: u32 = 0o660;
/// Everybody may send datagrams: programs of all users write to `/dev/log`.
const DATAGRAM_MODE: u32 = 0o666;

/// The socket in the file system, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Held as long as the socket is ours.
    _lock: File,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Ours by the lock. A program that put another one there has to clean up itself, and does not need us to.
        let _gone_already = std::fs::remove_file(&self.path);
    }
}

/// Listens at `path`, which the configuration has in `setting`.
///
/// # Errors
/// In words: what was tried, what is wrong, what to do.
pub(crate) fn listen(path: &Path, setting: &str) -> Result<(UnixListener, SocketFile), String> {
    publish(
        path,
        setting,
        |path| UnixStream::connect(path).is_ok(),
        |path| {
            let listener = UnixListener::bind(path)?;
            std::fs::set_permissions(path, Permissions::from_mode(MODE))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        },
    )
}

/// Receives datagrams at `path`, which the configuration has in `setting`.
///
/// # Errors
/// As [`listen`].
pub(crate) fn receive(path: &Path, setting: &str) -> Result<(UnixDatagram, SocketFile), String> {
    let is_used = |path: &Path| UnixDatagram::unbound().and_then(|socket| socket.connect(path)).is_ok();
    publish(path, setting, is_used, |path| {
        let socket = UnixDatagram::bind(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(DATAGRAM_MODE))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    })
}

/// Has `make` make a socket beside `path` and moves it there, unless another program uses the one that is there.
fn publish<S>(
    path: &Path,
    setting: &str,
    is_used: impl Fn(&Path) -> bool,
    make: impl Fn(&Path) -> io::Result<S>,
) -> Result<(S, SocketFile), String> {
    let at = path.display();
    let failed = |what: &str, error: &io::Error| format!("{what} {at} (`{setting}`): {error}");
    let used = || {
        format!("listening on {at} (`{setting}`): another tidegate or program does so; give it another path")
    };
    let lock_path = beside(path, "lock");
    let lock = tidegate_files::open(&lock_path, Access::Owner, |options| {
        options.create(true).truncate(false).write(true)
    });
    let lock = lock.map_err(|error| failed("making the lock beside", &error))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(used()),
        Err(TryLockError::Error(error)) => return Err(failed("locking", &error)),
    }
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(format!(
                "listening on {at} (`{setting}`): a file that is no socket is there; remove it"
            ));
        }
        // Of a program that knows nothing of the lock.
        Ok(_) if is_used(path) => return Err(used()),
        _ => {}
    }
    let made = beside(path, "new");
    let fresh = match std::fs::remove_file(&made) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => make(&made),
    };
    let socket = fresh.map_err(|error| failed("listening on", &error))?;
    if let Err(error) = std::fs::rename(&made, path) {
        let _made_in_vain = std::fs::remove_file(&made);
        return Err(failed("listening on", &error));
    }
    Ok((socket, SocketFile { path: path.to_owned(), _lock: lock }))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn group_may_connect_and_the_file_goes_with_its_gateway() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let (listener, file) = listen(&path, "listen.unix").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        UnixStream::connect(&path).unwrap();
        assert!(listener.accept().is_ok());
        assert_eq!(names(folder.path()), ["a.sock", "a.sock.lock"]);
        drop(file);
        assert_eq!(names(folder.path()), ["a.sock.lock"]);
    }

    #[test]
    fn one_gateway_listens_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let first = listen(&path, "listen.unix").unwrap();
        assert!(listen(&path, "listen.unix").unwrap_err().contains("another tidegate"));
        UnixStream::connect(&path).unwrap();
        drop(first);
        listen(&path, "listen.unix").unwrap();
    }

    #[test]
    fn a_stale_socket_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        // As after a kill in the middle of a start, too.
        for left in [&path, &folder.path().join("a.sock.new")] {
            drop(UnixListener::bind(left).unwrap());
        }
        assert!(UnixStream::connect(&path).is_err());
        let _listening = listen(&path, "listen.unix").unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn foreign_files_and_sockets_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let other = UnixListener::bind(&path).unwrap();
        assert!(listen(&path, "listen.unix").unwrap_err().contains("another tidegate or program"));
        drop(other);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(listen(&path, "listen.unix").unwrap_err().contains("no socket"));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        let nowhere = listen(&folder.path().join("missing/a.sock"), "listen.unix").unwrap_err();
        assert!(nowhere.contains("missing/a.sock"), "{nowhere}");
    }
}
