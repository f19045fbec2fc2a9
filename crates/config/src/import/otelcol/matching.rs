//! `include` and `exclude` of older processors, as conditions.

use crate::error::quote;
use crate::import::group::{FileReader, Group, Text};
use crate::import::ottl::literal;
use crate::model::Signal;
use crate::yaml::Node;

/// The kind of item that is matched, with the names of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Legacy {
    /// Spans, in all processors.
    Spans,
    /// Log records, with the filter's names and those of other processors.
    Logs,
    /// Metrics, in the filter.
    Metrics,
    /// Metrics, in processors of attributes.
    Points,
}

impl Legacy {
    /// How the attributes processor matches items of a signal.
    pub(super) fn of(signal: Signal) -> Legacy {
        match signal {
            Signal::Logs => Legacy::Logs,
            Signal::Metrics => Legacy::Points,
            Signal::Traces | Signal::Profiles => Legacy::Spans,
        }
    }

    fn attributes(self) -> &'static str {
        match self {
            Legacy::Spans => "span.attributes",
            Legacy::Logs => "log.attributes",
            Legacy::Metrics | Legacy::Points => "datapoint.attributes",
        }
    }
}

/// Whether texts are compared or matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchType {
    Strict,
    Regexp,
}

/// The condition for an item to match everything that is given; none if nothing is.
pub(super) fn condition(
    group: &mut Group<'_>,
    legacy: Legacy,
    reader: &mut FileReader<'_, '_>,
) -> Option<String> {
    let kind = match_type(group, reader)?;
    let mut all: Vec<String> = Vec::new();
    for (key, target) in [
        ("services", "resource.attributes[\"service.name\"]"),
        ("span_names", "span.name"),
        ("span_kinds", "span.kind.string"),
        ("metric_names", "metric.name"),
        ("severity_texts", "log.severity_text"),
        ("log_severity_texts", "log.severity_text"),
        ("bodies", "String(log.body)"),
        ("log_bodies", "String(log.body)"),
    ] {
        let texts = group.texts(key, reader);
        if texts.is_empty() {
            continue;
        }
        if !applies(key, legacy) {
            let message = "left out: the Collector refuses it for a signal that the processor is used for";
            reader.note(&group.at.clone(), &group.path_of(key), message);
            continue;
        }
        all.push(any(&texts, target, kind));
    }
    for (key, target) in [
        ("resources", "resource.attributes"),
        ("resource_attributes", "resource.attributes"),
        ("attributes", legacy.attributes()),
        ("record_attributes", "log.attributes"),
    ] {
        let path = group.path_of(key);
        for item in group.items(key, reader) {
            all.extend(attribute(item, &path, target, kind, reader));
        }
    }
    for key in ["severity_number", "log_severity_number"] {
        all.extend(severity(group, key, reader));
    }
    let path = group.path_of("libraries");
    for item in group.items("libraries", reader) {
        all.extend(library(item, &path, kind, reader));
    }
    group.lacks(
        &[
            ("expressions", "left out: write a condition in OTTL"),
            ("regexp", "not needed: regular expressions are compiled when the configuration is read"),
        ],
        reader,
    );
    (!all.is_empty()).then(|| all.join(" and "))
}

/// Whether a setting is about items of this kind.
fn applies(key: &str, legacy: Legacy) -> bool {
    match key {
        "services" | "span_names" | "span_kinds" => legacy == Legacy::Spans,
        "metric_names" => matches!(legacy, Legacy::Metrics | Legacy::Points),
        _ => legacy == Legacy::Logs,
    }
}

fn match_type(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Option<MatchType> {
    let Some(text) = group.text("match_type", reader) else { return Some(MatchType::Strict) };
    match text.value.as_str() {
        "strict" => Some(MatchType::Strict),
        "regexp" => Some(MatchType::Regexp),
        "expr" => {
            let message = "left out: expressions in the language of `expr` are not supported; write a condition in OTTL";
            reader.note(&text.at, &group.path_of("match_type"), message);
            group.take_all();
            None
        }
        other => {
            let message = format!("there is no match type {}", quote(other));
            reader.error(&text.at, message, "write `strict` or `regexp`");
            None
        }
    }
}

/// One of the texts matches.
fn any(texts: &[Text], target: &str, kind: MatchType) -> String {
    let each: Vec<String> = texts
        .iter()
        .map(|text| match kind {
            MatchType::Strict if target == "span.kind.string" => {
                format!("{target} == {}", literal(span_kind(&text.value)))
            }
            MatchType::Strict => format!("{target} == {}", literal(&text.value)),
            MatchType::Regexp if target == "span.kind.string" => {
                let kind = "Concat([\"SPAN_KIND_\", ToUpperCase(span.kind.string)], \"\")";
                format!("IsMatch({kind}, {})", literal(&text.value))
            }
            MatchType::Regexp => format!("IsMatch({target}, {})", literal(&text.value)),
        })
        .collect();
    if each.len() == 1 { each.concat() } else { format!("({})", each.join(" or ")) }
}

/// The kind as OTTL has it: `Server`.
fn span_kind(text: &str) -> &str {
    text.strip_prefix("SPAN_KIND_").map_or(text, |kind| match kind {
        "INTERNAL" => "Internal",
        "CLIENT" => "Client",
        "SERVER" => "Server",
        "CONSUMER" => "Consumer",
        "PRODUCER" => "Producer",
        _ => "Unspecified",
    })
}

fn attribute(
    item: &Node,
    path: &str,
    target: &str,
    kind: MatchType,
    reader: &mut FileReader<'_, '_>,
) -> Option<String> {
    let mut group = reader.group(item, path)?;
    let key = group.text("key", reader);
    let value = group.text("value", reader);
    group.finish(reader);
    let attribute = format!("{target}[{}]", literal(&key?.value));
    Some(match (value, kind) {
        (None, _) => format!("{attribute} != nil"),
        (Some(value), MatchType::Regexp) => {
            format!("({attribute} != nil and IsMatch({attribute}, {}))", literal(&value.value))
        }
        (Some(value), MatchType::Strict) => format!("{attribute} == {}", value.as_ottl()),
    })
}

fn library(item: &Node, path: &str, kind: MatchType, reader: &mut FileReader<'_, '_>) -> Option<String> {
    let mut group = reader.group(item, path)?;
    let name = group.text("name", reader);
    let version = group.text("version", reader);
    group.finish(reader);
    let mut conditions = vec![any(&[name?], "scope.name", kind)];
    conditions.extend(version.map(|version| any(&[version], "scope.version", kind)));
    Some(conditions.join(" and "))
}

/// A severity and above.
fn severity(group: &mut Group<'_>, key: &str, reader: &mut FileReader<'_, '_>) -> Option<String> {
    let mut inner = group.group(key, reader)?;
    let least = inner.text("min", reader);
    let undefined = inner.flag("match_undefined", reader).unwrap_or(false);
    inner.finish(reader);
    let least = least?;
    let name = least.value.to_ascii_uppercase();
    let number = match name.parse::<u8>() {
        Ok(number) => number.to_string(),
        Err(_) => format!("SEVERITY_NUMBER_{}", name.trim_start_matches("SEVERITY_NUMBER_")),
    };
    let meets = format!("log.severity_number >= {number}");
    Some(if undefined {
        format!("({meets} or log.severity_number == SEVERITY_NUMBER_UNSPECIFIED)")
    } else {
        meets
    })
}
