//! OTLP: processor time per million spans, into the journal and on to a receiver.

use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use std::time::Duration;
use tidegate_load::otlp::{
    ContentCoding, OtlpProfile, OtlpReport, OtlpSink, Signal, Transport, drive_blocking,
};
use tidegate_load::{Behaviour, OnRefused, Target};

pub(super) const INGEST: Row = Row {
    name: "otlp-ingest",
    what: "processor time per million spans over HTTP and gRPC, kept with fsync",
    measure: ingest,
};
pub(super) const FORWARDING: Row = Row {
    name: "otlp-forwarding",
    what: "processor time per million spans, kept with fsync and sent on: uncompressed, zstd, gzip, joined gzip",
    measure: forwarding,
};
pub(super) const ALLOCATIONS: Row = Row {
    name: "otlp-allocations",
    what: "heap allocations of the whole process per request over HTTP and gRPC, without forwarding",
    measure: allocations,
};

pub(super) const ROUNDS: u32 = 5;
pub(super) const CONNECTIONS: u64 = 16;
const PER_REQUEST: u64 = 200;
/// Requests of each connection in the first, short run, from which the length of the others follows.
pub(super) const PROBE: u64 = 100;
const BLACKHOLE: &str = "out: { type: blackhole }";

/// The inputs of a measurement.
pub(super) struct Case<'a> {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) bar: f64,
    pub(super) transport: Transport,
    pub(super) coding: ContentCoding,
    pub(super) sink: &'a str,
}

fn ingest(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let case = |transport, what, bar| Case {
        name: INGEST.name,
        what,
        bar,
        transport,
        coding: ContentCoding::Identity,
        sink: BLACKHOLE,
    };
    Ok(vec![
        measure(bench, &case(Transport::Http, "CPU s per million spans, HTTP to the journal", 0.5))?,
        measure(bench, &case(Transport::Grpc, "CPU s per million spans, gRPC to the journal", 0.6))?,
    ])
}

fn forwarding(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let receiver = OtlpSink::start(Behaviour::Healthy, false)?;
    let address = receiver.address();
    let sink = |rest: &str| format!("out: {{ type: otlp, endpoints: [\"http://{address}\"], {rest} }}");
    let cases = [
        (
            "CPU s per million spans, gRPC in and out, uncompressed",
            0.9,
            ContentCoding::Identity,
            "compression: none",
        ),
        (
            "CPU s per million spans, gRPC in and out as zstd",
            1.5,
            ContentCoding::Identity,
            "compression: zstd",
        ),
        (
            "CPU s per million spans, gRPC in and out as gzip",
            2.5,
            ContentCoding::Identity,
            "compression: gzip",
        ),
        (
            "CPU s per million spans, gzip in and joined gzip out",
            1.2,
            ContentCoding::Gzip,
            "compression: gzip, join_members: true",
        ),
    ];
    let mut figures = Vec::new();
    for (what, bar, coding, rest) in cases {
        let sink = sink(rest);
        let transport = Transport::Grpc;
        figures.push(measure(
            bench,
            &Case { name: FORWARDING.name, what, bar, transport, coding, sink: &sink },
        )?);
    }
    Ok(figures)
}

fn measure(bench: &Bench, case: &Case<'_>) -> Result<Figure, Failure> {
    let folder = Folder::new(bench)?;
    let subject = Subject::start(&folder, &format!("memory: 64MiB\nsinks: {{ {} }}", case.sink))?;
    let probe = send(&subject, case, PROBE)?;
    subject.wait_until_settled()?;
    let rate = (CONNECTIONS * PROBE) as f64 / probe.elapsed.as_secs_f64().max(1e-3);
    let long = (bench.seconds / ROUNDS).as_secs_f64();
    let requests = ((rate * long / CONNECTIONS as f64) as u64).max(PROBE);

    let (mut costs, mut users, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = subject.used()?;
        let report = send(&subject, case, requests)?;
        // The cost of an accepted request includes sending it on.
        subject.wait_until_settled()?;
        let used = subject.used()?.since(before);
        let millions = report.items as f64 / 1e6;
        costs.push(used.total().as_secs_f64() / millions);
        users.push(used.user.as_secs_f64() / millions);
        rates.push(millions / report.elapsed.as_secs_f64());
    }
    let bytes = probe.bytes as f64 / probe.items as f64;
    let details = vec![
        ("bytes a span as sent", bytes),
        ("of it user s", median(users)),
        ("million spans a second", median(rates)),
    ];
    let (name, what) = (case.name, case.what.to_owned());
    Ok(Figure { name, what, bar: Bar::AtMost(case.bar), measured: median(costs), details })
}

fn allocations(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    const FEW: u64 = 100;
    const MANY: u64 = 600;
    let mut figures = Vec::new();
    for (transport, what, bar) in [
        (Transport::Http, "heap allocations per request, OTLP over HTTP to the journal", 0.0),
        // The cost of hyper and h2 per call: reported, but not ours to change.
        (Transport::Grpc, "heap allocations per request, OTLP over gRPC to the journal", 100.0),
    ] {
        let folder = Folder::new(bench)?;
        let settings = "memory: 64MiB\njournal: { segment: 2GiB }\nsinks: { out: { type: blackhole } }";
        let subject = Subject::start(&folder, settings)?;
        let case = Case {
            name: ALLOCATIONS.name,
            what,
            bar,
            transport,
            coding: ContentCoding::Identity,
            sink: BLACKHOLE,
        };
        let count = |requests: u64| -> Result<f64, Failure> {
            let before = subject.meter("tidegate_heap_allocations_total")?;
            send(&subject, &case, requests)?;
            Ok(subject.meter("tidegate_heap_allocations_total")? - before)
        };
        count(FEW)?;
        let (few, many) = (count(FEW)?, count(MANY)?);
        figures.push(Figure {
            name: case.name,
            what: what.to_owned(),
            bar: Bar::AtMost(bar),
            measured: (many - few).max(0.0) / (CONNECTIONS * (MANY - FEW)) as f64,
            details: vec![("in fewer", few), ("in more", many)],
        });
    }
    Ok(figures)
}

/// Sends so many requests over each connection; every one must be accepted.
pub(super) fn send(subject: &Subject, case: &Case<'_>, requests: u64) -> Result<OtlpReport, Failure> {
    let profile = OtlpProfile {
        transport: case.transport,
        signal: Signal::Traces,
        coding: case.coding,
        connections: CONNECTIONS,
        items: PER_REQUEST,
        requests,
        on_refused: OnRefused::Count,
        deadline: Duration::from_secs(600),
        prebuilt: Some(8),
        ..OtlpProfile::default()
    };
    accepted(subject, &profile)
}

/// Sends as `profile` says; every request must be accepted.
pub(super) fn accepted(subject: &Subject, profile: &OtlpProfile) -> Result<OtlpReport, Failure> {
    let target = Target { authority: subject.address().to_string(), path: String::new() };
    let report = drive_blocking(&target, profile)?;
    if report.refused > 0 || report.failed > 0 || report.accepted == 0 {
        return Err(Failure(format!("the gateway did not accept every request: {report:?}")));
    }
    Ok(report)
}
