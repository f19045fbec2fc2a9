//! The sinks `http` and `opentelemetry`.

use super::client::{Client, compression};
use super::{ReadSink, Tail, missing, sink};
use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Text};
use crate::import::sinks::SIGNALS;
use crate::import::vector::components::Component;
use crate::values::Bytes;

/// JSON over HTTP.
pub(super) fn http(
    component: &Component<'_>,
    group: &mut Group<'_>,
    reader: &mut FileReader<'_, '_>,
) -> Option<ReadSink> {
    let mut map = Map::default();
    let Some(url) = group.text("uri", reader) else {
        missing(component, "uri", reader);
        return None;
    };
    template(&url, &group.path_of("uri"), reader);
    map.set("endpoints", Yaml::Flow(vec![url.value.clone()]));
    let method = group.text("method", reader);
    match method.as_ref().map(|method| method.value.as_str()) {
        None | Some("post") => {}
        Some("put") => map.set("method", "put"),
        Some(_) => {
            let at = method.map_or(0..0, |method| method.at);
            reader.note(&at, &group.path_of("method"), "requests are POST or PUT: POST was chosen");
        }
    }
    let framing = framing(group, reader);
    let (tail, codec) = Tail::read(group, reader);
    match (codec.as_ref().map(|codec| codec.value.as_str()), framing.as_deref()) {
        (Some("ndjson") | None, _) | (_, Some("newline_delimited")) => {}
        // Vector's default for JSON is an array.
        (Some("json"), _) => map.set("format", "json_array"),
        (Some("otlp"), _) => map.set("format", "otlp_json"),
        (Some(codec), _) => {
            component.note(format!("`encoding.codec: {codec}` has no counterpart: JSON is sent"), reader);
        }
    }
    compression(group, &mut map, &["none", "gzip", "zstd"], "none", reader);
    let mut client = Client::read(component, group, Bytes::gib(1), reader);
    client.headers(group, reader);
    client.user_header(component, reader);
    client.match_urls(&[url.value], false);
    map.append(&client.settings);
    group.lacks(
        &[
            ("payload_prefix", "left out: the body is JSON"),
            ("payload_suffix", "left out: the body is JSON"),
            ("retry_strategy", "not needed: 408, 429 and 5xx are retried"),
        ],
        reader,
    );
    let message = "objects have the form of docs/http-sink.md: `body`, `attributes`, `resource`, not the flat fields of Vector";
    component.note(message, reader);
    Some(ReadSink { tail, ..sink("http", map, SIGNALS.to_vec(), true) })
}

fn framing(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Option<String> {
    let mut framing = group.group("framing", reader)?;
    let method = framing.text("method", reader).map(|method| method.value);
    framing.lacks(&[("character_delimited", "left out: objects are on lines, or in an array")], reader);
    framing.finish(reader);
    method
}

/// Notes fields in a text that is the same for all records here.
pub(super) fn template(text: &Text, path: &str, reader: &mut FileReader<'_, '_>) {
    if text.value.contains("{{") {
        let message = "a field in it has no counterpart: make a sink with `when` for each value";
        reader.note(&text.at, path, message);
    }
}

/// OTLP over HTTP.
pub(super) fn opentelemetry(
    component: &Component<'_>,
    group: &mut Group<'_>,
    reader: &mut FileReader<'_, '_>,
) -> Option<ReadSink> {
    // The settings are those of the sink `http`, below `protocol`; newer versions have `grpc`, too.
    let mut inner = group.group("protocol", reader);
    let from = inner.as_mut().unwrap_or(group);
    let kind = from.text("type", reader).map_or_else(|| "http".to_owned(), |kind| kind.value);
    let Some(url) = from.text("uri", reader).or_else(|| from.text("endpoint", reader)) else {
        missing(component, "protocol.uri", reader);
        return None;
    };
    template(&url, &from.path_of("uri"), reader);
    let mut map = Map::default();
    let trimmed = url.value.trim_end_matches('/');
    let base = ["/v1/logs", "/v1/metrics", "/v1/traces"].iter().find_map(|path| trimmed.strip_suffix(path));
    if base.is_none() && kind == "http" && !url.is_open() {
        let message = "tidegate appends `/v1/logs`, `/v1/metrics` or `/v1/traces` to the URL";
        reader.note(&url.at, &from.path_of("uri"), message);
    }
    let url = base.unwrap_or(trimmed).to_owned();
    map.set("endpoints", Yaml::Flow(vec![url.clone()]));
    if kind == "http" {
        map.set("protocol", "http");
    }
    let (tail, _) = Tail::read(from, reader);
    compression(from, &mut map, &["gzip", "none", "zstd"], "none", reader);
    let mut client = Client::read(component, from, Bytes::gib(1), reader);
    client.headers(from, reader);
    client.user_header(component, reader);
    client.match_urls(&[url], false);
    map.append(&client.settings);
    from.lacks(
        &[
            ("method", "not needed: requests are POST"),
            ("framing", "not needed: OTLP has one form"),
            ("payload_prefix", "not needed: OTLP has one form"),
            ("payload_suffix", "not needed: OTLP has one form"),
        ],
        reader,
    );
    if let Some(inner) = inner {
        inner.finish(reader);
        let mut rest = Client::read(component, group, Bytes::gib(1), reader);
        rest.match_urls(&[], false);
    }
    Some(ReadSink { tail, ..sink("otlp", map, SIGNALS.to_vec(), true) })
}
