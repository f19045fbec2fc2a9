//! Compares an item with what a test expects of it.

use serde_json::Value as Json;
use tidegate_wire::time::parse_rfc3339;

/// A member that is not as expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Where: names joined by points, positions of lists in brackets.
    pub path: String,
    /// The expected value; `None` for nothing.
    pub expected: Option<Json>,
    /// The value found; `None` for nothing.
    pub got: Option<Json>,
}

/// The members of `got` that are not as `expected` says. Members that it does not name are not compared, unless `exactly`.
/// `null` expects that there is none. Empty and zero values are as absent, since OTLP does not tell them apart.
#[must_use]
pub fn differences(expected: &Json, got: &Json, exactly: bool) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(Some(expected), Some(got), exactly, "", &mut found);
    found
}

fn compare(
    expected: Option<&Json>,
    got: Option<&Json>,
    exactly: bool,
    path: &str,
    found: &mut Vec<Difference>,
) {
    match (expected, got) {
        (Some(Json::Object(expected)), None | Some(Json::Object(_))) => {
            let got = got.and_then(Json::as_object);
            for (name, value) in expected {
                compare(Some(value), got.and_then(|got| got.get(name)), exactly, &member(path, name), found);
            }
            if exactly {
                let others = got.into_iter().flatten().filter(|(name, _)| !expected.contains_key(*name));
                for (name, value) in others.filter(|(name, _)| !(path.is_empty() && *name == "signal")) {
                    compare(None, Some(value), exactly, &member(path, name), found);
                }
            }
        }
        (Some(Json::Array(expected)), Some(Json::Array(got))) if expected.len() == got.len() => {
            for (at, (expected, got)) in expected.iter().zip(got).enumerate() {
                compare(Some(expected), Some(got), exactly, &format!("{path}[{at}]"), found);
            }
        }
        (expected, got) => {
            let is_none = |value: Option<&Json>| value.is_none_or(is_zero);
            if !(is_none(expected) && is_none(got) || expected.zip(got).is_some_and(|(a, b)| is_equal(a, b)))
            {
                let expected = expected.filter(|value| !value.is_null());
                found.push(Difference {
                    path: path.to_owned(),
                    expected: expected.cloned(),
                    got: got.cloned(),
                });
            }
        }
    }
}

fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Whether OTLP leaves a field with this value out.
pub(crate) fn is_zero(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Bool(value) => !value,
        Json::Number(value) => value.as_f64() == Some(0.0),
        Json::String(value) => value.is_empty(),
        Json::Array(values) => values.is_empty(),
        Json::Object(members) => members.values().all(is_zero),
    }
}

fn is_equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        // 1 and 1.0 look alike to whoever writes a test.
        (Json::Number(a), Json::Number(b)) if a.is_f64() || b.is_f64() => a.as_f64() == b.as_f64(),
        (Json::String(a), Json::String(b)) if a != b => {
            let time = |text: &String| parse_rfc3339(text.as_bytes());
            time(a).is_some() && time(a) == time(b)
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(expected: &Json, got: &Json, exactly: bool) -> Vec<String> {
        differences(expected, got, exactly).into_iter().map(|difference| difference.path).collect()
    }

    #[test]
    fn only_named_members_are_compared() {
        let got = json!({"name": "a", "attributes": {"x": 1, "y": "b"}, "events": [{"name": "e"}]});
        assert!(paths(&json!({"name": "a"}), &got, false).is_empty());
        assert!(paths(&json!({"attributes": {"x": 1.0}}), &got, false).is_empty());
        assert_eq!(
            paths(&json!({"attributes": {"x": "1", "z": 1}}), &got, false),
            ["attributes.x", "attributes.z"]
        );
        assert_eq!(paths(&json!({"attributes": {"y": null}}), &got, false), ["attributes.y"]);
        assert!(paths(&json!({"attributes": {"z": null, "w": 0}, "kind": ""}), &got, false).is_empty());
        assert_eq!(paths(&json!({"events": [{"name": "f"}]}), &got, false), ["events[0].name"]);
        assert_eq!(paths(&json!({"events": []}), &got, false), ["events"]);
    }

    #[test]
    fn an_exact_comparison_finds_what_is_not_named() {
        let got = json!({"signal": "logs", "name": "a", "attributes": {"x": 1, "y": "b"}});
        assert_eq!(paths(&json!({"name": "a", "attributes": {"x": 1}}), &got, true), ["attributes.y"]);
        assert_eq!(paths(&json!({"name": "a"}), &got, true), ["attributes"]);
        assert!(paths(&json!({"name": "a", "attributes": {"x": 1, "y": "b"}}), &got, true).is_empty());
    }
}
