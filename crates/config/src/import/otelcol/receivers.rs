//! Receivers: the addresses that tidegate listens on, and the files and journals that it reads.

mod filelog;
mod fluentforward;
mod journald;
mod loki;
mod syslog;

use super::components::Section;
use super::{Collector, settings, type_of};
use crate::error::quote;
use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Text};
use crate::yaml::Entry;

/// An address of a protocol, with its certificate.
struct Listener {
    address: String,
    /// Whether others can reach it.
    is_public: bool,
    tls: Map,
}

impl Collector<'_> {
    /// Converts a receiver; false if nothing can arrive on it.
    pub(super) fn receiver(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) -> bool {
        match type_of(&entry.key) {
            "otlp" => self.otlp_receiver(entry, reader),
            "prometheusremotewrite" => self.remote_write_receiver(entry, reader),
            "loki" => self.loki_receiver(entry, reader),
            "syslog" => self.syslog_receiver(entry, reader),
            "filelog" | "file_log" => self.filelog_receiver(entry, reader),
            "journald" => self.journald_receiver(entry, reader),
            "fluentforward" | "fluent_forward" => self.fluent_forward_receiver(entry, reader),
            _ => {
                self.components.unknown(Section::Receivers, entry, reader);
                return false;
            }
        }
        true
    }

    fn otlp_receiver(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) {
        let Some(mut receiver) = settings(entry, "receivers", reader) else { return };
        let Some(mut protocols) = receiver.group("protocols", reader) else {
            reader.error(
                &entry.key_at,
                format!("{} has no `protocols`", quote(&entry.key)),
                "add `protocols: { grpc: {}, http: {} }`",
            );
            return;
        };
        let mut listeners = Vec::new();
        for (protocol, default) in [("http", "127.0.0.1:4318"), ("grpc", "127.0.0.1:4317")] {
            let path = protocols.path_of(protocol);
            let Some(given) = protocols.take_even_empty(protocol) else { continue };
            let Some(mut group) = reader.group(&given.node, &path) else { continue };
            let listener = self.listener(&mut group, default, reader);
            group.finish(reader);
            listeners.extend(listener.map(|listener| (protocol, listener)));
        }
        if let Some(arrow) = protocols.take_even_empty("arrow") {
            reader.note(
                &arrow.key_at,
                &protocols.path_of("arrow"),
                "left out: tidegate does not receive OTel Arrow",
            );
        }
        protocols.finish(reader);
        receiver.finish(reader);
        if matches!(self.out.get("listen"), Some(Yaml::Map(listen)) if listen.get("grpc").is_some()) {
            let message =
                "left out: tidegate has one pair of addresses for OTLP, and another receiver has set them";
            reader.note(&entry.key_at, &format!("receivers.{}", entry.key), message);
            return;
        }
        self.listen(listeners);
    }

    fn listen(&mut self, listeners: Vec<(&'static str, Listener)>) {
        let is_open = listeners.iter().any(|(_, listener)| listener.is_public && listener.tls.is_empty());
        let listen = self.out.group("listen");
        for (protocol, listener) in &listeners {
            listen.set(protocol, listener.address.as_str());
        }
        if let [(protocol, listener)] = listeners.as_slice() {
            let other = if *protocol == "http" { "grpc" } else { "http" };
            let comment =
                "The same address: tidegate then listens on this one alone, which takes HTTP and gRPC.";
            listen.set_with(other, listener.address.as_str(), Some(comment));
        }
        let secured: Vec<&(&str, Listener)> =
            listeners.iter().filter(|(_, listener)| !listener.tls.is_empty()).collect();
        match secured.as_slice() {
            [] => {}
            [(_, first), (_, second)] if first.tls == second.tls => listen.set("tls", first.tls.clone()),
            [(_, only)] if listeners.len() == 1 => listen.set("tls", only.tls.clone()),
            several => {
                let tls = listen.group("tls");
                for (protocol, listener) in several {
                    tls.set(protocol, listener.tls.clone());
                }
            }
        }
        if is_open {
            let comment = "As in the Collector: other machines can connect, and nothing is encrypted.";
            listen.set_with("insecure", "true", Some(comment));
        }
    }

    /// The address and the certificate of a server.
    fn listener(
        &mut self,
        group: &mut Group<'_>,
        default: &str,
        reader: &mut FileReader<'_, '_>,
    ) -> Option<Listener> {
        let is_unix =
            group.text("transport", reader).is_some_and(|transport| transport.value.starts_with("unix"));
        let endpoint = group.text("endpoint", reader);
        self.server(group, reader);
        let tls = self.server_tls(group, reader);
        if let (true, Some(path)) = (is_unix, &endpoint) {
            self.out.group("listen").set("unix", path.value.as_str());
            return None;
        }
        let address = match &endpoint {
            Some(endpoint) => address(endpoint, &group.path_of("endpoint"), reader),
            None => default.to_owned(),
        };
        let is_public = !address.starts_with("127.") && !address.starts_with("[::1]");
        Some(Listener { address, is_public, tls })
    }

    /// The settings of a server that are not about its address.
    fn server(&mut self, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) {
        let mebibytes = group.number("max_recv_msg_size_mib", reader).map(|mebibytes| mebibytes << 20);
        let bytes = group.number("max_request_body_size", reader);
        if let Some(bytes) = mebibytes.max(bytes).filter(|bytes| *bytes > 0) {
            let bytes = bytes.clamp(64 << 10, 1 << 30);
            let size = crate::values::Bytes::new(bytes).to_string();
            self.out.group("sources").group("otlp").set("max_body", size);
        }
        let auth = "tidegate authenticates clients with `access.credentials_file`: `tidegate token` writes its lines";
        let clients = "clients are not asked to behave so; `limits` bounds what they may use";
        let lacking = [
            ("auth", auth),
            (
                "cors",
                "tidegate answers no cross-origin requests but those of RUM agents (`sources.elastic_apm.rum`)",
            ),
            ("include_metadata", "not needed: a tenant's header is configured in `tenants.header`"),
            ("keepalive", clients),
            ("max_concurrent_streams", clients),
            ("read_buffer_size", "not needed: buffers are part of the memory plan"),
            ("write_buffer_size", "not needed: buffers are part of the memory plan"),
            ("compression_algorithms", "not needed: gzip and zstd are accepted"),
            ("response_headers", "left out: responses have no additional headers"),
            ("middlewares", "left out: there are no middlewares"),
        ];
        group.lacks(&lacking, reader);
        for (key, standard) in [
            ("traces_url_path", "/v1/traces"),
            ("metrics_url_path", "/v1/metrics"),
            ("logs_url_path", "/v1/logs"),
        ] {
            if let Some(path) = group.text(key, reader).filter(|path| path.value != standard) {
                let message = format!("left out: the path is always `{standard}`");
                reader.note(&path.at, &group.path_of(key), message);
            }
        }
        let timeouts = [("read_header_timeout", "header_timeout"), ("idle_timeout", "idle_timeout")];
        for (theirs, ours) in timeouts {
            let Some(text) = group.text(theirs, reader) else { continue };
            match super::client::duration(&text.value) {
                Some(duration) => self.out.group("limits").set(ours, duration),
                None => reader.note(
                    &text.at,
                    &group.path_of(theirs),
                    "left out: not a duration that is known here",
                ),
            }
        }
    }

    fn server_tls(&mut self, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Map {
        let mut map = Map::default();
        let Some(mut tls) = group.group("tls", reader) else { return map };
        for key in ["cert_file", "key_file", "client_ca_file"] {
            map.set_some(key, tls.text(key, reader).map(|text| text.value));
        }
        if map.get("client_ca_file").is_some() {
            map.set("client_auth", "required");
        }
        tls.lacks(&super::client::TLS_LACKING, reader);
        tls.lacks(
            &[
                ("reload_interval", "not needed: certificates are reloaded when their files change"),
                ("client_ca_file_reload", "not needed: files are reloaded when they change"),
                ("ca_file", "left out: a server does not use it"),
            ],
            reader,
        );
        tls.finish(reader);
        map
    }

    fn remote_write_receiver(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) {
        let Some(mut receiver) = settings(entry, "receivers", reader) else { return };
        let endpoint = receiver.text("endpoint", reader);
        self.server(&mut receiver, reader);
        let tls = self.server_tls(&mut receiver, reader);
        receiver.finish(reader);
        let listen = self.out.group("listen");
        match endpoint {
            Some(endpoint) if listen.get("http").is_none() => {
                let path = format!("receivers.{}.endpoint", entry.key);
                let address = address(&endpoint, &path, reader);
                let is_public = !address.starts_with("127.");
                let listener = Listener { address, is_public, tls };
                self.listen(vec![("http", listener)]);
            }
            Some(endpoint) => {
                let message = "tidegate receives remote write at `listen.http`, path `/api/v1/write`: change the senders' URL";
                reader.note(&endpoint.at, &format!("receivers.{}.endpoint", entry.key), message);
            }
            None => {
                let message = "tidegate receives remote write at `listen.http`, path `/api/v1/write`";
                reader.note(&entry.key_at, &format!("receivers.{}", entry.key), message);
            }
        }
    }
}

/// A listening address: the Collector's may be a host name, or have no host.
pub(in crate::import) fn address(endpoint: &Text, path: &str, reader: &mut FileReader<'_, '_>) -> String {
    let (host, port) = endpoint.value.rsplit_once(':').unwrap_or((&endpoint.value, ""));
    if endpoint.is_open() {
        if host.contains("${") {
            reader.note(
                &endpoint.at,
                path,
                "the variable has to be an IP address: tidegate listens on no names",
            );
        }
        return endpoint.value.clone();
    }
    match host {
        "" => format!("0.0.0.0:{port}"),
        "localhost" => format!("127.0.0.1:{port}"),
        _ if endpoint.value.parse::<std::net::SocketAddr>().is_ok() => endpoint.value.clone(),
        _ => {
            let message = "tidegate listens on addresses, not on names: every interface was assumed";
            reader.note(&endpoint.at, path, message);
            format!("0.0.0.0:{}", if port.is_empty() { "4318" } else { port })
        }
    }
}

/// Used by other importers for addresses without certificates.
pub(in crate::import) fn set_listen_http(out: &mut Map, address: &str) {
    let listen = out.group("listen");
    listen.set("http", Yaml::Text(address.to_owned()));
    if !address.starts_with("127.") && !address.starts_with("[::1]") {
        let comment = "As before: other machines can connect, and nothing is encrypted.";
        listen.set_with("insecure", "true", Some(comment));
    }
}
