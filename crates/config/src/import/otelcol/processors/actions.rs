//! The attributes and resource processors: actions on attributes, as statements.

use super::Processed;
use crate::error::quote;
use crate::import::group::{FileReader, Group, Text};
use crate::import::otelcol::matching::{Legacy, condition};
use crate::import::ottl::literal;
use crate::import::sinks::SIGNALS;
use crate::import::steps::{Step, StepKind};
use crate::model::Signal;
use crate::suggest::nearest;
use crate::yaml::Node;

const ACTIONS: [&str; 7] = ["insert", "update", "upsert", "delete", "hash", "extract", "convert"];

/// The step of an attributes processor.
pub(super) fn attributes(
    name: &str,
    signals: &[Signal],
    group: &mut Group<'_>,
    reader: &mut FileReader<'_, '_>,
) -> Processed {
    let mut processed = Processed::default();
    let actions = group.items("actions", reader);
    let include = group.take("include");
    let exclude = group.take("exclude");
    for signal in SIGNALS.into_iter().filter(|signal| signals.contains(signal)) {
        let map = match signal {
            Signal::Traces => "span.attributes",
            Signal::Metrics => "datapoint.attributes",
            _ => "log.attributes",
        };
        let path = group.path_of("actions");
        let statements = statements(actions, &path, map, reader);
        if statements.is_empty() {
            continue;
        }
        let mut step = Step::new(name, StepKind::Edit(statements));
        let mut conditions = Vec::new();
        for (entry, is_included) in [(include, true), (exclude, false)] {
            let Some(entry) = entry else { continue };
            let Some(mut inner) = reader.group(&entry.node, &group.path_of(&entry.key)) else { continue };
            let met = condition(&mut inner, Legacy::of(signal), reader);
            inner.finish(reader);
            conditions.extend(met.map(|met| if is_included { met } else { format!("not ({met})") }));
        }
        step.when = match conditions.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(several.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join(" and ")),
        };
        processed.push(signal, step);
    }
    processed
}

/// The step of a resource processor, the same for all signals.
pub(super) fn resource(name: &str, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Processed {
    let mut processed = Processed::default();
    let path = group.path_of("attributes");
    let statements = statements(group.items("attributes", reader), &path, "resource.attributes", reader);
    if !statements.is_empty() {
        for signal in SIGNALS {
            processed.push(signal, Step::new(name, StepKind::Edit(statements.clone())));
        }
    }
    processed
}

fn statements(
    actions: &[std::rc::Rc<Node>],
    path: &str,
    map: &str,
    reader: &mut FileReader<'_, '_>,
) -> Vec<String> {
    let mut statements = Vec::new();
    for (index, item) in actions.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let Some(mut action) = reader.group(item, &path) else { continue };
        statements.extend(statement(&mut action, map, reader));
        action.finish(reader);
    }
    statements
}

/// The statements of one action on the attributes in `map`.
fn statement(group: &mut Group<'_>, map: &str, reader: &mut FileReader<'_, '_>) -> Vec<String> {
    let at = group.at.clone();
    let Some(action) = group.text("action", reader) else {
        reader.error(&at, format!("{} has no `action`", quote(&group.path)), "add `action: upsert`");
        return Vec::new();
    };
    let key = group.text("key", reader);
    let pattern = group.text("pattern", reader);
    let attribute = key.as_ref().map(|key| format!("{map}[{}]", literal(&key.value)));
    match (action.value.to_ascii_lowercase().as_str(), &attribute) {
        ("delete", _) => {
            let key = key.map(|key| format!("delete_key({map}, {})", literal(&key.value)));
            let pattern =
                pattern.map(|pattern| format!("delete_matching_keys({map}, {})", literal(&pattern.value)));
            key.into_iter().chain(pattern).collect()
        }
        ("hash", _) => hash(group, attribute, pattern, reader),
        ("extract", Some(attribute)) => match pattern {
            Some(pattern) => {
                let pattern = literal(&pattern.value);
                vec![format!(
                    "merge_maps({map}, ExtractPatterns({attribute}, {pattern}), \"upsert\") where IsString({attribute})"
                )]
            }
            None => {
                reader.error(
                    &at,
                    "an action `extract` needs a `pattern`",
                    "add `pattern`, with named groups",
                );
                Vec::new()
            }
        },
        ("convert", Some(attribute)) => convert(group, attribute, reader),
        (kind @ ("insert" | "update" | "upsert"), Some(attribute)) => {
            set(group, kind, attribute, map, reader)
        }
        (kind, _) if ACTIONS.contains(&kind) => {
            reader.error(&at, format!("an action {} needs a `key`", quote(kind)), "add `key: NAME`");
            Vec::new()
        }
        (kind, _) => {
            let help = match nearest(kind, ACTIONS) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write one of {}", ACTIONS.join(", ")),
            };
            reader.error(&action.at, format!("there is no action {}", quote(kind)), help);
            Vec::new()
        }
    }
}

fn set(
    group: &mut Group<'_>,
    kind: &str,
    attribute: &str,
    map: &str,
    reader: &mut FileReader<'_, '_>,
) -> Vec<String> {
    let exists = match kind {
        "insert" => Some(format!("{attribute} == nil")),
        "update" => Some(format!("{attribute} != nil")),
        _ => None,
    };
    let value = group.text("value", reader);
    let source = group.text("from_attribute", reader);
    let default = group.text("default_value", reader);
    if let Some(context) = group.text("from_context", reader) {
        let message = "left out: what is known of the client is not known in pipelines; a tenant's header is in \
                       `tenants.header`";
        reader.note(&context.at, &group.path_of("from_context"), message);
        return Vec::new();
    }
    let with = |source: String, conditions: Vec<String>| {
        let conditions: Vec<String> = conditions.into_iter().chain(exists.clone()).collect();
        let suffix = if conditions.is_empty() {
            String::new()
        } else {
            format!(" where {}", conditions.join(" and "))
        };
        format!("set({attribute}, {source}){suffix}")
    };
    match (value, source) {
        (Some(value), _) => vec![with(value.as_ottl(), Vec::new())],
        (None, Some(source)) => {
            let source = format!("{map}[{}]", literal(&source.value));
            let mut both = vec![with(source.clone(), vec![format!("{source} != nil")])];
            if let Some(default) = default {
                // Set where the source is absent, before the source itself could be changed.
                both.insert(0, with(default.as_ottl(), vec![format!("{source} == nil")]));
            }
            both
        }
        (None, None) => default.map(|default| with(default.as_ottl(), Vec::new())).into_iter().collect(),
    }
}

fn hash(
    group: &Group<'_>,
    attribute: Option<String>,
    pattern: Option<Text>,
    reader: &mut FileReader<'_, '_>,
) -> Vec<String> {
    if let Some(pattern) = pattern {
        let message = "left out: attributes whose names match a pattern cannot be hashed; name each, or delete them \
                       with `delete_matching_keys`";
        reader.note(&pattern.at, &group.path_of("pattern"), message);
    }
    let Some(attribute) = attribute else { return Vec::new() };
    let message = "numbers and booleans are hashed as their text, not as their bytes";
    reader.note(&group.at.clone(), &group.path, message);
    vec![format!("set({attribute}, SHA256(String({attribute}))) where {attribute} != nil")]
}

fn convert(group: &mut Group<'_>, attribute: &str, reader: &mut FileReader<'_, '_>) -> Vec<String> {
    let Some(kind) = group.text("converted_type", reader) else {
        let at = group.at.clone();
        reader.error(&at, "an action `convert` needs a `converted_type`", "add `converted_type: int`");
        return Vec::new();
    };
    // A value that cannot be converted stays as it is, which is no failure.
    let (function, pattern) = match kind.value.as_str() {
        "int" => ("Int", "^[-+]?[0-9]+$"),
        "double" => ("Double", "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"),
        "string" => return vec![format!("set({attribute}, String({attribute})) where {attribute} != nil")],
        _ => {
            reader.error(&kind.at, "there is no such type", "write `int`, `double` or `string`");
            return Vec::new();
        }
    };
    let is_number = format!("(not IsString({attribute}) or IsMatch({attribute}, {}))", literal(pattern));
    vec![format!("set({attribute}, {function}({attribute})) where {attribute} != nil and {is_number}")]
}
