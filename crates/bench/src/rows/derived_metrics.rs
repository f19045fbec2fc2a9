//! Derived metrics: processor time per span, and memory of 10,000 series.

use super::otlp::{CONNECTIONS, ROUNDS, accepted};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use std::time::Duration;
use tidegate_load::OnRefused;
use tidegate_load::otlp::{ContentCoding, OtlpProfile, OtlpReport, Signal, Transport};

pub(super) const CPU: Row = Row {
    name: "derived-metrics",
    what: "processor time per span of counting calls and durations, beside the same gateway that does not; peak memory with 10,000 series",
    measure: cpu,
};
const PER_REQUEST: u64 = 200;
const MIB: f64 = 1_048_576.0;

fn settings(sinks: &str) -> String {
    format!(
        "memory: 128MiB\njournal: {{ durability: page_cache }}\nsinks: {{ out: {{ type: blackhole }}{sinks} }}"
    )
}

/// Calls and durations with three more dimensions.
const DERIVE: &str = ", red: { type: derive, interval: 2s, span_metrics: { dimensions: [{ name: http.request.method }, { name: http.route }, \
     { name: user_agent.original }] } }";
/// As many series as the table has: each user is one, until it is full.
const FULL: &str =
    ", red: { type: derive, interval: 2s, span_metrics: { dimensions: [{ name: enduser.id }] } }";

fn cpu(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let folders = [Folder::new(bench)?, Folder::new(bench)?];
    let plain = Subject::start(&folders[0], &settings(""))?;
    let deriving = Subject::start(&folders[1], &settings(DERIVE))?;
    let length = (bench.seconds / ROUNDS).as_secs_f64();
    let (mut of_plain, mut of_deriving, mut first, mut requests) = (Vec::new(), Vec::new(), 0, 100);
    for round in 0..=ROUNDS {
        for (subject, costs) in [(&plain, &mut of_plain), (&deriving, &mut of_deriving)] {
            let before = subject.used()?;
            let report = send(subject, first, requests)?;
            subject.wait_until_settled()?;
            let used = subject.used()?.since(before);
            // The first is short, and says how long the others are.
            match round {
                0 => requests = ((100.0 * length / report.elapsed.as_secs_f64().max(1e-3)) as u64).max(100),
                _ => costs.push(used.total().as_secs_f64() * 1e9 / report.items as f64),
            }
        }
        first += CONNECTIONS * requests * PER_REQUEST;
    }
    let series = deriving.meter("tidegate_sink_derived_series")?;
    drop((plain, deriving));
    let folders = [Folder::new(bench)?, Folder::new(bench)?];
    let (mut peaks, mut full) = (Vec::new(), 0.0);
    for (folder, sinks) in folders.iter().zip(["", FULL]) {
        let subject = Subject::start(folder, &settings(sinks))?;
        send(&subject, 0, 40)?;
        subject.wait_until_settled()?;
        peaks.push(subject.memory("VmHWM")? / MIB);
        if !sinks.is_empty() {
            full = subject.meter("tidegate_sink_derived_series")?;
        }
    }
    let (of_plain, of_deriving) = (median(of_plain), median(of_deriving));
    let [without, with] = peaks.as_slice() else { return Err(Failure::from("two gateways were measured")) };
    Ok(vec![
        Figure {
            name: CPU.name,
            what: "CPU ns per span that counting its call and duration takes".to_owned(),
            bar: Bar::AtMost(300.0),
            measured: of_deriving - of_plain,
            details: vec![("with everything else", of_deriving), ("without", of_plain), ("series", series)],
        },
        Figure {
            name: "derived-metrics-memory",
            what: format!("MiB of peak resident memory more than without, with {full} series"),
            bar: Bar::AtMost(3.0 * 1e6 / MIB),
            measured: with - without,
            details: vec![("with", *with), ("without", *without)],
        },
    ])
}

/// Sends so many requests over each connection; every one must be accepted.
fn send(subject: &Subject, first: u64, requests: u64) -> Result<OtlpReport, Failure> {
    let profile = OtlpProfile {
        transport: Transport::Http,
        signal: Signal::Traces,
        coding: ContentCoding::Identity,
        connections: CONNECTIONS,
        items: PER_REQUEST,
        requests,
        first,
        on_refused: OnRefused::Count,
        deadline: Duration::from_secs(600),
        ..OtlpProfile::default()
    };
    accepted(subject, &profile)
}
