//! Refused requests, and the error messages.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, span};
use prost::Message;

use crate::otlp::{MAX_DEPTH, OtlpErrorKind, Signal, TracesRequest, check};

fn span() -> Span {
    Span { trace_id: vec![7; 16], span_id: vec![7; 8], ..Span::default() }
}

/// A good resource, then one whose scope has a good span and this one.
fn traces(span: Span) -> Vec<u8> {
    let scope = ScopeSpans { spans: vec![self::span(), span], ..ScopeSpans::default() };
    let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans::default(), resource] }.encode_to_vec()
}

fn logs(record: LogRecord) -> Vec<u8> {
    let scope = ScopeLogs { log_records: vec![record], ..ScopeLogs::default() };
    let resource = ResourceLogs { scope_logs: vec![scope], ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![resource] }.encode_to_vec()
}

fn refused(signal: Signal, raw: &[u8]) -> String {
    check(signal, raw).unwrap_err().to_string()
}

#[test]
fn ids_of_wrong_length_are_refused() {
    let place = "span 1 of scope 0 of resource 1: ";
    for (span, text) in [
        (Span { trace_id: vec![7; 15], ..span() }, "trace_id has 15 bytes instead of 16, at byte "),
        (Span { span_id: vec![7; 9], ..span() }, "span_id has 9 bytes instead of 8, at byte "),
        (Span { parent_span_id: vec![7; 7], ..span() }, "parent_span_id has 7 bytes instead of 8, at byte "),
    ] {
        let error = refused(Signal::Traces, &traces(span));
        assert!(error.starts_with(&format!("{place}{text}")), "{error}");
    }
}

#[test]
fn ids_of_links_records_and_exemplars_may_be_missing_but_not_short() {
    let link = |len| Span {
        links: vec![span::Link::default(), span::Link { trace_id: vec![1; len], ..span::Link::default() }],
        ..span()
    };
    assert!(check(Signal::Traces, &traces(link(16))).is_ok());
    let error = refused(Signal::Traces, &traces(link(17)));
    assert!(
        error.starts_with("link 1 of span 1 of scope 0 of resource 1: trace_id has 17 bytes instead of 16"),
        "{error}"
    );

    assert!(check(Signal::Logs, &logs(LogRecord::default())).is_ok());
    let error = refused(Signal::Logs, &logs(LogRecord { span_id: vec![1; 4], ..LogRecord::default() }));
    assert!(error.starts_with("log record 0 of scope 0 of resource 0: span_id has 4 bytes"), "{error}");

    let point = NumberDataPoint {
        exemplars: vec![Exemplar { trace_id: vec![1; 4], ..Exemplar::default() }],
        ..NumberDataPoint::default()
    };
    let metric = Metric { data: Some(Data::Gauge(Gauge { data_points: vec![point] })), ..Metric::default() };
    let scope = ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() };
    let resource = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
    let raw = ExportMetricsServiceRequest { resource_metrics: vec![resource] }.encode_to_vec();
    let error = refused(Signal::Metrics, &raw);
    assert!(
        error.starts_with("exemplar 0 of point 0 of metric 0 of scope 0 of resource 0: trace_id has 4 bytes"),
        "{error}"
    );
}

/// All zeros have the right length, and none is the same; see `check`.
#[test]
fn ids_of_zeros_are_accepted() {
    for (trace, id) in [(16, 8), (0, 8), (16, 0), (0, 0)] {
        let raw = traces(Span { trace_id: vec![0; trace], span_id: vec![0; id], ..Span::default() });
        assert_eq!(check(Signal::Traces, &raw).unwrap().items, 2);
        let groups = TracesRequest::new(&raw).resources().flat_map(|group| group.scopes());
        let shown = groups.flat_map(|group| group.items()).last().unwrap();
        assert_eq!((shown.trace_id, shown.span_id), (&[0; 16][..], &[0; 8][..]));
    }
}

/// In each place where the fast path for short attributes looks, and where it does not.
#[test]
fn texts_that_are_not_utf8_are_refused_wherever_they_are() {
    for (key, value) in [("k", "v!"), ("k!", "v"), ("k", &"v!".repeat(100)), (&"k!".repeat(100), "v")] {
        for before in [0, 1, 3] {
            let number = AnyValue { value: Some(Value::IntValue(1 << 40)) };
            let mut attributes =
                vec![KeyValue { key: "n".into(), value: Some(number), key_strindex: 0 }; before];
            let value = AnyValue { value: Some(Value::StringValue(value.into())) };
            attributes.push(KeyValue { key: key.into(), value: Some(value), key_strindex: 0 });
            let mut raw = traces(Span { attributes, ..span() });
            assert!(check(Signal::Traces, &raw).is_ok());
            let at = raw.iter().rposition(|byte| *byte == b'!').unwrap();
            raw[at] = 0xff;
            let error = check(Signal::Traces, &raw).unwrap_err();
            assert!(matches!(error.kind(), OtlpErrorKind::Utf8(..)), "{error}");
            assert!(error.to_string().contains("not valid UTF-8"), "{error}");
        }
    }
}

/// A text may not lend its last bytes to the next: two halves of a character are two errors.
#[test]
fn halves_of_a_character_are_refused() {
    let attribute = |key: &str| KeyValue { key: key.into(), value: None, key_strindex: 0 };
    let attributes = vec![attribute("a!"), attribute("?a")];
    let mut raw = traces(Span { attributes, ..span() });
    for byte in &mut raw {
        match *byte {
            b'!' => *byte = 0xc3,
            b'?' => *byte = 0xa9,
            _ => {}
        }
    }
    assert!(matches!(check(Signal::Traces, &raw).unwrap_err().kind(), OtlpErrorKind::Utf8(..)));
}

fn field(tag: u8, payload: Vec<u8>) -> Vec<u8> {
    let mut field = vec![tag];
    prost::encoding::encode_varint(payload.len() as u64, &mut field);
    [field, payload].concat()
}

/// A request of logs whose record has a body that is `inner` in as many arrays and maps.
pub(crate) fn nested(depth: usize, inner: &[u8], is_map: impl Fn(usize) -> bool) -> Vec<u8> {
    let value = (0..depth).fold(inner.to_vec(), |inner, level| match is_map(level) {
        true => field(0x32, field(0x0a, [field(0x0a, b"key".to_vec()), field(0x12, inner)].concat())),
        false => field(0x2a, field(0x0a, inner)),
    });
    [0x2a, 0x12, 0x12, 0x0a].into_iter().fold(value, |inner, tag| field(tag, inner))
}

/// Nothing calls itself for each level, so a small stack is enough, and what is wrong is found at any depth.
#[test]
fn values_nest_up_to_the_documented_depth() {
    let check_all = || {
        let kinds: [fn(usize) -> bool; 3] = [|_| false, |_| true, |level| level % 2 == 0];
        for is_map in kinds {
            for depth in [1, 7, 8, 9, 10, 100, MAX_DEPTH] {
                let counts = check(Signal::Logs, &nested(depth, &[0x18, 1], is_map)).unwrap();
                assert_eq!(counts.items, 1);
                let utf8 = check(Signal::Logs, &nested(depth, &[0x0a, 1, 0xff], is_map)).unwrap_err();
                assert!(matches!(utf8.kind(), OtlpErrorKind::Utf8("a string value", _)), "{depth}: {utf8}");
                let raw = nested(depth, &[0x0a, 2, 0xff], is_map);
                let cut = check(Signal::Logs, &raw).unwrap_err();
                assert!(matches!(cut.kind(), OtlpErrorKind::Malformed(_)), "{depth}: {cut}");
                assert_eq!(cut.offset(), raw.len() - 2, "{depth}: {cut}");
                let twice = [field(0x2a, vec![]), field(0x32, vec![])].concat();
                let error = check(Signal::Logs, &nested(depth - 1, &twice, is_map)).unwrap_err();
                assert!(matches!(error.kind(), OtlpErrorKind::Twice(_)), "{depth}: {error}");
            }
            for depth in [MAX_DEPTH + 1, 3 * MAX_DEPTH, 20_000] {
                let error = check(Signal::Logs, &nested(depth, &[0x18, 1], is_map)).unwrap_err();
                assert_eq!(*error.kind(), OtlpErrorKind::Depth);
                assert!(error.to_string().contains("nests more than 1000 arrays and maps"), "{error}");
            }
        }
    };
    std::thread::Builder::new().stack_size(128 << 10).spawn(check_all).unwrap().join().unwrap();
}

#[test]
fn a_message_that_is_there_twice_is_refused() {
    let resource = [0x0a, 0x00];
    let group = [&[0x0a, 4][..], &resource, &resource].concat();
    for signal in [Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles] {
        let error = refused(signal, &group);
        assert!(error.starts_with("resource 0: the resource is there twice, at byte "), "{error}");
    }
}

#[test]
fn a_body_cut_anywhere_is_refused_or_an_empty_request() {
    let raw = traces(span());
    for len in 3..raw.len() {
        let error = check(Signal::Traces, &raw[..len]).unwrap_err();
        assert!(matches!(error.kind(), OtlpErrorKind::Malformed(_)), "{error}");
    }
    assert_eq!(check(Signal::Traces, b"").unwrap(), Default::default());
}

#[test]
fn a_known_field_of_another_type_is_refused() {
    // Logs where traces should be: the record's time is no trace id.
    let error = refused(Signal::Traces, &logs(LogRecord { time_unix_nano: 1, ..LogRecord::default() }));
    assert!(error.starts_with("span 0 of scope 0 of resource 0: byte "), "{error}");
    assert!(error.ends_with("field 1: the value is not encoded as the schema says"), "{error}");
}

#[test]
fn unknown_fields_are_skipped() {
    let mut span = span().encode_to_vec();
    span.extend([0xfa, 0x3f, 3, 1, 2, 3, 0x98, 0x20, 0xff, 0x01]);
    let scope = [&[0x12, span.len() as u8][..], &span].concat();
    let group = [&[0x12, scope.len() as u8][..], &scope].concat();
    let raw = [&[0x0a, group.len() as u8][..], &group].concat();
    assert_eq!(check(Signal::Traces, &raw).unwrap().items, 1);
}
