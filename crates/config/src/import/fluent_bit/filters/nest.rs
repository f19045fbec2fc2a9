//! The filter `nest`: members that are put into a map, and maps that are dissolved.

use super::edit;
use super::removal::{OWN, has_own, without_own};
use crate::error::quote;
use crate::import::fluent_bit::plugin::Plugin;
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::report::Report;
use crate::import::ottl::literal;
use crate::import::steps::Step;

pub(super) const KNOWN: &[&str] =
    &["operation", "wildcard", "nest_under", "nested_under", "add_prefix", "remove_prefix"];

const MOVED: &str = r#"log.cache["moved"]"#;

/// The step of the filter.
pub(super) fn steps(plugin: &mut Plugin<'_>, report: &mut Report) -> Vec<Step> {
    let operation = plugin.text("operation", report);
    let wildcards = plugin.all("wildcard", report);
    let under = plugin.text("nest_under", report);
    let nested = plugin.text("nested_under", report);
    let add = plugin.text("add_prefix", report).map(|prefix| prefix.text);
    let remove = plugin.text("remove_prefix", report).map(|prefix| prefix.text);
    let mut names = Vec::new();
    if let Some(prefix) = &remove {
        names.push(replaced(&format!("^{}", record::escaped(prefix)), ""));
    }
    if let Some(prefix) = &add {
        names.push(replaced("^", &prefix.replace('$', "$$$$")));
    }
    let kind = operation.as_ref().map(|operation| operation.text.to_ascii_lowercase());
    match (kind.as_deref(), under, nested) {
        (Some("nest"), Some(under), _) if !wildcards.is_empty() => {
            if let Some(wildcard) = wildcards.iter().find(|wildcard| {
                record::BODY_KEYS.iter().any(|key| wildcard.text == *key) || wildcard.text == "*"
            }) {
                plugin.note_value(
                    wildcard,
                    "the body stays the body, and attributes of the resource stay there",
                    report,
                );
            }
            let patterns: Vec<String> =
                wildcards.iter().map(|wildcard| record::glob(&wildcard.text)).collect();
            let patterns = patterns.join("|");
            let wanted = literal(&patterns);
            let path = format!("log.attributes[{}]", literal(&under.text));
            let mut statements = vec![
                format!("set({MOVED}, log.attributes)"),
                format!("keep_matching_keys({MOVED}, {wanted})"),
            ];
            if has_own(&patterns) {
                statements.push(format!("delete_matching_keys({MOVED}, {OWN})"));
            }
            statements.extend(without_own(&patterns, "log.attributes"));
            statements.extend(names);
            statements.push(format!("set({path}, {MOVED}) where Len({MOVED}) > 0"));
            edit("nest", statements)
        }
        (Some("lift"), _, Some(nested)) => {
            if nested.text == "kubernetes" && (add.is_some() || remove.is_none()) {
                let message = "left out: the metadata of pods are attributes of the resource already, one for each part: \
                               `k8s.namespace.name`, `k8s.pod.name` and others";
                plugin.note(message, report);
                return Vec::new();
            }
            let path = match record::path(&format!("${}", nested.text)) {
                Ok(path) => path,
                Err(reason) => {
                    let message = format!("left out: {} has no counterpart: {reason}", quote(&nested.text));
                    plugin.note_value(&nested, message, report);
                    return Vec::new();
                }
            };
            let mut statements = vec![format!("set({MOVED}, {path}) where IsMap({path})")];
            statements.extend(names.into_iter().map(|name| format!("{name} where IsMap({MOVED})")));
            statements.push(format!("{} where IsMap({MOVED})", without_guard(&super::modify::remove(&path))));
            statements.push(format!("merge_maps(log.attributes, {MOVED}, \"upsert\") where IsMap({MOVED})"));
            edit("nest", statements)
        }
        (Some("nest" | "lift"), ..) => {
            let message = "a filter `nest` lacks what it moves";
            let help =
                "`Operation nest` has `Wildcard` and `Nest_under`, `Operation lift` has `Nested_under`";
            report.error(plugin.file(), plugin.at(), message, help);
            Vec::new()
        }
        _ => {
            let message = "a filter `nest` has no operation that is known";
            report.error(plugin.file(), plugin.at(), message, "write `Operation nest` or `Operation lift`");
            Vec::new()
        }
    }
}

fn without_guard(statement: &str) -> &str {
    statement.split(" where ").next().unwrap_or(statement)
}

fn replaced(pattern: &str, with: &str) -> String {
    format!("replace_all_patterns({MOVED}, \"key\", {}, {})", literal(pattern), literal(with))
}
