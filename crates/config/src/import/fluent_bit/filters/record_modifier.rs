//! The filter `record_modifier`: records that are added, and keys that are removed or kept.

use super::edit;
use super::modify::{path, remove};
use crate::error::quote;
use crate::import::fluent_bit::plugin::{Plugin, words};
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::report::Report;
use crate::import::ottl::literal;
use crate::import::steps::Step;

pub(super) const KNOWN: &[&str] = &["record", "remove_key", "allowlist_key", "whitelist_key", "uuid_key"];

/// The step of the filter.
pub(super) fn steps(plugin: &mut Plugin<'_>, report: &mut Report) -> Vec<Step> {
    let mut statements = Vec::new();
    for value in plugin.all("remove_key", report) {
        statements.extend(path(plugin, &value, &value.text, report).map(|path| remove(&path)));
    }
    let kept = plugin.take_where(|key| matches!(key, "allowlist_key" | "whitelist_key"), report);
    if !kept.is_empty() {
        let mut names = Vec::new();
        for value in &kept {
            match record::path(&value.text) {
                Ok(path) => {
                    let key = path.strip_prefix("log.attributes[").and_then(|key| key.strip_suffix(']'));
                    names.extend(key.map(str::to_owned));
                }
                Err(reason) => {
                    let message =
                        format!("not needed: {} stays in the resource: {reason}", quote(&value.text));
                    plugin.note_value(value, message, report);
                }
            }
        }
        if let Some(first) = kept.first()
            && !kept.iter().any(|value| record::BODY_KEYS.contains(&value.text.as_str()))
        {
            plugin.note_value(first, "the body stays, and so do attributes of the resource", report);
        }
        statements.push(format!("keep_keys(log.attributes, [{}])", names.join(", ")));
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
