//! Exporters: the destinations of sinks.

use super::client::{Client, basic_credentials};
use super::components::Section;
use super::{Collector, settings, type_of};
use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Text};
use crate::import::sinks::{Destination, SIGNALS};
use crate::model::Signal;
use crate::values::Bytes;
use crate::yaml::Entry;

mod elasticsearch;
mod load_balancing;
mod loki;
mod remote_write;
mod splunk_hec;

/// Whether exporters of this type become sinks.
pub(super) fn is_known(kind: &str) -> bool {
    matches!(
        kind,
        "otlp"
            | "otlp_grpc"
            | "otlphttp"
            | "otlp_http"
            | "loadbalancing"
            | "load_balancing"
            | "prometheusremotewrite"
            | "elasticsearch"
            | "loki"
            | "splunk_hec"
            | "debug"
            | "nop"
            | "logging"
    )
}

impl Collector<'_> {
    /// The destinations of an exporter: several where signals go to different places.
    pub(super) fn exporter(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) -> Vec<Destination> {
        match type_of(&entry.key) {
            "otlp" | "otlp_grpc" => self.otlp(entry, reader).into_iter().collect(),
            "otlphttp" | "otlp_http" => self.otlp_http(entry, reader),
            "loadbalancing" | "load_balancing" => self.load_balancing(entry, reader),
            "prometheusremotewrite" => self.remote_write(entry, reader).into_iter().collect(),
            "elasticsearch" => self.elasticsearch(entry, reader),
            "loki" => self.loki(entry, reader).into_iter().collect(),
            "splunk_hec" => self.splunk_hec(entry, reader).into_iter().collect(),
            "debug" | "nop" | "logging" => vec![self.blackhole(entry, reader)],
            _ => {
                self.components.unknown(Section::Exporters, entry, reader);
                Vec::new()
            }
        }
    }

    fn otlp(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) -> Option<Destination> {
        let mut group = settings(entry, "exporters", reader)?;
        let endpoint = group.text("endpoint", reader);
        let mut client = self.client(&mut group, reader);
        let mut map = Map::default();
        match &endpoint {
            Some(endpoint) => {
                let url = grpc_url(endpoint, client.is_cleartext, &group.path_of("endpoint"), reader);
                client.allow_cleartext([url.as_str()], client.user.is_some());
                client.match_tls([url.as_str()], &group, reader);
                map.set("endpoints", Yaml::Flow(vec![url]));
            }
            None => missing_endpoint(entry, reader),
        }
        compression(&mut group, &mut map, reader);
        self.user_header(&mut client, entry, reader);
        map.append(&client.settings);
        group.finish(reader);
        Some(destination("otlp", map))
    }

    fn otlp_http(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) -> Vec<Destination> {
        let Some(mut group) = settings(entry, "exporters", reader) else { return Vec::new() };
        let endpoint = group.text("endpoint", reader);
        let own: Vec<(Signal, Text)> = SIGNALS
            .into_iter()
            .filter_map(|signal| {
                let key = format!("{}_endpoint", crate::import::sinks::signal_name(signal));
                group.text(&key, reader).map(|text| (signal, text))
            })
            .collect();
        let is_json = group.text("encoding", reader).is_some_and(|encoding| encoding.value == "json");
        group.lacks(&[("profiles_endpoint", "left out: profiles go to the common endpoint")], reader);
        let mut client = self.client(&mut group, reader);
        let mut common = Map::default();
        compression(&mut group, &mut common, reader);
        self.user_header(&mut client, entry, reader);
        let mut places: Vec<(String, Vec<Signal>)> = Vec::new();
        for signal in SIGNALS {
            let name = crate::import::sinks::signal_name(signal);
            let text = own.iter().find(|(of, _)| *of == signal).map(|(_, text)| text).or(endpoint.as_ref());
            let Some(text) = text else { continue };
            let trimmed = text.value.trim_end_matches('/');
            let url = trimmed.strip_suffix(&format!("/v1/{name}")).unwrap_or(trimmed).to_owned();
            if url == trimmed && !std::ptr::eq(text, endpoint.as_ref().unwrap_or(text)) && !text.is_open() {
                let message = format!("tidegate appends `/v1/{name}` to the URL");
                reader.note(&text.at, &format!("exporters.{}.{name}_endpoint", entry.key), message);
            }
            match places.iter_mut().find(|(known, _)| *known == url) {
                Some((_, signals)) => signals.push(signal),
                None => places.push((url, vec![signal])),
            }
        }
        if places.is_empty() {
            missing_endpoint(entry, reader);
        }
        client.match_tls(places.iter().map(|(url, _)| url.as_str()), &group, reader);
        group.finish(reader);
        client.allow_cleartext(places.iter().map(|(url, _)| url.as_str()), client.user.is_some());
        places
            .into_iter()
            .map(|(url, signals)| {
                let mut map = Map::default();
                map.set("endpoints", Yaml::Flow(vec![url.clone()]));
                if is_json {
                    map.set("format", "otlp_json");
                } else {
                    map.set("protocol", "http");
                }
                map.append(&common);
                map.append(&client.settings);
                if url.starts_with("http://") {
                    map.remove("tls");
                }
                let kind = if is_json { "http" } else { "otlp" };
                Destination { signals, ..destination(kind, map) }
            })
            .collect()
    }

    /// Discards what was printed or discarded before.
    fn blackhole(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) -> Destination {
        if let Some(mut group) = settings(entry, "exporters", reader) {
            group.take_all();
        }
        if type_of(&entry.key) != "nop" {
            let message =
                "a sink that discards everything; `tidegate tap` shows what passes a source or a sink";
            reader.note(&entry.key_at, &format!("exporters.{}", entry.key), message);
        }
        destination("blackhole", Map::default())
    }

    /// A user and a password as a header, where the sink has no settings for them.
    pub(super) fn user_header(&self, client: &mut Client, entry: &Entry, reader: &mut FileReader<'_, '_>) {
        let Some((user, password)) = client.user.take() else { return };
        let value = basic_credentials(&user, &password).unwrap_or_else(|| {
            let message = "`authorization` needs the base64 form of `USER:PASSWORD`: set the variable \
                           BASIC_CREDENTIALS to it";
            reader.note(&entry.key_at, &format!("exporters.{}.auth", entry.key), message);
            "Basic ${BASIC_CREDENTIALS}".to_owned()
        });
        client.settings.group("headers").set("authorization", value);
    }
}

fn destination(kind: &'static str, settings: Map) -> Destination {
    Destination { kind, settings, signals: SIGNALS.to_vec(), has_signals: true }
}

fn missing_endpoint(entry: &Entry, reader: &mut FileReader<'_, '_>) {
    let message = format!("`exporters.{}` has no `endpoint`", entry.key);
    reader.error(&entry.key_at, message, "add `endpoint: HOST:PORT`");
}

/// The URL of a gRPC endpoint, which is usually written without a scheme.
fn grpc_url(endpoint: &Text, is_cleartext: bool, path: &str, reader: &mut FileReader<'_, '_>) -> String {
    let text = endpoint.value.trim_start_matches("dns://").trim_start_matches('/');
    let text = text.strip_prefix("passthrough:///").unwrap_or(text);
    if text.starts_with("http://") || text.starts_with("https://") {
        return text.to_owned();
    }
    if let Some(socket) = text.strip_prefix("unix:") {
        reader.note(
            &endpoint.at,
            path,
            format!("tidegate sends to hosts and ports, not to the socket {socket}"),
        );
    }
    let scheme = if is_cleartext { "http" } else { "https" };
    if endpoint.is_open() && !text.contains(':') || text.starts_with("${") && text.ends_with('}') {
        let message = format!(
            "`{text}` has to be HOST:PORT; if it has `http://` or `https://`, remove it from the URL"
        );
        reader.note(&endpoint.at, path, message);
    }
    format!("{scheme}://{text}")
}

fn compression(group: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) {
    let Some(text) = group.text("compression", reader) else { return };
    match text.value.as_str() {
        // The default of both.
        "gzip" => {}
        "zstd" | "none" => map.set("compression", text.value.as_str()),
        "" => map.set("compression", "none"),
        _ => {
            let path = group.path_of("compression");
            reader.note(&text.at, &path, "tidegate compresses with gzip or zstd: gzip was chosen");
        }
    }
}

/// A size in bytes within the bounds of `max_request_bytes`.
fn request_bytes(bytes: u64, most: Bytes) -> String {
    Bytes::new(bytes.clamp(64 << 10, most.get())).to_string()
}
