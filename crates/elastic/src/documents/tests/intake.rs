//! Intake events to documents, whatever keys come twice in them. What they say is compared in `tests/apm_oracle.rs`.

use super::super::*;
use super::otlp::{has_no_key_twice, pairs};
use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_wire::intake::{LONGEST_LINE, check};

const RECEIVED: u64 = 1_700_000_000_123_456_789;

fn settings() -> DocumentSettings<'static> {
    DocumentSettings { received: RECEIVED, ..DocumentSettings::default() }
}

fn written(raw: &[u8]) -> (Vec<u8>, WriteResult) {
    check(raw, LONGEST_LINE, |_, error| panic!("{error}: {}", String::from_utf8_lossy(raw))).unwrap();
    let mut space = vec![0; 1 << 20];
    let mut page = DocumentBuffer::new(&mut space);
    let done = from_intake(raw, DocumentPosition::START, "p", &settings(), &mut page).unwrap();
    assert_eq!(done.next, None);
    (page.written().to_vec(), done)
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
        // JSON parsers keep the last, too.
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
fn members_beyond_the_limit_are_counted() {
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

/// Each metric names the template of its field, once, for Elasticsearch; one that no field can hold is left out.
#[test]
fn metrics_name_their_templates() {
    let raw = "{\"metadata\":{\"service\":{\"name\":\"a\",\"agent\":{\"name\":\"go\",\"version\":\"1\"}}}}\n\
         {\"metricset\":{\"samples\":{\"n\":{\"value\":1},\"n\":{\"value\":2},\"n.x\":{\"value\":3},\
         \"h\":{\"values\":[1,2],\"counts\":[3,4],\"type\":\"histogram\"},\"wrong\":{\"values\":[2,1],\"counts\":[3,4]}}}}\n";
    let (text, done) = written(raw.as_bytes());
    let (action, document) = pairs(&text).remove(0);
    let templates = json!({"n.value": "double_metrics", "n.x": "double_metrics", "h": "histogram_metrics"});
    assert_eq!(action["dynamic_templates"], templates);
    assert_eq!((&document["n"]["value"], &document["n"]["x"]), (&json!(2), &json!(3)));
    assert_eq!(document["h"], json!({"values": [1, 2], "counts": [3, 4]}));
    assert_eq!((&document["wrong"], done.untranslatable.values), (&Value::Null, 1));
    let settings = DocumentSettings { flavour: Product::OpenSearch, ..settings() };
    let mut space = vec![0; 1 << 16];
    let mut page = DocumentBuffer::new(&mut space);
    from_intake(raw.as_bytes(), DocumentPosition::START, "p", &settings, &mut page).unwrap();
    assert_eq!(pairs(page.written()).remove(0).0["dynamic_templates"], Value::Null);
}

/// Two bodies that differ in what does not matter have errors of one group; in a cause's type, of two.
#[test]
fn errors_are_grouped_by_all_types_and_frames() {
    let key = |cause: &str, message: &str| {
        let raw = format!(
            "{{\"metadata\":{{\"service\":{{\"name\":\"a\",\"agent\":{{\"name\":\"go\",\"version\":\"1\"}}}}}}}}\n\
             {{\"error\":{{\"id\":\"1\",\"exception\":{{\"message\":\"{message}\",\"type\":\"t\",\"cause\":[{{\"type\":\"{cause}\"}}]}}}}}}\n"
        );
        pairs(&written(raw.as_bytes()).0).remove(0).1["error"]["grouping_key"].as_str().unwrap().to_owned()
    };
    assert_eq!(key("a", "one"), key("a", "two"));
    assert_ne!(key("a", "one"), key("b", "one"));
    // XXH64 of "ta", as Elastic has it.
    assert_eq!(key("a", "one"), format!("{:016x}", xxhash_rust::xxh64::xxh64(b"ta", 0)));
}
