//! Starting with a long journal: how soon it listens, and what that takes of memory.

use super::traffic::Traffic;
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use tidegate_load::{Behaviour, Check, RunLimit, VerifyingReceiver};

pub(super) const ROW: Row = Row {
    name: "backlog",
    what: "a start with 5 GiB in the journal and 64 MiB of memory: listening, and peak memory while it sends",
    measure,
};

const FILLING: Duration = Duration::from_secs(400);

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let sink = VerifyingReceiver::start(Behaviour::Stall, Check::Nothing)?;
    let settings = |durability: &str| {
        format!(
            "memory: 64MiB\njournal: {{ durability: {durability} }}\nsinks: {{ out: {{ type: \
             prometheus_remote_write, url: \"{}\" }} }}",
            sink.target()
        )
    };
    let empty = Folder::new(bench)?;
    let fresh = Subject::start(&empty, &settings("fsync"))?;
    let (fresh_after, fresh_peak) = (fresh.listening_after, fresh.memory("VmHWM")?);
    drop(fresh);

    let folder = Folder::new(bench)?;
    fill(&folder, &settings("page_cache"), bench.backlog)?;
    forget(&folder.path().join("data/journal"))?;
    let subject = Subject::start(&folder, &settings("fsync"))?;
    let size = subject.meter("tidegate_journal_size_bytes")?;
    std::thread::sleep(Duration::from_secs(2));
    let stalled = subject.memory("VmHWM")?;
    // And while it makes good for the stall.
    sink.set(Behaviour::Healthy);
    std::thread::sleep(bench.seconds);
    let sending = subject.memory("VmHWM")?;
    let sent = size - subject.meter("tidegate_sink_lag_bytes")?;
    let mib = f64::from(1 << 20);
    Ok(vec![
        Figure {
            name: ROW.name,
            what: format!("start with {:.1} GiB of journal, seconds until it listens", size / mib / 1024.0),
            bar: Bar::AtMost(2.0),
            measured: subject.listening_after.as_secs_f64(),
            details: vec![("with an empty one", fresh_after.as_secs_f64())],
        },
        Figure {
            name: "backlog-memory",
            what: "peak resident memory with that journal, MiB".to_owned(),
            bar: Bar::AtMost(64.0),
            measured: sending / mib,
            details: vec![
                ("with an empty journal", fresh_peak / mib),
                ("while the sink stalls", stalled / mib),
                ("MiB sent meanwhile", sent / mib),
            ],
        },
    ])
}

/// Fills a journal that nobody empties.
fn fill(folder: &Folder, settings: &str, size: u64) -> Result<(), Failure> {
    let traffic = Traffic::brief();
    let subject = Subject::start(folder, settings)?;
    let begun = Instant::now();
    while subject.meter("tidegate_journal_size_bytes")? < size as f64 {
        if begun.elapsed() > FILLING {
            return Err(Failure(format!("the journal was not full within {FILLING:?}")));
        }
        traffic.send(&subject.target(), RunLimit::Requests(1_000))?;
    }
    subject.stop()
}

/// Has the system forget what it knows of the files in `dir`, as after a boot.
fn forget(dir: &Path) -> Result<(), Failure> {
    for entry in std::fs::read_dir(dir)? {
        let file = File::open(entry?.path())?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}
