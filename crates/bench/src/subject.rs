//! A gateway under test: a process of its own, in a folder that goes with it.

use crate::Failure;
use crate::figure::Bench;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidegate_load::Target;

/// How long a start, a stop, or the settling of what was sent may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long an answer of the admin address may usually take.
const SOON: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// The longest answer of a console that is read.
const LONGEST_ANSWER: usize = 4 << 20;

/// A running gateway. Dropping it ends it.
pub(crate) struct Subject {
    process: Child,
    http: SocketAddr,
    admin: SocketAddr,
    /// The time between starting the process and the first accepted connection.
    pub(crate) listening_after: Duration,
}

/// A folder for one gateway, and the program to start in it. Dropping it deletes the folder.
pub(crate) struct Folder {
    path: PathBuf,
    program: PathBuf,
}

/// The program under test.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// Its own name: its version, and its commit if known.
    pub(crate) version: String,
}

impl Program {
    /// The program `named`, or else the `tidegate` in the folder of this one.
    pub(crate) fn find(named: Option<&Path>) -> Result<Program, Failure> {
        let path = match named {
            Some(named) => named.to_owned(),
            None => std::env::current_exe()?.with_file_name("tidegate"),
        };
        let asked = Command::new(&path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
        let asked = asked.map_err(|error| {
            let build = "build it with `cargo build --release -p tidegate`, or name it with --subject";
            format!("starting the gateway to measure, {}: {error}; {build}", path.display())
        })?;
        let said = String::from_utf8_lossy(&asked.stdout);
        match said.trim().strip_prefix("tidegate ") {
            Some(version) if asked.status.success() => Ok(Program { path, version: version.to_owned() }),
            _ => Err(Failure(format!("{} is no tidegate: --version does not say so", path.display()))),
        }
    }
}

/// A process's resource usage, from `/proc`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl Used {
    pub(crate) fn since(self, before: Used) -> Used {
        Used {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }

    pub(crate) fn total(self) -> Duration {
        self.user + self.system
    }
}

impl Folder {
    pub(crate) fn new(bench: &Bench) -> Result<Folder, Failure> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tidegate-bench-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = bench.dir.join(name);
        std::fs::create_dir(&path).map_err(|error| format!("making {}: {error}", path.display()))?;
        Ok(Folder { path, program: bench.subject.path.clone() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Leftovers are in a folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Subject {
    /// Starts a gateway that keeps its data in `folder`, with these settings beside addresses and data.
    pub(crate) fn start(folder: &Folder, settings: &str) -> Result<Subject, Failure> {
        Subject::start_listening(folder, "", settings)
    }

    /// The same, with these settings of `listen` beside the addresses.
    pub(crate) fn start_listening(folder: &Folder, listen: &str, settings: &str) -> Result<Subject, Failure> {
        let (http, admin) = (free_address()?, free_address()?);
        let file = folder.path().join("tidegate.yaml");
        let data = folder.path().join("data");
        let config = format!(
            "data: {:?}\nlisten: {{ http: {http}, grpc: {http}, admin: {admin}, {listen} }}\n{settings}\n",
            data
        );
        std::fs::write(&file, config).map_err(|error| format!("writing {}: {error}", file.display()))?;
        let begun = Instant::now();
        let process = Command::new(&folder.program)
            .args(["--log", "error", "run", "--config"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("starting a gateway: {error}"))?;
        let mut subject = Subject { process, http, admin, listening_after: Duration::ZERO };
        while TcpStream::connect(http).is_err() {
            if let Ok(Some(status)) = subject.process.try_wait() {
                return Err(Failure(format!("the gateway under test ended at once: {status}")));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Failure(format!("the gateway under test was not listening within {PATIENCE:?}")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        subject.listening_after = begun.elapsed();
        Ok(subject)
    }

    pub(crate) fn target(&self) -> Target {
        Target::remote_write(self.http)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.http
    }

    /// The processor time that it has used.
    pub(crate) fn used(&self) -> Result<Used, Failure> {
        used_by(&self.process)
    }

    /// A line of its `/proc/PID/status` that is in kB, such as `VmRSS`, in bytes.
    pub(crate) fn memory(&self, line: &str) -> Result<f64, Failure> {
        memory_of(&self.process, line)
    }

    /// The sum of a meter's series.
    pub(crate) fn meter(&self, name: &str) -> Result<f64, Failure> {
        let text = self.metrics().map_err(|error| format!("reading /metrics of the gateway: {error}"))?;
        meter_in(&text, name).ok_or_else(|| Failure(format!("/metrics has no {name}")))
    }

    /// Waits until it has accepted so many items since its start.
    pub(crate) fn wait_until_accepted(&self, items: f64) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            // A source has no counter before its first items.
            let accepted = self.meter("tidegate_items_accepted_total").unwrap_or(0.0);
            if accepted >= items {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                let of = format!("{accepted} of {items} items within {PATIENCE:?}");
                return Err(Failure(format!("the gateway under test accepted only {of}")));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until its sinks have settled everything that it accepted.
    pub(crate) fn wait_until_settled(&self) -> Result<(), Failure> {
        self.wait_until_settled_within(PATIENCE)
    }

    /// The same, for so long at most.
    pub(crate) fn wait_until_settled_within(&self, patience: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        while self.meter("tidegate_sink_lag_bytes")? > 0.0 {
            if begun.elapsed() > patience {
                return Err(Failure(format!("the sink had not sent everything within {patience:?}")));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Ends it as an operator does.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        while self.process.try_wait()?.is_none() {
            if begun.elapsed() > PATIENCE {
                return Err(Failure(format!("the gateway under test did not end within {PATIENCE:?}")));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn metrics(&self) -> io::Result<String> {
        self.ask_admin("GET", "/metrics", &[], b"")
    }

    /// Asks its admin address; the answer with its head.
    pub(crate) fn ask_admin(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> io::Result<String> {
        self.ask_admin_within(SOON, (method, path), headers, body)
    }

    /// The same, where the answer may begin so late.
    pub(crate) fn ask_admin_within(
        &self,
        patience: Duration,
        (method, path): (&str, &str),
        headers: &[&str],
        body: &[u8],
    ) -> io::Result<String> {
        let more: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{more}\r\n"
        );
        let mut stream = self.connect_admin(&head)?;
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(body)?;
        let (mut answer, mut piece) = (Vec::new(), [0; 8 << 10]);
        while answer.len() < LONGEST_ANSWER {
            match stream.read(&mut piece)? {
                0 => break,
                len => answer.extend(piece.iter().take(len)),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// A connection to its admin address over which `head` is sent.
    pub(crate) fn connect_admin(&self, head: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.admin)?;
        stream.write_all(head.as_bytes())?;
        Ok(stream)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An address on loopback where nobody listens now.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// The processor time that a process has used.
pub(crate) fn used_by(process: &Child) -> Result<Used, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id()))?;
    used_in(&stat).ok_or_else(|| Failure::from("/proc/PID/stat is not as expected"))
}

/// A line of a process's `/proc/PID/status` that is in kB, in bytes.
pub(crate) fn memory_of(process: &Child, line: &str) -> Result<f64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()))?;
    let value = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    let kib = value.and_then(|value| value.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    Ok(kib.ok_or_else(|| format!("/proc/PID/status has no {line}"))? * 1024.0)
}

/// User and system time in `/proc/PID/stat`, fields 14 and 15.
fn used_in(stat: &str) -> Option<Used> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut next = || Some(Duration::from_secs_f64(fields.next()?.parse::<f64>().ok()? / per_second));
    Some(Used { user: next()?, system: next()? })
}

/// The sum of the series of `name` in Prometheus' text format.
fn meter_in(text: &str, name: &str) -> Option<f64> {
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = if rest.starts_with('{') { rest.rsplit_once('}')?.1 } else { rest };
        value.starts_with(' ').then(|| value.split_whitespace().next()?.parse::<f64>().ok())?
    });
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_spaces_and_brackets() {
        let stat = "42 (a) b) S 1 1 1 0 -1 4194560 9 0 0 0 200 100 0 0 20 0 7 0 12345";
        let used = used_in(stat).unwrap();
        assert_eq!(used.user, used.system * 2);
        assert!(used.system > Duration::ZERO);
    }

    #[test]
    fn a_meter_is_the_sum_of_its_series_and_of_no_others() {
        let text =
            "# HELP a_total of } a\na_total{sink=\"x y\"} 3\na_total{sink=\"z\"} 4\na_total_more 9\nb 7\n";
        assert_eq!(meter_in(text, "a_total"), Some(7.0));
        assert_eq!(meter_in(text, "b"), Some(7.0));
        assert_eq!(meter_in(text, "c"), None);
    }
}
