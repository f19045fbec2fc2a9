//! The filter `parser`: parts of a text become attributes.

use super::type_converter::converter;
use crate::import::fluent_bit::parsers::{Format, Parser, Parsers};
use crate::import::fluent_bit::plugin::{Plugin, Value};
use crate::import::fluent_bit::record::{self, BODY_KEYS};
use crate::import::fluent_bit::report::Report;
use crate::import::ottl::literal;
use crate::import::steps::{Step, StepKind};

pub(super) const KNOWN: &[&str] = &["key_name", "parser", "preserve_key", "reserve_data"];

/// The steps of the filter.
pub(super) fn filter(parsers: &Parsers, plugin: &mut Plugin<'_>, report: &mut Report) -> Vec<Step> {
    let key = plugin.text("key_name", report);
    let names = plugin.all("parser", report);
    let preserves = plugin.flag("preserve_key", report) == Some(true);
    if plugin.flag("reserve_data", report) != Some(true) {
        let message = "the other attributes stay, as with `Reserve_Data On`";
        plugin.note(message, report);
    }
    let Some(key) = key else {
        report.error(plugin.file(), plugin.at(), "a filter `parser` has no `key_name`", "add `Key_Name log`");
        return Vec::new();
    };
    let Some(first) = names.first() else {
        report.error(plugin.file(), plugin.at(), "a filter `parser` has no `parser`", "add `Parser json`");
        return Vec::new();
    };
    for other in names.iter().skip(1) {
        plugin.note_value(
            other,
            "left out: the first parser was converted; write a step for this one",
            report,
        );
    }
    let Some(parser) = parsers.find(&first.text, plugin, first, report) else { return Vec::new() };
    let source = match record::path(&key.text) {
        Ok(path) => path,
        Err(reason) => {
            plugin.note_value(&key, format!("left out: {reason}"), report);
            return Vec::new();
        }
    };
    let mut steps = steps(&parser, &source, first, plugin, report);
    if let (Some(Step { kind: StepKind::Edit(statements), .. }), false) = (steps.first_mut(), preserves)
        && let Some(name) = source.strip_prefix("log.attributes[").and_then(|name| name.strip_suffix(']'))
        && !name.contains("][")
    {
        // The members are merged into what is left.
        let merged = statements.first().cloned().unwrap_or_default();
        let guard = merged.split_once(" where ").map_or("", |(_, guard)| guard).to_owned();
        statements.insert(1, format!("delete_key(log.attributes, {name}) where {guard}"));
    }
    steps
}

/// The steps of a parser on the text at `source`.
pub(in crate::import::fluent_bit) fn steps(
    parser: &Parser,
    source: &str,
    value: &Value,
    plugin: &Plugin<'_>,
    report: &mut Report,
) -> Vec<Step> {
    let Some((parsed, guard)) = parsed(&parser.format, source) else {
        let message = "left out: write a step with `ExtractPatterns` or `ExtractGrokPatterns` for such texts";
        plugin.note_value(value, message, report);
        return Vec::new();
    };
    let mut statements = vec![format!("merge_maps(log.attributes, {parsed}, \"upsert\") where {guard}")];
    let names: Option<Vec<&str>> = match &parser.format {
        Format::Regex(regex) => Some(record::groups(regex)),
        _ => None,
    };
    let has = |name: &str| names.as_ref().is_none_or(|names| names.contains(&name));
    for (name, kind) in &parser.types {
        let path = format!("log.attributes[{}]", literal(name));
        match converter(kind) {
            // The text is converted, whatever its type was.
            Some(_) if kind == "string" => {}
            Some(converter) => {
                statements.push(format!("set({path}, {converter}({path})) where {path} != nil"))
            }
            None => plugin.note_value(value, format!("the type `{kind}` of `{name}` is left out"), report),
        }
    }
    if let Some(time) = parser.time_key.as_deref().filter(|key| has(key)) {
        statements.extend(time_statements(time, parser, value, plugin, report));
    }
    let path = |name: &str| format!("log.attributes[{}]", literal(name));
    if let Some(body) = BODY_KEYS.iter().find(|name| has(name)) {
        let path = path(body);
        statements.push(format!("set(log.body, {path}) where {path} != nil"));
        statements.push(format!("delete_key(log.attributes, {})", literal(body)));
    }
    let mut step = Step::new("parser", StepKind::Edit(statements));
    // A text in another format stays as it is.
    step.on_error = Some("silent");
    vec![step]
}

/// The map of what a format finds, and the condition that it can be asked.
fn parsed(format: &Format, source: &str) -> Option<(String, String)> {
    let is_text = format!("IsString({source})");
    Some(match format {
        Format::Regex(regex) => {
            let regex = literal(regex);
            (format!("ExtractPatterns({source}, {regex})"), format!("IsMatch({source}, {regex})"))
        }
        Format::Preset("json") => {
            (format!("ParseJSON({source})"), format!("{is_text} and IsMatch({source}, \"^\\\\s*\\\\{{\")"))
        }
        Format::Preset("logfmt") => (format!("ParseKeyValue({source}, \"=\", \" \")"), is_text),
        Format::Ltsv => (format!("ParseKeyValue({source}, \":\", \"\\t\")"), is_text),
        Format::Preset(_) | Format::Container(_) | Format::Syslog(_) | Format::Unknown => return None,
    })
}

/// The statements that take the record's time from an attribute.
fn time_statements(
    name: &str,
    parser: &Parser,
    value: &Value,
    plugin: &Plugin<'_>,
    report: &mut Report,
) -> Vec<String> {
    let path = format!("log.attributes[{}]", literal(name));
    let Some(format) = &parser.time_format else { return Vec::new() };
    let format = expanded(format);
    let time = if format == "%s" {
        format!("Unix(Int({path}))")
    } else if format.contains("%s") {
        let message =
            format!("the time in `{name}` stays an attribute: its format `{format}` is not known here");
        plugin.note_value(value, message, report);
        return Vec::new();
    } else if !["%Y", "%y", "%G", "%c"].iter().any(|year| format.contains(year)) {
        let message = format!("the time in `{name}` stays an attribute: it has no year");
        plugin.note_value(value, message, report);
        return Vec::new();
    } else {
        format!("Time({path}, {})", literal(&format))
    };
    let mut statements = vec![format!("set(log.time, {time}) where {path} != nil")];
    if !parser.keeps_time {
        statements.push(format!("delete_key(log.attributes, {})", literal(name)));
    }
    statements
}

/// A format of time without short forms.
fn expanded(format: &str) -> String {
    format
        .replace("%T", "%H:%M:%S")
        .replace("%F", "%Y-%m-%d")
        .replace("%D", "%m/%d/%y")
        .replace("%R", "%H:%M")
}
