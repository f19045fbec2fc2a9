//! The state of a gateway without words that may quote telemetry.

use crate::mask::Masker;
use serde_json::Value;

/// Fields whose text comes from peers, from clients or from items.
const FOREIGN: [&str; 5] = ["message", "reason", "index", "trouble", "common_name"];
const LEFT_OUT: &str = "(left out: it may quote telemetry)";

/// The status page, with the numbers that it has and the names of the configuration.
pub(super) fn status(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let is_foreign = FOREIGN.contains(&name.as_str()) && value.is_string();
                (name.clone(), if is_foreign { LEFT_OUT.into() } else { status(value) })
            });
            Value::Object(fields.collect())
        }
        Value::Array(entries) => entries.iter().map(status).collect(),
        other => other.clone(),
    }
}

/// The same with every text masked.
pub(super) fn masked(value: &Value, masker: &Masker) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (masker.mask(name), masked(value, masker))).collect(),
        ),
        Value::Array(entries) => entries.iter().map(|entry| masked(entry, masker)).collect(),
        Value::String(text) => masker.mask(text).into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_of_peers_are_left_out() {
        let shown = status(
            &json!({"state": "spilling", "reason": "`a`: word", "sinks": [{"name": "a", "last_error": {"message": "series {secret}", "at": "t"}, "waiting": [{"index": "logs-shop", "documents": 3}]}]}),
        );
        let text = shown.to_string();
        assert!(!text.contains("secret") && !text.contains("logs-shop") && !text.contains("word"), "{text}");
        assert_eq!(
            (&shown["state"], &shown["sinks"][0]["waiting"][0]["documents"]),
            (&json!("spilling"), &json!(3))
        );
    }
}
