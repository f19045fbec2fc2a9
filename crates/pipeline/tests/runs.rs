//! Whole pipelines over whole bodies, from their text.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use proptest::prelude::*;
use prost::Message;
use tidegate_pipeline::{
    Definition, ErrorMode, Format, Outcome, Pipeline, Progress, RuleDefinition, Run, SampleBy, SampleMode,
    Sampling, Severity, StepCounts, StepDefinition, StepKind, Workspace,
};
use tidegate_wire::otlp::{Signal, check};

const LOGS: Format = Format::Otlp(Signal::Logs);

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn step(kind: StepKind) -> StepDefinition {
    StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }
}

fn edit(statements: &[&str]) -> StepDefinition {
    step(StepKind::Edit(texts(statements)))
}

fn drop_if(conditions: &[&str]) -> StepDefinition {
    step(StepKind::Drop(texts(conditions)))
}

fn compiled(steps: Vec<StepDefinition>) -> Pipeline {
    Pipeline::compile(&Definition { steps }).unwrap_or_else(|problems| panic!("{problems:#?}")).0
}

fn text(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) });
    KeyValue { key: key.to_owned(), value, key_strindex: 0 }
}

/// Some log records as an SDK sends them: of about 460 bytes, with eight attributes.
fn logs(count: usize) -> ExportLogsServiceRequest {
    let record = |number: usize| LogRecord {
        time_unix_nano: 1_700_000_000_000_000_000 + number as u64,
        observed_time_unix_nano: 1_700_000_000_000_000_100,
        severity_number: [5, 9, 13, 17][number % 4],
        severity_text: ["DEBUG", "INFO", "WARN", "ERROR"][number % 4].to_owned(),
        body: Some(AnyValue {
            value: Some(Value::StringValue(format!("handled request {number} in 12 ms"))),
        }),
        attributes: vec![
            text("http.request.method", "GET"),
            text("url.path", "/api/v1/orders/17"),
            text("user.email", "somebody@example.com"),
            text("http.route", "/api/v1/orders/{id}"),
            text("client.address", "192.0.2.17"),
            text("session.id", "6e1f1e2a-95b1-4d0e-9f6a-2d7f5b7a4d11"),
            text("thread.name", "worker-3"),
            text("code.function.name", "handle_order"),
        ],
        trace_id: (number as u128 + 1).to_be_bytes().to_vec(),
        span_id: vec![1; 8],
        ..LogRecord::default()
    };
    let scope = ScopeLogs { log_records: (0..count).map(record).collect(), ..ScopeLogs::default() };
    let resource = Resource { attributes: vec![text("service.name", "shop")], ..Resource::default() };
    let group = ResourceLogs { resource: Some(resource), scope_logs: vec![scope], ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![group] }
}

fn run(pipeline: &Pipeline, workspace: &mut Workspace, format: Format, body: &[u8]) -> (Outcome, Vec<u8>) {
    let (mut body, mut outcome) = (body.to_vec(), Outcome::Unchanged);
    for pass in 0..pipeline.passes(format) {
        let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
        let mut run = Run::new(pipeline, pass, workspace, format, &body, &mut scratch, 0);
        let one = loop {
            if let Progress::Done(outcome) = run.advance() {
                break outcome;
            }
        };
        if let Outcome::Changed { len, .. } = one {
            let mut out = vec![0; len];
            run.write(&mut out);
            body = out;
        }
        if one != Outcome::Unchanged {
            outcome = one;
        }
    }
    (outcome, body)
}

fn run_logs(
    steps: Vec<StepDefinition>,
    request: &ExportLogsServiceRequest,
) -> (Vec<LogRecord>, Vec<StepCounts>) {
    let pipeline = compiled(steps);
    let mut workspace = pipeline.workspace();
    let (outcome, body) = run(&pipeline, &mut workspace, LOGS, &request.encode_to_vec());
    let mut counts = Vec::new();
    workspace.take_counts(|_, one| counts.push(one.clone()));
    if outcome == Outcome::Empty {
        return (Vec::new(), counts);
    }
    check(Signal::Logs, &body).expect("the output is valid");
    let request = ExportLogsServiceRequest::decode(&*body).expect("the output can be decoded");
    let scopes = request.resource_logs.into_iter().flat_map(|group| group.scope_logs);
    (scopes.flat_map(|scope| scope.log_records).collect(), counts)
}

fn attribute<'a>(record: &'a LogRecord, key: &str) -> Option<&'a Value> {
    record.attributes.iter().find(|one| one.key == key)?.value.as_ref()?.value.as_ref()
}

#[test]
fn drops_by_severity_and_says_so_in_the_books() {
    let steps = vec![drop_if(&["log.severity_number < SEVERITY_NUMBER_WARN"])];
    let (records, counts) = run_logs(steps, &logs(100));
    assert_eq!(records.len(), 50);
    assert!(records.iter().all(|record| record.severity_number >= 13));
    assert_eq!((counts[0].items, counts[0].filtered), (100, 50));
}

#[test]
fn statements_see_what_the_ones_before_did() {
    let steps = vec![edit(&[
        r#"set(log.attributes["method"], log.attributes["http.request.method"])"#,
        r#"delete_key(log.attributes, "http.request.method")"#,
        r#"set(log.severity_text, Concat([log.attributes["method"], log.severity_text], "-"))"#,
        r#"set(log.attributes["n"], 17 + 1) where log.attributes["method"] == "GET""#,
    ])];
    let (records, counts) = run_logs(steps, &logs(8));
    assert_eq!(counts[0].failures, [0; 4]);
    for record in &records {
        assert_eq!(attribute(record, "method"), Some(&Value::StringValue("GET".into())));
        assert_eq!(attribute(record, "http.request.method"), None);
        assert_eq!(attribute(record, "n"), Some(&Value::IntValue(18)));
        assert!(record.severity_text.starts_with("GET-"));
    }
}

#[test]
fn a_step_runs_where_its_condition_holds() {
    let mut steps = vec![edit(&[r#"set(log.attributes["x"], "1")"#])];
    steps[0].when = Some("log.severity_number >= SEVERITY_NUMBER_ERROR".into());
    let (records, _) = run_logs(steps, &logs(8));
    let changed = records.iter().filter(|record| attribute(record, "x").is_some());
    assert_eq!(changed.count(), 2);
}

/// A condition below the statements' context makes them run for each of its items.
#[test]
fn a_condition_lowers_the_context_of_its_step() {
    let mut steps = vec![edit(&[r#"set(resource.attributes["x"], "1")"#])];
    steps[0].when = Some(r#"log.severity_text == "ERROR""#.into());
    let pipeline = compiled(steps);
    let body = logs(4).encode_to_vec();
    let (outcome, body) = run(&pipeline, &mut pipeline.workspace(), LOGS, &body);
    assert!(matches!(outcome, Outcome::Changed { items: 4, .. }), "{outcome:?}");
    let request = ExportLogsServiceRequest::decode(&*body).unwrap();
    assert_eq!(request.resource_logs[0].resource.as_ref().unwrap().attributes.len(), 2);
}

#[test]
fn a_failure_is_counted_and_its_item_stays_or_goes() {
    let failing = || {
        edit(&[r#"set(log.attributes["x"], "1")"#, r#"set(log.severity_text, log.attributes["nothing"])"#])
    };
    let (records, counts) = run_logs(vec![failing()], &logs(4));
    assert_eq!(records.len(), 4);
    assert_eq!(counts[0].failures, [0, 4]);
    let reasons: Vec<_> = counts[0].reasons.iter().map(|it| it.map(|reason| reason.to_string())).collect();
    assert_eq!(reasons, [None, Some("expected a string, got nil".to_owned())]);
    assert!(records.iter().all(|record| attribute(record, "x").is_some()));

    let mut strict = failing();
    strict.on_error = ErrorMode::Drop;
    let (records, counts) = run_logs(vec![strict], &logs(4));
    assert_eq!(records.len(), 0);
    assert_eq!((counts[0].filtered, &*counts[0].failures), (4, &[0, 4][..]));
}

#[test]
fn all_problems_are_told_at_once() {
    let steps = vec![
        edit(&["set(log.severity_txt, 1)", "nonsense("]),
        drop_if(&["log.severity_number <"]),
        StepDefinition {
            when: Some("span.name == \"a\"".into()),
            ..edit(&["set(log.severity_text, \"a\")"])
        },
    ];
    let problems = Pipeline::compile(&Definition { steps }).unwrap_err();
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let places: Vec<_> =
        errors.map(|problem| (problem.at.step, problem.at.setting, problem.at.item)).collect();
    assert_eq!(
        places,
        [(0, "edit", Some(0)), (0, "edit", Some(1)), (1, "drop", Some(0)), (2, "when", None),]
    );
}

#[test]
fn sampling_keeps_whole_traces() {
    let sampling = Sampling {
        ratio: 0.25,
        by: SampleBy::TraceId,
        mode: SampleMode::HashSeed(22),
        precision: 4,
        drops_unknown: true,
        priority: None,
    };
    let spans = (0..4000u128).map(|number| Span {
        trace_id: (number / 4 + 1).to_be_bytes().to_vec(),
        span_id: vec![2; 8],
        name: format!("span {number}"),
        ..Span::default()
    });
    let scope = ScopeSpans { spans: spans.collect(), ..ScopeSpans::default() };
    let group = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    let request = ExportTraceServiceRequest { resource_spans: vec![group] };
    let pipeline = compiled(vec![step(StepKind::Sample(sampling))]);
    let mut workspace = pipeline.workspace();
    let format = Format::Otlp(Signal::Traces);
    let (outcome, body) = run(&pipeline, &mut workspace, format, &request.encode_to_vec());
    let Outcome::Changed { items, .. } = outcome else { panic!("{outcome:?}") };
    assert!((800..1200).contains(&items), "{items}");
    workspace.take_counts(|_, counts| {
        assert_eq!((counts.items, counts.sampled_out, counts.filtered), (4000, 4000 - items, 0));
    });
    let left = ExportTraceServiceRequest::decode(&*body).unwrap();
    let spans = &left.resource_spans[0].scope_spans[0].spans;
    assert_eq!(spans.len() as u64, items);
    for trace in spans.chunks(4) {
        assert!(trace.iter().all(|span| span.trace_id == trace[0].trace_id));
        assert!(trace.iter().all(|span| span.trace_state.starts_with("ot=")), "{}", trace[0].trace_state);
    }
}

#[test]
fn a_run_allocates_nothing() {
    let pipeline = compiled(vec![
        drop_if(&["log.severity_number < SEVERITY_NUMBER_INFO", r#"IsMatch(log.body, "^never")"#]),
        edit(&[
            r#"set(resource.attributes["seen"], log.severity_text)"#,
            r#"set(log.attributes["a"], Concat([log.severity_text, "x"], "-"))"#,
            r#"delete_key(log.attributes, "user.email")"#,
            r#"replace_pattern(log.attributes["url.path"], "[0-9]+", "{id}")"#,
            r#"set(log.attributes["nested"]["key"], 5)"#,
            r#"keep_keys(log.attributes, ["a", "url.path", "nested", "thread.name"])"#,
        ]),
    ]);
    let body = logs(50).encode_to_vec();
    let mut workspace = pipeline.workspace();
    let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
    let mut out = vec![0; 2 * body.len() + 1000];
    let mut pass = |number| {
        let mut run = Run::new(&pipeline, number, &mut workspace, LOGS, &body, &mut scratch, 0);
        loop {
            if let Progress::Done(outcome) = run.advance() {
                if let Outcome::Changed { len, .. } = outcome {
                    run.write(&mut out[..len]);
                }
                break outcome;
            }
        }
    };
    // The search state of regular expressions is built by the first matches, within its bound.
    pass(0);
    let used = allocation_counter::measure(|| assert!(matches!(pass(0), Outcome::Changed { .. })));
    assert_eq!(used.count_total, 0);
}

/// Statements and conditions that need literals, some of which the bodies of the next test have.
const NEEDING: &[&str] = &[
    r#"set(log.attributes["aaaa"], "cccc") where log.attributes["bbbb"] == "aaaa""#,
    r#"set(log.attributes["cccc"], 1) where log.attributes["aaaa"] == "cccc" or log.severity_text == "bbbb""#,
    r#"delete_key(log.attributes, "bbbb")"#,
    r#"delete_matching_keys(log.attributes, "^cccc")"#,
    r#"set(log.severity_text, "aaaa") where IsMatch(log.severity_text, "bbbb+|cccc")"#,
    r#"set(log.severity_number, 3) where log.attributes["aaaa"] != nil and log.severity_number < 9"#,
    r#"set(log.attributes["dddd"], true) where IsString(log.attributes["bbbb"]["x"])"#,
    r#"replace_pattern(log.attributes["aaaa"], "a", "b")"#,
    r#"set(log.attributes["bbbb"], 2) where resource.attributes["cccc"] >= 2"#,
    r#"set(log.event_name, "x") where not (log.attributes["bbbb"] == "aaaa")"#,
];

fn words() -> impl Strategy<Value = Vec<KeyValue>> {
    let word = || prop::sample::select(vec!["aaaa", "bbbb", "cccc", "bbbbb", "x", ""]);
    prop::collection::vec((word(), word()).prop_map(|(key, value)| text(key, value)), 0..3)
}

proptest! {
    /// A pass that says that it does not change a body does not change it.
    #[test]
    fn what_lacks_required_literals_is_not_changed(
        statements in prop::collection::vec(prop::sample::select(NEEDING), 1..4),
        when in prop::option::of(Just(r#"log.attributes["bbbb"] == "cccc""#)),
        resource in words(),
        attributes in words(),
        severity in prop::sample::select(vec!["aaaa", "cccc", "INFO"]),
    ) {
        let mut request = logs(1);
        let group = &mut request.resource_logs[0];
        group.resource.as_mut().unwrap().attributes = resource;
        let record = &mut group.scope_logs[0].log_records[0];
        record.attributes = attributes;
        record.severity_text = severity.to_owned();
        let body = request.encode_to_vec();
        let mut step = edit(&statements);
        step.when = when.map(str::to_owned);
        let pipeline = compiled(vec![step]);
        let may_change = pipeline.may_change(0, LOGS, &body);
        let (outcome, _) = run(&pipeline, &mut pipeline.workspace(), LOGS, &body);
        prop_assert!(may_change || outcome == Outcome::Unchanged, "{outcome:?}");
    }
}

#[test]
fn literals_tell_which_bodies_are_of_no_interest() {
    let body = logs(3).encode_to_vec();
    for (step, may_change) in [
        (edit(&[r#"delete_key(log.attributes, "nothing.like.it")"#]), false),
        (edit(&[r#"delete_key(log.attributes, "user.email")"#]), true),
        (edit(&[r#"set(log.attributes["x"], 1)"#]), true),
        (drop_if(&[r#"log.attributes["url.path"] == "/health""#]), false),
        (drop_if(&[r#"log.attributes["url.path"] == "/health""#, r#"log.severity_text == "INFO""#]), true),
        (step(StepKind::Keep(texts(&[r#"log.severity_text == "nothing""#]))), true),
    ] {
        let shown = format!("{step:?}");
        assert_eq!(compiled(vec![step]).may_change(0, LOGS, &body), may_change, "{shown}");
    }
}

/// A long body is searched in parts, and a text that lies across two of them is found.
#[test]
fn literals_are_searched_in_bounded_steps() {
    const PART: usize = 256 << 10;
    let text = "nothing.like.it";
    let pipeline = compiled(vec![edit(&[&format!("delete_key(log.attributes, \"{text}\")")])]);
    let search = |body: &[u8]| {
        let mut search = pipeline.literal_search(0, LOGS, body);
        (1..).find_map(|steps| search.advance().map(|answer| (answer, steps))).unwrap()
    };
    let mut body = vec![b'n'; 4 * PART];
    assert_eq!((search(&body), search(&[])), ((false, 4), (false, 1)));
    for begin in [0, PART - text.len(), PART - text.len() + 1, PART - 1, PART, 4 * PART - text.len()] {
        body.fill(b'n');
        body[begin..begin + text.len()].copy_from_slice(text.as_bytes());
        assert_eq!(search(&body), (true, (begin + text.len()).div_ceil(PART)), "at {begin}");
    }
    let never = compiled(vec![edit(&[r#"delete_key(log.attributes, "user.email") where false"#])]);
    assert_eq!(never.literal_search(0, LOGS, &body).advance(), Some(false));
}

/// The memory of a compiled pipeline is what was declared for it, however large the automata of its patterns are.
#[test]
fn declares_the_memory_of_its_program() {
    let texts = |text: &dyn Fn(usize) -> String| (0..50).map(text).collect::<Vec<String>>();
    let edit = |texts: Vec<String>| step(StepKind::Edit(texts));
    let rule = |number: usize| RuleDefinition {
        source_labels: vec!["a".to_owned(), "b".to_owned()],
        regex: vec![format!("x{number}\\pL{{12}}")],
        target_label: Some(format!("t{number}")),
        ..RuleDefinition::default()
    };
    let cases = [
        edit(texts(&|n| format!(r#"replace_pattern(log.body, "a{n}\\pL+[\\p{{Greek}}\\d]{{1,4}}", "x")"#))),
        edit(texts(&|n| format!(r#"replace_pattern(log.body, "x{n}\\pL{{12}}", "x")"#))),
        edit(texts(&|n| format!(r#"replace_pattern(log.body, "(?i)secret{n}|token{n}=(a|b|c)+", "x")"#))),
        edit(texts(&|n| {
            format!(
                r#"set(log.attributes["a{n}"], "b") where log.body == "c{n}" and log.severity_number > {n}"#
            )
        })),
        edit(texts(&|_| format!(r#"set(log.attributes["a"], [{}1])"#, "1,".repeat(500)))),
        edit(texts(&|_| format!(r#"set(log.attributes["a"], [{}1])"#, "1+-1,".repeat(500)))),
        step(StepKind::Relabel((0..50).map(rule).collect())),
    ];
    for case in cases {
        let definition = Definition { steps: vec![case] };
        let mut compiled = None;
        let taken = allocation_counter::measure(|| {
            compiled = Some(Pipeline::compile(&definition).unwrap_or_else(|problems| panic!("{problems:?}")));
        });
        let (pipeline, _) = compiled.unwrap();
        let (held, declared) = (taken.bytes_current, pipeline.program_bytes());
        assert!(held <= declared as i64, "{held} {declared} {definition:?}");
    }
}

/// A condition on spans says nothing about log records: they are not sampled.
#[test]
fn a_condition_on_spans_samples_no_logs() {
    let sample = |when: &str| StepDefinition {
        when: Some(when.to_owned()),
        ..step(StepKind::Sample(Sampling {
            ratio: 0.0,
            by: SampleBy::TraceId,
            mode: SampleMode::HashSeed(0),
            precision: 4,
            drops_unknown: false,
            priority: None,
        }))
    };
    let left = |when: &str| run_logs(vec![sample(when)], &logs(100)).0.len();
    assert_eq!(left("span.status.code != STATUS_CODE_ERROR"), 100);
    assert_eq!(left("log.severity_number < SEVERITY_NUMBER_WARN"), 50);
    assert_eq!(left("resource.attributes[\"service.name\"] == \"shop\""), 0);
    for when in ["spanevent.name == \"a\"", "metric.name == \"a\"", "datapoint.flags == 0"] {
        let problems = Pipeline::compile(&Definition { steps: vec![sample(when)] }).unwrap_err();
        assert_eq!((problems[0].at.setting, problems[0].severity), ("when", Severity::Error), "{when}");
    }
}

/// One of several conditions of `keep` suffices, so they cannot be asked at different places.
#[test]
fn keep_refuses_conditions_within_each_other() {
    let keep = |conditions: &[&str]| {
        Pipeline::compile(&Definition { steps: vec![step(StepKind::Keep(texts(conditions)))] })
    };
    let (resource, log, span) =
        ("resource.attributes[\"a\"] == \"b\"", "log.severity_number >= 17", "span.name == \"c\"");
    let problems = keep(&[resource, log]).unwrap_err();
    assert_eq!((problems[0].at.setting, problems[0].at.item), ("keep", Some(1)));
    assert!(keep(&[resource, resource]).is_ok() && keep(&[span, log]).is_ok());
    let joined = format!("{resource} or {log}");
    let (left, _) = run_logs(vec![step(StepKind::Keep(vec![joined]))], &logs(100));
    assert_eq!(left.len(), 25);
}

/// Redaction with a condition on one kind of item redacts that and what is around it; its failures are one number.
#[test]
fn redaction_follows_its_condition() {
    let redact = |when: Option<&str>| StepDefinition {
        when: when.map(str::to_owned),
        ..step(StepKind::Redact(tidegate_pipeline::Redaction {
            mask: "***".into(),
            presets: vec![tidegate_pipeline::Preset::Email],
            ..tidegate_pipeline::Redaction::default()
        }))
    };
    let masked = |when| {
        let (records, counts) = run_logs(vec![redact(when)], &logs(100));
        assert_eq!(counts[0].failures.len(), redact(when).parts().len());
        let is_masked = |record: &&LogRecord| record.attributes.contains(&text("user.email", "***"));
        records.iter().filter(is_masked).count()
    };
    assert_eq!(masked(None), 100);
    assert_eq!(masked(Some("log.severity_number >= SEVERITY_NUMBER_ERROR")), 25);
    assert_eq!(masked(Some("span.name == \"a\"")), 0);
}

fn record(attributes: Vec<KeyValue>) -> LogRecord {
    LogRecord { attributes, ..LogRecord::default() }
}

/// A group of log records, each resource with these attributes.
fn group(attributes: Vec<KeyValue>, log_records: Vec<LogRecord>) -> ResourceLogs {
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    let resource = Some(Resource { attributes, ..Resource::default() });
    ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }
}

proptest! {
    /// The output is bounded even if each record gets a copy of a long value of its resource, and every item is accounted
    /// for.
    #[test]
    fn copies_of_values_of_the_body_are_bounded(
        shared in 0usize..60_000,
        records in 0usize..600,
        own in 0usize..100,
        drops in any::<bool>(),
    ) {
        let records = vec![record(vec![text("own", &"o".repeat(own))]); records];
        let body = ExportLogsServiceRequest {
            resource_logs: vec![group(vec![text("x", &"v".repeat(shared))], records.clone())],
        }
        .encode_to_vec();
        let mut copy = edit(&[r#"set(log.attributes["x"], resource.attributes["x"])"#]);
        copy.on_error = if drops { ErrorMode::Drop } else { ErrorMode::Ignore };
        let pipeline = compiled(vec![copy]);
        let mut workspace = pipeline.workspace();
        let most = body.len() + Pipeline::scratch_bytes(body.len());
        let (outcome, out) = run(&pipeline, &mut workspace, LOGS, &body);
        let mut dropped = 0;
        workspace.take_counts(|_, counts| dropped += counts.filtered);
        if let Outcome::Changed { len, items } = outcome {
            prop_assert!(len <= most, "{len} of {most}");
            prop_assert_eq!(items + dropped, records.len() as u64);
            prop_assert_eq!(check(Signal::Logs, &out).unwrap().items, items);
        }
    }
}

/// Many small items may all become twice as long.
#[test]
fn small_items_may_become_twice_as_long() {
    let records = vec![record(vec![text("k", &"o".repeat(46))]); 50_000];
    let body = ExportLogsServiceRequest { resource_logs: vec![group(Vec::new(), records)] }.encode_to_vec();
    let pipeline = compiled(vec![edit(&[&format!(r#"set(log.attributes["x"], "{}")"#, "v".repeat(45))])]);
    let mut workspace = pipeline.workspace();
    let (_, out) = run(&pipeline, &mut workspace, LOGS, &body);
    workspace.take_counts(|_, counts| assert_eq!(counts.failures, [0]));
    assert!(out.len() > body.len() / 10 * 18, "{} from {}", out.len(), body.len());
}

/// A resource that a record makes too large goes, with the failure of that record's statement.
#[test]
fn a_late_change_that_is_too_large_is_counted_and_drops() {
    let long = |key: &str| vec![record(vec![text(key, &"a".repeat(100_000))])];
    let groups = vec![group(vec![text("r", "1")], long("a")), group(vec![text("r", "2")], long("b"))];
    let body = ExportLogsServiceRequest { resource_logs: groups }.encode_to_vec();
    let a = r#"log.attributes["a"]"#;
    let mut grow = edit(&[&format!(
        r#"set(resource.attributes["x"], Concat([{a}, {a}, {a}, {a}], "")) where {a} != nil"#
    )]);
    grow.on_error = ErrorMode::Drop;
    let pipeline = compiled(vec![grow]);
    let mut workspace = pipeline.workspace();
    let (outcome, _) = run(&pipeline, &mut workspace, LOGS, &body);
    assert!(matches!(outcome, Outcome::Changed { items: 1, .. }), "{outcome:?}");
    workspace.take_counts(|_, counts| assert_eq!((counts.filtered, &*counts.failures), (1, &[1][..])));
}

/// Steps of a run are shorter where more statements run on each item.
#[test]
fn many_statements_make_a_run_yield_more_often() {
    let body = logs(400).encode_to_vec();
    let turns = |statements: usize| {
        let pipeline = compiled(vec![edit(&vec![r#"set(log.severity_text, "x")"#; statements])]);
        let (mut workspace, mut scratch) =
            (pipeline.workspace(), vec![0; Pipeline::scratch_bytes(body.len())]);
        let mut run = Run::new(&pipeline, 0, &mut workspace, LOGS, &body, &mut scratch, 0);
        std::iter::from_fn(|| (run.advance() == Progress::More).then_some(())).count()
    };
    assert!(turns(20) > 10 * turns(1), "{} and {}", turns(20), turns(1));
}

/// A redaction whose result is too large is counted as the redaction's failure, not as that of its condition.
#[test]
fn a_redaction_that_does_not_fit_is_counted() {
    let redact = StepDefinition {
        when: Some("log.severity_number > 0".to_owned()),
        ..step(StepKind::Redact(tidegate_pipeline::Redaction {
            mask: "x".repeat(50_000),
            presets: vec![tidegate_pipeline::Preset::Email],
            ..tidegate_pipeline::Redaction::default()
        }))
    };
    let (records, counts) = run_logs(vec![redact], &logs(1_000));
    let is_masked =
        |record: &&LogRecord| !record.attributes.contains(&text("user.email", "somebody@example.com"));
    let masked = records.iter().filter(is_masked).count() as u64;
    assert!((1..1_000).contains(&masked), "{masked}");
    assert_eq!(counts[0].failures, [1_000 - masked, 0]);
}
