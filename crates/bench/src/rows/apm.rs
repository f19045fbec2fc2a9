//! Elastic APM: processor time and allocations per event, from gzip batches to the journal.

use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use tidegate_load::elastic_apm::{SentItems, batches, drive_blocking};

pub(super) const ROW: Row = Row {
    name: "apm-intake",
    what: "processor time and heap allocations per event of Elastic APM, in gzip batches of 51, kept with fsync",
    measure,
};

const ROUNDS: u32 = 5;
const CONNECTIONS: usize = 16;
const EVENTS: u64 = 51;
/// Requests of each connection in the first, short run, from which the length of the others follows.
const PROBE: u64 = 50;

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let bodies = batches(EVENTS as usize)?;
    let folder = Folder::new(bench)?;
    let settings = "memory: 64MiB\njournal: { segment: 1GiB }\nsinks: { out: { type: blackhole } }";
    let subject = Subject::start(&folder, settings)?;
    let send = |requests: u64| -> Result<SentItems, Failure> {
        let sent = drive_blocking(subject.address(), &bodies, EVENTS, CONNECTIONS, requests);
        sent.map_err(|error| Failure(format!("sending batches of events: {error}")))
    };
    let probe = send(PROBE)?;
    subject.wait_until_settled()?;
    let rate = probe.requests as f64 / probe.elapsed.as_secs_f64().max(1e-3);
    let requests = ((rate * (bench.seconds / ROUNDS).as_secs_f64() / CONNECTIONS as f64) as u64).max(PROBE);

    let (mut costs, mut users, mut rates, mut allocations) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = (subject.used()?, subject.meter("tidegate_heap_allocations_total")?);
        let sent = send(requests)?;
        subject.wait_until_settled()?;
        let events = sent.events as f64;
        let used = subject.used()?.since(before.0);
        let allocated = subject.meter("tidegate_heap_allocations_total")? - before.1;
        costs.push(used.total().as_secs_f64() * 1e6 / events);
        users.push(used.user.as_secs_f64() * 1e6 / events);
        rates.push(events / sent.elapsed.as_secs_f64());
        allocations.push(allocated / events);
    }
    let bytes = probe.bytes as f64 / probe.events as f64;
    let cost = Figure {
        name: ROW.name,
        what: "CPU µs per event, gzip batches of 51 to the journal".to_owned(),
        bar: Bar::AtMost(2.0),
        measured: median(costs),
        details: vec![
            ("bytes an event as sent", bytes),
            ("of it user µs", median(users)),
            ("events a second", median(rates)),
        ],
    };
    let heap = Figure {
        name: ROW.name,
        what: "heap allocations per event, connections and pages of the books included".to_owned(),
        bar: Bar::AtMost(0.1),
        measured: median(allocations),
        details: vec![("requests", (requests * CONNECTIONS as u64) as f64)],
    };
    Ok(vec![cost, heap])
}
