//! Hashrings that stand on the command line.

use super::command_line::mistake;
use crate::error::Errors;
use crate::import::document::{Map, Yaml};
use crate::import::references;
use serde_json::Value as Json;
use tidegate_ring::parse_hashrings;

/// The hashrings in a text of JSON.
///
/// # Errors
/// When they cannot be read, or the text is a variable.
pub(super) fn hashrings(text: &str) -> Result<Yaml, Errors> {
    let text = text.trim();
    if text.starts_with("$(") {
        let message = format!("`--receive.hashrings` is the variable {text}");
        return Err(mistake(
            message,
            "write its value instead: tidegate reads variables in single values only",
        ));
    }
    let wrong = |error: String| {
        let message = format!("`--receive.hashrings` cannot be read: {error}");
        mistake(message, "give the JSON that Thanos Receive has there")
    };
    parse_hashrings(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    let json: Json = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    Ok(yaml(&json))
}

fn yaml(json: &Json) -> Yaml {
    match json {
        Json::Array(items) => Yaml::List(items.iter().map(yaml).collect()),
        Json::Object(entries) => {
            let mut map = Map::default();
            // The name of a hashring, and what it is for, before its members.
            let rank = |key: &str| {
                ["hashring", "address", "tenants", "tenant_matcher_type", "algorithm"]
                    .iter()
                    .position(|first| *first == key)
                    .unwrap_or(usize::MAX)
            };
            let mut entries: Vec<_> = entries.iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_by_key(|(key, _)| rank(key));
            entries.into_iter().for_each(|(key, value)| map.set(key, yaml(value)));
            Yaml::Map(map)
        }
        Json::String(text) => Yaml::Quoted(references::kubernetes(text).0),
        Json::Null => Yaml::Text("null".to_owned()),
        Json::Bool(value) => Yaml::Text(value.to_string()),
        Json::Number(value) => Yaml::Text(value.to_string()),
    }
}
