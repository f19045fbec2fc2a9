//! The cost of syncing: the rate with `fsync` against that with `page_cache`.

use super::traffic::Traffic;
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use std::time::Duration;
use tidegate_load::RunLimit;

pub(super) const ROW: Row = Row {
    name: "fsync",
    what: "the rate over 16 connections with durability fsync, against page_cache",
    measure,
};

const ROUNDS: u32 = 5;
const SYNC_TIME: &str = "tidegate_journal_sync_seconds_total";

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let traffic = Traffic::brief();
    let folders = [Folder::new(bench)?, Folder::new(bench)?];
    let start = |folder: &Folder, durability: &str| {
        let rest = "memory: 64MiB\nsinks: { out: { type: blackhole } }";
        Subject::start(folder, &format!("journal: {{ durability: {durability} }}\n{rest}"))
    };
    let synced = start(&folders[0], "fsync")?;
    let cached = start(&folders[1], "page_cache")?;
    let long = bench.seconds / ROUNDS;
    let rate = |subject: &Subject, long: Duration| -> Result<f64, Failure> {
        let report = traffic.send(&subject.target(), RunLimit::Time(long))?;
        subject.wait_until_settled()?;
        Ok(report.samples as f64 / report.elapsed.as_secs_f64())
    };
    rate(&synced, Duration::from_secs(1))?;
    rate(&cached, Duration::from_secs(1))?;
    let syncs =
        || Ok::<_, Failure>((synced.meter("tidegate_journal_syncs_total")?, synced.meter(SYNC_TIME)?));
    let before = syncs()?;
    let (mut ratios, mut rates, mut cached_rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // Each between two of the other, so that a machine that gets slower favours neither.
        let first = rate(&cached, long / 2)?;
        let fsync = rate(&synced, long)?;
        let page_cache = (first + rate(&cached, long / 2)?) / 2.0;
        ratios.push(fsync / page_cache);
        rates.push(fsync / 1e6);
        cached_rates.push(page_cache / 1e6);
    }
    let after = syncs()?;
    let sync_ms = (after.1 - before.1) / (after.0 - before.0).max(1.0) * 1e3;
    Ok(vec![Figure {
        name: ROW.name,
        what: "rate with fsync, of that with page_cache".to_owned(),
        bar: Bar::AtLeast(0.8),
        measured: median(ratios),
        details: vec![
            ("million samples a second with fsync", median(rates)),
            ("with page_cache", median(cached_rates)),
            ("ms a sync", sync_ms),
        ],
    }])
}
