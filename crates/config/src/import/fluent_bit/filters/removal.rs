//! Keys that are removed, wherever tidegate has them.

use super::modify::{path, remove};
use crate::error::quote;
use crate::import::fluent_bit::plugin::{Plugin, Value};
use crate::import::fluent_bit::record::{self, BODY_KEYS};
use crate::import::fluent_bit::report::Report;
use crate::import::ottl::literal;

/// The metadata of pods.
pub(super) const PODS: &str = r#"delete_matching_keys(resource.attributes, "^(k8s|container)\\.")"#;
/// Attributes that are no keys of Fluent Bit.
pub(super) const OWN: &str = r#""^fluent\\.(tag$|rule\\.)""#;
const OWN_NAMES: [&str; 2] = ["fluent.tag", "fluent.rule.1"];

/// The statements that remove a key.
pub(super) fn removed(plugin: &Plugin<'_>, value: &Value, key: &str, report: &mut Report) -> Vec<String> {
    if key == "kubernetes" && report.keys.has_pods && report.keys.place(key).is_err() {
        return vec![PODS.to_owned()];
    }
    let Some(path) = path(plugin, value, key, report) else { return Vec::new() };
    let mut statements = vec![remove(&path)];
    // Of several keys that hold texts one is the body, and the others are attributes.
    if BODY_KEYS.contains(&key) && path == "log.body" {
        statements.push(format!("delete_key(log.attributes, {})", literal(key)));
    }
    statements
}

/// The statements that remove all keys that a regular expression matches.
pub(super) fn removed_matching(
    plugin: &Plugin<'_>,
    value: &Value,
    pattern: &str,
    report: &mut Report,
) -> Vec<String> {
    // A pattern that is refused is named with the statement.
    let matches = |key: &str| record::matches(pattern, key) == Some(true);
    let mut statements = without_own(pattern, "log.attributes");
    if BODY_KEYS.into_iter().any(matches) {
        statements.push("set(log.body, nil)".to_owned());
    }
    if matches("stream") {
        statements.push("delete_key(log.attributes, \"log.iostream\")".to_owned());
    }
    if matches("kubernetes") && report.keys.has_pods {
        statements.push(PODS.to_owned());
    }
    statements.extend(report.keys.elsewhere(&matches).iter().map(|path| remove(path)));
    if report.keys.hides(&matches) {
        let message = format!(
            "to be corrected: {} may match keys that an input has under other names: remove those by these names",
            quote(pattern)
        );
        plugin.note_value(value, message, report);
        statements.push(format!("remove({})", literal(pattern)));
    }
    statements
}

/// Whether a pattern matches attributes of our own.
pub(super) fn has_own(pattern: &str) -> bool {
    OWN_NAMES.iter().any(|name| record::matches(pattern, name) == Some(true))
}

/// The statements that remove the keys of the record's attributes that a pattern matches, but for our own.
pub(super) fn without_own(pattern: &str, map: &str) -> Vec<String> {
    let delete = format!("delete_matching_keys({map}, {})", literal(pattern));
    if !has_own(pattern) {
        return vec![delete];
    }
    let own = r#"log.cache["own"]"#;
    vec![
        format!("set({own}, {map})"),
        format!("keep_matching_keys({own}, {OWN})"),
        delete,
        format!("merge_maps({map}, {own}, \"upsert\")"),
    ]
}
