//! Values of any form, for tests of pipelines.

use serde_json::{Map, Value as Json, json};

use crate::reader::Reader;
use crate::setting::{PlainValue, ScalarShape, Setting, Shape};
use crate::yaml::{Node, Value};

/// A value of any form, as JSON has it: a word without quotes is a number, a boolean or null where it looks like one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixture(Json);

impl Fixture {
    /// The value.
    pub fn as_json(&self) -> &Json {
        &self.0
    }
}

impl Setting for Fixture {
    fn read(node: &Node, _reader: &mut Reader<'_, '_>) -> Option<Fixture> {
        json_of(node).map(Fixture)
    }

    fn shape() -> Shape {
        Shape::Scalar(ScalarShape {
            what: "an item",
            example: "{ name: GET /, attributes: { http.status: 200 } }",
            notation: "An item as the sink `http` writes it.",
            choices: Vec::new(),
            schema: || json!({}),
        })
    }

    fn plain(&self) -> PlainValue {
        plain(&self.0)
    }
}

pub(super) fn json_of(node: &Node) -> Option<Json> {
    Some(match &node.value {
        Value::Null => Json::Null,
        Value::Broken => return None,
        Value::Scalar(text) if node.is_quoted => Json::String(text.clone()),
        Value::Scalar(text) => unquoted(text),
        Value::Sequence(entries) => {
            entries.iter().map(|entry| json_of(entry)).collect::<Option<Vec<Json>>>()?.into()
        }
        Value::Mapping(entries) => {
            let entries = entries.iter().map(|entry| Some((entry.key.clone(), json_of(&entry.node)?)));
            entries.collect::<Option<Map<String, Json>>>()?.into()
        }
    })
}

/// The value of a plain scalar in YAML's core schema: <https://yaml.org/spec/1.2.2/#103-core-schema>.
fn unquoted(text: &str) -> Json {
    let is_number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
            && text.bytes().any(|byte| byte.is_ascii_digit())
    };
    match text {
        "true" | "True" | "TRUE" => Json::Bool(true),
        "false" | "False" | "FALSE" => Json::Bool(false),
        _ if !is_number(text) => Json::String(text.to_owned()),
        _ => match (text.parse::<i64>(), text.parse::<u64>(), text.parse::<f64>()) {
            (Ok(number), ..) => number.into(),
            (_, Ok(number), _) => number.into(),
            (.., Ok(number)) => number.into(),
            _ => Json::String(text.to_owned()),
        },
    }
}

pub(super) fn plain(value: &Json) -> PlainValue {
    match value {
        Json::Null => PlainValue::Unset,
        Json::String(text) => PlainValue::Text(text.clone()),
        Json::Array(entries) => PlainValue::Sequence(entries.iter().map(plain).collect()),
        Json::Object(entries) => {
            PlainValue::Map(entries.iter().map(|(key, value)| (key.clone(), plain(value))).collect())
        }
        other => PlainValue::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_quotes_have_their_yaml_types() {
        for (text, value) in [
            ("7", json!(7)),
            ("-7", json!(-7)),
            ("18446744073709551615", json!(u64::MAX)),
            ("1.5e3", json!(1500.0)),
            ("true", json!(true)),
            ("yes", json!("yes")),
            ("1.2.3", json!("1.2.3")),
            ("inf", json!("inf")),
            ("-", json!("-")),
            ("GET /", json!("GET /")),
        ] {
            assert_eq!(unquoted(text), value, "{text}");
        }
    }
}
