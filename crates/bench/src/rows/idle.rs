//! Resident memory of a gateway that nobody uses.

use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "idle",
    what: "resident memory of a gateway with the default configuration, a few seconds after its start",
    measure,
};

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let folder = Folder::new(bench)?;
    let subject = Subject::start(&folder, "")?;
    std::thread::sleep(Duration::from_secs(3));
    let mib = |line: &str| Ok::<f64, Failure>(subject.memory(line)? / f64::from(1 << 20));
    Ok(vec![Figure {
        name: ROW.name,
        what: "resident memory of the idle process, MiB".to_owned(),
        bar: Bar::AtMost(12.0),
        measured: mib("VmRSS")?,
        details: vec![
            ("of files", mib("RssFile")?),
            ("anonymous", mib("RssAnon")?),
            ("at most so far", mib("VmHWM")?),
        ],
    }])
}
