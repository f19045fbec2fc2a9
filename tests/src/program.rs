//! A program that a test runs: it ends with the test, and its output is at hand.

use crate::{SOON, until_some};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The end of a log that is printed when a test fails, in bytes.
const SHOWN: usize = 8 << 10;

/// A running program. Dropped, it is killed.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// The output of an ended program.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Program {
    /// Starts `command`, its output going to files in `folder` that are named after `name`, behind what an
    /// earlier one left there.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Program {
        let stdout = folder.join(format!("{name}.out"));
        let stderr = folder.join(format!("{name}.err"));
        command.stdin(Stdio::null()).stdout(append(&stdout)).stderr(append(&stderr));
        let child = command.spawn().unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
        Program { name: name.to_owned(), child, stdout, stderr }
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap_or_else(|error| panic!("signalling {}: {error}", self.name));
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it has not ended within `deadline`.
    pub fn wait(&mut self, deadline: Duration) -> ExitStatus {
        let what = format!("{} to end", self.name);
        until_some(deadline, &what, || self.ended())
    }

    /// Asks it to stop (SIGTERM) and waits for its end; the exit code.
    ///
    /// # Panics
    /// When it does not end soon, or a signal ends it.
    pub fn term(mut self) -> i32 {
        self.signal(Signal::TERM);
        let status = self.wait(SOON);
        status.code().unwrap_or_else(|| panic!("{} was ended by signal {:?}", self.name, status.signal()))
    }

    /// Kills it (SIGKILL), which it cannot notice.
    pub fn kill9(mut self) {
        self.end();
    }

    /// The output so far, including that of earlier programs with its name and folder.
    pub fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// Its log so far, with what earlier ones of its name and folder did.
    pub fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// The most memory that was ever resident, in bytes, as the kernel counts (`VmHWM`).
    ///
    /// # Panics
    /// When the process is gone.
    pub fn hwm(&self) -> u64 {
        self.status_bytes("VmHWM")
    }

    /// The private memory that is resident now, in bytes (`RssAnon`): without the program's own pages, which
    /// come and go.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn private(&self) -> u64 {
        self.status_bytes("RssAnon")
    }

    /// The CPU time that it has used, its own and the system's for it.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        // The second field is the program's name in parentheses, which may hold anything.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
        Duration::from_millis(ticks.sum::<u64>() * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// How long its threads have waited for a processor, all together: what it cannot help on a busy machine. Nothing where
    /// the kernel does not count that.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn hindered(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let waited = |schedstat: String| schedstat.split_whitespace().nth(1)?.parse::<u64>().ok();
        // One that has ended meanwhile has no file any more.
        let all =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok());
        Duration::from_nanos(all.filter_map(waited).sum())
    }

    fn status_bytes(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.unwrap_or_else(|| panic!("{} has no {field}: has it ended?\n{status}", self.name)) << 10
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            let log = self.stderr();
            let from = log.floor_char_boundary(log.len().saturating_sub(SHOWN));
            eprintln!("---- the log of {} ends with:\n{}", self.name, &log[from..]);
        }
    }
}

/// Runs a command to its end.
///
/// # Panics
/// When it cannot be started.
pub fn finish(command: &mut Command) -> Finished {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("running {command:?}: {error}"));
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Finished {
    /// Its standard output.
    ///
    /// # Panics
    /// When it did not end with code 0.
    #[track_caller]
    pub fn succeeded(self) -> String {
        assert_eq!(self.code, Some(0), "it printed:\n{}\nand complained:\n{}", self.stdout, self.stderr);
        self.stdout
    }
}

fn append(path: &Path) -> File {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.unwrap_or_else(|error| panic!("opening {}: {error}", path.display()))
}

fn read(path: &Path) -> String {
    std::fs::read(path).map_or_else(|_| String::new(), |log| String::from_utf8_lossy(&log).into_owned())
}
