//! Nothing is lost: from what is said in OTLP the event can be written again. The way back is written here, from
//! `design/intake.md`, and knows nothing of the tables by which events are said.

use super::*;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point::Value as Point};
use proptest::prelude::*;
use prost::Message;
use serde_json::{Map, Value as Json, json};
use tidegate_wire::intake::{LONGEST_LINE, check as check_intake};
use tidegate_wire::otlp::check;

/// What a field may be.
#[derive(Debug, Clone, Copy)]
enum Is {
    Text,
    Number,
    Integer,
    Bool,
    Labels,
    Object,
    List,
    Any,
    TextOrNumber,
    Outcome,
    Id,
    Links,
}

/// Fields that a transaction may have beside those that it must have.
const TRANSACTION: &[(&str, Is)] = &[
    ("name", Is::Text),
    ("timestamp", Is::Integer),
    ("parent_id", Is::Id),
    ("result", Is::Text),
    ("outcome", Is::Outcome),
    ("sampled", Is::Bool),
    ("sample_rate", Is::Number),
    ("span_count/dropped", Is::Integer),
    ("span_count/other", Is::Any),
    ("dropped_spans_stats", Is::List),
    ("marks", Is::Object),
    ("experience", Is::Object),
    ("session/id", Is::Text),
    ("session/other", Is::Any),
    ("faas/name", Is::Text),
    ("faas/coldstart", Is::Bool),
    ("faas/trigger", Is::Object),
    ("otel/span_kind", Is::Text),
    ("otel/attributes", Is::Labels),
    ("links", Is::Links),
    ("context/tags", Is::Labels),
    ("context/custom", Is::Object),
    ("context/user/id", Is::TextOrNumber),
    ("context/user/username", Is::Text),
    ("context/user/other", Is::Any),
    ("context/request/method", Is::Text),
    ("context/request/url/full", Is::Text),
    ("context/request/url/other", Is::Any),
    ("context/request/socket/remote_address", Is::Text),
    ("context/request/headers", Is::Object),
    ("context/response/status_code", Is::Integer),
    ("context/response/headers", Is::Object),
    ("context/message/queue/name", Is::Text),
    ("context/message/age", Is::Object),
    ("context/service/name", Is::Text),
    ("context/service/other", Is::Any),
    ("context/other", Is::Any),
    ("other", Is::Any),
];

/// The same of a span.
const SPAN: &[(&str, Is)] = &[
    ("timestamp", Is::Integer),
    ("start", Is::Number),
    ("transaction_id", Is::Id),
    ("subtype", Is::Text),
    ("action", Is::Text),
    ("sync", Is::Bool),
    ("outcome", Is::Outcome),
    ("sample_rate", Is::Number),
    ("stacktrace", Is::List),
    ("child_ids", Is::List),
    ("links", Is::Links),
    ("otel/span_kind", Is::Text),
    ("context/tags", Is::Labels),
    ("context/db/statement", Is::Text),
    ("context/db/instance", Is::Text),
    ("context/db/type", Is::Text),
    ("context/destination/address", Is::Text),
    ("context/destination/port", Is::Integer),
    ("context/destination/service/resource", Is::Text),
    ("context/http/url", Is::Text),
    ("context/http/status_code", Is::Integer),
    ("context/http/response", Is::Object),
    ("context/message/queue/name", Is::Text),
    ("context/other", Is::Any),
    ("other", Is::Any),
];

/// The same of an error.
const ERROR: &[(&str, Is)] = &[
    ("timestamp", Is::Integer),
    ("transaction_id", Is::Id),
    ("culprit", Is::Text),
    ("transaction/sampled", Is::Bool),
    ("transaction/name", Is::Text),
    ("transaction/other", Is::Any),
    ("exception/type", Is::Text),
    ("exception/handled", Is::Bool),
    ("exception/code", Is::TextOrNumber),
    ("exception/stacktrace", Is::List),
    ("exception/cause", Is::List),
    ("exception/attributes", Is::Object),
    ("context/tags", Is::Labels),
    ("context/user/email", Is::Text),
    ("context/custom", Is::Object),
    ("other", Is::Any),
];

/// The same of a metricset.
const METRICSET: &[(&str, Is)] = &[
    ("timestamp", Is::Integer),
    ("tags", Is::Labels),
    ("span/type", Is::Text),
    ("span/subtype", Is::Text),
    ("span/other", Is::Any),
    ("transaction/name", Is::Text),
    ("transaction/type", Is::Text),
    ("service/name", Is::Text),
    ("faas/id", Is::Text),
    ("other", Is::Any),
];

/// The attributes that are not called after where they were.
const CALLED: &[(&str, &str)] = &[
    ("transaction.type", "type"),
    ("span.type", "type"),
    ("span.subtype", "subtype"),
    ("span.action", "action"),
    ("span.sync", "sync"),
    ("transaction.id", "transaction_id"),
    ("transaction.result", "result"),
    ("transaction.sampled", "sampled"),
    ("transaction.span_count.started", "span_count/started"),
    ("transaction.span_count.dropped", "span_count/dropped"),
    ("session.id", "session/id"),
    ("faas.name", "faas/name"),
    ("faas.coldstart", "faas/coldstart"),
    ("user.id", "context/user/id"),
    ("user.name", "context/user/username"),
    ("user.email", "context/user/email"),
    ("http.request.method", "context/request/method"),
    ("url.full", "context/request/url/full"),
    ("network.peer.address", "context/request/socket/remote_address"),
    ("http.response.status_code", "context/response/status_code"),
    ("messaging.destination.name", "context/message/queue/name"),
    ("db.query.text", "context/db/statement"),
    ("db.namespace", "context/db/instance"),
    ("server.address", "context/destination/address"),
    ("server.port", "context/destination/port"),
    ("event.outcome", "outcome"),
    ("error.id", "id"),
    ("exception.type", "exception/type"),
    ("exception.message", "exception/message"),
];

/// What a prefix stands for; the first that fits counts.
const UNDER: &[(&str, &str)] = &[
    ("elastic.transaction.span_count.", "span_count"),
    ("elastic.transaction.session.", "session"),
    ("elastic.error.transaction.", "transaction"),
    ("elastic.metricset.transaction.", "transaction"),
    ("elastic.metricset.span.", "span"),
    ("elastic.error.log.", "log"),
    ("elastic.exception.", "exception"),
    ("elastic.otel.attributes.", "otel/attributes"),
    ("elastic.otel.", "otel"),
    ("elastic.faas.", "faas"),
    ("elastic.context.user.", "context/user"),
    ("elastic.context.request.url.", "context/request/url"),
    ("elastic.context.request.socket.", "context/request/socket"),
    ("elastic.context.request.", "context/request"),
    ("elastic.context.response.", "context/response"),
    ("elastic.context.message.queue.", "context/message/queue"),
    ("elastic.context.message.", "context/message"),
    ("elastic.context.service.", "context/service"),
    ("elastic.context.db.", "context/db"),
    ("elastic.context.destination.service.", "context/destination/service"),
    ("elastic.context.destination.", "context/destination"),
    ("elastic.context.http.", "context/http"),
    ("elastic.context.", "context"),
    ("elastic.transaction.", ""),
    ("elastic.span.", ""),
    ("elastic.error.", ""),
    ("elastic.metricset.", ""),
];

fn text() -> BoxedStrategy<Json> {
    // A text that is itself JSON of a list or an object is not told from that: so none is.
    prop_oneof!["[a-z ]{1,20}", "[a-z\"\\\\/\n\u{1}é\u{10ffff}]{1,10}", Just(String::new())]
        .prop_map(Json::from)
        .boxed()
}

fn number() -> BoxedStrategy<Json> {
    prop_oneof![
        any::<i32>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e9..1e9f64).prop_map(Json::from)
    ]
    .boxed()
}

fn anything() -> BoxedStrategy<Json> {
    let leaf = prop_oneof![Just(Json::Null), any::<bool>().prop_map(Json::from), number(), text()];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            proptest::collection::btree_map("[a-z]{1,4}", inner, 0..3)
                .prop_map(|map| map.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
    .boxed()
}

fn value(is: Is) -> BoxedStrategy<Json> {
    let hex = |digits: usize| proptest::string::string_regex(&format!("[0-9a-f]{{{digits}}}")).unwrap();
    match is {
        Is::Text => text(),
        Is::Number => prop_oneof![(0..1000).prop_map(Json::from), (0.0..1.0f64).prop_map(Json::from)].boxed(),
        Is::Integer => (0..1_900_000_000_000_000_i64).prop_map(Json::from).boxed(),
        Is::Bool => any::<bool>().prop_map(Json::from).boxed(),
        Is::Labels => {
            let label = prop_oneof![text(), number(), any::<bool>().prop_map(Json::from), Just(Json::Null)];
            let map = proptest::collection::btree_map("[a-z.]{1,6}", label, 0..4);
            map.prop_map(|map| map.into_iter().collect::<Map<_, _>>().into()).boxed()
        }
        Is::Object => anything().prop_map(|value| json!({"a": value})).boxed(),
        Is::List => anything().prop_map(|value| json!([value])).boxed(),
        Is::Any => anything(),
        Is::TextOrNumber => prop_oneof![text(), number()].boxed(),
        Is::Outcome => prop_oneof!["success", "failure", "unknown"].prop_map(Json::from).boxed(),
        Is::Id => prop_oneof![hex(16), hex(32), hex(7), "[A-F]{16}", "[x-z]{1,30}", Just(String::new())]
            .prop_map(Json::from)
            .boxed(),
        Is::Links => {
            let link = (hex(32), hex(16), any::<bool>()).prop_map(|(trace, span, plain)| {
                if plain {
                    json!({"trace_id": trace, "span_id": span})
                } else {
                    json!({"trace_id": trace, "span_id": "?"})
                }
            });
            proptest::collection::vec(link, 0..3).prop_map(Json::from).boxed()
        }
    }
}

/// An event that begins as `base` and has some of these fields.
fn event(base: Json, fields: &'static [(&'static str, Is)]) -> BoxedStrategy<Json> {
    let some: Vec<_> =
        fields.iter().map(|(path, is)| (Just(*path), proptest::option::weighted(0.4, value(*is)))).collect();
    some.prop_map(move |fields| {
        let mut event = base.clone();
        for (path, value) in fields {
            if let Some(value) = value {
                put(&mut event, path, value);
            }
        }
        event
    })
    .boxed()
}

fn put(event: &mut Json, path: &str, value: Json) {
    let place = path
        .split('/')
        .fold(event, |place, name| place.as_object_mut().unwrap().entry(name).or_insert_with(|| json!({})));
    *place = value;
}

fn duration() -> BoxedStrategy<Json> {
    prop_oneof![(0.0..1e7f64).prop_map(Json::from), (0..10_000).prop_map(Json::from)].boxed()
}

fn transaction() -> impl Strategy<Value = Json> {
    let base = json!({"type": "request", "span_count": {"started": 3}});
    (event(base, TRANSACTION), value(Is::Id), value(Is::Id), duration()).prop_map(required)
}

fn span() -> impl Strategy<Value = Json> {
    let base = json!({"name": "n", "type": "db", "start": 1});
    (event(base, SPAN), value(Is::Id), value(Is::Id), duration()).prop_map(|parts| {
        let mut event = required(parts);
        put(&mut event, "parent_id", json!("0123456789abcdef"));
        event
    })
}

fn error() -> impl Strategy<Value = Json> {
    let base =
        json!({"exception": {"message": "boom"}, "log": {"message": "m", "level": "warn", "other": [1]}});
    (event(base, ERROR), value(Is::Id), value(Is::Id)).prop_map(|(mut event, id, trace_id)| {
        put(&mut event, "id", id);
        put(&mut event, "trace_id", trace_id);
        put(&mut event, "parent_id", json!("0123456789abcdef"));
        event
    })
}

fn metricset() -> impl Strategy<Value = Json> {
    let sample = prop_oneof![
        number().prop_map(|value| json!({"value": value})),
        number().prop_map(|value| json!({"value": value, "type": "counter", "unit": "byte"})),
        number().prop_map(|value| json!({"value": value, "type": "strange", "more": [1]})),
        Just(json!({"values": [1.5, 2, 3], "counts": [1, 0, 7], "type": "histogram"})),
        Just(json!({"values": [3, 2], "counts": [1, 0]})),
    ];
    let samples = proptest::collection::btree_map("[a-z.]{1,6}", sample, 1..4);
    (event(json!({}), METRICSET), samples).prop_map(|(mut event, samples)| {
        put(&mut event, "samples", samples.into_iter().collect::<Map<_, _>>().into());
        event
    })
}

fn required((mut event, id, trace_id, duration): (Json, Json, Json, Json)) -> Json {
    put(&mut event, "id", id);
    put(&mut event, "trace_id", trace_id);
    put(&mut event, "duration", duration);
    event
}

/// An event without what says nothing, in any depth of what is known; what is kept as JSON is kept whole.
fn normal(event: &Json) -> Json {
    const KEPT: [&str; 15] = [
        "marks",
        "experience",
        "custom",
        "headers",
        "trigger",
        "age",
        "attributes",
        "a",
        "other",
        "response",
        "stacktrace",
        "cause",
        "child_ids",
        "dropped_spans_stats",
        "more",
    ];
    match event {
        Json::Object(map) => map
            .iter()
            .filter_map(|(name, value)| {
                let is_whole = KEPT.contains(&name.as_str())
                    && !(name == "attributes" && is_flat(value))
                    && !(name == "response" && value.get("a").is_none());
                let value = if is_whole { value.clone() } else { normal(value) };
                let says_nothing = value.is_null() || value == json!({}) || value == json!([]);
                (!says_nothing).then(|| (name.clone(), value))
            })
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn is_flat(value: &Json) -> bool {
    value.as_object().is_some_and(|map| map.values().all(|value| !value.is_object() && !value.is_array()))
}

fn plain(value: &AnyValue) -> Json {
    match value.value.as_ref().unwrap() {
        Any::StringValue(text) if text.starts_with(['[', '{']) => serde_json::from_str(text).unwrap(),
        Any::StringValue(text) => json!(text),
        Any::BoolValue(value) => json!(value),
        Any::IntValue(value) => json!(value),
        Any::DoubleValue(value) => json!(value),
        other => panic!("{other:?}"),
    }
}

/// Puts attributes back where they were; those that are said in fields of OTLP are given back.
fn attributes(
    event: &mut Json,
    attributes: &[KeyValue],
    labels: &str,
    is_metricset: bool,
) -> Map<String, Json> {
    let mut own = Map::new();
    for KeyValue { key, value, .. } in attributes {
        let value = plain(value.as_ref().unwrap());
        let is_own = ["id", "trace_id", "parent_id", "duration", "received", "timestamp", "links"]
            .iter()
            .any(|name| *key == format!("elastic.{name}"));
        if is_own {
            own.insert(key["elastic.".len()..].to_owned(), value);
        } else if let Some(name) = key.strip_prefix("labels.") {
            put(event, labels, event.pointer(&format!("/{labels}")).cloned().unwrap_or(json!({})));
            let place = event.pointer_mut(&format!("/{labels}")).unwrap();
            place.as_object_mut().unwrap().insert(name.to_owned(), value);
        } else if let Some(name) = key.strip_prefix("elastic.sample.") {
            own.insert(format!("sample.{name}"), value);
        } else if is_metricset
            && let Some((group, name)) =
                key.split_once('.').filter(|(group, _)| *group == "span" || *group == "transaction")
        {
            put(event, &format!("{group}/{name}"), value);
        } else if key == "transaction.name" {
            put(event, "transaction/name", value);
        } else if let Some((_, path)) = CALLED.iter().find(|(name, _)| name == key) {
            put(event, path, value);
        } else {
            let (prefix, path) = UNDER.iter().find(|(prefix, _)| key.starts_with(prefix)).expect(key);
            let name = &key[prefix.len()..];
            let path = if is_metricset { path.trim_start_matches("context/") } else { path };
            let mut place = &mut *event;
            for part in path.split('/').filter(|part| !part.is_empty()) {
                place = place.as_object_mut().unwrap().entry(part).or_insert_with(|| json!({}));
            }
            place.as_object_mut().unwrap().insert(name.to_owned(), value);
        }
    }
    own
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a transaction or a span again.
fn span_back(request: &[u8], is_span: bool) -> Json {
    let request = ExportTraceServiceRequest::decode(request).unwrap();
    let span = &request.resource_spans[0].scope_spans[0].spans[0];
    let mut event = json!({});
    let own = attributes(&mut event, &span.attributes, "context/tags", false);
    if is_span {
        // These have the same name on both, and stood elsewhere.
        for (from, to) in [
            ("context/request/url/full", "context/http/url"),
            ("context/response/status_code", "context/http/status_code"),
        ] {
            if let Some(value) = event.pointer(&format!("/{from}")).cloned() {
                put(&mut event, to, value);
            }
        }
        let context = event.get_mut("context").and_then(Json::as_object_mut);
        context.map(|context| (context.remove("request"), context.remove("response")));
    }
    for (name, bytes) in
        [("id", &span.span_id), ("trace_id", &span.trace_id), ("parent_id", &span.parent_span_id)]
    {
        match own.get(name) {
            Some(text) => put(&mut event, name, text.clone()),
            None if bytes.is_empty() => {}
            None => put(&mut event, name, json!(hex(bytes))),
        }
    }
    if !span.name.is_empty() || is_span {
        put(&mut event, "name", json!(span.name));
    }
    match (own.get("received"), own.get("timestamp")) {
        (Some(_), _) => assert!(span.start_time_unix_nano >= RECEIVED),
        (_, Some(value)) => put(&mut event, "timestamp", value.clone()),
        _ => put(&mut event, "timestamp", json!(span.start_time_unix_nano / 1000)),
    }
    let nanoseconds = span.end_time_unix_nano - span.start_time_unix_nano;
    put(&mut event, "duration", own.get("duration").cloned().unwrap_or(json!(nanoseconds as f64 / 1e6)));
    if let Some(rate) = span.trace_state.strip_prefix("es=s:") {
        let rate = rate.split(',').next().unwrap();
        put(&mut event, "sample_rate", serde_json::from_str(rate).unwrap());
    }
    if let Some(status) = &span.status {
        put(&mut event, "outcome", json!(if status.code == 1 { "success" } else { "failure" }));
    }
    let links =
        span.links.iter().map(|link| json!({"trace_id": hex(&link.trace_id), "span_id": hex(&link.span_id)}));
    let links = own.get("links").cloned().unwrap_or_else(|| links.collect());
    put(&mut event, "links", links);
    event
}

/// Numbers that are the same are alike, however they were written.
fn alike(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => one.as_f64() == other.as_f64(),
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| alike(value, other)))
        }
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (one, other) => one == other,
    }
}

fn body(kind: &str, event: &Json) -> Vec<u8> {
    let metadata =
        json!({"metadata": {"service": {"name": "shop", "agent": {"name": "go", "version": "1"}}}});
    format!("{metadata}\n{}\n", json!({kind: event})).into_bytes()
}

#[track_caller]
fn request(kind: &str, event: &Json, signal: Signal) -> Vec<u8> {
    let raw = body(kind, event);
    check_intake(&raw, LONGEST_LINE, |_, fault| panic!("{fault}: {event}")).unwrap();
    let (request, events) = said(&raw, signal);
    assert_eq!(events, 1);
    check(signal, &request).unwrap_or_else(|fault| panic!("{fault}: {event}"));
    request
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn transactions_can_be_written_again(event in transaction()) {
        let back = span_back(&request("transaction", &event, Signal::Traces), false);
        let mut expected = normal(&event);
        // No name and an empty one are the same to OTLP.
        if expected["name"] == "" { expected.as_object_mut().unwrap().remove("name"); }
        prop_assert!(alike(&normal(&back), &expected), "{}\n{}", normal(&back), expected);
    }

    #[test]
    fn spans_can_be_written_again(event in span()) {
        let back = span_back(&request("span", &event, Signal::Traces), true);
        let expected = normal(&event);
        prop_assert!(alike(&normal(&back), &expected), "{}\n{}", normal(&back), expected);
    }

    #[test]
    fn errors_can_be_written_again(event in error()) {
        let request = ExportLogsServiceRequest::decode(&request("error", &event, Signal::Logs)[..]).unwrap();
        let record = &request.resource_logs[0].scope_logs[0].log_records[0];
        let mut back = json!({});
        let own = attributes(&mut back, &record.attributes, "context/tags", false);
        if let Some(sampled) = back.as_object_mut().unwrap().remove("sampled") {
            put(&mut back, "transaction/sampled", sampled);
        }
        for (name, bytes) in [("trace_id", &record.trace_id), ("parent_id", &record.span_id)] {
            put(&mut back, name, own.get(name).cloned().unwrap_or(json!(hex(bytes))));
        }
        if own.get("received").is_none() {
            put(&mut back, "timestamp", json!(record.time_unix_nano / 1000));
        }
        let expected = normal(&event);
        prop_assert!(alike(&normal(&back), &expected), "{}\n{}", normal(&back), expected);
        prop_assert_eq!(record.body.as_ref().map(plain), Some(json!("boom")));
        prop_assert_eq!((record.severity_number, record.severity_text.as_str()), (13, "warn"));
    }

    #[test]
    fn metricsets_can_be_written_again(event in metricset()) {
        let request = ExportMetricsServiceRequest::decode(&request("metricset", &event, Signal::Metrics)[..]).unwrap();
        let mut back = json!({});
        for metric in &request.resource_metrics[0].scope_metrics[0].metrics {
            let mut sample = json!({});
            if !metric.unit.is_empty() {
                put(&mut sample, "unit", json!(metric.unit));
            }
            let (pairs, time) = match metric.data.as_ref().unwrap() {
                Data::Gauge(gauge) => {
                    put(&mut sample, "value", point(&gauge.data_points[0].value));
                    (&gauge.data_points[0].attributes, gauge.data_points[0].time_unix_nano)
                }
                Data::Sum(sum) => {
                    assert!(sum.is_monotonic);
                    put(&mut sample, "value", point(&sum.data_points[0].value));
                    put(&mut sample, "type", json!("counter"));
                    (&sum.data_points[0].attributes, sum.data_points[0].time_unix_nano)
                }
                Data::Histogram(histogram) => {
                    let point = &histogram.data_points[0];
                    assert_eq!(point.count, point.bucket_counts.iter().sum::<u64>());
                    if let Some((last, counts)) = point.bucket_counts.split_last() {
                        assert_eq!((*last, counts.len()), (0, point.explicit_bounds.len()));
                        put(&mut sample, "values", json!(point.explicit_bounds));
                        put(&mut sample, "counts", json!(counts));
                        put(&mut sample, "type", json!("histogram"));
                    }
                    (&point.attributes, point.time_unix_nano)
                }
                other => panic!("{other:?}"),
            };
            let own = attributes(&mut back, pairs, "tags", true);
            for (name, value) in &own {
                if let Some(name) = name.strip_prefix("sample.") {
                    put(&mut sample, name, value.clone());
                }
            }
            if own.get("received").is_none() {
                put(&mut back, "timestamp", json!(time / 1000));
            }
            let mut samples = back.get("samples").cloned().unwrap_or(json!({}));
            samples.as_object_mut().unwrap().insert(metric.name.clone(), sample);
            put(&mut back, "samples", samples);
        }
        let expected = normal(&event);
        prop_assert!(alike(&normal(&back), &expected), "{}\n{}", normal(&back), expected);
    }

    /// Fields of ECS have the same names, however they were nested.
    #[test]
    fn log_events_can_be_written_again(
        fields in proptest::collection::btree_map("[a-z]{2,6}", anything(), 0..6),
        nested in any::<bool>(),
    ) {
        let mut event = json!({"@timestamp": "2024-02-29T12:34:56.789Z", "message": "hello"});
        for (name, value) in fields {
            put(&mut event, &name, value);
        }
        if nested {
            put(&mut event, "log", json!({"level": "warn", "logger": "main"}));
        } else {
            put(&mut event, "log.level", json!("warn"));
        }
        let request = ExportLogsServiceRequest::decode(&request("log", &event, Signal::Logs)[..]).unwrap();
        let record = &request.resource_logs[0].scope_logs[0].log_records[0];
        let mut back = Map::new();
        for pair in &record.attributes {
            back.insert(pair.key.clone(), plain(pair.value.as_ref().unwrap()));
        }
        back.insert("message".into(), record.body.as_ref().map(plain).unwrap());
        back.insert("log.level".into(), json!(record.severity_text));
        assert_eq!(record.time_unix_nano, 1_709_210_096_789_000_000);
        back.insert("@timestamp".into(), json!("2024-02-29T12:34:56.789Z"));
        let mut expected = Map::new();
        flat("", &event, &mut expected);
        prop_assert!(alike(&Json::Object(back.clone()), &Json::Object(expected.clone())), "{back:?}\n{expected:?}");
    }
}

fn point(value: &Option<Point>) -> Json {
    match value.unwrap() {
        Point::AsInt(value) => json!(value),
        Point::AsDouble(value) => json!(value),
    }
}

fn flat(before: &str, value: &Json, out: &mut Map<String, Json>) {
    match value {
        Json::Object(map) => {
            for (name, value) in map {
                let name = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
                flat(&name, value, out);
            }
        }
        Json::Null => {}
        Json::Array(list) if list.is_empty() => {}
        other => drop(out.insert(before.to_owned(), other.clone())),
    }
}
