//! The JSON Schema of the configuration, for editors.

use serde_json::{Map, Value as Json, json};

use crate::model::Config;
use crate::setting::{Field, MOST_ENTRIES, PlainValue, ScalarShape, Section, Shape};

/// The JSON Schema (2020-12) of a configuration file. Whatever is not in it is refused by [`crate::parse`]
/// too; what depends on two settings at once is only checked there.
pub fn schema() -> Json {
    let mut schema = section(&Config::fields(), None);
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        object.insert("title".to_owned(), json!("tidegate configuration"));
        object.insert(
            "$defs".to_owned(),
            json!({ "reference": {
                "type": "string",
                "pattern": r"\$\{([A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?|file:[^}]+)\}",
                "description": "A value from the environment, ${NAME} or ${NAME:-default}, or from a file: ${file:PATH}",
            }}),
        );
    }
    schema
}

fn section(fields: &[Field], kind: Option<(&str, &str)>) -> Json {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some((name, doc)) = kind {
        properties.insert("type".to_owned(), json!({ "const": name, "description": flow(doc) }));
        required.push("type");
    }
    for field in fields {
        properties.insert(field.name.to_owned(), property(field));
        required.extend(field.default.is_none().then_some(field.name));
    }
    let mut schema = json!({
        "type": if required.is_empty() { json!(["object", "null"]) } else { json!("object") },
        "properties": properties,
        "additionalProperties": false,
    });
    if let (false, Some(object)) = (required.is_empty(), schema.as_object_mut()) {
        object.insert("required".to_owned(), json!(required));
    }
    schema
}

fn property(field: &Field) -> Json {
    let mut schema = shape(&field.shape);
    let Some(object) = schema.as_object_mut() else { return schema };
    let mut description = flow(&field.doc);
    if let Some((low, high)) = &field.range {
        description.push_str(&format!(" From {low} to {high}."));
    }
    object.insert("description".to_owned(), json!(description));
    if let (Some((low, high)), Some(number)) =
        (&field.range, object.get_mut("anyOf").and_then(|any| any.get_mut(0)))
        && number["type"] == "integer"
        && let (Ok(low), Ok(high)) = (low.parse::<u64>(), high.parse::<u64>())
    {
        number["minimum"] = json!(low);
        number["maximum"] = json!(high);
    }
    match &field.default {
        None | Some(PlainValue::Unset) => {}
        Some(default) => {
            object.insert("default".to_owned(), value(default, &field.shape));
        }
    }
    schema
}

pub(crate) fn shape(shape: &Shape) -> Json {
    match shape {
        Shape::Scalar(scalar) => self::scalar(scalar),
        Shape::Section(fields) => section(fields, None),
        Shape::List(each) => {
            let each = self::scalar(each);
            let list = json!({ "type": "array", "items": each, "minItems": 1, "uniqueItems": true });
            json!({ "anyOf": [list, each] })
        }
        Shape::Sequence(entry) => {
            let entry = self::shape(entry);
            json!({ "anyOf": [{ "type": "array", "items": entry }, entry] })
        }
        Shape::Map { key, value } => json!({
            "type": ["object", "null"],
            "propertyNames": (key.schema)(),
            "additionalProperties": self::shape(value),
            "maxProperties": MOST_ENTRIES,
        }),
        Shape::Kinds(kinds) => {
            let kinds: Vec<Json> =
                kinds.iter().map(|kind| section(&kind.fields, Some((kind.name, &kind.doc)))).collect();
            json!({ "oneOf": kinds })
        }
    }
}

fn scalar(scalar: &ScalarShape) -> Json {
    let words = scalar.choices.iter().map(|(word, doc)| json!({ "const": word, "description": flow(doc) }));
    let mut notations: Vec<Json> =
        if scalar.choices.is_empty() { vec![(scalar.schema)()] } else { words.collect() };
    // `1.0` is text to the setting, and a number to an editor.
    notations.extend(
        scalar.choices.iter().filter_map(|(word, _)| word.parse::<f64>().ok()).map(|n| json!({ "const": n })),
    );
    notations.push(json!({ "$ref": "#/$defs/reference" }));
    json!({ "anyOf": notations })
}

/// A default as JSON: numbers as numbers.
fn value(plain: &PlainValue, shape: &Shape) -> Json {
    match (plain, shape) {
        (PlainValue::Text(text), Shape::Scalar(scalar)) if (scalar.schema)()["type"] == json!("integer") => {
            text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
        }
        (PlainValue::Text(text), Shape::Scalar(scalar)) if (scalar.schema)()["type"] == json!("boolean") => {
            json!(text == "true")
        }
        (PlainValue::Text(text), _) => json!(text),
        (PlainValue::List(items), _) => json!(items),
        (PlainValue::Sequence(items), Shape::Sequence(entry)) => {
            items.iter().map(|item| value(item, entry)).collect()
        }
        (PlainValue::Sequence(_), _) => Json::Null,
        (PlainValue::Map(entries), _) => {
            let inner = |key: &str| match shape {
                Shape::Section(fields) => {
                    fields.iter().find(|field| field.name == key).map(|field| &field.shape)
                }
                Shape::Map { value, .. } => Some(&**value),
                _ => None,
            };
            let unset = |value: &PlainValue| matches!(value, PlainValue::Unset);
            let members = entries.iter().filter(|(_, value)| !unset(value));
            members
                .map(|(key, value)| (key.clone(), self::value(value, inner(key).unwrap_or(shape))))
                .collect()
        }
        (PlainValue::Unset, _) => Json::Null,
    }
}

/// A doc comment as one paragraph.
fn flow(doc: &str) -> String {
    doc.replace('\n', " ")
}
