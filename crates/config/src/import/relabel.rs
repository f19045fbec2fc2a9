//! Relabeling rules of Prometheus and vmagent.

use super::document::{Map, Yaml};
use super::group::{FileReader, Text};
use crate::error::quote;
use crate::suggest::nearest;
use crate::yaml::Node;
use tidegate_pipeline::{PROMETHEUS_ACTIONS, VMAGENT_ACTIONS};

/// The program whose rules are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Prometheus,
    Vmagent,
}

/// The rules in a list.
pub(super) fn rules(node: &Node, path: &str, dialect: Dialect, reader: &mut FileReader<'_, '_>) -> Vec<Map> {
    let mut rules = Vec::new();
    for (index, item) in reader.items(node, path).iter().enumerate() {
        rules.extend(rule(item, &format!("{path}[{index}]"), dialect, reader));
    }
    rules
}

/// Sets the rules of a sink, if there are any.
pub(super) fn set_rules(sink: &mut Map, rules: Vec<Map>) {
    if !rules.is_empty() {
        sink.set("write_relabel_configs", Yaml::List(rules.into_iter().map(Yaml::Map).collect()));
    }
}

/// A rule that sets a label where it is absent, as external labels are.
pub(super) fn label_if_absent(name: &str, value: &str) -> Map {
    let mut rule = Map::default();
    rule.set("source_labels", Yaml::Flow(vec![name.to_owned()]));
    rule.set("regex", "");
    rule.set("target_label", name);
    rule.set("replacement", value);
    rule
}

fn rule(node: &Node, path: &str, dialect: Dialect, reader: &mut FileReader<'_, '_>) -> Option<Map> {
    let mut group = reader.group(node, path)?;
    let at = group.at.clone();
    let action = group.text("action", reader);
    let name = action.as_ref().map_or("replace".to_owned(), |action| action.value.to_ascii_lowercase());
    if name == "graphite" {
        let reason = "left out: Graphite rules are not supported; write a rule with a regular expression";
        reader.note(&at, path, reason);
        group.take_all();
        return None;
    }
    known_action(action.as_ref(), &name, dialect, reader)?;
    let mut map = Map::default();
    if let Some(conditions) = list(group.texts("if", reader)) {
        map.set("if", conditions);
    }
    let labels = group.texts("source_labels", reader);
    if !labels.is_empty() {
        map.set("source_labels", Yaml::Flow(labels.into_iter().map(|label| label.value).collect()));
    }
    map.set_some("separator", group.text("separator", reader).map(|text| text.value));
    if let Some(regex) = list(group.texts("regex", reader)) {
        map.set("regex", regex);
    }
    map.set_some("modulus", group.number("modulus", reader).map(|modulus| modulus.to_string()));
    map.set_some("target_label", group.text("target_label", reader).map(|text| text.value));
    map.set_some("replacement", group.text("replacement", reader).map(|text| text.value));
    if action.is_some() {
        map.set("action", name.as_str());
    }
    if name == "hashmod" && dialect == Dialect::Vmagent {
        let reason =
            "vmagent hashes with xxHash, tidegate with MD5 as Prometheus does: series fall into other shards";
        reader.note(&at, path, reason);
    }
    group.finish(reader);
    Some(map)
}

/// One text alone, several as a list.
fn list(mut texts: Vec<Text>) -> Option<Yaml> {
    match texts.len() {
        0 => None,
        1 => texts.pop().map(|text| Yaml::Text(text.value)),
        _ => Some(Yaml::List(texts.into_iter().map(|text| Yaml::Text(text.value)).collect())),
    }
}

/// Refuses an action that there is not.
fn known_action(
    action: Option<&Text>,
    name: &str,
    dialect: Dialect,
    reader: &mut FileReader<'_, '_>,
) -> Option<()> {
    let all = PROMETHEUS_ACTIONS.into_iter().chain(VMAGENT_ACTIONS);
    let mut known = all.take(if dialect == Dialect::Vmagent { usize::MAX } else { PROMETHEUS_ACTIONS.len() });
    if known.clone().any(|known| known == name) {
        return Some(());
    }
    let text = action?;
    let help = match nearest(name, known.by_ref()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("write one of {}", PROMETHEUS_ACTIONS.join(", ")),
    };
    reader.error(&text.at, format!("there is no action {}", quote(name)), help);
    None
}
