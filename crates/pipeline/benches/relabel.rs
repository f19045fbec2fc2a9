//! Nanoseconds of thread time for each series of eight labels and one sample, in remote-write bodies of a thousand series.
//!
//! `cargo bench -p tidegate-pipeline --bench relabel` prints one line for each list of rules, the best of many rounds, for
//! bodies of both versions: evaluation and the edits (`advance`), and all with the new body written.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may end")]

use tidegate_pipeline::{
    ErrorMode, Outcome, Pipeline, Progress, RelabelRun, RelabelWorkspace, RuleDefinition, Rules, StepRules,
};
use tidegate_wire::remote_write::Version;

const SERIES: usize = 1_000;
const ROUNDS: usize = 300;

fn number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn field(out: &mut Vec<u8>, field: u8, payload: &[u8]) {
    out.push(field << 3 | 2);
    number(out, payload.len());
    out.extend_from_slice(payload);
}

fn labels(at: usize) -> [(&'static str, String); 8] {
    [
        (
            "__name__",
            format!("http_server_request_duration_seconds_{}", ["bucket", "count", "sum", "max"][at / 5 % 4]),
        ),
        ("code", ["200", "404", "500"][at % 3].to_owned()),
        ("instance", format!("node-{}.example.com:9100", at / 100)),
        ("job", "kubernetes-pods".to_owned()),
        ("namespace", "shop".to_owned()),
        ("path", format!("/api/v1/orders/{}", at % 10)),
        ("pod", format!("orders-7d9f8b6c5-{:05}", at % 50)),
        ("prometheus_replica", "prometheus-0".to_owned()),
    ]
}

const SAMPLE: &[u8] = b"\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x80\xd0\x95\xff\xbc\x31";

fn body(version: Version) -> Vec<u8> {
    let (mut series, mut symbols) = (Vec::new(), vec![String::new()]);
    for at in 0..SERIES {
        let (mut payload, mut references) = (Vec::new(), Vec::new());
        for (name, value) in labels(at) {
            let mut label = Vec::new();
            field(&mut label, 1, name.as_bytes());
            field(&mut label, 2, value.as_bytes());
            if version == Version::V1 {
                field(&mut payload, 1, &label);
            }
            for text in [name, &value] {
                let known = symbols.iter().position(|symbol| symbol == text).unwrap_or_else(|| {
                    symbols.push(text.to_owned());
                    symbols.len() - 1
                });
                number(&mut references, known);
            }
        }
        if version == Version::V2 {
            field(&mut payload, 1, &references);
        }
        field(&mut payload, 2, SAMPLE);
        field(&mut series, if version == Version::V1 { 1 } else { 5 }, &payload);
    }
    let mut body = Vec::new();
    if version == Version::V2 {
        symbols.iter().for_each(|symbol| field(&mut body, 4, symbol.as_bytes()));
    }
    body.extend(series);
    body
}

fn rule(
    action: &str,
    source: &[&str],
    regex: &str,
    target: &str,
    replacement: Option<&str>,
) -> RuleDefinition {
    RuleDefinition {
        action: Some(action.to_owned()),
        source_labels: source.iter().map(|name| (*name).to_owned()).collect(),
        regex: if regex.is_empty() { Vec::new() } else { vec![regex.to_owned()] },
        target_label: (!target.is_empty()).then(|| target.to_owned()),
        replacement: replacement.map(str::to_owned),
        ..RuleDefinition::default()
    }
}

/// The best thread times of a round: until all is known, and until the new body is written.
fn measure(rules: &Rules, workspace: &mut RelabelWorkspace, version: Version) -> (f64, f64) {
    let body = body(version);
    let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
    let mut out = vec![0; 2 * body.len()];
    let (mut known, mut written) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let start = thread_seconds();
        let mut run = RelabelRun::new(rules, workspace, version, &body, &mut scratch);
        let outcome = loop {
            if let Progress::Done(outcome) = run.advance() {
                break outcome;
            }
        };
        known = known.min(thread_seconds() - start);
        if let Outcome::Changed { len, .. } = outcome {
            while !run.write_part(out.get_mut(..len).unwrap()) {}
        }
        written = written.min(thread_seconds() - start);
    }
    let each = 1e9 / SERIES as f64;
    (known * each, written * each)
}

/// The time that this thread has computed for.
fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let drop = rule(
        "drop",
        &["__name__"],
        "go_gc_duration_seconds|go_memstats_alloc_bytes|process_cpu_seconds_total|up",
        "",
        None,
    );
    let host = rule("replace", &["instance"], "([^:]+):.*", "host", None);
    let replica = rule("labeldrop", &[], "prometheus_replica|__replica__", "", None);
    let cluster = rule("replace", &[], "", "cluster", Some("eu-1"));
    let keep = rule(
        "keep",
        &["__name__"],
        "up|http_server_request_duration_seconds_(?:bucket|count|sum|max)|node_cpu_seconds_total|node_load1|kube_pod_info|a|b|c",
        "",
        None,
    );
    let typical = vec![drop.clone(), host.clone(), replica.clone(), cluster.clone()];
    let drop_most = rule("drop", &["__name__"], ".*_(bucket|count|sum)", "", None);
    let path = rule("replace", &["path"], "/api/(v[0-9]+)/([a-z]+)/.*", "route", Some("$1/$2"));
    for (name, rules) in [
        ("no rule", Vec::new()),
        ("drop on names, none of them", vec![drop]),
        ("drop three of four", vec![drop_most]),
        ("keep twelve names, all of them", vec![keep]),
        ("replace with a regex", vec![host]),
        ("replace with a regex, other values", vec![path]),
        ("labeldrop", vec![replica]),
        ("static label", vec![cluster]),
        ("four typical rules (bar: 150)", typical),
    ] {
        let step = StepRules { step: 0, on_error: ErrorMode::Ignore, rules: &rules };
        let (rules, _) = Rules::compile(&[step]).unwrap();
        let mut workspace = rules.workspace();
        let (one, one_written) = measure(&rules, &mut workspace, Version::V1);
        let (two, two_written) = measure(&rules, &mut workspace, Version::V2);
        println!(
            "{name:<36} 1.0: {one:>6.1} ns, written {one_written:>6.1}   2.0: {two:>6.1} ns, written {two_written:>6.1}"
        );
    }
}
