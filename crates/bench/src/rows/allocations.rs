//! Heap allocations per request, from the socket to the journal.

use super::traffic::Traffic;
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject};
use tidegate_load::RunLimit;

pub(super) const ROW: Row = Row {
    name: "allocations",
    what: "heap allocations of the whole process per request, in steady state, without forwarding",
    measure,
};

/// Requests in the shorter and in the longer run: connecting and reading the meter cost the same in both,
/// so the difference is what requests cost.
const FEW: u64 = 1_000;
const MANY: u64 = 9_000;

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let traffic = Traffic::brief();
    let folder = Folder::new(bench)?;
    // A new segment costs some, which no request does: so all of the run goes into one.
    let settings = "memory: 64MiB\njournal: { segment: 2GiB }\nsinks: { out: { type: blackhole } }";
    let subject = Subject::start(&folder, settings)?;
    let allocations = |requests: u64| -> Result<f64, Failure> {
        let before = subject.meter("tidegate_heap_allocations_total")?;
        traffic.send(&subject.target(), RunLimit::Requests(requests))?;
        Ok(subject.meter("tidegate_heap_allocations_total")? - before)
    };
    allocations(FEW)?;
    let (few, many) = (allocations(FEW)?, allocations(MANY)?);
    Ok(vec![Figure {
        name: ROW.name,
        what: "heap allocations per request, source to journal".to_owned(),
        bar: Bar::AtMost(0.0),
        measured: (many - few).max(0.0) / (MANY - FEW) as f64,
        details: vec![("requests", (MANY - FEW) as f64), ("in fewer", few), ("in more", many)],
    }])
}
