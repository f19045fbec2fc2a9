//! Tail sampling: processor time per span, memory for traces that are not decided, and a restart with all of them behind.

use super::otlp::CONNECTIONS;
use super::turns::{PER_REQUEST, costs_in_turns, send};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject};
use std::time::{Duration, Instant};

pub(super) const CPU: Row = Row {
    name: "tail-sampling",
    what: "processor time per span of deciding about traces and dropping nine of ten, beside a sink that takes all",
    measure: cpu,
};
pub(super) const MEMORY: Row = Row {
    name: "tail-sampling-memory",
    what: "peak memory with 300,000 undecided traces in 64 MiB, and how soon a killed gateway with 6 million spans behind decides on",
    measure: memory,
};

/// Spans of a trace, as the load makes them.
const PER_TRACE: u64 = 8;
const UNDECIDED: u64 = 300_000;
/// Spans behind at the restart: a minute of 100,000 a second.
const BEHIND: u64 = 6_000_000;
const MIB: f64 = 1_048_576.0;

/// Four policies as people have them: errors, what is slow, one customer, and a part of the rest.
fn sampled(wait: &str, traces: u64) -> String {
    format!(
        "sample: {{ tail: {{ wait: {wait}, max_traces: {traces}, max_decisions: {}, policies: [\
         {{ name: errors, type: status_code, status_code: {{ status_codes: [ERROR] }} }}, \
         {{ name: slow, type: latency, latency: {{ threshold_ms: 60000 }} }}, \
         {{ name: customer, type: string_attribute, string_attribute: {{ key: enduser.id, values: [user-0badcafe] }} }}, \
         {{ name: rest, type: probabilistic, probabilistic: {{ sampling_percentage: 2 }} }}] }} }}",
        2 * traces
    )
}

fn cpu(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let settings =
        |sample: &str| format!("memory: 128MiB\nsinks: {{ out: {{ type: blackhole, {sample} }} }}");
    let folders = [Folder::new(bench)?, Folder::new(bench)?];
    let all = Subject::start(&folders[0], &settings(""))?;
    let sampled = Subject::start(&folders[1], &settings(&sampled("1s", 200_000)))?;
    let costs = costs_in_turns(bench, [&all, &sampled])?;
    let [of_all, of_sampled] = costs.map(|ns| ns / 1e3);
    let kept = sampled.meter("tidegate_sink_items_delivered_total")?;
    let dropped = sampled.meter("tidegate_sink_items_dropped_total")?;
    Ok(vec![Figure {
        name: CPU.name,
        what: "CPU µs per span that tail sampling takes, both passes".to_owned(),
        bar: Bar::AtMost(1.5),
        measured: of_sampled - of_all,
        details: vec![
            ("with everything else", of_sampled),
            ("without sampling", of_all),
            ("part kept", kept / (kept + dropped)),
        ],
    }])
}

fn memory(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let folder = Folder::new(bench)?;
    let settings = format!(
        "memory: 64MiB\nlimits: {{ connections: 100 }}\njournal: {{ durability: page_cache }}\nsinks: {{ out: {{ type: blackhole, {} }} }}",
        sampled("30s", UNDECIDED)
    );
    let requests = UNDECIDED * PER_TRACE / PER_REQUEST / CONNECTIONS;
    let subject = Subject::start(&folder, &settings)?;
    let report = send(&subject, 0, requests)?;
    let undecided = subject.meter("tidegate_sink_traces_undecided")?;
    let early = subject.meter("tidegate_sink_traces_decided_early_total")?;
    subject.wait_until_settled()?;
    let peak = subject.memory("VmHWM")? / MIB;
    let forgotten = subject.meter("tidegate_sink_decisions_forgotten_total")?;
    drop(subject);

    // Killed with a minute of spans of undecided traces behind it: it has to read all of them before it decides as it would have.
    let folder = Folder::new(bench)?;
    let behind = BEHIND / PER_TRACE;
    let settings = format!(
        "memory: 160MiB\njournal: {{ durability: page_cache }}\nsinks: {{ out: {{ type: blackhole, {} }} }}",
        sampled("10m", behind + behind / 10)
    );
    let subject = Subject::start(&folder, &settings)?;
    let sent = send(&subject, 0, BEHIND / PER_REQUEST / CONNECTIONS)?;
    drop(subject);
    let begun = Instant::now();
    let subject = Subject::start(&folder, &settings)?;
    while subject.meter("tidegate_sink_traces_undecided")? < behind as f64 {
        if begun.elapsed() > Duration::from_secs(90) {
            return Err(Failure::from("the gateway did not read its journal again after its restart"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let read_after = begun.elapsed().as_secs_f64();
    let used = subject.used()?.total().as_secs_f64();
    Ok(vec![
        Figure {
            name: MEMORY.name,
            what: format!("peak resident memory with {undecided} undecided traces, MiB"),
            bar: Bar::AtMost(64.0),
            measured: peak,
            details: vec![
                ("decided early", early),
                ("decisions forgotten", forgotten),
                ("million spans a second", report.items as f64 / 1e6 / report.elapsed.as_secs_f64()),
            ],
        },
        Figure {
            name: "tail-sampling-restart",
            what: format!(
                "seconds until a killed gateway decides on, {} million spans of undecided traces behind",
                BEHIND / 1_000_000
            ),
            bar: Bar::AtMost(10.0),
            measured: read_after,
            details: vec![
                ("CPU µs per span", used * 1e6 / BEHIND as f64),
                ("sent in", sent.elapsed.as_secs_f64()),
                ("peak MiB of 160", subject.memory("VmHWM")? / MIB),
            ],
        },
    ])
}
