//! A memory limit that the kernel enforces, where the test may set one.

use crate::{CGROUP, skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A cgroup with a memory limit, version 1 or 2. Removed when dropped, after its processes have ended.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Cgroup {
    /// A cgroup of `limit` bytes; `None`, said loudly, where it cannot be made (it takes root and a memory
    /// controller).
    pub fn new(limit: u64) -> Option<Cgroup> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tidegate-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        for (root, file, version) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", Version::V1),
            ("/sys/fs/cgroup", "memory.max", Version::V2),
        ] {
            let folder = Path::new(root).join(&name);
            // Without the controller there, this is an ordinary folder or none at all.
            let known = Path::new(root).join("cgroup.procs").exists();
            if !known || fs::create_dir(&folder).is_err() {
                continue;
            }
            let cgroup = Cgroup { folder, version };
            if cgroup.folder.join(file).exists()
                && fs::write(cgroup.folder.join(file), limit.to_string()).is_ok()
            {
                return Some(cgroup);
            }
        }
        skip(CGROUP, "no cgroup with a memory limit can be made here: it takes root and a memory controller");
        None
    }

    /// `program`, to be started inside.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        // The shell enters the cgroup and then becomes the program: the process number stays.
        command.arg("-c").arg("echo $$ > \"$0\" && exec \"$@\"").arg(self.folder.join("cgroup.procs"));
        command.arg(program);
        command
    }

    /// How many processes the kernel has killed in it for want of memory.
    ///
    /// # Panics
    /// When the kernel does not say.
    pub fn killed(&self) -> u64 {
        let file = if self.version == Version::V1 { "memory.oom_control" } else { "memory.events" };
        let text = fs::read_to_string(self.folder.join(file)).unwrap();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        count.unwrap_or_else(|| panic!("{file} does not count what was killed: {text}"))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Fails while a process is in it, and then stays behind, empty.
        let _left = fs::remove_dir(&self.folder);
    }
}
