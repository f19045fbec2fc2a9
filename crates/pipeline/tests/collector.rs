//! Edited records are those that the Collector's OTTL leaves: generated statements over generated requests, run here and by
//! `pkg/ottl` itself (`tests/oracles/pipeline`). The differences that are meant are in `docs/pipelines.md`, and in [`is_meant`].

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

mod collector {
    pub(crate) mod body;
    pub(crate) mod context;
    pub(crate) mod generate;
    pub(crate) mod processors;
    pub(crate) mod requests;
}

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use collector::body::Body;
use collector::context::{self, Context};
use collector::generate::Generator;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tidegate_pipeline::{
    Definition, ErrorMode, Format, Outcome, Pipeline, Progress, Run, StepDefinition, StepKind,
};

/// How many cases one run compares; `TIDEGATE_ORACLE_CASES` sets another number.
const CASES: u64 = 3_000;

struct Case {
    kind: Kind,
    statements: Vec<String>,
    body: Body,
}

/// Statements of the transform processor, or conditions of the filter processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Edit,
    Drop,
}

/// Output of a run: the body, and for each statement how many records it failed on.
#[derive(Debug, PartialEq)]
struct Left {
    body: Body,
    failures: Vec<u64>,
}

const LOGS: &[&Context] = &[&context::LOG, &context::LOG, &context::SCOPE, &context::RESOURCE];
const TRACES: &[&Context] = &[&context::SPAN, &context::SPAN_EVENT];
const METRICS: &[&Context] = &[&context::METRIC, &context::DATA_POINT];

#[test]
fn edited_logs_are_those_of_the_collector() {
    compare(Kind::Edit, LOGS, |generator| Body::Logs(generator.logs()));
}

#[test]
fn edited_traces_are_those_of_the_collector() {
    compare(Kind::Edit, TRACES, |generator| Body::Traces(generator.traces()));
}

#[test]
fn edited_metrics_are_those_of_the_collector() {
    compare(Kind::Edit, METRICS, |generator| Body::Metrics(generator.metrics()));
}

#[test]
fn filtered_logs_are_those_of_the_collector() {
    compare(Kind::Drop, LOGS, |generator| Body::Logs(generator.logs()));
}

#[test]
fn filtered_traces_are_those_of_the_collector() {
    compare(Kind::Drop, TRACES, |generator| Body::Traces(generator.traces()));
}

#[test]
fn filtered_metrics_are_those_of_the_collector() {
    compare(Kind::Drop, METRICS, |generator| Body::Metrics(generator.metrics()));
}

#[test]
fn converted_metrics_are_those_of_the_processors() {
    compare_with(PROCESSORS, |generator, _| {
        let statements = generator.metric_functions();
        Case { kind: Kind::Edit, statements, body: Body::Metrics(generator.full_metrics()) }
    });
}

#[test]
fn merged_buckets_are_those_of_the_processors() {
    compare_with(PROCESSORS, |generator, _| {
        let statements = generator.point_functions();
        Case { kind: Kind::Edit, statements, body: Body::Metrics(generator.full_metrics()) }
    });
}

#[test]
fn metrics_filtered_by_points_are_those_of_the_processors() {
    compare_with(PROCESSORS, |generator, _| {
        let statements = generator.point_conditions();
        Case { kind: Kind::Drop, statements, body: Body::Metrics(generator.full_metrics()) }
    });
}

#[test]
fn span_names_are_those_of_the_processors() {
    compare_with(PROCESSORS, |generator, _| {
        let statements = generator.span_functions();
        Case { kind: Kind::Edit, statements, body: Body::Traces(generator.conventional_traces()) }
    });
}

#[test]
fn counts_of_messages_are_those_of_the_collector() {
    compare_with(ALL_COMPONENTS, |generator, at| {
        let (paths, context): (&[&str], _) = [
            (&["span.events", "span.links"][..], "span"),
            (&["span.events", "span.links"], "spanevent"),
            (&["metric.data_points"], "metric"),
            (&["metric.data_points", "datapoint.exemplars", "datapoint.quantile_values"], "datapoint"),
        ][at as usize % 4];
        let kind = if generator.one_in(2) { Kind::Edit } else { Kind::Drop };
        let statements = generator.counting(paths, context, kind == Kind::Edit);
        let body = match context {
            "span" | "spanevent" => Body::Traces(generator.conventional_traces()),
            _ => Body::Metrics(generator.full_metrics()),
        };
        Case { kind, statements, body }
    });
}

/// The program whose functions are those that all components have, and the one that has those of the transform and filter processors.
const ALL_COMPONENTS: &str = "oracle";
const PROCESSORS: &str = "processors";

fn compare(kind: Kind, contexts: &[&'static Context], body: fn(&mut Generator) -> Body) {
    compare_with(ALL_COMPONENTS, |generator, at| {
        let context = contexts[at as usize % contexts.len()];
        let statements = match kind {
            Kind::Edit => generator.statements(context),
            Kind::Drop => generator.conditions(context),
        };
        Case { kind, statements, body: body(generator) }
    });
}

fn compare_with(program: &str, case: impl Fn(&mut Generator, u64) -> Case) {
    let number = |name, usual| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let mut generator = Generator::new(number("TIDEGATE_ORACLE_SEED", 1));
    let cases: Vec<Case> =
        (0..number("TIDEGATE_ORACLE_CASES", CASES)).map(|at| case(&mut generator, at)).collect();
    let Some(answers) = ask(program, &cases) else { return };
    assert_eq!(answers.len(), cases.len());
    let (mut compared, mut changed, mut differences) = (0, 0, Vec::new());
    for (case, answer) in cases.iter().zip(&answers) {
        // Which statements are accepted is another test's promise.
        if answer["error"].is_string() {
            continue;
        }
        let (Some(ours), Some(theirs)) = (run(case), left(case, answer)) else { continue };
        let before = case.body.clone().normal();
        compared += 1;
        changed += usize::from(before != theirs.body);
        // The oracle does not say which conditions fail.
        let same = match case.kind {
            Kind::Edit => ours == theirs,
            Kind::Drop => ours.body.clone().with_items() == theirs.body.clone().with_items(),
        };
        if !same && !is_meant(case, answer) {
            differences.push(format!(
                "{:#?}\n{}\n  failures here {:?}, there {}\n  before {before:?}",
                case.statements,
                difference(&ours.body, &theirs.body),
                ours.failures,
                answer["failures"],
            ));
        }
    }
    // Statements that are all refused, or change nothing, would prove little.
    assert!(compared * 2 > cases.len(), "{compared} of {} were compared", cases.len());
    assert!(changed * 8 > compared, "{changed} of {compared} changed");
    let first: Vec<_> = differences.iter().take(6).map(String::as_str).collect();
    assert!(differences.is_empty(), "{} of {compared} differ:\n{}", differences.len(), first.join("\n"));
}

/// Whether a difference is meant.
fn is_meant(case: &Case, answer: &Value) -> bool {
    let failures = answer["failures"].to_string();
    let has = |parts: &[&str]| {
        case.statements.iter().any(|statement| parts.iter().all(|part| statement.contains(part)))
    };
    // Lists take maps and lists, maps take what `Split` returns, and attributes take bucket counts.
    failures.contains("Invalid value type")
        || failures.contains("[]uint64")
        // The same, where the oracle does not say what failed.
        || case.kind == Kind::Drop && has(&["{\"x\": "])
        // A list with a time or an id: Go leaves the element empty, and fails only where it is the last.
        || [".time", "_id", "TraceID(", "SpanID(", "Unix("].iter().any(|part| has(&[part, ", ["]))
        // Go's `IsList` knows no lists of unsigned integers.
        || has(&["IsList(datapoint.", "bucket_counts)"])
        // The JSON of a list with a map of a record: Go writes `{}`.
        || has(&["String(["])
        || has(&["Concat([["])
        // Go's `delete_key` puts the last key in the place of the deleted one, and order decides which of equal new keys wins.
        || has(&["delete_key("]) && (has(&["\"key\""]) || has(&["flatten("]))
        // An outer value that each item makes longer, until the functions' results are too many here.
        || has(&["replace_pattern(", ", SHA1)"])
}

/// Runs a case here; `None` when the statements do not compile.
fn run(case: &Case) -> Option<Left> {
    let kind = match case.kind {
        Kind::Edit => StepKind::Edit(case.statements.clone()),
        Kind::Drop => StepKind::Drop(case.statements.clone()),
    };
    let step = StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
    let (pipeline, _) = Pipeline::compile(&Definition { steps: vec![step] }).ok()?;
    let mut body = case.body.encode();
    let mut failures = vec![0; case.statements.len()];
    let signal = case.body.signal();
    let format = Format::Otlp(signal);
    for pass in 0..pipeline.passes(format) {
        if !pipeline.may_change(pass, format, &body) {
            continue;
        }
        let mut workspace = pipeline.workspace();
        let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
        let mut run = Run::new(&pipeline, pass, &mut workspace, format, &body, &mut scratch, 1);
        let outcome = loop {
            match run.advance() {
                Progress::More => {}
                Progress::Done(outcome) => break outcome,
            }
        };
        let next = match outcome {
            Outcome::Unchanged => None,
            Outcome::Empty => Some(Vec::new()),
            Outcome::Changed { len, .. } => {
                let mut out = vec![0; len];
                run.write(&mut out);
                Some(out)
            }
        };
        workspace.take_counts(|_, counts| {
            failures.iter_mut().zip(&counts.failures).for_each(|(sum, more)| *sum += more);
        });
        if let Some(next) = next {
            tidegate_wire::otlp::check(signal, &next).expect("the output is valid");
            body = next;
        }
    }
    Some(Left { body: case.body.decode(&body).expect("the output can be decoded").normal(), failures })
}

/// The lines that differ, from the first to the last.
fn difference(ours: &Body, theirs: &Body) -> String {
    let (ours, theirs) = (format!("{ours:#?}"), format!("{theirs:#?}"));
    let (ours, theirs): (Vec<_>, Vec<_>) = (ours.lines().collect(), theirs.lines().collect());
    let before = ours.iter().zip(&theirs).take_while(|(one, other)| one == other).count();
    let (ours, theirs) = (&ours[before..], &theirs[before..]);
    let behind = ours.iter().rev().zip(theirs.iter().rev()).take_while(|(one, other)| one == other).count();
    let [ours, theirs] = [ours, theirs].map(|lines| lines[..lines.len() - behind].join("\n"));
    format!("  here:\n{ours}\n  there:\n{theirs}")
}

/// Answer of the oracle; `None` where Go left texts that are not UTF-8.
fn left(case: &Case, answer: &Value) -> Option<Left> {
    let body = STANDARD.decode(answer["body"].as_str().unwrap_or_default()).unwrap();
    let mut failures = vec![0; case.statements.len()];
    for item in answer["failures"].as_array().into_iter().flatten() {
        for (sum, failure) in failures.iter_mut().zip(item.as_array().into_iter().flatten()) {
            *sum += u64::from(!failure.as_str().unwrap_or_default().is_empty());
        }
    }
    Some(Left { body: case.body.decode(&body)?.normal(), failures })
}

/// The answers of one of the oracle's programs; `None`, said loudly, where it was not built.
fn ask(program: &str, cases: &[Case]) -> Option<Vec<Value>> {
    let Some(oracle) = std::env::var_os("TIDEGATE_TEST_PIPELINE_ORACLE").filter(|path| !path.is_empty())
    else {
        eprintln!("SKIPPED: TIDEGATE_TEST_PIPELINE_ORACLE is not set; `make test` sets it");
        return None;
    };
    let program = Path::new(&oracle).with_file_name(program);
    if !program.exists() {
        eprintln!("SKIPPED: {} is older than its sources; `make test` builds it", program.display());
        return None;
    }
    let mut process = Command::new(program)
        .arg("ottl")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the oracle starts");
    let mut input = process.stdin.take().unwrap();
    let lines: Vec<String> = cases
        .iter()
        .map(|case| {
            let body = STANDARD.encode(case.body.encode());
            let texts = if case.kind == Kind::Edit { "statements" } else { "conditions" };
            json!({"signal": case.body.signal_name(), texts: case.statements, "body": body}).to_string()
        })
        .collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
    });
    let output = BufReader::new(process.stdout.take().unwrap());
    let answers = output.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    writer.join().unwrap();
    assert!(process.wait().unwrap().success());
    Some(answers)
}
