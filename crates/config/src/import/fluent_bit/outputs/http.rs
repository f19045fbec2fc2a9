//! The outputs `http`, `opentelemetry` and `prometheus_remote_write`.

use super::Target;
use super::client::{Client, url_path};
use crate::import::document::{Map, Yaml};
use crate::import::fluent_bit::plugin::{Plugin, words};
use crate::import::fluent_bit::report::Report;
use crate::import::relabel;
use crate::import::sinks::SIGNALS;
use crate::model::Signal;

/// The sink for JSON.
pub(super) fn json(plugin: &mut Plugin<'_>, report: &mut Report) -> Target {
    let mut map = Map::default();
    let mut client = Client::read(plugin, Some("127.0.0.1"), 80, report);
    let uri = plugin.text("uri", report).map_or_else(|| "/".to_owned(), |uri| uri.text);
    let slash = if uri.starts_with('/') { "" } else { "/" };
    map.set("endpoints", Yaml::Flow(vec![format!("{}{slash}{uri}", client.url)]));
    let format = plugin.text("format", report);
    match format.as_ref().map(|format| format.text.to_ascii_lowercase()).as_deref() {
        Some("json") => map.set("format", "json_array"),
        Some("json_lines" | "json_stream") => map.set("format", "ndjson"),
        other => {
            map.set("format", "json_array");
            let other = other.unwrap_or("msgpack");
            let message = format!("tidegate does not write `{other}`: the format `json_array` was chosen");
            match &format {
                Some(format) => plugin.note_value(format, message, report),
                None => plugin.note(message, report),
            }
        }
    }
    if let Some(method) =
        plugin.text("http_method", report).filter(|method| !method.text.eq_ignore_ascii_case("post"))
    {
        if method.text.eq_ignore_ascii_case("put") {
            map.set("method", "put");
        } else {
            plugin.note_value(&method, "left out: requests are `POST` or `PUT`", report);
        }
    }
    client.user_header(plugin, report);
    client.headers(plugin, report);
    client.compression(plugin, &["none", "gzip", "zstd"], "none", report);
    let shape = "left out: the members of an object are those of docs/http-sink.md";
    plugin.lacks(
        &[
            ("json_date_key", shape),
            ("json_date_format", shape),
            ("gelf_timestamp_key", shape),
            ("body_key", shape),
            ("header_tag", "left out: the tag is in no header"),
            ("headers_key", "left out: headers are the same for all requests"),
        ],
        report,
    );
    plugin.note(
        "objects have the members of docs/http-sink.md: `body`, `attributes`, `resource` and others",
        report,
    );
    map.append(&client.finish(false));
    Target::logs("http", map, true)
}

/// The sink for OTLP.
pub(super) fn opentelemetry(plugin: &mut Plugin<'_>, report: &mut Report) -> Target {
    let mut map = Map::default();
    let mut client = Client::read(plugin, Some("127.0.0.1"), 80, report);
    let is_grpc = plugin.flag("grpc", report) == Some(true);
    let mut prefixes: Vec<String> = Vec::new();
    let mut others: Vec<&'static str> = Vec::new();
    for signal in SIGNALS {
        let name = crate::import::sinks::signal_name(signal);
        let Some(uri) = plugin.text(&format!("{name}_uri"), report) else {
            others.push(name);
            continue;
        };
        let path = url_path(&uri.text);
        match path.strip_suffix(&format!("/v1/{name}")) {
            Some(prefix) => {
                if !prefixes.iter().any(|other| other == prefix) {
                    prefixes.push(prefix.to_owned());
                }
                if prefixes.len() > 1 {
                    let message = "left out: the paths of all signals begin in the same way here; add another sink for the others";
                    plugin.note_value(&uri, message, report);
                }
            }
            None => {
                let message = format!("left out: tidegate appends `/v1/{name}` to the URL");
                plugin.note_value(&uri, message, report);
            }
        }
    }
    for name in ["grpc_metrics_uri", "grpc_logs_uri", "grpc_traces_uri", "traces_uri_grpc", "profiles_uri"] {
        for uri in plugin.all(name, report) {
            plugin.note_value(&uri, "left out: the paths are those of OTLP", report);
        }
    }
    let prefix = prefixes.first().filter(|_| !is_grpc).cloned().unwrap_or_default();
    if !prefix.is_empty() && !others.is_empty() {
        let message = format!(
            "{} go to paths that begin with `{prefix}`, too; Fluent Bit sends them to `/v1/…`: add another sink for them",
            others.join(" and ")
        );
        plugin.note(message, report);
    }
    map.set("endpoints", Yaml::Flow(vec![format!("{}{prefix}", client.url)]));
    if !is_grpc {
        map.set("protocol", "http");
    }
    client.user_header(plugin, report);
    client.headers(plugin, report);
    client.compression(plugin, &["none", "gzip", "zstd"], "gzip", report);
    for label in plugin.all("add_label", report) {
        let message = "left out: set attributes with `edit` in a pipeline";
        plugin.note_value(&label, message, report);
    }
    plugin.lacks_prefix(
        "logs_",
        "not needed: bodies, attributes, times and severities go out as OTLP has them",
        report,
    );
    plugin.lacks(
        &[
            ("batch_size", "not needed: each sink makes its own batches"),
            ("http2", "not needed: gRPC has HTTP/2"),
            ("grpc_max_message_size", "left out: set `max_request_bytes`"),
        ],
        report,
    );
    map.append(&client.finish(false));
    Target { kind: "otlp", settings: map, signals: &SIGNALS, has_signals: true, steps: Vec::new() }
}

/// The sink for Prometheus remote write.
pub(super) fn remote_write(plugin: &mut Plugin<'_>, report: &mut Report) -> Target {
    let mut map = Map::default();
    let mut client = Client::read(plugin, Some("127.0.0.1"), 80, report);
    let uri = plugin.text("uri", report).map_or_else(|| "/".to_owned(), |uri| uri.text);
    let slash = if uri.starts_with('/') { "" } else { "/" };
    map.set("url", format!("{}{slash}{uri}", client.url));
    client.user_header(plugin, report);
    client.headers(plugin, report);
    client.compression(plugin, &["snappy"], "snappy", report);
    let mut rules = Vec::new();
    for label in plugin.all("add_label", report) {
        match words(&label.text, 2).as_slice() {
            [name, value] => rules.push(relabel::label_if_absent(name, value)),
            _ => {
                plugin.error(&label, "a label has a name and a value", "write `Add_Label NAME VALUE`", report)
            }
        }
    }
    relabel::set_rules(&mut map, rules);
    map.append(&client.finish(false));
    Target {
        kind: "prometheus_remote_write",
        settings: map,
        signals: &[Signal::Metrics],
        has_signals: false,
        steps: Vec::new(),
    }
}
