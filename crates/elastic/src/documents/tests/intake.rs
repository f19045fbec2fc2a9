//! Intake events to documents, against a slow model, and whatever keys come twice in them.

use super::super::*;
use super::apm;
use super::otlp::{has_no_key_twice, pairs};
use crate::intake::tests::round_trip::events;
use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_wire::intake::{LONGEST_LINE, check};

const RECEIVED: u64 = 1_700_000_000_123_456_789;

fn settings() -> Settings<'static> {
    Settings { received: RECEIVED, ..Settings::default() }
}

fn written(raw: &[u8]) -> (Vec<u8>, Written) {
    check(raw, LONGEST_LINE, |_, fault| panic!("{fault}: {}", String::from_utf8_lossy(raw))).unwrap();
    let mut space = vec![0; 1 << 20];
    let mut page = Page::new(&mut space);
    let done = from_intake(raw, Place::START, "p", &settings(), &mut page).unwrap();
    assert_eq!(done.next, None);
    (page.written().to_vec(), done)
}

/// Numbers that are the same are alike, however they were written.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| alike(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (one, other) => one == other,
    }
}

fn same_as_model(kind: &str, event: &Value) -> Result<(), TestCaseError> {
    let metadata = json!({
        "service": {"name": "My-Shop 2", "agent": {"name": "go", "version": "1"}, "environment": "test"},
        "system": {"hostname": "here", "container": {"id": "c1"}},
        "labels": {"team.x": "core", "tier": 1},
    });
    let raw = format!("{}\n{}\n", json!({ "metadata": metadata }), json!({ kind: event }));
    let (text, done) = written(raw.as_bytes());
    prop_assert_eq!((done.items, done.documents), (1, 1));
    let (action, found) = pairs(&text).remove(0);
    let (stream, expected) = apm::document(&metadata, kind, event, RECEIVED);
    prop_assert_eq!(action["_index"].as_str(), Some(stream.as_str()));
    let found = apm::comparable(found);
    prop_assert!(alike(&found, &expected), "{}\n{}\n{}", found, expected, event);
    Ok(())
}

fn log() -> impl Strategy<Value = Value> {
    let names = "[a-c]{2,4}|message|log\\.level|event\\.dataset|trace\\.id";
    (proptest::collection::btree_map(names, "[a-z0-9\"]{0,4}", 0..6), any::<bool>()).prop_map(
        |(fields, nested)| {
            let mut event = json!(fields);
            event["@timestamp"] = json!("2024-02-29T12:34:56.789Z");
            if nested {
                event["log"] = json!({"logger": "main", "origin": {"file": {"line": 7, "name": "a.rs"}}});
                event["labels"] = json!({"a.b": 1, "c": true});
            }
            event
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    /// A document says what Elastic APM's says of the same event, in the stream that it names.
    #[test]
    fn events_are_said_as_the_model_says_them(
        transaction in events::transaction(),
        span in events::span(),
        error in events::error(),
        metricset in events::metricset(),
        log in log(),
    ) {
        same_as_model("transaction", &transaction)?;
        same_as_model("span", &span)?;
        same_as_model("error", &error)?;
        same_as_model("metricset", &metricset)?;
        same_as_model("log", &log)?;
    }
}

/// JSON in which any key may come twice, some written with escapes.
fn repeated() -> impl Strategy<Value = String> {
    let key =
        || prop_oneof!["[ab]", Just("\\u0061".to_owned()), Just("a.b".to_owned()), Just("\\\"".to_owned())];
    let leaf = prop_oneof!["[0-9]", Just("null".to_owned()), Just("\"x\\\"}\"".to_owned())];
    let leaf =
        leaf.prop_map(|text| if text.len() > 1 && text.starts_with('0') { "0".to_owned() } else { text });
    leaf.prop_recursive(12, 48, 4, move |inner| {
        prop_oneof![
            3 => proptest::collection::vec((key(), inner.clone()), 0..5).prop_map(|members| {
                let members: Vec<_> = members.into_iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
                format!("{{{}}}", members.join(" ,"))
            }),
            1 => proptest::collection::vec(inner, 0..3).prop_map(|values| format!("[{}]", values.join(", "))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever keys come twice in what agents say, none does in a document; of each the last value is there.
    #[test]
    fn no_key_comes_twice(free in repeated(), labels in proptest::collection::vec(("[ab]|\\\\u0061|a\\.b|a\\\\\"b", "[0-9]|true"), 0..6)) {
        let labels: Vec<_> = labels.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let raw = format!(
            "{{\"metadata\":{{\"service\":{{\"name\":\"a\",\"agent\":{{\"name\":\"go\",\"version\":\"1\"}}}}}}}}\n\
             {{\"error\":{{\"id\":\"1\",\"context\":{{\"custom\":{{\"x\":{free}}},\"tags\":{{{}}}}},\"exception\":{{\"type\":\"t\",\
             \"attributes\":{{\"y\":{free}}},\"stacktrace\":[{{\"filename\":\"f\",\"vars\":{{\"z\":{free}}}}}]}}}}}}\n\
             {{\"log\":{{\"@timestamp\":\"2024-02-29T12:34:56.789Z\",\"a\":1,\"\\u0061\":2,\"b\":{free}}}}}\n",
            labels.join(","),
        );
        let (text, _) = written(raw.as_bytes());
        prop_assert!(has_no_key_twice(&text), "{}", String::from_utf8_lossy(&text));
        let found = pairs(&text);
        // What reads JSON keeps the last, too.
        let free: Value = serde_json::from_str(&free).unwrap();
        let exception = &found[0].1["error"]["exception"][0];
        for said in [&found[0].1["error"]["custom"]["x"], &exception["attributes"]["y"], &exception["stacktrace"][0]["vars"]["z"]] {
            prop_assert!(alike_but_deep(said, &free), "{}\n{}", said, free);
        }
        prop_assert_eq!(&found[1].1["numeric_labels"]["a"], &json!(2));
    }
}

/// The same, but where it is so deep that it became a text of JSON.
fn alike_but_deep(said: &Value, free: &Value) -> bool {
    match (said, free) {
        (Value::String(text), Value::Object(_) | Value::Array(_)) => {
            serde_json::from_str::<Value>(text).is_ok_and(|said| said == *free)
        }
        (Value::Object(said), Value::Object(free)) => {
            said.len() == free.len()
                && said
                    .iter()
                    .all(|(name, value)| free.get(name).is_some_and(|free| alike_but_deep(value, free)))
        }
        (Value::Array(said), Value::Array(free)) => {
            said.len() == free.len() && said.iter().zip(free).all(|(said, free)| alike_but_deep(said, free))
        }
        (said, free) => said == free,
    }
}

/// An object of more members than are looked at together keeps its first ones, and the others are counted.
#[test]
fn what_is_too_much_is_counted() {
    let members: Vec<_> = (0..3000).map(|number| format!("\"k{}\":{number}", number % 2000)).collect();
    let raw = format!(
        "{{\"metadata\":{{\"service\":{{\"name\":\"a\",\"agent\":{{\"name\":\"go\",\"version\":\"1\"}}}}}}}}\n\
         {{\"error\":{{\"id\":\"1\",\"log\":{{\"message\":\"m\"}},\"context\":{{\"custom\":{{{}}}}}}}}}\n",
        members.join(",")
    );
    let (text, done) = written(raw.as_bytes());
    let found = pairs(&text).remove(0).1;
    let custom = found["error"]["custom"].as_object().unwrap();
    assert_eq!(custom.len(), 1024);
    assert_eq!(done.untranslatable.values, 3000 - 1024);
}
