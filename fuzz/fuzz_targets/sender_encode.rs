//! Whatever a program says, prost reads the same back from OTLP, and serde_json from intake's lines.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use oracle::any;
use prost::Message;
use tidegate_sender::{
    Attributes, Link, Log, Severity, Span, SpanContext, SpanEvent, SpanKind, Status, Value, Values, fuzzing,
};

#[path = "../../crates/sender/tests/all/oracle.rs"]
mod oracle;

#[derive(Arbitrary, Debug)]
enum Said {
    Empty,
    Str(String),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(Vec<u8>),
    Shown(String),
    List(Vec<Said>),
    Map(Vec<(String, Said)>),
}

impl Said {
    fn show(&self, visit: &mut dyn FnMut(Value<'_>)) {
        match self {
            Said::Empty => visit(Value::Empty),
            Said::Str(text) => visit(Value::Str(text)),
            Said::Bool(truth) => visit(Value::Bool(*truth)),
            Said::Int(number) => visit(Value::Int(*number)),
            Said::Double(number) => visit(Value::Double(*number)),
            Said::Bytes(bytes) => visit(Value::Bytes(bytes)),
            Said::Shown(text) => visit(Value::Display(text)),
            Said::List(values) => visit(Value::List(&List(values))),
            Said::Map(pairs) => visit(Value::Map(&Map(pairs))),
        }
    }

    /// The value that prost should read, below this many levels of lists and maps.
    fn expected(&self, depth: u32) -> oracle::AnyValue {
        let value = match self {
            Said::Empty => None,
            Said::Str(text) | Said::Shown(text) => Some(any::Value::Str(text.clone())),
            Said::Bool(truth) => Some(any::Value::Bool(*truth)),
            Said::Int(number) => Some(any::Value::Int(*number)),
            Said::Double(number) => Some(any::Value::Double(*number)),
            Said::Bytes(bytes) => Some(any::Value::Bytes(bytes.clone())),
            Said::List(_) | Said::Map(_) if depth == 0 => None,
            Said::List(values) => {
                let values = values.iter().map(|value| value.expected(depth - 1)).collect();
                Some(any::Value::List(oracle::List { values }))
            }
            Said::Map(pairs) => Some(any::Value::Map(oracle::Map { values: expected(pairs, depth - 1) })),
        };
        oracle::AnyValue { value }
    }
}

fn expected(pairs: &[(String, Said)], depth: u32) -> Vec<oracle::KeyValue> {
    let pair = |(key, value): &(String, Said)| oracle::KeyValue {
        key: key.clone(),
        value: Some(value.expected(depth)),
    };
    pairs.iter().map(pair).collect()
}

struct Map<'a>(&'a [(String, Said)]);

impl Attributes for Map<'_> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        for (key, value) in self.0 {
            value.show(&mut |value| visit(key, value));
        }
    }
}

struct List<'a>(&'a [Said]);

impl Values for List<'_> {
    fn each(&self, visit: &mut dyn FnMut(Value<'_>)) {
        self.0.iter().for_each(|value| value.show(visit));
    }
}

#[derive(Arbitrary, Debug)]
struct Input {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    parent: Option<[u8; 8]>,
    remote: bool,
    flags: u8,
    kind: u8,
    severity: u8,
    texts: [String; 3],
    times: [u64; 3],
    attributes: Vec<(String, Said)>,
    body: Said,
    failed: bool,
}

fuzz_target!(|raw: &[u8]| {
    let Ok(input) = read(raw) else { return };
    let attributes = Map(&input.attributes);
    let context = SpanContext { trace_id: input.trace_id, span_id: input.span_id, flags: input.flags };
    let [name, state, message] = &input.texts;
    let events = [SpanEvent { time: input.times[2], name: message, attributes: &attributes }];
    let links = [Link { context, trace_state: state, attributes: &attributes }];
    let kinds =
        [SpanKind::Internal, SpanKind::Server, SpanKind::Client, SpanKind::Producer, SpanKind::Consumer];
    let span = Span {
        context,
        parent: input.parent,
        parent_is_remote: input.remote,
        trace_state: state,
        name,
        kind: kinds[usize::from(input.kind) % 5],
        start: input.times[0],
        end: input.times[1],
        attributes: &attributes,
        events: &events,
        links: &links,
        status: if input.failed { Status::Error(message) } else { Status::Unset },
        ..Span::default()
    };
    let scope = oracle::ScopeSpans::decode(&*fuzzing::otlp_span(&span)).expect("prost reads it");
    let [got] = &*scope.spans else { panic!("one span") };
    let pairs = expected(&input.attributes, 8);
    assert_same(&got.attributes, &pairs);
    assert_same(&got.events[0].attributes, &pairs);
    assert_same(&got.links[0].attributes, &pairs);
    assert_eq!(
        (&got.name, &got.trace_state, got.start, got.end),
        (name, state, input.times[0], input.times[1])
    );
    assert_eq!(got.parent_span_id, input.parent.map_or(Vec::new(), |parent| parent.to_vec()));
    assert_eq!((got.trace_id.as_slice(), got.span_id.as_slice()), (&input.trace_id[..], &input.span_id[..]));
    assert_eq!(
        got.status.as_ref().map(|status| (status.code, &status.message)),
        input.failed.then_some((2, message))
    );

    let mut records = Vec::new();
    input.body.show(&mut |body| {
        let log = Log {
            time: input.times[0],
            severity: Severity(input.severity % 25),
            body,
            attributes: &attributes,
            context: input.remote.then_some(context),
            ..Log::default()
        };
        records.push(fuzzing::otlp_log(&log));
        records.extend(fuzzing::intake_lines(&span, &log));
    });
    let scope = oracle::ScopeLogs::decode(&*records[0]).expect("prost reads it");
    assert_same(&scope.logs[0].attributes, &pairs);
    if !matches!(input.body, Said::Empty) {
        let body = scope.logs[0].body.clone().expect("a body");
        assert_eq!(format!("{body:?}"), format!("{:?}", input.body.expected(8)));
    }
    for line in &records[1..] {
        let (end, json) = line.split_last().expect("a line");
        assert_eq!(*end, b'\n');
        assert!(!json.contains(&b'\n'));
        let _: serde_json::Value = serde_json::from_slice(json).expect("serde_json reads it");
    }
});

/// By what they show, for numbers that are none are not equal to themselves.
fn assert_same(got: &[oracle::KeyValue], wanted: &[oracle::KeyValue]) {
    assert_eq!(format!("{got:?}"), format!("{wanted:?}"));
}

fn read(raw: &[u8]) -> Result<Input> {
    Input::arbitrary(&mut Unstructured::new(raw))
}
