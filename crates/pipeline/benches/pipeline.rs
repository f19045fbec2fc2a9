//! Nanoseconds of thread time for each record of 460 bytes with eight attributes, in decoded bodies of a thousand.
//!
//! `cargo bench -p tidegate-pipeline` prints one line for each pipeline, the best of several rounds; with `--bench pipeline --
//! NAME` for those alone whose names have that text.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may end")]

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use tidegate_pipeline::{
    Definition, ErrorMode, Format, Outcome, Pipeline, Progress, Run, StepDefinition, StepKind,
};
use tidegate_wire::otlp::Signal;

const RECORDS: usize = 1000;
const LOGS: Format = Format::Otlp(Signal::Logs);

const TEN: &[&str] = &[
    r#"set(log.attributes["env"], "production")"#,
    r#"set(log.attributes["method"], log.attributes["http.request.method"])"#,
    r#"delete_key(log.attributes, "http.request.method")"#,
    r#"delete_key(log.attributes, "user.email")"#,
    r#"set(log.severity_text, "WARNING") where log.severity_text == "WARN""#,
    r#"set(log.attributes["team"], "shop") where log.attributes["http.route"] == "/api/v1/orders/{id}""#,
    r#"set(log.attributes["thread"], log.attributes["thread.name"])"#,
    r#"delete_key(log.attributes, "thread.name")"#,
    r#"set(log.attributes["is_error"], true) where log.severity_number >= SEVERITY_NUMBER_ERROR"#,
    r#"delete_key(log.attributes, "session.id")"#,
];

fn text(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) });
    KeyValue { key: key.to_owned(), value, key_strindex: 0 }
}

fn body(json: bool) -> Vec<u8> {
    let record = |number: usize| {
        let body = match json {
            true => format!(
                r#"{{"order":{number},"customer":"c-{number}","total":17.25,"currency":"EUR","items":[{{"sku":"a1","count":2}},{{"sku":"b2","count":1}}],"shipping":{{"country":"DE","method":"post","express":false}},"message":"order accepted and queued for shipping","trace":"{number:032x}","ok":true}}"#
            ),
            false => format!("handled request {number} for order 17 in 12 ms: status 200, 5313 bytes"),
        };
        LogRecord {
            time_unix_nano: 1_700_000_000_000_000_000 + number as u64,
            observed_time_unix_nano: 1_700_000_000_000_000_100,
            severity_number: [5, 9, 13, 17][number % 4],
            severity_text: ["DEBUG", "INFO", "WARN", "ERROR"][number % 4].to_owned(),
            body: Some(AnyValue { value: Some(Value::StringValue(body)) }),
            attributes: vec![
                text("http.request.method", "GET"),
                text("url.path", "/api/v1/orders/17/items/4"),
                text("user.email", "somebody@example.com"),
                text("http.route", "/api/v1/orders/{id}"),
                text("client.address", "192.0.2.17"),
                text("session.id", "6e1f1e2a-95b1-4d0e-9f6a-2d7f5b7a4d11"),
                text("thread.name", "worker-3"),
                text("code.function.name", "handle_order"),
            ],
            trace_id: vec![7; 16],
            span_id: vec![9; 8],
            ..LogRecord::default()
        }
    };
    let scope = ScopeLogs { log_records: (0..RECORDS).map(record).collect(), ..ScopeLogs::default() };
    let resource = Resource { attributes: vec![text("service.name", "shop")], ..Resource::default() };
    let group = ResourceLogs { resource: Some(resource), scope_logs: vec![scope], ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![group] }.encode_to_vec()
}

fn measure(name: &str, bar: u32, kind: StepKind, body: &[u8]) {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    if wanted.is_some_and(|wanted| !name.contains(&wanted)) {
        return;
    }
    let step = StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
    let pipeline = match Pipeline::compile(&Definition { steps: vec![step] }) {
        Ok((pipeline, _)) => pipeline,
        Err(problems) => {
            println!("{name:<34} {problems:?}");
            return;
        }
    };
    let mut workspace = pipeline.workspace();
    let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
    let mut out = vec![0; 3 * body.len()];
    let mut best = f64::INFINITY;
    let mut len = 0;
    for _ in 0..300 {
        let start = thread_seconds();
        let mut run = Run::new(&pipeline, 0, &mut workspace, LOGS, body, &mut scratch, 0);
        let outcome = loop {
            if let Progress::Done(outcome) = run.advance() {
                break outcome;
            }
        };
        if let Outcome::Changed { len: bytes, .. } = outcome {
            run.write(out.get_mut(..bytes).unwrap());
            len = bytes;
        }
        best = best.min(thread_seconds() - start);
    }
    let ns = best * 1e9 / RECORDS as f64;
    println!("{name:<34} {ns:7.0} ns/record   bar {bar:4}   {} -> {len} bytes", body.len());
    workspace.take_counts(|_, counts| {
        if counts.failures.iter().any(|count| *count > 0) {
            println!("{name:<34} failures: {:?}", counts.failures);
        }
    });
}

/// The time that this thread has computed for.
fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (plain, json) = (body(false), body(true));
    let edit = |name, bar, statements: &[&str]| measure(name, bar, StepKind::Edit(texts(statements)), &plain);
    let filter = |name, conditions: &[&str]| measure(name, 150, StepKind::Drop(texts(conditions)), &plain);
    filter("drop on severity", &["log.severity_number < SEVERITY_NUMBER_INFO"]);
    filter("drop on ==", &[r#"log.attributes["url.path"] == "/nothing""#]);
    filter("drop on IsMatch", &[r#"IsMatch(log.attributes["url.path"], "^/health")"#]);
    edit("set a constant", 200, &[r#"set(log.attributes["env"], "production")"#]);
    edit("delete_key", 200, &[r#"delete_key(log.attributes, "user.email")"#]);
    edit(
        "rename",
        200,
        &[
            r#"set(log.attributes["method"], log.attributes["http.request.method"])"#,
            r#"delete_key(log.attributes, "http.request.method")"#,
        ],
    );
    edit(
        "set where ==",
        200,
        &[r#"set(log.attributes["a"], 1) where log.attributes["thread.name"] == "worker-3""#],
    );
    edit("replace_pattern", 400, &[r#"replace_pattern(log.attributes["url.path"], "/[0-9]+", "/{id}")"#]);
    edit("ten statements", 700, TEN);
    let statements = StepKind::Edit(texts(&[r#"merge_maps(log.attributes, ParseJSON(log.body), "upsert")"#]));
    measure("ParseJSON + merge_maps", 900, statements, &json);
}
