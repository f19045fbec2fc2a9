//! The filter `grep`: records that are kept, and records that are dropped.

use crate::error::quote;
use crate::import::fluent_bit::filters::modify::path;
use crate::import::fluent_bit::plugin::{Plugin, Value};
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::report::Report;
use crate::import::ottl::literal;
use crate::import::steps::{Step, StepKind};

pub(super) const KNOWN: &[&str] = &["regex", "exclude", "logical_op"];

/// The steps of the filter.
pub(super) fn steps(plugin: &mut Plugin<'_>, report: &mut Report) -> Vec<Step> {
    let operator = plugin.text("logical_op", report);
    let is_or = match operator.as_ref().map(|value| value.text.to_ascii_lowercase()).as_deref() {
        Some("or") => Some(true),
        Some("and") => Some(false),
        None | Some("legacy") => None,
        Some(other) => {
            if let Some(value) = &operator {
                let message = format!("there is no operator {}", quote(other));
                plugin.error(value, message, "write `AND`, `OR` or `legacy`", report);
            }
            None
        }
    };
    let rules = plugin.take_where(|key| matches!(key, "regex" | "exclude"), report);
    let count = rules.len();
    let mut kept = Vec::new();
    let mut dropped = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let is_late = rules.iter().take(index).any(|earlier| earlier.key == "regex");
        if is_or.is_none() && is_late {
            let message = "left out: Fluent Bit decides by the first `regex`, and looks at no rule behind it; \
                           set `logical_op` if all rules are meant";
            plugin.note_value(rule, message, report);
            continue;
        }
        let Some(condition) = condition(plugin, rule, report) else { continue };
        if rule.key == "regex" { kept.push(condition) } else { dropped.push(condition) }
    }
    if let (Some(value), false, false) = (&operator, kept.is_empty(), dropped.is_empty())
        && is_or.is_some()
    {
        let help = "write two filters `grep`";
        plugin.error(value, "`logical_op` with both `regex` and `exclude`", help, report);
    }
    // What remains of several conditions would keep or drop other records.
    if kept.len() + dropped.len() < count && is_or.is_some() {
        plugin.note("left out, because one of its rules cannot be converted", report);
        return Vec::new();
    }
    let drop = |conditions: Vec<String>| Step::new("grep", StepKind::Drop(conditions));
    let not = |conditions: &[String], operator: &str| match conditions {
        [one] => format!("not {one}"),
        several => format!("not ({})", several.join(operator)),
    };
    let mut steps = Vec::new();
    match is_or {
        Some(is_or) => {
            let operator = if is_or { " or " } else { " and " };
            if !kept.is_empty() {
                steps.push(drop(vec![not(&kept, operator)]));
            } else if !dropped.is_empty() {
                steps.push(drop(vec![dropped.join(operator)]));
            }
        }
        None => {
            if !dropped.is_empty() {
                steps.push(drop(dropped));
            }
            if !kept.is_empty() {
                let each: Vec<String> = kept.iter().map(|one| format!("not {one}")).collect();
                steps.push(drop(each));
            }
        }
    }
    steps
}

/// The condition that a key's value matches.
fn condition(plugin: &Plugin<'_>, rule: &Value, report: &mut Report) -> Option<String> {
    // Quotes are a part of the pattern.
    let Some((key, pattern)) = rule.text.split_once(char::is_whitespace) else {
        let message = format!("a rule {} has a key and a pattern", quote(&rule.key));
        plugin.error(rule, message, format!("write `{} KEY REGEX`", rule.key), report);
        return None;
    };
    let path = path(plugin, rule, key, report)?;
    Some(format!("IsMatch({path}, {})", literal(&record::pattern(pattern.trim()))))
}
