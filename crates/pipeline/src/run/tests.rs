//! Runs against a model: what a run makes of a body is what the same steps make of the decoded messages.
//!
//! Programs are built by hand, so only the walk, records and the rope are tested here.

mod model;
mod odd;
mod programs;
#[path = "../../../wire/src/otlp/tests/strategies.rs"]
mod strategies;

use super::rope;
use crate::ErrorMode;
use crate::definition::Fingerprint;
use crate::ottl::field::{Context, Field};
use crate::pipeline::{Format, Outcome, Pipeline, Progress, Run, TextSize, Workspace};
use crate::regex::Regexes;
use crate::step::Step;
use model::Counted;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use programs::{Action, Built};
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use tidegate_wire::otlp::{Signal, check};

/// Output of a run, pass after pass, for a body.
struct Ran {
    body: Vec<u8>,
    items: u64,
    filtered: Vec<u64>,
    reached: Vec<u64>,
    failures: u64,
}

fn run(pipeline: &Pipeline, signal: Signal, body: &[u8]) -> Ran {
    let mut workspace = pipeline.workspace();
    let format = Format::Otlp(signal);
    let mut body = body.to_vec();
    let mut items = check(signal, &body).unwrap().items;
    for pass in 0..pipeline.passes(format) {
        match run_pass(pipeline, pass, &mut workspace, format, &body) {
            (Outcome::Unchanged, _) => {}
            (Outcome::Empty, _) => {
                items = 0;
                body = Vec::new();
                break;
            }
            (Outcome::Changed { len, items: left }, out) => {
                assert_eq!(len, out.len());
                body = out;
                items = left;
                let counts = check(signal, &body).unwrap_or_else(|error| panic!("{error}: {body:x?}"));
                assert_eq!(counts.items, items);
            }
        }
    }
    let mut ran = Ran { body, items, filtered: Vec::new(), reached: Vec::new(), failures: 0 };
    workspace.take_counts(|_, counts| {
        ran.filtered.push(counts.filtered + counts.sampled_out);
        ran.reached.push(counts.items);
        ran.failures += counts.failures.iter().sum::<u64>();
    });
    ran
}

fn run_pass(
    pipeline: &Pipeline,
    pass: usize,
    workspace: &mut Workspace,
    format: Format,
    body: &[u8],
) -> (Outcome, Vec<u8>) {
    let mut scratch = vec![0xaa; Pipeline::scratch_bytes(body.len())];
    let mut run = Run::new(pipeline, pass, workspace, format, body, &mut scratch, 7);
    let outcome = loop {
        if let Progress::Done(outcome) = run.advance() {
            break outcome;
        }
    };
    let mut out = Vec::new();
    if let Outcome::Changed { len, .. } = outcome {
        out = vec![0; len];
        run.write(&mut out);
    }
    (outcome, out)
}

fn pipeline(actions: &[Action]) -> Pipeline {
    let mut built = Built::default();
    let steps: Vec<Step> = actions.iter().map(|action| built.step(action)).collect();
    let (size, fingerprint) = (TextSize::default(), Fingerprint::default());
    Pipeline::new(steps, built.constants.into(), Regexes::default(), None, size, fingerprint)
}

/// Runs the actions, and compares with the model.
fn compare<M: Message + Default + std::fmt::Debug>(
    signal: Signal,
    actions: &[Action],
    body: &[u8],
    apply: impl Fn(&Action, &mut M) -> Counted,
) {
    let pipeline = pipeline(actions);
    let ran = run(&pipeline, signal, body);
    let mut wanted = M::decode(body).unwrap();
    let before = check(signal, body).unwrap().items;
    let mut left = before;
    for (number, action) in actions.iter().enumerate() {
        let counted = apply(action, &mut wanted);
        if action.is_in(signal) && (left > 0 || before == 0) {
            assert_eq!(ran.reached[number], left, "items that reach step {number}");
        }
        assert_eq!(ran.filtered[number], counted.dropped, "step {number} of {actions:?}");
        left -= counted.dropped;
    }
    assert_eq!(ran.failures, 0, "{actions:?}");
    assert_eq!(ran.items, left);
    if left == 0 && before > 0 {
        return;
    }
    let got = M::decode(&*ran.body).unwrap();
    // As text, because NaNs are not equal to themselves.
    let (got, wanted) = (format!("{got:#?}"), format!("{wanted:#?}"));
    let lines = || got.lines().zip(wanted.lines());
    let place = lines().position(|(got, wanted)| got != wanted).unwrap_or(0).saturating_sub(3);
    let around: Vec<_> = lines().skip(place).take(6).collect();
    assert!(got == wanted, "{actions:?}: {around:#?}");
}

proptest! {
    /// A run over logs agrees with the model.
    #[test]
    fn logs_are_as_the_model_has_them(
        request in strategies::logs(),
        actions in vec(programs::log_action(), 1..5),
        seed in any::<Option<u64>>(),
    ) {
        let body = odd::scrambled(&request.encode_to_vec(), seed, odd::Kind::LogsRequest);
        compare(Signal::Logs, &actions, &body, model::logs);
    }

    /// A run over traces agrees with the model.
    #[test]
    fn traces_are_as_the_model_has_them(
        request in strategies::traces(),
        actions in vec(programs::trace_action(), 1..5),
        seed in any::<Option<u64>>(),
    ) {
        let body = odd::scrambled(&request.encode_to_vec(), seed, odd::Kind::TracesRequest);
        compare(Signal::Traces, &actions, &body, model::traces);
    }

    /// A run over metrics agrees with the model.
    #[test]
    fn metrics_are_as_the_model_has_them(
        request in strategies::metrics(),
        actions in vec(programs::metric_action(), 1..5),
        seed in any::<Option<u64>>(),
    ) {
        let body = odd::scrambled(&request.encode_to_vec(), seed, odd::Kind::MetricsRequest);
        compare(Signal::Metrics, &actions, &body, model::metrics);
    }

    /// No bytes make a run panic, or write beyond what it said.
    #[test]
    fn any_bytes_are_survived(
        body in vec(prop_oneof![any::<u8>(), Just(0x0a), Just(0x12), Just(2), Just(0x3a)], 0..200),
        actions in vec(programs::any_action(), 1..5),
    ) {
        let pipeline = pipeline(&actions);
        let mut workspace = pipeline.workspace();
        for signal in [Signal::Logs, Signal::Traces, Signal::Metrics] {
            let format = Format::Otlp(signal);
            for pass in 0..pipeline.passes(format) {
                run_pass(&pipeline, pass, &mut workspace, format, &body);
            }
        }
    }
}

/// A body of many tiny messages that all change costs more than its length in pieces; the run still ends, valid.
#[test]
fn tiny_records_fit_the_scratch() {
    let record = [0x12, 0x00];
    for kept in [[0x12, 0x02, 0x10, 0x09], [0x12, 0x02, 0x10, 0x01]] {
        let scope: Vec<u8> = [0x12, 0x06].into_iter().chain(record).chain(kept).collect();
        let resource: Vec<u8> = [0x0a, 0x08].into_iter().chain(scope).collect();
        for count in [1, 100, 20_000] {
            let body = resource.repeat(count);
            for actions in [
                vec![Action::DropLogsBelow(5)],
                vec![Action::SetLogText("x".repeat(40))],
                vec![Action::SetResourceFromLog],
                vec![Action::SetResource("k".into(), "v".repeat(300)), Action::DropLogsBelow(2)],
            ] {
                let ran = run(&pipeline(&actions), Signal::Logs, &body);
                assert!(ran.items <= 2 * count as u64);
            }
        }
    }
}

/// Records of which short stretches stay, behind a new value that takes all room, do not take the room of those behind them.
#[test]
fn what_stays_finds_room_behind_what_is_new() {
    // A severity, an attribute, then unknown fields of 30 bytes, each between two texts of the severity, which is set: it is cut out.
    let mut first = vec![0x10, 9, 0x32, 0x03, 0x0a, 0x01, b'a'];
    for _ in 0..800 {
        first.extend([0x1a, 0x01, b'y', 0xa2, 0x06, 27]);
        first.extend([7; 27]);
    }
    let mut records = vec![];
    for number in 0..600u16 {
        let record = if number == 0 {
            first.clone()
        } else {
            // With tag and length 31 bytes: one that stays between two that go is copied.
            [&[0x10, (number % 2 * 9) as u8, 0xa2, 0x06, 24][..], &[7; 24]].concat()
        };
        prost::encoding::bytes::encode(2, &record, &mut records);
    }
    let mut scope = vec![];
    prost::encoding::bytes::encode(2, &records, &mut scope);
    let mut body = vec![];
    prost::encoding::bytes::encode(1, &scope, &mut body);
    let before = check(Signal::Logs, &body).unwrap().items;
    let scratch = Pipeline::scratch_bytes(body.len());
    for len in (scratch / 8..scratch).step_by(128) {
        let actions = [
            Action::SetLogText(String::new()),
            Action::SetLog("a".into(), "v".repeat(len)),
            Action::DropLogsBelow(5),
        ];
        let pipeline = pipeline(&actions);
        let mut workspace = pipeline.workspace();
        let (outcome, _) = run_pass(&pipeline, 0, &mut workspace, Format::Otlp(Signal::Logs), &body);
        let mut dropped = 0;
        workspace.take_counts(|_, counts| dropped += counts.filtered);
        let Outcome::Changed { items, .. } = outcome else { panic!("{len}: {outcome:?}") };
        assert_eq!(items + dropped, before);
    }
}

/// Resources that are given up, since what they became is too large, take no room from those behind them.
#[test]
fn a_resource_that_is_given_up_gives_its_room_back() {
    let group = |key: &str, len: usize| {
        let value = AnyValue { value: Some(any_value::Value::StringValue("v".repeat(len))) };
        let attribute = KeyValue { key: key.into(), value: Some(value), key_strindex: 0 };
        let scope = ScopeLogs { log_records: vec![LogRecord::default()], ..ScopeLogs::default() };
        let resource = Resource { attributes: vec![attribute], ..Resource::default() };
        ResourceLogs { resource: Some(resource), scope_logs: vec![scope], ..ResourceLogs::default() }
    };
    let mut groups = vec![group("a", 10_000); 100];
    groups.extend(vec![group("b", 1); 10]);
    let body = ExportLogsServiceRequest { resource_logs: groups }.encode_to_vec();
    let space = rope::space_bytes(body.len());
    let mut built = Built::default();
    let mut grow = |key: &str, len: usize, on_error: ErrorMode| {
        let when = Some(built.is(Context::Resource, Field::Attributes, Some(key), &"v".repeat(len)).1);
        move |built: &mut Built, to: usize| {
            let step = built.step(&Action::SetResource("c".into(), "w".repeat(to)));
            Step { when, on_error, ..step }
        }
    };
    let (large, small) = (grow("a", 10_000, ErrorMode::Drop), grow("b", 1, ErrorMode::Ignore));
    let steps = vec![large(&mut built, space), small(&mut built, space / 12)];
    let ran = run(
        &Pipeline::new(
            steps,
            built.constants.into(),
            Regexes::default(),
            None,
            TextSize::default(),
            Fingerprint::default(),
        ),
        Signal::Logs,
        &body,
    );
    assert_eq!((ran.items, ran.filtered), (10, vec![100, 0]));
    assert_eq!(ran.failures, 100);
    assert!(ran.body.len() > space / 12 * 10);
}
