//! The system as files say: `/proc`, `/sys`. Each reader takes the folder that stands for `/`, so tests can make one.

pub(crate) mod cgroup;
pub(crate) mod lock;
pub(crate) mod mounts;
pub(crate) mod processes;
pub(crate) mod sockets;

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest file that is read whole.
const LONGEST: u64 = 4 << 20;

/// The beginning of a file; `None` if it cannot be read.
pub(crate) fn read(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    File::open(file).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
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
