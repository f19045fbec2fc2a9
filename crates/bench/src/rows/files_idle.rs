//! Eleven thousand log files of which most are quiet: processor time while nothing is written, and memory.

use super::log_lines::LogLines;
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject, Used};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "files-idle",
    what: "processor time and memory of a gateway with 10,000 quiet log files and 1,000 that grow now and then",
    measure,
};

const QUIET: usize = 10_000;
const ACTIVE: usize = 1_000;
const BUDGET_MIB: f64 = 128.0;

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let folder = Folder::new(bench)?;
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).map_err(|error| format!("making {}: {error}", logs.display()))?;
    let mut lines = LogLines::plain();
    for file in 0..QUIET + ACTIVE {
        lines.write(&path(&logs, file), 8)?;
    }
    let subject = Subject::start(
        &folder,
        &format!(
            "memory: {BUDGET_MIB}MiB\n\
             sources: {{ file: {{ max_files: 12000, inputs: {{ main: {{ include: [{:?}] }} }} }} }}\n\
             sinks: {{ out: {{ type: blackhole }} }}",
            logs.join("*.log")
        ),
    )?;
    let mut total = (QUIET + ACTIVE) * 8;
    let begun = Instant::now();
    subject.wait_until_accepted(total as f64)?;
    subject.wait_until_settled()?;
    let found = begun.elapsed();

    let (before, begun) = (subject.used()?, Instant::now());
    std::thread::sleep(bench.seconds);
    let quiet = share(&subject, before, begun)?;

    let (before, begun) = (subject.used()?, Instant::now());
    for round in 1.. {
        for file in QUIET..QUIET + ACTIVE {
            let mut file = OpenOptions::new().append(true).open(path(&logs, file))?;
            lines.line(&mut file)?;
        }
        total += ACTIVE;
        let next = Duration::from_secs(round);
        if next >= bench.seconds {
            break;
        }
        std::thread::sleep(next.saturating_sub(begun.elapsed()));
    }
    subject.wait_until_accepted(total as f64)?;
    let active = share(&subject, before, begun)?;
    let mib = |line: &str| Ok::<f64, Failure>(subject.memory(line)? / f64::from(1 << 20));
    Ok(vec![
        Figure {
            name: ROW.name,
            what: "CPU with 11,000 log files and nothing written, % of a core".to_owned(),
            bar: Bar::AtMost(0.5),
            measured: quiet,
            details: vec![
                ("% with 1,000 lines a second in as many files", active),
                ("seconds until all are read", found.as_secs_f64()),
            ],
        },
        Figure {
            name: "files-idle-memory",
            what: "resident memory with 11,000 log files, MiB".to_owned(),
            bar: Bar::AtMost(BUDGET_MIB),
            measured: mib("VmHWM")?,
            details: vec![("at the end", mib("VmRSS")?), ("of it anonymous", mib("RssAnon")?)],
        },
    ])
}

fn path(logs: &Path, file: usize) -> PathBuf {
    logs.join(format!("{file}.log"))
}

/// The share of a core since then, in per cent.
fn share(subject: &Subject, before: Used, begun: Instant) -> Result<f64, Failure> {
    let used = subject.used()?.since(before);
    Ok(used.total().as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0)
}
