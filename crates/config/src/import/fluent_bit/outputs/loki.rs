//! The output `loki`.

use super::Target;
use super::client::{Client, url_path};
use crate::error::quote;
use crate::import::document::{Map, Yaml};
use crate::import::fluent_bit::filters::edit;
use crate::import::fluent_bit::plugin::{Lacking, Plugin, Value};
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::report::Report;
use crate::import::ottl::literal;

const LACKING: &Lacking = &[
    ("label_map_path", "left out: write the attributes of the resource that become labels into `labels`"),
    (
        "auto_kubernetes_labels",
        "left out: write the attributes `k8s.pod.label.KEY` that become labels into `labels`",
    ),
    ("drop_single_key", "not needed: the body is the line"),
    ("line_format", "the line is the body alone; everything else is structured metadata"),
    ("structured_metadata", "not needed: all attributes that are no labels are structured metadata"),
    ("structured_metadata_map_keys", "not needed: all attributes that are no labels are structured metadata"),
    ("tenant_id_key", "left out: the tenant of a request is that of its source (`tenant_header`)"),
];

/// The sink.
pub(super) fn target(plugin: &mut Plugin<'_>, report: &mut Report) -> Target {
    let mut map = Map::default();
    let mut client = Client::read(plugin, Some("127.0.0.1"), 3100, report);
    let uri = plugin.text("uri", report).map_or_else(String::new, |uri| url_path(&uri.text));
    let uri = uri.strip_suffix("/loki/api/v1/push").unwrap_or(&uri);
    map.set("endpoints", Yaml::Flow(vec![format!("{}{uri}", client.url)]));
    let (labels, mut statements) = labels(plugin, report);
    map.set("labels", Yaml::Flow(labels));
    for value in plugin.list("remove_keys", report) {
        match record::path(&value.text) {
            Ok(path) => statements.push(crate::import::fluent_bit::filters::remove(&path)),
            Err(reason) => {
                let message = format!("{} is left out: {reason}", quote(&value.text));
                plugin.note_value(&value, message, report);
            }
        }
    }
    if let Some(tenant) = plugin.text("tenant_id", report) {
        client.header(plugin, &tenant, "x-scope-orgid", &tenant.text, report);
    }
    if let Some(token) = plugin.text("bearer_token", report) {
        client.header(plugin, &token, "authorization", &format!("Bearer {}", token.text), report);
    }
    client.user_header(plugin, report);
    client.headers(plugin, report);
    client.compression(plugin, &["snappy"], "snappy", report);
    plugin.lacks(LACKING, report);
    let message = "the line is the body, not the record as JSON, and attributes that are no labels are structured metadata";
    plugin.note(message, report);
    map.append(&client.finish(false));
    Target { steps: edit("labels", statements), ..Target::logs("loki", map, false) }
}

/// The attributes of the resource that become labels, and the statements that make them.
fn labels(plugin: &mut Plugin<'_>, report: &mut Report) -> (Vec<String>, Vec<String>) {
    let mut given = plugin.list("labels", report);
    let keys = plugin.list("label_keys", report);
    if given.is_empty() && keys.is_empty() {
        // The default of Fluent Bit.
        given.push(Value {
            key: "labels".to_owned(),
            text: "job=fluentbit".to_owned(),
            at: plugin.at().clone(),
        });
    }
    let mut names: Vec<String> = Vec::new();
    let mut statements = Vec::new();
    for value in given.iter().chain(&keys) {
        let (name, source) = match value.text.split_once('=') {
            Some((name, source)) => (Some(name.trim().to_owned()), source.trim()),
            None => (None, value.text.as_str()),
        };
        let name = name.unwrap_or_else(|| last_key(source));
        let path = format!("resource.attributes[{}]", literal(&name));
        if !source.starts_with('$') || source.starts_with("${") {
            statements.push(format!("set({path}, {})", literal(source)));
            names.push(name);
            continue;
        }
        match record::path(source) {
            Ok(attribute) if attribute.starts_with("resource.") => {
                statements.push(format!("set({path}, {attribute}) where {attribute} != nil"));
                names.push(name);
            }
            Ok(_) => {
                let message = format!(
                    "the label {} is left out: labels are attributes of the resource, and this one belongs to each record; it is structured \
                     metadata",
                    quote(&name)
                );
                plugin.note_value(value, message, report);
            }
            Err(reason) => {
                plugin.note_value(value, format!("the label {} is left out: {reason}", quote(&name)), report);
            }
        }
    }
    if names.is_empty() {
        let message = "no label is left: streams have the label `service_name`";
        plugin.note(message, report);
    }
    names.dedup();
    (names, statements)
}

/// The last key of a record accessor, which names the label.
fn last_key(accessor: &str) -> String {
    let last = accessor.rsplit('[').next().unwrap_or(accessor);
    last.trim_start_matches('$').trim_matches([']', '\'', '"']).to_owned()
}
