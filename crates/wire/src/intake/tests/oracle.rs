//! Against serde_json, on the same random text.

use super::*;
use crate::damage::{apply, damage};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value as Json;

/// A value as the oracle has it.
pub(super) fn shown(value: Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(value),
        Value::Number(number) => match number.integer() {
            Some(integer) if number.raw() != b"-0" => integer.into(),
            _ => match str::from_utf8(number.raw()).unwrap().parse::<u64>() {
                Ok(integer) => integer.into(),
                Err(_) => number.double().into(),
            },
        },
        Value::Text(text) => Json::String(string(text)),
        Value::Array(array) => array.values().map(shown).collect(),
        Value::Object(object) => object.members().map(|(name, value)| (string(name), shown(value))).collect(),
    }
}

/// Whether both are the same, but for the last digit of what is no integer: the oracle does not round to the nearest.
pub(super) fn alike(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => {
            one == other
                || one
                    .as_f64()
                    .zip(other.as_f64())
                    .is_some_and(|(one, other)| (one - other).abs() <= one.abs() * 1e-14)
        }
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| alike(value, other)))
        }
        (one, other) => one == other,
    }
}

fn string(text: Text<'_>) -> String {
    let mut bytes = Vec::new();
    text.pieces(|piece| bytes.extend_from_slice(piece));
    assert_eq!(bytes.len(), text.len());
    assert!(text.is(&bytes));
    String::from_utf8(bytes).unwrap()
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".*".prop_map(Json::from),
        "[\"\\\\\u{1}-\u{20}aé\u{10ffff}]*".prop_map(Json::from),
        "[a-z ]{0,40}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 40, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Json::from),
            proptest::collection::btree_map(".{0,12}", inner, 0..8)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// `json` with blanks wherever they may be, and with characters escaped that need not be.
fn loose(json: &Json) -> String {
    let text = serde_json::to_string_pretty(json).unwrap().replace('\n', "\r\t ");
    text.replace('é', "\\u00E9").replace('\u{10ffff}', "\\uDBFF\\udfff")
}

fn walked(text: &[u8]) -> bool {
    let mut cursor = crate::json::Cursor::new(text);
    str::from_utf8(text).is_ok() && cursor.skip::<2>(MAX_DEPTH).and_then(|()| cursor.end()).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Another implementation's output is accepted and reads as written.
    #[test]
    fn values_are_shown_as_they_were_written(json in json()) {
        for text in [json.to_string(), loose(&json)] {
            prop_assert!(walked(text.as_bytes()), "{text}");
            let expected = serde_json::from_str::<Json>(&text).unwrap();
            prop_assert!(alike(&shown(Value::of(text.as_bytes())), &expected), "{text}");
        }
    }

    /// The accepted JSON is exactly that of another implementation.
    #[test]
    fn damaged_text_is_judged_alike(json in json(), damages in proptest::collection::vec(damage(), 1..4)) {
        let mut text = json.to_string().into_bytes();
        apply(&mut text, &damages);
        let expected = str::from_utf8(&text).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
        prop_assert_eq!(walked(&text), expected, "{}", String::from_utf8_lossy(&text));
    }

    /// Whatever arrives is judged without a panic, and what was accepted of it can be walked.
    #[test]
    fn anything_is_judged(agent in 0..4usize, damages in proptest::collection::vec(damage(), 0..6)) {
        let agent = tidegate_load::elastic_apm::AGENTS[agent];
        let mut body = agent.busy.as_bytes().to_vec();
        apply(&mut body, &damages);
        let mut refused = Vec::new();
        let Ok(counts) = check(&body, LONGEST_LINE, |range, _| refused.push(range)) else { return Ok(()) };
        prop_assert_eq!(counts.refused, refused.len() as u64);
        let mut kept = body.clone();
        let len = retain_valid(&mut kept, LONGEST_LINE);
        kept.truncate(len);
        let left = check(&kept, LONGEST_LINE, |_, error| panic!("{error}"));
        prop_assert_eq!(left, Ok(Counts { refused: 0, ..counts }));
        let shown: Vec<_> = events(&kept).map(|event| shown(Value::Object(event.fields()))).collect();
        // An empty body, as damage may leave it, is good and has no metadata.
        let metadata = u64::from(lines(&kept).next().is_some());
        prop_assert_eq!(shown.len() as u64, counts.events + metadata);
    }
}
