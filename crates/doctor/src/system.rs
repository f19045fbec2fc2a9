//! The system as files say: `/proc`, `/sys`. Each reader takes the folder that stands for `/`, so tests can make one.

pub(crate) mod cgroup;
pub(crate) mod lock;
pub(crate) mod mounts;
pub(crate) mod processes;
pub(crate) mod sockets;

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// The longest file that is read whole.
const LONGEST: u64 = 4 << 20;

/// The beginning of a file; `None` if it cannot be read.
pub(crate) fn read(file: &Path) -> Option<String> {
    bytes(file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The beginning of a file. What is no regular file is not read: a pipe would be waited for.
pub(crate) fn bytes(file: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = File::from(rustix::fs::open(file, flags, Mode::empty())?);
    if !opened.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    opened.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The result of `look`, which reads from disks; `None` if they do not answer in time. Its thread then ends with the program.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    look: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, receive) = sync_channel(1);
    let run = move || {
        // Nobody may be waiting any more.
        let _ = send.send(look());
    };
    std::thread::Builder::new().spawn(run).ok()?;
    receive.recv_timeout(limit).ok()
}

/// The number in a file.
pub(crate) fn number(file: &Path) -> Option<u64> {
    read(file)?.trim().parse().ok()
}

/// The number behind a name, as `/proc/meminfo` and `/proc/PID/status` have it.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (file, pipe) = (dir.path().join("file"), dir.path().join("pipe"));
        std::fs::write(&file, "7\n").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(number(&file), Some(7));
        for other in [&pipe, dir.path(), Path::new("/dev/zero")] {
            assert!(bytes(other).unwrap_err().to_string().contains("regular file"), "{}", other.display());
        }
        assert!(read(Path::new("/proc/self/limits")).is_some_and(|text| text.contains("Max open files")));
    }

    #[test]
    fn what_does_not_answer_is_not_waited_for() {
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        let (hold, held) = sync_channel::<()>(1);
        assert_eq!(within(Duration::from_millis(1), move || held.recv().is_err()), None);
        drop(hold);
    }
}
