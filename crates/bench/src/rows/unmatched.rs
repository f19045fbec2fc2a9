//! Cost of a pipeline that changes nothing: bodies without a text that all of its statements require, against a sink
//! without a pipeline.

use super::otlp::{CONNECTIONS, Case, PROBE, ROUNDS, send};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use tidegate_load::Behaviour;
use tidegate_load::otlp::{ContentCoding, OtlpSink, Transport};

pub(super) const ROW: Row = Row {
    name: "pipeline-unmatched",
    what: "processor time per span behind a pipeline that changes no body, against none: uncompressed, zstd, gzip, joined gzip",
    measure,
};

/// No span of the load has the attribute, so no body has its name.
const PIPELINE: &str = r#"pipelines: { unmatched: { steps: [ { edit: [ 'delete_key(span.attributes, "enduser.credential")' ] } ] } }"#;

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let receiver = OtlpSink::start(Behaviour::Healthy, false)?;
    let address = receiver.address();
    let cases = [
        ("uncompressed in and out", ContentCoding::Identity, "compression: none"),
        ("zstd in and out", ContentCoding::Zstd, "compression: zstd"),
        ("gzip in and out", ContentCoding::Gzip, "compression: gzip"),
        ("gzip in and joined gzip out", ContentCoding::Gzip, "compression: gzip, join_members: true"),
    ];
    let mut figures = Vec::new();
    for (what, coding, rest) in cases {
        let sink = |pipeline: &str| {
            format!("out: {{ type: otlp, endpoints: [\"http://{address}\"], {rest}{pipeline} }}")
        };
        let (bare, behind) = (sink(""), sink(", pipeline: unmatched"));
        let what = format!("CPU per span behind a pipeline that changes nothing, times that without: {what}");
        let case =
            |sink| Case { name: ROW.name, what: "", bar: 1.1, transport: Transport::Grpc, coding, sink };
        figures.push(compare(bench, what, [("", &case(&bare)), (PIPELINE, &case(&behind))])?);
    }
    Ok(figures)
}

/// The cost of the second of two cases, times that of the first; each with settings beside its sink.
fn compare(bench: &Bench, what: String, cases: [(&str, &Case<'_>); 2]) -> Result<Figure, Failure> {
    let folders = [Folder::new(bench)?, Folder::new(bench)?];
    let mut subjects = Vec::new();
    let mut rate = f64::INFINITY;
    for (folder, (settings, case)) in folders.iter().zip(cases) {
        let settings = format!("memory: 64MiB\n{settings}\nsinks: {{ {} }}", case.sink);
        let subject = Subject::start(folder, &settings)?;
        let probe = send(&subject, case, PROBE)?;
        subject.wait_until_settled()?;
        rate = rate.min((CONNECTIONS * PROBE) as f64 / probe.elapsed.as_secs_f64().max(1e-3));
        subjects.push((subject, case));
    }
    // Half of the time for each.
    let long = (bench.seconds / ROUNDS / 2).as_secs_f64();
    let requests = ((rate * long / CONNECTIONS as f64) as u64).max(PROBE);

    let (mut ratios, mut costs) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        let mut round = Vec::new();
        for ((subject, case), costs) in subjects.iter().zip(&mut costs) {
            let before = subject.used()?;
            let report = send(subject, case, requests)?;
            subject.wait_until_settled()?;
            let cost = subject.used()?.since(before).total().as_nanos() as f64 / report.items as f64;
            costs.push(cost);
            round.push(cost);
        }
        if let [bare, behind] = round[..] {
            ratios.push(behind / bare);
        }
    }
    let [bare, behind] = costs;
    let details = vec![("ns a span without", median(bare)), ("with", median(behind))];
    Ok(Figure { name: ROW.name, what, bar: Bar::AtMost(1.1), measured: median(ratios), details })
}
