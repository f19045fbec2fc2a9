//! The filter `modify`: rules in their order, behind conditions.

use super::edit;
use super::removal::{removed, removed_matching};
use crate::error::quote;
use crate::import::fluent_bit::keys::Place;
use crate::import::fluent_bit::plugin::{Plugin, Value, words};
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::report::Report;
use crate::import::ottl::literal;
use crate::import::steps::Step;
use crate::suggest::nearest;

const RULES: [&str; 9] =
    ["set", "add", "remove", "remove_wildcard", "remove_regex", "rename", "hard_rename", "copy", "hard_copy"];
const CONDITIONS: [&str; 10] = [
    "key_exists",
    "key_does_not_exist",
    "a_key_matches",
    "no_key_matches",
    "key_value_equals",
    "key_value_does_not_equal",
    "key_value_matches",
    "key_value_does_not_match",
    "matching_keys_have_matching_values",
    "matching_keys_do_not_have_matching_values",
];

/// The step of the filter.
pub(super) fn steps(plugin: &mut Plugin<'_>, report: &mut Report) -> Vec<Step> {
    let mut conditions = Vec::new();
    let mut is_convertible = true;
    for value in plugin.all("condition", report) {
        match condition(plugin, &value, report) {
            Some(condition) => conditions.push(condition),
            None => is_convertible = false,
        }
    }
    let mut statements = Vec::new();
    for value in plugin.take_where(|key| RULES.contains(&key), report) {
        statements.extend(statements_of(plugin, &value, report));
    }
    for value in plugin.take_where(|_| true, report) {
        let help = match nearest(&value.key, RULES) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write one of `{}`", RULES.join("`, `")),
        };
        let message = format!("there is no rule {} of a filter `modify`", quote(&value.key));
        plugin.error(&value, message, help, report);
    }
    if !is_convertible {
        plugin.note("left out, because one of its conditions cannot be converted", report);
        return Vec::new();
    }
    let mut steps = edit("modify", statements);
    if let (Some(step), false) = (steps.first_mut(), conditions.is_empty()) {
        step.when = Some(conditions.join(" and "));
    }
    steps
}

/// The statements of one rule.
fn statements_of(plugin: &Plugin<'_>, value: &Value, report: &mut Report) -> Vec<String> {
    let parts = words(&value.text, 2);
    let rule = value.key.as_str();
    let key = parts.first().cloned().unwrap_or_default();
    match rule {
        "remove" => {
            return removed(plugin, value, &key, report);
        }
        "remove_wildcard" => {
            let pattern = format!("^{}", record::escaped(key.trim_end_matches('*')));
            return removed_matching(plugin, value, &pattern, report);
        }
        "remove_regex" => return removed_matching(plugin, value, &record::pattern(&value.text), report),
        _ => {}
    }
    let [_, other] = parts.as_slice() else {
        let message = format!("a rule {} has a key and a value", quote(rule));
        plugin.error(value, message, format!("write `{rule} KEY VALUE`"), report);
        return Vec::new();
    };
    let Some(from) = path(plugin, value, &key, report) else { return Vec::new() };
    match rule {
        "set" => return vec![format!("set({from}, {})", literal(other))],
        "add" => return vec![format!("set({from}, {}) where {from} == nil", literal(other))],
        _ => {}
    }
    let Some(to) = path(plugin, value, other, report) else { return Vec::new() };
    if from == to {
        plugin.note_value(value, "not needed: tidegate has both in the same place", report);
        return Vec::new();
    }
    let is_free = if rule.starts_with("hard") { String::new() } else { format!(" and {to} == nil") };
    let copied = format!("set({to}, {from}) where {from} != nil{is_free}");
    match rule {
        "rename" => {
            // Both are the same now, if the name was free.
            let removed = remove(&from);
            let guard = if removed.contains(" where ") { "and" } else { "where" };
            vec![copied, format!("{removed} {guard} {from} == {to}")]
        }
        "hard_rename" => vec![copied, remove(&from)],
        _ => vec![copied],
    }
}

/// The path of a key; a note if it has none.
pub(super) fn path(plugin: &Plugin<'_>, value: &Value, key: &str, report: &mut Report) -> Option<String> {
    match report.keys.place(key) {
        Ok(Place::Path(path)) => Some(path),
        Ok(Place::Unclear) => {
            let message = format!(
                "to be corrected: an input has {} under another name, or only as a part of its text; write where it is",
                quote(key)
            );
            plugin.note_value(value, message, report);
            // The engine knows no such path, so `check` refuses it.
            Some(record::indexed("unknown", &[key]))
        }
        Err(reason) => {
            plugin.note_value(
                value,
                format!("left out: {} has no counterpart: {reason}", quote(key)),
                report,
            );
            None
        }
    }
}

/// The statement that removes what is at a path.
pub(in crate::import::fluent_bit) fn remove(path: &str) -> String {
    if let Some((map, key)) = path.strip_suffix(']').and_then(|path| path.rsplit_once('[')) {
        // A map that is not there has nothing to remove.
        let guard = if map.ends_with(']') || map == "log.body" {
            format!(" where IsMap({map})")
        } else {
            String::new()
        };
        return format!("delete_key({map}, {key}){guard}");
    }
    format!("set({path}, nil)")
}

/// A condition as OTTL; none with a note or an error if there is no counterpart.
fn condition(plugin: &Plugin<'_>, value: &Value, report: &mut Report) -> Option<String> {
    let parts = words(&value.text, 3);
    let kind = parts.first().map(|kind| kind.to_ascii_lowercase()).unwrap_or_default();
    let argument = |index: usize| parts.get(index).cloned().unwrap_or_default();
    let (key, other) = (argument(1), argument(2));
    match kind.as_str() {
        "a_key_matches" | "no_key_matches" => {
            let pattern = record::pattern(&key);
            // Names are looked at in the text of all of them, one a line.
            let keys =
                format!("Concat(Keys(log.attributes), \"\\n\"), {}", literal(&format!("(?m){pattern}")));
            let mut met = vec![format!("IsMatch({keys})")];
            let matches = |key: &str| record::matches(&pattern, key) == Some(true);
            if record::BODY_KEYS.into_iter().any(matches) {
                met.push("log.body != nil".to_owned());
            }
            if matches("stream") {
                met.push("log.attributes[\"log.iostream\"] != nil".to_owned());
            }
            if matches("kubernetes") && report.keys.has_pods {
                met.push("resource.attributes[\"k8s.pod.name\"] != nil".to_owned());
            }
            met.extend(report.keys.elsewhere(&matches).iter().map(|path| format!("{path} != nil")));
            if report.keys.hides(&matches) {
                let message = "an input has keys under other names: the condition looks at those names";
                plugin.note_value(value, message, report);
            }
            let met = if met.len() > 1 { format!("({})", met.join(" or ")) } else { met.concat() };
            return Some(if kind == "a_key_matches" { met } else { format!("not {met}") });
        }
        "matching_keys_have_matching_values" | "matching_keys_do_not_have_matching_values" => {
            let message = "tidegate compares no values of keys that match a pattern";
            plugin.note_value(value, message, report);
            return None;
        }
        known if CONDITIONS.contains(&known) => {}
        _ => {
            let help = match nearest(&kind, CONDITIONS) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write one of `{}`", CONDITIONS.join("`, `")),
            };
            plugin.error(value, format!("there is no condition {}", quote(&kind)), help, report);
            return None;
        }
    }
    let path = path(plugin, value, &key, report)?;
    Some(match kind.as_str() {
        "key_exists" => format!("{path} != nil"),
        "key_does_not_exist" => format!("{path} == nil"),
        "key_value_equals" => format!("{path} == {}", literal(&other)),
        "key_value_does_not_equal" => format!("{path} != nil and {path} != {}", literal(&other)),
        "key_value_matches" => format!("IsMatch({path}, {})", literal(&record::pattern(&other))),
        _ => format!("{path} != nil and not IsMatch({path}, {})", literal(&record::pattern(&other))),
    })
}
