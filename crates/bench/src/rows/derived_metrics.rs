//! Derived metrics: processor time per span, and memory of 10,000 series.

use super::otlp::ROUNDS;
use super::turns::{costs_in_turns, send};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};

pub(super) const CPU: Row = Row {
    name: "derived-metrics",
    what: "processor time per span of counting calls and durations, beside the same gateway that does not; peak memory with 10,000 series",
    measure: cpu,
};
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
    let [of_plain, of_deriving] = costs_in_turns(bench, [&plain, &deriving])?;
    let series = deriving.meter("tidegate_sink_derived_series")?;
    drop((plain, deriving));
    let (mut peaks, mut full) = ([Vec::new(), Vec::new()], 0.0);
    for _ in 0..ROUNDS {
        for (sinks, peaks) in ["", FULL].into_iter().zip(&mut peaks) {
            let folder = Folder::new(bench)?;
            let subject = Subject::start(&folder, &settings(sinks))?;
            send(&subject, 0, 40)?;
            subject.wait_until_settled()?;
            peaks.push(subject.memory("VmHWM")? / MIB);
            if !sinks.is_empty() {
                full = subject.meter("tidegate_sink_derived_series")?;
            }
        }
    }
    let [without, with] = peaks.map(median);
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
            details: vec![("with", with), ("without", without)],
        },
    ])
}
