//! The sinks `loki` and `splunk_hec_logs`.

use super::client::{Client, compression};
use super::http::template;
use super::{ReadSink, Tail, missing, sink};
use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Text};
use crate::import::ottl::literal;
use crate::import::vector::components::Component;
use crate::import::vector::vocabulary::{PlaceKind, Vocabulary};
use crate::import::vector::vrl::{self, Segment};
use crate::model::Signal;
use crate::values::Bytes;

/// Loki.
pub(super) fn loki(
    component: &Component<'_>,
    group: &mut Group<'_>,
    reader: &mut FileReader<'_, '_>,
) -> Option<ReadSink> {
    let Some(endpoint) = group.text("endpoint", reader) else {
        missing(component, "endpoint", reader);
        return None;
    };
    let mut map = Map::default();
    let path = group.text("path", reader).map_or_else(String::new, |path| path.value);
    let base = endpoint.value.trim_end_matches('/');
    let url = match path.strip_suffix("/loki/api/v1/push") {
        Some(prefix) => format!("{base}{prefix}"),
        None => format!("{base}{path}"),
    };
    map.set("endpoints", Yaml::Flow(vec![url.clone()]));
    let (mut tail, codec) = Tail::read(group, reader);
    if codec.is_some_and(|codec| codec.value != "text") {
        let message = "the line is the body of the record, and attributes are structured metadata; in Vector the line is the whole event";
        component.note(message, reader);
    }
    if let Some(mut labels) = group.group("labels", reader) {
        for entry in labels.take_all() {
            let path = labels.path_of(&entry.key);
            tail.labels.extend(reader.text(&entry.node, &path).map(|value| (entry.key.clone(), value)));
        }
    }
    let mut client = Client::read(component, group, Bytes::gib(1), reader);
    if let Some(tenant) = group.text("tenant_id", reader) {
        if tenant.value.contains("{{") {
            let message = "left out: `tenant_header: X-Scope-OrgID` sends the tenant that clients named";
            reader.note(&tenant.at, &group.path_of("tenant_id"), message);
        } else {
            client.settings.group("headers").set("x-scope-orgid", tenant.value);
        }
    }
    client.headers(group, reader);
    client.user_header(component, reader);
    client.match_urls(&[url], false);
    map.append(&client.settings);
    let mut ignored = Map::default();
    compression(group, &mut ignored, &["snappy", "gzip", "none"], "snappy", reader);
    group.lacks(
        &[
            ("out_of_order_action", "not needed: Loki takes entries out of order"),
            ("remove_label_fields", "not needed: labels are no structured metadata"),
            ("remove_structured_metadata_fields", "not needed"),
            ("remove_timestamp", "not needed: the time is no field of the line"),
            ("structured_metadata", "not needed: attributes that are no labels are structured metadata"),
        ],
        reader,
    );
    Some(ReadSink { tail, ..sink("loki", map, vec![Signal::Logs], false) })
}

/// The attribute of a label, and the statement that sets it where it is not there by itself.
pub(super) fn label(
    name: &str,
    value: &Text,
    vocabulary: &Vocabulary,
) -> Result<(String, Option<String>), String> {
    let text = value.value.trim();
    let field = text.strip_prefix("{{").and_then(|inside| inside.strip_suffix("}}")).map(str::trim);
    let Some(field) = field else {
        if text.contains("{{") || name.contains(['*', '{']) {
            return Err("left out: a label is one attribute of the resource, or one text".to_owned());
        }
        let statement = format!("set(resource.attributes[{}], {})", literal(name), literal(text));
        return Ok((name.to_owned(), Some(statement)));
    };
    if name.contains(['*', '{']) {
        return Err("left out: write the attributes in `labels`".to_owned());
    }
    let place = vrl::field(field).ok_or_else(|| "left out: this is no field".to_owned())?;
    let place = vocabulary.place(&place).map_err(|reason| format!("left out: {reason}"))?;
    let Some((_, Segment::Field(attribute))) = &place.parent else {
        return Err("left out: labels are attributes of resources".to_owned());
    };
    if place.kind != PlaceKind::Resource {
        return Err(format!(
            "left out: labels are attributes of resources, and `{}` is one of each record: it is structured metadata",
            place.path
        ));
    }
    if attribute.replace('.', "_") == name {
        return Ok((attribute.clone(), None));
    }
    let target = format!("resource.attributes[{}]", literal(name));
    Ok((name.to_owned(), Some(format!("set({target}, {0}) where {0} != nil", place.path))))
}

/// Splunk's HTTP Event Collector.
pub(super) fn splunk(
    component: &Component<'_>,
    group: &mut Group<'_>,
    reader: &mut FileReader<'_, '_>,
) -> Option<ReadSink> {
    let (endpoint, token) = (group.text("endpoint", reader), group.text("default_token", reader));
    let token = token.or_else(|| group.text("token", reader));
    let Some(endpoint) = endpoint else {
        missing(component, "endpoint", reader);
        return None;
    };
    let mut map = Map::default();
    let url = endpoint.value.trim_end_matches('/').to_owned();
    map.set("endpoints", Yaml::Flow(vec![url.clone()]));
    match token {
        Some(token) => map.set("token", token.value),
        None => missing(component, "default_token", reader),
    }
    for key in ["source", "sourcetype", "index"] {
        let Some(text) = group.text(key, reader) else { continue };
        let field = text.value.trim().strip_prefix("{{").and_then(|inside| inside.strip_suffix("}}"));
        match field.and_then(|field| vrl::field(field.trim())).as_deref() {
            Some([Segment::Field(name)]) => map.set(&format!("{key}_attribute"), name.as_str()),
            _ if field.is_none() && !text.value.contains("{{") => map.set(key, text.value),
            _ => {
                template(&text, &group.path_of(key), reader);
            }
        }
    }
    if let Some(host) = group.text("host_key", reader).filter(|host| !host.value.is_empty()) {
        let own = host.value.trim_start_matches('.');
        if own != "host" && own != "hostname" {
            map.set("host_attribute", own);
        }
    }
    compression(group, &mut map, &["gzip", "none"], "none", reader);
    let (tail, _) = Tail::read(group, reader);
    if let Some(mut acknowledgements) = group.group("acknowledgements", reader) {
        if acknowledgements.flag("indexer_acknowledgements_enabled", reader) == Some(true) {
            map.set("acknowledgement", "true");
        }
        acknowledgements.take_all();
    }
    let mut client = Client::read(component, group, Bytes::mib(512), reader);
    client.user_header(component, reader);
    client.match_urls(&[url], true);
    map.append(&client.settings);
    group.lacks(
        &[
            ("indexed_fields", "not needed: all attributes are indexed fields (`fields`)"),
            ("timestamp_key", "not needed: the time of the record is that of the event"),
            ("timestamp_nanos_key", "not needed: the time has nanoseconds"),
            ("endpoint_target", "events are sent to `/services/collector/event`"),
            ("auto_extract_timestamp", "left out: the time of the record is that of the event"),
            ("path", "left out: the path is `/services/collector/event`"),
        ],
        reader,
    );
    Some(ReadSink { tail, ..sink("splunk_hec", map, vec![Signal::Logs], false) })
}
