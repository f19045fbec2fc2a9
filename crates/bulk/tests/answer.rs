//! Answers parse as in `serde_json`, in whatever pieces they arrive.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_bulk::response::{ElementScanner, read_bulk_item, read_mget_document, read_msearch_response};

/// The elements under `key` of `text`, which comes in pieces that end at `cuts`.
fn elements(key: &'static str, text: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, bool) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).chain([0, text.len()]).collect();
    cuts.sort_unstable();
    let (mut found, mut open) = (Vec::<Vec<u8>>::new(), false);
    let mut elements = ElementScanner::new(key);
    for ends in cuts.windows(2) {
        let piece = &text[ends[0]..ends[1]];
        elements.feed(piece, |part| {
            assert_eq!(&piece[part.at..part.at + part.bytes.len()], part.bytes);
            assert_eq!(part.first, !open, "a part begins where the last one ended");
            if part.first {
                found.push(Vec::new());
            }
            found.last_mut().unwrap().extend_from_slice(part.bytes);
            open = !part.last;
        });
    }
    (found, elements.is_complete())
}

fn value() -> impl Strategy<Value = Value> {
    let text = "[a-z]{0,8}|[\"\\\\\\[\\]{},:]{0,8}|\\PC{0,8}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(text, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn written(value: &Value, pretty: bool) -> Vec<u8> {
    if pretty { serde_json::to_vec_pretty(value).unwrap() } else { serde_json::to_vec(value).unwrap() }
}

/// Fields as servers have them, in any order, among others.
fn fields(known: Map<String, Value>, others: Map<String, Value>) -> Value {
    let mut all: Vec<_> = others.into_iter().chain(known).collect();
    all.sort_by_key(|(key, value)| (value.to_string().len(), key.clone()));
    Value::Object(all.into_iter().collect())
}

fn others() -> impl Strategy<Value = Map<String, Value>> {
    let key = "[a-z]{1,3}|took|errors|_index|_shards";
    prop::collection::hash_map(key, value(), 0..4).prop_map(|map| map.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every element is found, whole, in order, and no other; so is the end.
    #[test]
    fn elements_are_those_of_the_array(
        list in prop::collection::vec(value(), 0..8),
        (before, after) in (others(), others()),
        pretty: bool,
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut text = b"{".to_vec();
        for (key, value) in &before {
            text.extend_from_slice(&written(&json!(key), pretty));
            text.extend_from_slice(b" : ");
            text.extend_from_slice(&written(value, pretty));
            text.extend_from_slice(b",\n");
        }
        text.extend_from_slice(b"\"items\":");
        text.extend_from_slice(&written(&json!(list), pretty));
        for (key, value) in &after {
            text.push(b',');
            text.extend_from_slice(&written(&json!(key), pretty));
            text.push(b':');
            text.extend_from_slice(&written(value, pretty));
        }
        text.push(b'}');
        prop_assert!(serde_json::from_slice::<Value>(&text).is_ok());
        let (found, complete) = elements("items", &text, &cuts);
        let found: Vec<Value> = found.iter().map(|element| serde_json::from_slice(element).unwrap()).collect();
        prop_assert_eq!(found, list);
        prop_assert!(complete);
        let (cut, complete) = elements("items", &text[..text.len() - 1], &cuts);
        prop_assert!(!complete && cut.len() <= 8);
    }

    /// The fields of an item of `_bulk`, of `_mget` and of `_msearch`.
    #[test]
    fn fields_are_those_of_the_element(
        (status, version, seq_no) in (100u16..600, any::<u64>(), any::<u64>()),
        (id, kind, reason) in ("\\PC{0,20}", "[a-z_]{1,20}", "\\PC{0,60}"),
        (failed, noop, found, pretty) in any::<(bool, bool, bool, bool)>(),
        source in value(),
        (more, inner) in (others(), others()),
    ) {
        let error = fields(
            json!({"type": kind, "reason": reason}).as_object().unwrap().clone(),
            inner,
        );
        let mut known = json!({"status": status, "_version": version, "_seq_no": seq_no, "_primary_term": 7, "_id": id});
        known["result"] = json!(if noop { "noop" } else { "updated" });
        if failed {
            known["error"] = error.clone();
        }
        let known = known.as_object().unwrap().clone();
        let text = written(&json!({"update": fields(known, more.clone())}), pretty);
        let read = read_bulk_item(&text).unwrap();
        prop_assert_eq!((read.status, read.version, read.seq_no, read.primary_term), (status, version, seq_no, 7));
        prop_assert_eq!((read.unchanged, read.error.is_some()), (noop, failed));
        let quoted = [b"\"", read.id, b"\""].concat();
        prop_assert_eq!(serde_json::from_slice::<String>(&quoted).unwrap(), id);
        if let Some(error) = read.error {
            let words = if reason.is_empty() { kind.clone() } else { format!("{kind}: {reason}") };
            prop_assert_eq!(error.message(), words);
        }

        let mut known = json!({"found": found, "_version": version, "_source": source});
        if failed {
            known["error"] = error.clone();
        }
        let text = written(&fields(known.as_object().unwrap().clone(), more.clone()), pretty);
        let read = read_mget_document(&text).unwrap();
        prop_assert_eq!((read.found, read.version, read.error.is_some()), (found, version, failed));
        prop_assert_eq!(serde_json::from_slice::<Value>(&text[read.source]).unwrap(), source.clone());

        let mut known = json!({"status": status, "hits": source});
        if failed {
            known["error"] = error;
        }
        let text = written(&fields(known.as_object().unwrap().clone(), more), pretty);
        let (read, error) = read_msearch_response(&text).unwrap();
        prop_assert_eq!((read, error.is_some()), (status, failed));
    }

    /// Bytes that are no answer neither panic nor make more of an element than there is.
    #[test]
    fn anything_can_be_read(
        text in "[\\[\\]{}\":,\\\\u0-9a-z items]{0,200}",
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let text = [b"{\"items\":[", text.as_bytes()].concat();
        let (found, _) = elements("items", &text, &cuts);
        prop_assert!(found.iter().map(Vec::len).sum::<usize>() <= text.len());
        prop_assert_eq!(&found, &elements("items", &text, &[]).0, "pieces make no difference");
        for element in &found {
            let _ = (read_bulk_item(element).map(|item| item.error.map(|error| error.message())), read_mget_document(element), read_msearch_response(element));
        }
    }
}

/// Reasons are cut, and what is no text in them is replaced.
#[test]
fn reasons_are_cut_between_characters() {
    let long =
        json!({"index": {"status": 400, "error": {"type": "t", "reason": "\u{1f600}é\n".repeat(1000)}}})
            .to_string();
    let words = read_bulk_item(long.as_bytes()).unwrap().error.unwrap().message();
    assert!(words.starts_with("t: \u{1f600}é\n\u{1f600}") && words.len() < 300);
    let escaped = br#"{"index":{"status":400,"error":{"reason":"\ud83d\ude00 \u00e9 \/ \ud83d \q"}}}"#;
    let words = read_bulk_item(escaped).unwrap().error.unwrap().message();
    assert!(words.starts_with("\u{1f600} é / "), "{words}");
}
