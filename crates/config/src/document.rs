//! A YAML file that is not our configuration, as JSON, with errors that have places.

use crate::error::{ErrorCollector, Errors};
use crate::load::bounded;
use crate::yaml::{Node, Value, read_verbatim};
use serde_json::{Map, Number, Value as Json};

/// The most values of a document: aliases stand for what they name, and could stand for very much.
const MOST_VALUES: usize = 100_000;

/// Reads a YAML document as JSON: scalars by the core schema of YAML 1.2, an alias as what it names. `source` is the file's name,
/// for errors.
///
/// # Errors
/// Everything that is wrong with it, with places.
pub fn yaml_as_json(source: &str, text: &str) -> Result<Json, Errors> {
    let text = bounded(source, text)?;
    let mut errors = ErrorCollector::new(text);
    let root = read_verbatim(text, &mut errors);
    let json = root.and_then(|root| {
        let mut left = MOST_VALUES;
        let json = converted(&root, &mut left);
        if json.is_none() {
            let message =
                format!("the document has more than {MOST_VALUES} values once aliases are replaced");
            errors.note(&root.at, message, "use fewer aliases");
        }
        json
    });
    match errors.into_errors(source) {
        Some(errors) => Err(errors),
        None => Ok(json.unwrap_or_default()),
    }
}

/// The value of a node; `None` when there are too many.
fn converted(node: &Node, left: &mut usize) -> Option<Json> {
    *left = left.checked_sub(1)?;
    Some(match &node.value {
        Value::Null | Value::Broken => Json::Null,
        Value::Scalar(text) if node.is_quoted => Json::String(text.clone()),
        Value::Scalar(text) => scalar(text),
        Value::Sequence(items) => {
            let items = items.iter().map(|item| converted(item, left));
            Json::Array(items.collect::<Option<_>>()?)
        }
        Value::Mapping(entries) => {
            let mut object = Map::new();
            for entry in entries {
                object.insert(entry.key.clone(), converted(&entry.node, left)?);
            }
            Json::Object(object)
        }
    })
}

/// A plain scalar (YAML 1.2, section 10.3.2).
fn scalar(text: &str) -> Json {
    match text {
        "true" | "True" | "TRUE" => return Json::Bool(true),
        "false" | "False" | "FALSE" => return Json::Bool(false),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = unsigned.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.')
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let hexadecimal = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let octal = text.strip_prefix("0o").and_then(|digits| u64::from_str_radix(digits, 8).ok());
    if let Some(number) = hexadecimal.or(octal) {
        return Json::from(number);
    }
    let number = is_number.then(|| {
        let digits = text.strip_prefix('+').unwrap_or(text);
        let integer = digits.parse::<i64>().ok().map(Number::from);
        let integer = integer.or_else(|| digits.parse::<u64>().ok().map(Number::from));
        integer.or_else(|| digits.parse::<f64>().ok().and_then(Number::from_f64))
    });
    number.flatten().map_or_else(|| Json::String(text.to_owned()), Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn scalars_are_those_of_the_core_schema() {
        let text = "a: 1\nb: '1'\nc: 1.5\nd: true\ne: null\nf: 1.2.3\ng: 5m\nh: -7\ni: 0x1f\nj: [x, ~]\nk: 1e3\nl: 18446744073709551615\nm: [~]\n";
        let expected = json!({
            "a": 1, "b": "1", "c": 1.5, "d": true, "e": null, "f": "1.2.3", "g": "5m", "h": -7, "i": 31, "j": ["x", null],
            "k": 1000.0, "l": 18_446_744_073_709_551_615_u64, "m": [null],
        });
        assert_eq!(yaml_as_json("t", text).unwrap(), expected);
    }

    #[test]
    fn an_alias_is_what_it_names_and_cannot_be_too_much() {
        let shared = yaml_as_json("t", "a: &x [1]\nb: *x\n").unwrap();
        assert_eq!(shared, json!({"a": [1], "b": [1]}));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let before = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", ")));
        }
        let refused = yaml_as_json("t", &bomb).unwrap_err().to_string();
        assert!(refused.contains("more than 100000 values"), "{refused}");
    }

    #[test]
    fn a_mistake_has_its_place() {
        let refused =
            yaml_as_json("policy.yaml", "inputs:\n  - type: a\n inputs: b\n").unwrap_err().to_string();
        assert!(refused.contains("policy.yaml:3"), "{refused}");
    }
}
