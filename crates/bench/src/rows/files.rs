//! Log files: bytes read for a second of a core, from one file and from many.

use super::log_lines::{LINE_BYTES, LogLines};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(super) const PLAIN: Row = Row {
    name: "files",
    what: "MB of log lines of 256 bytes for a second of a core, read from files and kept with fsync",
    measure: plain,
};
pub(super) const CONTAINER: Row = Row {
    name: "files-cri",
    what: "MB of a container runtime's log lines for a second of a core, read from files and kept with fsync",
    measure: container,
};

const ROUNDS: u32 = 5;
const MANY: usize = 100;
/// Lines of the first, short round.
const PROBE: usize = 64 << 10;
/// The most lines of a round: 512 MiB.
const MOST: usize = (512 << 20) / LINE_BYTES;
const BUDGET_MIB: f64 = 64.0;

fn plain(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let [one, _] =
        cost(bench, PLAIN.name, "MB of log lines per core-second, one file", 150.0, 1, LogLines::plain())?;
    let [many, memory] = cost(
        bench,
        PLAIN.name,
        "MB of log lines per core-second, 100 files",
        130.0,
        MANY,
        LogLines::plain(),
    )?;
    Ok(vec![one, many, memory])
}

fn container(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let what = "MB of CRI log lines per core-second, 100 files";
    let [cost, _] = cost(bench, CONTAINER.name, what, 100.0, MANY, LogLines::container())?;
    Ok(vec![cost])
}

/// The cost of reading, and the memory that was resident meanwhile.
fn cost(
    bench: &Bench,
    name: &'static str,
    what: &str,
    bar: f64,
    files: usize,
    lines: LogLines,
) -> Result<[Figure; 2], Failure> {
    let folder = Folder::new(bench)?;
    let mut logs = Logs::new(&folder, files, lines)?;
    let subject = Subject::start(
        &folder,
        &format!(
            "memory: {BUDGET_MIB}MiB\nsources: {{ file: {{ inputs: {{ main: {{ include: [{:?}] }} }} }} }}\n\
             sinks: {{ out: {{ type: blackhole }} }}",
            logs.pattern()
        ),
    )?;
    let probe = logs.read(&subject, PROBE)?;
    let rate = PROBE as f64 / probe.as_secs_f64().max(1e-3);
    let wanted = (rate * (bench.seconds / ROUNDS).as_secs_f64()) as usize;

    let (mut costs, mut users, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    let syncs_before = subject.meter("tidegate_journal_syncs_total")?;
    for _ in 0..ROUNDS {
        let before = subject.used()?;
        let count = wanted.clamp(PROBE, MOST);
        let took = logs.read(&subject, count)?;
        let used = subject.used()?.since(before);
        let megabytes = (count / files * files * LINE_BYTES) as f64 / 1e6;
        costs.push(megabytes / used.total().as_secs_f64().max(1e-3));
        users.push(used.user.as_secs_f64() / megabytes * 1e3);
        rates.push(megabytes / took.as_secs_f64());
    }
    let syncs = subject.meter("tidegate_journal_syncs_total")? - syncs_before;
    let details = vec![
        ("files", files as f64),
        ("user ms a MB", median(users)),
        ("MB a second", median(rates)),
        ("syncs", syncs),
    ];
    let cost =
        Figure { name, what: what.to_owned(), bar: Bar::AtLeast(bar), measured: median(costs), details };
    let memory = Figure {
        name,
        what: "resident memory while log files are read, MiB".to_owned(),
        bar: Bar::AtMost(BUDGET_MIB),
        measured: subject.memory("VmHWM")? / f64::from(1 << 20),
        details: Vec::new(),
    };
    Ok([cost, memory])
}

/// The files of a round: written beside the folder that the gateway watches, and then moved into it whole, so that the
/// writing is over when the reading begins.
struct Logs {
    watched: PathBuf,
    written: PathBuf,
    files: usize,
    lines: LogLines,
    round: u32,
    /// Lines of all rounds.
    total: usize,
}

impl Logs {
    fn new(folder: &Folder, files: usize, lines: LogLines) -> Result<Logs, Failure> {
        let [watched, written] = ["watched", "written"].map(|name| folder.path().join(name));
        for path in [&watched, &written] {
            fs::create_dir(path).map_err(|error| format!("making {}: {error}", path.display()))?;
        }
        Ok(Logs { watched, written, files, lines, round: 0, total: 0 })
    }

    fn pattern(&self) -> PathBuf {
        self.watched.join("*.log")
    }

    /// How long the gateway takes for so many lines, until its sinks have settled them.
    fn read(&mut self, subject: &Subject, lines: usize) -> Result<Duration, Failure> {
        let name = |round: u32, file: usize| format!("{round}-{file}.log");
        for file in 0..self.files {
            self.lines.write(&self.written.join(name(self.round, file)), lines / self.files)?;
        }
        let begun = Instant::now();
        for file in 0..self.files {
            let name = name(self.round, file);
            fs::rename(self.written.join(&name), self.watched.join(&name))?;
        }
        self.total += lines / self.files * self.files;
        subject.wait_until_accepted(self.total as f64)?;
        subject.wait_until_settled()?;
        let took = begun.elapsed();
        // The space is for the next round.
        for file in 0..self.files {
            fs::remove_file(self.watched.join(name(self.round, file)))?;
        }
        self.round += 1;
        Ok(took)
    }
}
