//! The filter `type_converter`: copies of values with another type.

use super::edit;
use super::modify::path;
use crate::import::fluent_bit::plugin::{Plugin, words};
use crate::import::fluent_bit::report::Report;
use crate::import::steps::Step;

pub(super) const KNOWN: &[&str] = &["int_key", "uint_key", "float_key", "str_key"];

/// The step of the filter.
pub(super) fn steps(plugin: &mut Plugin<'_>, report: &mut Report) -> Vec<Step> {
    let mut statements = Vec::new();
    for value in plugin.take_where(|key| KNOWN.contains(&key), report) {
        let parts = words(&value.text, 3);
        let [from, to, kind] = parts.as_slice() else {
            let help = format!("write `{} FROM TO TYPE`", value.key);
            plugin.error(&value, "a conversion has two keys and a type", help, report);
            continue;
        };
        let (Some(from), Some(to)) = (path(plugin, &value, from, report), path(plugin, &value, to, report))
        else {
            continue;
        };
        match converter(kind) {
            Some(converter) => statements.push(format!("set({to}, {converter}({from})) where {from} != nil")),
            None => {
                plugin.error(
                    &value,
                    format!("there is no type `{kind}`"),
                    "write `int`, `uint`, `float` or `string`",
                    report,
                );
            }
        }
    }
    edit("type_converter", statements)
}

/// The function that converts to a type.
pub(super) fn converter(kind: &str) -> Option<&'static str> {
    Some(match kind.to_ascii_lowercase().as_str() {
        "int" | "uint" | "integer" => "Int",
        "float" => "Double",
        "string" => "String",
        "bool" | "boolean" => "Bool",
        _ => return None,
    })
}
