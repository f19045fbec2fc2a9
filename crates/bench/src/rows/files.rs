//! Log files: bytes read for a second of a core, from one file and from many.

use super::kubernetes_api::KubernetesApi;
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
pub(super) const KUBERNETES: Row = Row {
    name: "files-kubernetes",
    what: "MB of container logs with the metadata of their pods for a second of a core, kept with fsync",
    measure: kubernetes,
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

/// One file for each of a hundred pods, whose metadata is that of an API server on loopback.
fn kubernetes(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let folder = Folder::new(bench)?;
    let logs = Logs::new(&folder, MANY, LogLines::container(), Layout::Pods)?;
    let api = KubernetesApi::start(MANY)?;
    let source = format!(
        "kubernetes_logs: {{ enabled: true, node: node-1, path: {:?}, labels: [app], api: {{ url: {:?} }} }}",
        logs.watched,
        api.url()
    );
    let what = "MB of CRI log lines with Kubernetes metadata per core-second, 100 pods";
    Ok(measured(bench, KUBERNETES.name, what, 100.0, &folder, logs, &source)?.into())
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
    let logs = Logs::new(&folder, files, lines, Layout::Flat)?;
    let source = format!("file: {{ inputs: {{ main: {{ include: [{:?}] }} }} }}", logs.watched.join("*.log"));
    measured(bench, name, what, bar, &folder, logs, &source)
}

/// The same with a source that reads these files.
fn measured(
    bench: &Bench,
    name: &'static str,
    what: &str,
    bar: f64,
    folder: &Folder,
    mut logs: Logs,
    source: &str,
) -> Result<[Figure; 2], Failure> {
    let files = logs.files;
    let subject = Subject::start(
        folder,
        &format!("memory: {BUDGET_MIB}MiB\nsources: {{ {source} }}\nsinks: {{ out: {{ type: blackhole }} }}"),
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
    layout: Layout,
    round: u32,
    /// Lines of all rounds.
    total: usize,
}

/// Where the files are in the watched folder.
#[derive(Clone, Copy)]
enum Layout {
    /// Directly.
    Flat,
    /// As the kubelet has them: each round is another start of the pods' containers.
    Pods,
}

impl Logs {
    fn new(folder: &Folder, files: usize, lines: LogLines, layout: Layout) -> Result<Logs, Failure> {
        let [watched, written] = ["watched", "written"].map(|name| folder.path().join(name));
        for path in [&watched, &written] {
            fs::create_dir(path).map_err(|error| format!("making {}: {error}", path.display()))?;
        }
        Ok(Logs { watched, written, files, lines, layout, round: 0, total: 0 })
    }

    /// The path of a file that is watched. Its folder is there.
    fn place(&self, file: usize) -> Result<PathBuf, Failure> {
        let path = match self.layout {
            Layout::Flat => self.watched.join(format!("{}-{file}.log", self.round)),
            Layout::Pods => {
                self.watched.join(format!("{}/app/{}.log", KubernetesApi::folder(file), self.round))
            }
        };
        fs::create_dir_all(path.parent().unwrap_or(&self.watched))?;
        Ok(path)
    }

    /// How long the gateway takes for so many lines, until its sinks have settled them.
    fn read(&mut self, subject: &Subject, lines: usize) -> Result<Duration, Failure> {
        let mut places = Vec::new();
        for file in 0..self.files {
            let written = self.written.join(format!("{}-{file}.log", self.round));
            self.lines.write(&written, lines / self.files)?;
            places.push((written, self.place(file)?));
        }
        let begun = Instant::now();
        for (written, place) in &places {
            fs::rename(written, place)?;
        }
        self.total += lines / self.files * self.files;
        subject.wait_until_accepted(self.total as f64)?;
        subject.wait_until_settled()?;
        let took = begun.elapsed();
        // The space is for the next round.
        for (_, place) in &places {
            fs::remove_file(place)?;
        }
        self.round += 1;
        Ok(took)
    }
}
