//! Random events, of everything that agents say in them.

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

/// The type of a field.
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

pub(super) fn anything() -> BoxedStrategy<Json> {
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

pub(super) fn put(event: &mut Json, path: &str, value: Json) {
    let place = path
        .split('/')
        .fold(event, |place, name| place.as_object_mut().unwrap().entry(name).or_insert_with(|| json!({})));
    *place = value;
}

fn duration() -> BoxedStrategy<Json> {
    prop_oneof![(0.0..1e7f64).prop_map(Json::from), (0..10_000).prop_map(Json::from)].boxed()
}

pub(crate) fn transaction() -> impl Strategy<Value = Json> {
    let base = json!({"type": "request", "span_count": {"started": 3}});
    (event(base, TRANSACTION), value(Is::Id), value(Is::Id), duration()).prop_map(required)
}

pub(crate) fn span() -> impl Strategy<Value = Json> {
    let base = json!({"name": "n", "type": "db", "start": 1});
    (event(base, SPAN), value(Is::Id), value(Is::Id), duration()).prop_map(|parts| {
        let mut event = required(parts);
        put(&mut event, "parent_id", json!("0123456789abcdef"));
        event
    })
}

pub(crate) fn error() -> impl Strategy<Value = Json> {
    let base =
        json!({"exception": {"message": "boom"}, "log": {"message": "m", "level": "warn", "other": [1]}});
    (event(base, ERROR), value(Is::Id), value(Is::Id)).prop_map(|(mut event, id, trace_id)| {
        put(&mut event, "id", id);
        put(&mut event, "trace_id", trace_id);
        put(&mut event, "parent_id", json!("0123456789abcdef"));
        event
    })
}

pub(crate) fn metricset() -> impl Strategy<Value = Json> {
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
