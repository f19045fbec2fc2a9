//! A `journalctl` that follows the journal and writes it in the export format.
//!
//! systemd's own program reads the files, since it alone knows all their versions, compressions and rotations, and needs a
//! library of C otherwise. It is bounded: a pipe of 64 KiB holds it up.

use crate::cursor::Cursor;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::unix::pipe;

/// How much of what the program says on its standard error is kept.
const EXCERPT: usize = 1024;

/// Which journal is followed, and which of its entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalctlSettings {
    /// The program; looked for in the `PATH` if it has no slash.
    pub program: PathBuf,
    /// The folder of the journal files, instead of the system's.
    pub directory: Option<PathBuf>,
    /// A namespace of the journal.
    pub namespace: Option<String>,
    /// Units; all if there are none.
    pub units: Vec<String>,
    /// Identifiers; all if there are none.
    pub identifiers: Vec<String>,
    /// The least urgent priority, or a range as `journalctl` has it.
    pub priority: Option<String>,
    /// Matches `FIELD=value`, and `+` between alternatives.
    pub matches: Vec<String>,
    /// Whether only entries since the last boot are read.
    pub current_boot: bool,
}

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start<'a> {
    /// At the oldest entry.
    Beginning,
    /// With the last entry: it is known that reading begins behind it, also after a restart.
    End,
    /// At the first entry since this time, in microseconds since 1970.
    Since(u64),
    /// At this entry, or at the first one after it if it is not there any more.
    At(Cursor<'a>),
}

/// The program cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("starting `{}`: {error}; install systemd's journalctl, or set its path", program.display())]
pub struct StartError {
    program: PathBuf,
    error: io::Error,
}

/// A running `journalctl`. Dropping it kills the program; [`end`](Self::end) also waits for its end.
#[derive(Debug)]
pub struct Journalctl {
    child: Child,
    /// Readable when the program has ended; `None` where the kernel has no such descriptors.
    ended: Option<AsyncFd<OwnedFd>>,
    output: pipe::Receiver,
    errors: Option<pipe::Receiver>,
    excerpt: Vec<u8>,
}

/// The next part of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// So many bytes.
    Bytes(usize),
    /// The program has ended; this is how, and what it has said.
    End(String),
}

impl JournalctlSettings {
    /// The arguments.
    ///
    /// The cursor is passed by `--cursor`, not `--after-cursor`: the latter skips an entry also when the one with the cursor
    /// is not there any more (systemd 252), and does not tell. So the reader skips the entry itself, and knows
    /// when it is missing.
    #[must_use]
    pub fn arguments(&self, start: Start<'_>) -> Vec<OsString> {
        let mut all: Vec<OsString> =
            ["--output=export", "--follow", "--all", "--quiet", "--no-pager"].map(OsString::from).into();
        let mut option = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| {
            let mut text = OsString::from(name);
            text.push("=");
            text.push(value.as_ref());
            all.push(text);
        };
        match &self.directory {
            Some(directory) => option("--directory", directory),
            None => {
                if let Some(namespace) = &self.namespace {
                    option("--namespace", namespace);
                }
            }
        }
        self.units.iter().for_each(|unit| option("--unit", unit));
        self.identifiers.iter().for_each(|identifier| option("--identifier", identifier));
        if let Some(priority) = &self.priority {
            option("--priority", priority);
        }
        match start {
            Start::Beginning => all.push("--no-tail".into()),
            Start::End => option("--lines", &"1"),
            Start::Since(time_us) => {
                option("--since", &format!("@{}.{:06}", time_us / 1_000_000, time_us % 1_000_000));
                all.push("--no-tail".into());
            }
            Start::At(cursor) => {
                option("--cursor", &cursor.as_str());
                all.push("--no-tail".into());
            }
        }
        if self.current_boot {
            all.push("--boot".into());
        }
        // Behind this nothing is an option.
        all.push("--".into());
        all.extend(self.matches.iter().map(OsString::from));
        all
    }
}

impl Journalctl {
    /// Starts the program.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(settings: &JournalctlSettings, start: Start<'_>) -> Result<Journalctl, StartError> {
        let failed = |error| StartError { program: settings.program.clone(), error };
        let mut child = Command::new(&settings.program)
            .args(settings.arguments(start))
            .env("LC_ALL", "C.UTF-8")
            .env("SYSTEMD_COLORS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let output = child.stdout.take().ok_or_else(|| io::Error::other("it has no output"));
        let errors = child.stderr.take().ok_or_else(|| io::Error::other("it has no output of errors"));
        let pipes = output.and_then(|output| {
            let output = pipe::Receiver::from_owned_fd(output.into())?;
            Ok((output, pipe::Receiver::from_owned_fd(errors?.into())?))
        });
        match pipes {
            Ok((output, errors)) => {
                let ended = end_of(&child);
                Ok(Journalctl { child, ended, output, errors: Some(errors), excerpt: Vec::new() })
            }
            Err(error) => {
                reap(&mut child);
                Err(failed(error))
            }
        }
    }

    /// Ends the program, and waits until it has.
    pub async fn end(mut self) {
        // It fails if the program has ended by itself.
        let _ = self.child.kill();
        self.await_end().await;
        reap(&mut self.child);
    }

    /// Waits for output. Nothing is lost if the future is dropped.
    ///
    /// # Errors
    /// Those of reading a pipe.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<Chunk> {
        let mut said = [0; 256];
        loop {
            let Some(errors) = &mut self.errors else {
                let len = self.output.read(buffer).await?;
                if len == 0 {
                    self.await_end().await;
                }
                return Ok(self.chunk(len));
            };
            tokio::select! {
                len = self.output.read(buffer) => {
                    let len = len?;
                    if len == 0 {
                        self.read_errors().await;
                        self.await_end().await;
                    }
                    return Ok(self.chunk(len));
                }
                len = errors.read(&mut said) => {
                    let len = len.unwrap_or_default();
                    if len == 0 {
                        self.errors = None;
                    }
                    self.keep(said.get(..len).unwrap_or_default());
                }
            }
        }
    }

    /// Reads at once what is there; `None` if nothing is.
    ///
    /// # Errors
    /// Those of reading a pipe.
    pub fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<Option<Chunk>> {
        match self.output.try_read(buffer) {
            // The end is told by `read`, which has the reason too.
            Ok(0) => Ok(None),
            Ok(len) => Ok(Some(Chunk::Bytes(len))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn chunk(&mut self, len: usize) -> Chunk {
        if len > 0 {
            return Chunk::Bytes(len);
        }
        let status = reap(&mut self.child);
        let said = String::from_utf8_lossy(&self.excerpt);
        Chunk::End(format!("{status}: {}", said.trim()))
    }

    /// Gives a program that has closed its output, or was killed, a moment to end: how it ended is the reason.
    async fn await_end(&self) {
        if let Some(ended) = &self.ended {
            // Late or not: who comes next kills it.
            let _ended = tokio::time::timeout(END_PATIENCE, ended.readable()).await;
        }
    }

    /// The rest of what an ended program has said.
    async fn read_errors(&mut self) {
        let Some(mut errors) = self.errors.take() else { return };
        let mut said = [0; 256];
        while self.excerpt.len() < EXCERPT {
            match errors.read(&mut said).await {
                Ok(len @ 1..) => self.keep(said.get(..len).unwrap_or_default()),
                _ => return,
            }
        }
    }

    fn keep(&mut self, said: &[u8]) {
        let len = said.len().min(EXCERPT.saturating_sub(self.excerpt.len()));
        self.excerpt.extend_from_slice(said.get(..len).unwrap_or_default());
    }
}

impl Drop for Journalctl {
    /// Never waits: the thread has other tasks.
    fn drop(&mut self) {
        // Both fail if the program has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.try_wait();
    }
}

/// How long a program may take to end that has closed its output, or was killed.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// A descriptor that is readable when the program has ended.
fn end_of(child: &Child) -> Option<AsyncFd<OwnedFd>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw)?;
    let ended = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    #[expect(
        deprecated,
        reason = "its successor is `unsafe`, for types that may change their descriptor: this cannot"
    )]
    let ended = AsyncFd::with_interest(ended, Interest::READABLE);
    ended.ok()
}

/// Ends a program that has not ended yet, and says how it ended.
fn reap(child: &mut Child) -> String {
    if let Ok(Some(status)) = child.try_wait() {
        return status.to_string();
    }
    // It fails if the program has ended by itself.
    let _ = child.kill();
    child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(settings: &JournalctlSettings, start: Start<'_>) -> Vec<String> {
        settings.arguments(start).into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    #[test]
    fn settings_become_arguments() {
        let settings = JournalctlSettings {
            program: "journalctl".into(),
            directory: Some("/run/log/journal".into()),
            namespace: None,
            units: vec!["ssh.service".into(), "--rotate".into()],
            identifiers: vec!["cron".into()],
            priority: Some("warning".into()),
            matches: vec!["_UID=0".into(), "+".into(), "_COMM=su".into()],
            current_boot: true,
        };
        let found = arguments(&settings, Start::End);
        let expected = [
            "--directory=/run/log/journal",
            "--unit=ssh.service",
            "--unit=--rotate",
            "--identifier=cron",
            "--priority=warning",
            "--lines=1",
            "--boot",
            "--",
            "_UID=0",
            "+",
            "_COMM=su",
        ];
        assert_eq!(found[5..], expected);
    }

    #[test]
    fn starts_where_it_was() {
        let cursor = Cursor::parse(b"s=ab;i=4").unwrap();
        let found = arguments(&JournalctlSettings::default(), Start::At(cursor));
        assert_eq!(found[5..], ["--cursor=s=ab;i=4", "--no-tail", "--"]);
        assert!(found.contains(&"--follow".to_owned()));
    }

    #[test]
    fn starts_at_a_time() {
        let found = arguments(&JournalctlSettings::default(), Start::Since(1_767_000_000_000_042));
        assert_eq!(found[5..], ["--since=@1767000000.000042", "--no-tail", "--"]);
    }

    /// The end of a program is known when it comes, without looking for it.
    #[tokio::test]
    async fn waits_for_the_end_of_the_program() {
        let settings = JournalctlSettings { program: "/bin/ls".into(), ..JournalctlSettings::default() };
        let program = Journalctl::start(&settings, Start::End).unwrap();
        let pid = program.child.id();
        assert!(program.ended.is_some(), "the kernel has no descriptors of processes");
        let ended = program.ended.as_ref().unwrap().readable();
        drop(tokio::time::timeout(Duration::from_secs(30), ended).await.expect("it ends by itself").unwrap());
        program.end().await;
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "the program is there, or a zombie");
    }

    #[tokio::test]
    async fn a_program_that_is_missing_is_named() {
        let settings =
            JournalctlSettings { program: "/no/such/program".into(), ..JournalctlSettings::default() };
        let error = Journalctl::start(&settings, Start::End).unwrap_err().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
    }

    /// The words of a program that fails become the reason.
    #[tokio::test]
    async fn the_end_has_a_reason() {
        let settings = JournalctlSettings { program: "/bin/ls".into(), ..JournalctlSettings::default() };
        let mut program = Journalctl::start(&settings, Start::End).unwrap();
        let mut buffer = [0; 4096];
        let Chunk::End(reason) = program.read(&mut buffer).await.unwrap() else { panic!("no end") };
        assert!(reason.contains("exit status: 2") && reason.contains("output"), "{reason}");
    }
}
