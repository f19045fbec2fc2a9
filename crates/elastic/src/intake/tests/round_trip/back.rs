//! The way back from OTLP to an event.

use super::super::RECEIVED;
use super::events::put;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value as Any};
use prost::Message;
use serde_json::{Map, Value as Json, json};

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

/// The expansion of a prefix; the first match counts.
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
/// An event without what says nothing, in any depth of what is known; what is kept as JSON is kept whole.
pub(super) fn normal(event: &Json) -> Json {
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

pub(super) fn plain(value: &AnyValue) -> Json {
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
pub(super) fn attributes(
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

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a transaction or a span again.
pub(super) fn span_back(request: &[u8], is_span: bool) -> Json {
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
pub(super) fn alike(one: &Json, other: &Json) -> bool {
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
