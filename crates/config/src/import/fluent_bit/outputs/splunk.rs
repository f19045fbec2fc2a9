//! The output `splunk`.

use super::Target;
use super::client::Client;
use crate::import::document::{Map, Yaml};
use crate::import::fluent_bit::plugin::{Lacking, Plugin};
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::report::Report;

const LACKING: &Lacking = &[
    ("splunk_send_raw", "left out: events are sent with their metadata"),
    ("event_key", "not needed: the event is the body"),
    ("event_field", "left out: attributes are fields of the event"),
    ("splunk_channel", "not needed: set `acknowledgement: true` for a channel"),
    ("channel", "not needed: set `acknowledgement: true` for a channel"),
];

/// The sink.
pub(super) fn target(plugin: &mut Plugin<'_>, report: &mut Report) -> Target {
    let mut map = Map::default();
    let mut client = Client::read(plugin, Some("127.0.0.1"), 8088, report);
    map.set("endpoints", Yaml::Flow(vec![client.url.clone()]));
    match plugin.text("splunk_token", report) {
        Some(token) => map.set("token", token.text),
        None => {
            let message = "an output `splunk` has no `splunk_token`";
            report.error(plugin.file(), plugin.at(), message, "add `Splunk_Token TOKEN`");
        }
    }
    for (theirs, ours, attribute) in [
        ("event_host", "host", "host_attribute"),
        ("event_source", "source", "source_attribute"),
        ("event_sourcetype", "sourcetype", "sourcetype_attribute"),
        ("event_index", "index", "index_attribute"),
    ] {
        let Some(value) = plugin.text(theirs, report) else { continue };
        if !value.text.starts_with('$') || value.text.starts_with("${") {
            map.set(ours, value.text);
        } else if let Some(name) = name_of(&value.text) {
            map.set(attribute, name);
        } else {
            let message = format!("left out: it names no attribute; set `{attribute}`");
            plugin.note_value(&value, message, report);
        }
    }
    for (theirs, ours) in
        [("event_sourcetype_key", "sourcetype_attribute"), ("event_index_key", "index_attribute")]
    {
        let Some(value) = plugin.text(theirs, report) else { continue };
        match name_of(&value.text) {
            Some(name) => map.set(ours, name),
            None => plugin.note_value(&value, "left out: it names no attribute", report),
        }
    }
    client.user_header(plugin, report);
    client.headers(plugin, report);
    client.compression(plugin, &["none", "gzip"], "gzip", report);
    plugin.lacks(LACKING, report);
    plugin.note("the event is the body, and attributes are its fields; see docs/splunk-hec.md", report);
    map.append(&client.finish(true));
    Target::logs("splunk_hec", map, false)
}

/// The attribute that a record accessor stands for.
fn name_of(accessor: &str) -> Option<String> {
    let path = record::path(accessor).ok()?;
    record::resource_attribute(accessor)
        .or_else(|| Some(path.strip_prefix("log.attributes[\"")?.strip_suffix("\"]")?.to_owned()))
        .filter(|name| !name.contains(['"', '[']))
}
