//! Any text is a list of OTTL statements or conditions, one a line, or a list of mistakes: each with a place in its text. What
//! compiles leaves a body that a check accepts, and its run ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use std::sync::LazyLock;
use tidegate_pipeline::{
    Definition, ErrorMode, Format, Outcome, Pipeline, Progress, Run, StepDefinition, StepKind,
};
use tidegate_wire::otlp::{self, Signal};

/// One log record with attributes, body and severity, within a resource and a scope.
static BODY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text = |text: &str| Some(AnyValue { value: Some(any_value::Value::StringValue(text.to_owned())) });
    let attribute =
        |key: &str, value: &str| KeyValue { key: key.to_owned(), value: text(value), ..KeyValue::default() };
    let record = LogRecord {
        severity_number: 9,
        severity_text: "INFO".to_owned(),
        body: text("message 1"),
        attributes: vec![attribute("a", "b"), attribute("c", "{\"d\": [1, null]}")],
        ..LogRecord::default()
    };
    let scope = Some(InstrumentationScope { name: "scope".to_owned(), ..InstrumentationScope::default() });
    let scope_logs = vec![ScopeLogs { scope, log_records: vec![record], ..ScopeLogs::default() }];
    let resource = Some(Resource { attributes: vec![attribute("a", "b")], ..Resource::default() });
    let resource_logs = vec![ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }];
    ExportLogsServiceRequest { resource_logs }.encode_to_vec()
});

fuzz_target!(|text: &str| {
    let lines = || text.lines().map(str::to_owned).collect::<Vec<_>>();
    for kind in [StepKind::Edit(lines()), StepKind::Drop(lines())] {
        let step = StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
        match Pipeline::compile(&Definition { steps: vec![step] }) {
            Ok((pipeline, _)) => run(&pipeline),
            Err(problems) => {
                assert!(!problems.is_empty());
                for problem in problems {
                    let line = text.lines().nth(problem.at.item.unwrap_or_default()).unwrap_or_default();
                    assert!(line.get(problem.at.range.clone()).is_some(), "{problem:?} in {line:?}");
                }
            }
        }
    }
});

fn run(pipeline: &Pipeline) {
    let format = Format::Otlp(Signal::Logs);
    let mut workspace = pipeline.workspace();
    let mut scratch = vec![0; Pipeline::scratch_bytes(BODY.len())];
    let mut body = BODY.clone();
    for pass in 0..pipeline.passes(format) {
        let mut run = Run::new(pipeline, pass, &mut workspace, format, &body, &mut scratch, 0);
        let outcome = loop {
            if let Progress::Done(outcome) = run.advance() {
                break outcome;
            }
        };
        match outcome {
            Outcome::Unchanged => {}
            Outcome::Empty => return,
            Outcome::Changed { len, .. } => {
                let mut out = vec![0; len];
                run.write(&mut out);
                assert!(otlp::check(Signal::Logs, &out).is_ok());
                body = out;
            }
        }
    }
}
