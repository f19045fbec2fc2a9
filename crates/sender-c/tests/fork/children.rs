//! Forked children: started, waited for, and looked into when they do not end.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The time after which a child counts as stuck: less than its own deadline, so that it is still running.
const LONG: Duration = Duration::from_secs(40);

/// How many children a test forks: `usual`, or as many as `TIDEGATE_FORKS` says.
pub(crate) fn forks(usual: u64) -> u64 {
    std::env::var("TIDEGATE_FORKS").map_or(usual, |forks| forks.parse().expect("TIDEGATE_FORKS: a number"))
}

pub(crate) struct Child(libc::pid_t);

/// Runs `work` in a child, which ends with its result and without the parent's exit handlers.
pub(crate) fn fork(work: impl FnOnce() -> bool) -> Child {
    // SAFETY: the children of these tests use the sender, which says that it may be used there, and leave by
    // `_exit`.
    let id = unsafe { libc::fork() };
    assert_ne!(id, -1, "no more processes");
    if id == 0 {
        let well = work();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    Child(id)
}

impl Child {
    /// Panics when the child fails, or is stuck; then it says where.
    pub(crate) fn wait(self, what: &str) {
        let until = Instant::now() + LONG;
        let mut status = -1;
        loop {
            // SAFETY: `status` outlives the call, and the child is this process's own.
            let waited = unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) };
            if waited == self.0 {
                break;
            }
            assert_eq!(waited, 0, "{}", std::io::Error::last_os_error());
            if Instant::now() > until {
                let stacks = stacks(self.0);
                // SAFETY: the child is this process's own.
                unsafe { libc::kill(self.0, libc::SIGKILL) };
                panic!("{what}: stuck for {LONG:?}:\n{stacks}");
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        assert_eq!(status, 0, "{what}: it did not see sent what it made");
    }
}

/// Where each thread of a process is, as far as the system tells.
pub(crate) fn stacks(process: libc::pid_t) -> String {
    let mut all = String::new();
    let tasks = format!("/proc/{process}/task");
    for task in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
        for file in ["comm", "wchan", "syscall", "stack"] {
            let text = std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
            all += &format!("{}/{file}: {}\n", Path::new(&task.file_name()).display(), text.trim());
        }
    }
    let gdb = Command::new("gdb")
        .args(["-p", &process.to_string(), "-batch", "-ex", "thread apply all bt"])
        .output();
    match gdb {
        Ok(said) => all + &String::from_utf8_lossy(&said.stdout),
        Err(_) => all,
    }
}
