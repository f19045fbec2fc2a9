//! The filter `record_modifier`: records that are added, and keys that are removed or kept.

use super::edit;
use super::modify::path;
use super::removal::{PODS, removed};
use crate::import::fluent_bit::plugin::{Plugin, Value, words};
use crate::import::fluent_bit::report::Report;
use crate::import::ottl::literal;
use crate::import::steps::Step;

pub(super) const KNOWN: &[&str] = &["record", "remove_key", "allowlist_key", "whitelist_key", "uuid_key"];

/// The step of the filter.
pub(super) fn steps(plugin: &mut Plugin<'_>, report: &mut Report) -> Vec<Step> {
    let mut statements = Vec::new();
    for value in plugin.all("remove_key", report) {
        statements.extend(removed(plugin, &value, &value.text, report));
    }
    let kept = plugin.take_where(|key| matches!(key, "allowlist_key" | "whitelist_key"), report);
    if !kept.is_empty() {
        statements.extend(kept_alone(plugin, &kept, report));
    }
    for value in plugin.all("record", report) {
        match words(&value.text, 2).as_slice() {
            [key, text] => {
                let path = path(plugin, &value, key, report);
                statements.extend(path.map(|path| format!("set({path}, {})", literal(text))));
            }
            _ => plugin.error(&value, "a record has a key and a value", "write `Record KEY VALUE`", report),
        }
    }
    for value in plugin.all("uuid_key", report) {
        let path = path(plugin, &value, &value.text, report);
        statements.extend(path.map(|path| format!("set({path}, UUID())")));
    }
    edit("record_modifier", statements)
}

/// The statements that remove everything but these keys.
fn kept_alone(plugin: &Plugin<'_>, kept: &[Value], report: &mut Report) -> Vec<String> {
    let mut names = Vec::new();
    let mut keeps_body = false;
    let mut keeps_pods = false;
    for value in kept {
        if value.text == "kubernetes" {
            keeps_pods = true;
            continue;
        }
        let Some(path) = path(plugin, value, &value.text, report) else { continue };
        match path.strip_prefix("log.attributes[").and_then(|key| key.strip_suffix(']')) {
            Some(key) => names.push(key.to_owned()),
            None if path == "log.body" => keeps_body = true,
            // It stays; what is unclear has to be refused.
            None if path.starts_with("resource.") => {}
            None => names.push(path),
        }
    }
    let mut statements = vec![format!("keep_keys(log.attributes, [{}])", names.join(", "))];
    if !keeps_body {
        statements.push("set(log.body, nil)".to_owned());
    }
    if !keeps_pods && report.keys.has_pods {
        statements.push(PODS.to_owned());
    }
    statements
}
