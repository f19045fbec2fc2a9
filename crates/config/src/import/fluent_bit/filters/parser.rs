//! The filter `parser`: parts of a text become attributes.

use super::modify::remove;
use super::type_converter::converter;
use crate::import::fluent_bit::parsers::{Format, Parser, Parsers};
use crate::import::fluent_bit::plugin::{Plugin, Value};
use crate::import::fluent_bit::record::{self, BODY_KEYS};
use crate::import::fluent_bit::report::Report;
use crate::import::ottl::literal;
use crate::import::steps::{Step, StepKind};

pub(super) const KNOWN: &[&str] = &["key_name", "parser", "preserve_key", "reserve_data"];

/// The parts that a parser found; none if the text has another format.
const PARSED: &str = r#"log.cache["parsed"]"#;

/// Whether the text, and the other keys, of a parsed record stay.
#[derive(Debug, Clone, Copy)]
pub(in crate::import::fluent_bit) struct Rest {
    pub(in crate::import::fluent_bit) keeps_text: bool,
    pub(in crate::import::fluent_bit) keeps_others: bool,
}

/// The steps of the filter.
pub(super) fn filter(parsers: &Parsers, plugin: &mut Plugin<'_>, report: &mut Report) -> Vec<Step> {
    let key = plugin.text("key_name", report);
    let names = plugin.all("parser", report);
    let keeps_text = plugin.flag("preserve_key", report) == Some(true);
    let keeps_others = plugin.flag("reserve_data", report) == Some(true);
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
    let Some(source) = super::modify::path(plugin, &key, &key.text, report) else { return Vec::new() };
    steps(&parser, (&source, Rest { keeps_text, keeps_others }), first, plugin, report)
}

/// The steps of a parser on the text at `source`. As in Fluent Bit, the text is gone where the parser matched it.
pub(in crate::import::fluent_bit) fn steps(
    parser: &Parser,
    (source, rest): (&str, Rest),
    value: &Value,
    plugin: &Plugin<'_>,
    report: &mut Report,
) -> Vec<Step> {
    let Some((parsed, guard)) = parsed(&parser.format, source) else {
        let message = "left out: write a step with `ExtractPatterns` or `ExtractGrokPatterns` for such texts";
        plugin.note_value(value, message, report);
        return Vec::new();
    };
    let mut statements = vec![format!("set({PARSED}, {parsed}) where {guard}")];
    let names: Option<Vec<&str>> = match &parser.format {
        Format::Regex(regex) => Some(record::groups(regex)),
        _ => None,
    };
    let has = |name: &str| names.as_ref().is_none_or(|names| names.contains(&name));
    for (name, kind) in &parser.types {
        let path = part(name);
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
    let bodies: Vec<&str> = BODY_KEYS.into_iter().filter(|name| has(name)).collect();
    statements.extend(merge(source, rest, &bodies));
    let mut step = Step::new("parser", StepKind::Edit(statements));
    // A text in another format stays as it is.
    step.on_error = Some("silent");
    vec![step]
}

/// The statements that put the parts into the record; `bodies` are keys of the body that may be among them.
fn merge(source: &str, rest: Rest, bodies: &[&str]) -> Vec<String> {
    let is_parsed = format!("IsMap({PARSED})");
    let mut statements = Vec::new();
    if !rest.keeps_text {
        let removed = remove(source);
        let guard = if removed.contains(" where ") { "and" } else { "where" };
        statements.push(format!("{removed} {guard} {is_parsed}"));
    }
    if !rest.keeps_others {
        let own = literal("^fluent\\.");
        statements.push(format!("keep_matching_keys(log.attributes, {own}) where {is_parsed}"));
        if source != "log.body" {
            statements.push(format!("set(log.body, nil) where {is_parsed}"));
        }
    }
    // The first of them wins; another one is an attribute.
    for body in bodies.iter().rev() {
        let path = part(body);
        statements.push(format!("set(log.body, {path}) where {path} != nil"));
    }
    for body in bodies {
        let is_body =
            if bodies.len() > 1 { format!(" and {} == log.body", part(body)) } else { String::new() };
        statements.push(format!("delete_key({PARSED}, {}) where {is_parsed}{is_body}", literal(body)));
    }
    statements.push(format!("merge_maps(log.attributes, {PARSED}, \"upsert\") where {is_parsed}"));
    statements
}

/// The path of a part.
fn part(name: &str) -> String {
    format!("{PARSED}[{}]", literal(name))
}

/// The step for JSON texts in the body, whose members become attributes; or, if `under` has a name, one attribute.
pub(super) fn merge_log(under: Option<&str>, keeps_text: bool) -> Option<Step> {
    let (parsed, guard) = parsed(&Format::Preset("json"), "log.body")?;
    let mut statements = vec![format!("set({PARSED}, {parsed}) where {guard}")];
    match under {
        Some(name) => {
            if !keeps_text {
                statements.push(format!("set(log.body, nil) where IsMap({PARSED})"));
            }
            let path = format!("log.attributes[{}]", literal(name));
            statements.push(format!("set({path}, {PARSED}) where IsMap({PARSED})"));
        }
        None => {
            statements.extend(merge("log.body", Rest { keeps_text: false, keeps_others: true }, &BODY_KEYS))
        }
    }
    let mut step = Step::new("merge_log", StepKind::Edit(statements));
    step.on_error = Some("silent");
    Some(step)
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
    let path = part(name);
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
        statements.push(format!("delete_key({PARSED}, {}) where IsMap({PARSED})", literal(name)));
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
