//! Processor time per sample: the whole process against the bare cost of reading the same bytes.

use super::bare::Bare;
use super::traffic::{PER_REQUEST, Traffic};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use std::time::Duration;
use tidegate_load::{Behaviour, Check, RunLimit, VerifyingReceiver};

pub(super) const FORWARDING: Row = Row {
    name: "cpu-forwarding",
    what: "processor time per sample, received, kept with fsync and forwarded, against the bare cost",
    measure: forwarding,
};
pub(super) const INGEST: Row = Row {
    name: "cpu-ingest",
    what: "processor time per sample, received and kept with fsync, against the bare cost",
    measure: ingest,
};

const ROUNDS: u32 = 5;

fn forwarding(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let sink = VerifyingReceiver::start(Behaviour::Healthy, Check::Nothing)?;
    let url = sink.target();
    let sinks = format!("sinks: {{ out: {{ type: prometheus_remote_write, url: \"{url}\" }} }}");
    measure(bench, FORWARDING.name, "CPU per sample with forwarding, times the bare cost", 3.0, &sinks)
}

fn ingest(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let sinks = "sinks: { out: { type: blackhole } }";
    measure(bench, INGEST.name, "CPU per sample without forwarding, times the bare cost", 2.0, sinks)
}

fn measure(
    bench: &Bench,
    name: &'static str,
    what: &str,
    bar: f64,
    sinks: &str,
) -> Result<Vec<Figure>, Failure> {
    let traffic = Traffic::fleet();
    let mut bare = Bare::of(traffic.bodies(), PER_REQUEST)?;
    let folder = Folder::new(bench)?;
    let subject = Subject::start(&folder, &format!("memory: 64MiB\n{sinks}"))?;
    traffic.send(&subject.target(), RunLimit::Time(Duration::from_secs(1)))?;
    subject.wait_until_settled()?;

    let (mut ratios, mut bares, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut users, mut rates, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before_load = bare.cost(Duration::from_millis(250))?;
        let (before, syncs_before) = (subject.used()?, subject.meter("tidegate_journal_syncs_total")?);
        let report = traffic.send(&subject.target(), RunLimit::Time(bench.seconds / ROUNDS))?;
        // The cost of an accepted request includes sending it on.
        subject.wait_until_settled()?;
        let used = subject.used()?.since(before);
        let synced = subject.meter("tidegate_journal_syncs_total")? - syncs_before;
        let bare = (before_load + bare.cost(Duration::from_millis(250))?) / 2.0;
        let samples = report.samples as f64;
        let cost = used.total().as_nanos() as f64 / samples;
        ratios.push(cost / bare);
        bares.push(bare);
        costs.push(cost);
        users.push(used.user.as_nanos() as f64 / samples);
        rates.push(samples / report.elapsed.as_secs_f64() / 1e6);
        syncs.push(report.accepted() as f64 / synced.max(1.0));
    }
    let details = vec![
        ("bytes a sample", bare.bytes_per_sample()),
        ("bare ns", median(bares)),
        ("gateway ns", median(costs)),
        ("of it user ns", median(users)),
        ("million samples a second", median(rates)),
        ("requests a sync", median(syncs)),
    ];
    Ok(vec![Figure { name, what: what.to_owned(), bar: Bar::AtMost(bar), measured: median(ratios), details }])
}
