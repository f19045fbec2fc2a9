//! Inputs that listen.

use crate::import::document::{Map, Yaml};
use crate::import::fluent_bit::keys::{self, SourceKeys};
use crate::import::fluent_bit::parsers::Format;
use crate::import::fluent_bit::plugin::{Lacking, Plugin, words};
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::tags::Mark;
use crate::import::fluent_bit::{FluentBit, Marker};
use crate::import::sinks::SIGNALS;
use crate::model::Signal;
use crate::values::Bytes;

const COMMON: &Lacking = &[
    ("unix_perm", "left out: sockets are for their group (mode 0660)"),
    ("receive_buffer_size", "not needed: buffers are part of the memory plan"),
    ("buffer_size", "not needed: buffers are part of the memory plan"),
    ("http2", "not needed: the address takes HTTP/1.1 and HTTP/2"),
    ("tls.verify", "not needed: a server presents a certificate"),
    ("tls.debug", "not needed"),
    ("tls.vhost", "left out: the server has one certificate for each address"),
    ("tls.key_passwd", "left out: keys are read without a password"),
    ("tls.min_version", "not needed: TLS 1.2 is the lowest"),
    ("tls.max_version", "left out: TLS 1.2 and 1.3 are always allowed"),
    ("tls.ciphers", "left out: the suites cannot be chosen"),
    ("tag_from_uri", "left out: tags are not made of the URI"),
    ("successful_response_code", "left out: the answer is that of the protocol"),
    ("success_header", "left out: responses have no additional headers"),
    ("add_remote_addr", "left out: the addresses of clients are no attributes"),
    ("remote_addr_key", "left out: the addresses of clients are no attributes"),
];

impl FluentBit {
    /// The address of an input, and whether others can reach it.
    fn address(&mut self, plugin: &mut Plugin<'_>, default_port: u16) -> (String, bool) {
        let listen = plugin.text("listen", &self.report);
        let port =
            plugin.text("port", &self.report).map_or_else(|| default_port.to_string(), |port| port.text);
        let host = match listen.as_ref().map(|listen| listen.text.as_str()) {
            None => "0.0.0.0".to_owned(),
            Some("localhost") => "127.0.0.1".to_owned(),
            Some(host) if host.contains("${") => {
                plugin.note(
                    "the variable of `listen` has to be an IP address: tidegate listens on no names",
                    &mut self.report,
                );
                host.to_owned()
            }
            Some(host) => match host.trim_matches(['[', ']']).parse::<std::net::IpAddr>() {
                Ok(std::net::IpAddr::V6(address)) => format!("[{address}]"),
                Ok(address) => address.to_string(),
                Err(_) => {
                    let message = "tidegate listens on addresses, not on names: every interface was assumed";
                    plugin.note(message, &mut self.report);
                    "0.0.0.0".to_owned()
                }
            },
        };
        let is_port = port.contains("${") || port.parse::<u16>().is_ok();
        let port = if is_port {
            port
        } else {
            let message = format!("the port of an input `{}` is not a number", plugin.name);
            self.report.error(plugin.file(), plugin.at(), message, "write a number up to 65535");
            default_port.to_string()
        };
        let is_public = !host.starts_with("127.") && host != "[::1]";
        (format!("{host}:{port}"), is_public)
    }

    fn server_tls(&mut self, plugin: &mut Plugin<'_>) -> Map {
        let mut tls = Map::default();
        let is_on = plugin.flag("tls", &mut self.report) == Some(true);
        let verifies = plugin.flag("tls.verify_client_cert", &mut self.report) == Some(true);
        for (theirs, ours) in
            [("tls.crt_file", "cert_file"), ("tls.key_file", "key_file"), ("tls.ca_file", "client_ca_file")]
        {
            let value = plugin.text(theirs, &self.report).map(|value| value.text);
            if is_on && (ours != "client_ca_file" || verifies) {
                tls.set_some(ours, value);
            }
        }
        if tls.get("client_ca_file").is_some() {
            tls.set("client_auth", "required");
        }
        plugin.lacks(COMMON, &mut self.report);
        tls
    }

    fn allow_cleartext(&mut self, is_public: bool, tls: &Map) {
        if is_public && tls.is_empty() {
            let comment = "As in Fluent Bit: other machines can connect, and nothing is encrypted.";
            self.out.group("listen").set_with("insecure", "true", Some(comment));
        }
    }

    pub(super) fn syslog(&mut self, plugin: &mut Plugin<'_>, tag: &str) -> &'static [&'static str] {
        let mode = plugin.text("mode", &self.report).map_or_else(|| "unix_udp".to_owned(), |mode| mode.text);
        let mut map = Map::default();
        let (address, is_public) = self.address(plugin, 5140);
        let path = plugin.text("path", &self.report).map(|path| path.text);
        let tls = self.server_tls(plugin);
        match mode.to_ascii_lowercase().as_str() {
            "tcp" | "udp" => {
                let scheme = if tls.is_empty() { mode.to_ascii_lowercase() } else { "tls".to_owned() };
                map.set("address", format!("{scheme}://{address}"));
                self.allow_cleartext(is_public, &tls);
                map.set_group("tls", tls);
            }
            kind @ ("unix_tcp" | "unix_udp") => match path {
                Some(path) => {
                    let scheme = if kind == "unix_tcp" { "unix" } else { "unixgram" };
                    map.set("address", format!("{scheme}:{path}"));
                }
                None => {
                    let message = "an input `syslog` on a Unix socket has no `path`";
                    let help = "add `Path /run/tidegate/log`, or `Mode tcp`";
                    self.report.error(plugin.file(), plugin.at(), message, help);
                }
            },
            _ => {
                let message = format!("there is no mode `{mode}` of an input `syslog`");
                let help = "write `tcp`, `udp`, `unix_tcp` or `unix_udp`";
                self.report.error(plugin.file(), plugin.at(), message, help);
            }
        }
        if let Some(value) = plugin.text("parser", &self.report)
            && let Some(parser) = self.parsers.find(&value.text, plugin, &value, &mut self.report)
        {
            match parser.format {
                Format::Syslog(format) => map.set("format", format),
                _ => {
                    let message =
                        "left out: RFC 5424 and RFC 3164 are told apart, and text without a header is kept";
                    plugin.note_value(&value, message, &mut self.report);
                }
            }
        }
        plugin.lacks(
            &[
                ("source_address_key", "not needed: the address is the attribute `network.peer.address`"),
                (
                    "raw_message_key",
                    "left out: the message is kept without its header, which becomes attributes",
                ),
            ],
            &mut self.report,
        );
        for size in plugin.all("buffer_max_size", &self.report) {
            plugin.note_value(&size, "not needed: messages are at most 64 KiB long", &mut self.report);
        }
        let listeners = self.out.group("sources").group("syslog").group("listeners");
        let name = FluentBit::free_name(&mut self.names, listeners, tag);
        listeners.set(&name, map);
        self.add_source(plugin, tag, &[Signal::Logs], "syslog");
        self.has_keys(SourceKeys::Syslog);
        &["mode", "listen", "port", "path", "parser", "unix_perm", "buffer_max_size"]
    }

    pub(super) fn forward(
        &mut self,
        plugin: &mut Plugin<'_>,
        tag: &str,
        is_tagged: bool,
    ) -> &'static [&'static str] {
        let unix = plugin.text("unix_path", &self.report).map(|path| path.text);
        let (address, is_public) = self.address(plugin, 24224);
        let tls = self.server_tls(plugin);
        let prefix = plugin.text("tag_prefix", &self.report).map(|prefix| prefix.text).unwrap_or_default();
        if let Some(size) = plugin.size("buffer_max_size", &mut self.report) {
            let size = Bytes::new(size.get().clamp(64 << 10, 1 << 30)).to_string();
            self.out.group("sources").group("fluent_forward").set("max_body", size);
        }
        let source = self.out.group("sources").group("fluent_forward");
        let is_again = source.get("address").is_some() || source.get("unix").is_some();
        if is_again {
            let message =
                "left out: tidegate has one address for the forward protocol, and another input has set it";
            plugin.note(message, &mut self.report);
            plugin.take_all();
            return &[];
        }
        match unix {
            Some(path) => source.set("unix", format!("unix:{path}")),
            None => {
                source.set("address", address);
                source.set_group("tls", tls.clone());
                self.allow_cleartext(is_public, &tls);
            }
        }
        let source = self.out.group("sources").group("fluent_forward");
        let bodies = record::BODY_KEYS.map(str::to_owned).to_vec();
        source.set("body_keys", Yaml::Flow(bodies));
        source.set_some("shared_key", plugin.text("shared_key", &self.report).map(|key| key.text));
        source.set_some("hostname", plugin.text("self_hostname", &self.report).map(|name| name.text));
        for user in plugin.all("security.users", &self.report) {
            match words(&user.text, 2).as_slice() {
                [name, password] => source.group("users").set(name, password.as_str()),
                _ => plugin.error(&user, "a user has no password", "write `USER PASSWORD`", &mut self.report),
            }
        }
        plugin.lacks(
            &[("empty_shared_key", "left out: a client needs a key, or none if `shared_key` is not set")],
            &mut self.report,
        );
        if is_tagged {
            self.add_source(plugin, tag, &[Signal::Logs], "fluent_forward");
        } else {
            self.add_origin("*", &[Signal::Logs], Mark::Forward(prefix), Marker::Client, None);
        }
        self.has_keys(SourceKeys::Forward);
        &[
            "listen",
            "port",
            "unix_path",
            "shared_key",
            "self_hostname",
            "security.users",
            "tag_prefix",
            "buffer_max_size",
        ]
    }

    pub(super) fn opentelemetry(&mut self, plugin: &mut Plugin<'_>, tag: &str) -> &'static [&'static str] {
        self.http_listener(plugin, 4318, "OTLP", "/v1/logs", "otlp");
        plugin.lacks(
            &[
                ("raw_traces", "not needed: traces are OTLP"),
                ("profiles_support", "not needed: profiles are received"),
                ("encode_profiles_as_log", "left out: profiles stay profiles"),
                ("logs_metadata_key", "not needed: attributes are attributes"),
                ("logs_body_key", "not needed: the body is the body"),
            ],
            &mut self.report,
        );
        self.add_source(plugin, tag, &SIGNALS, "otlp");
        &["listen", "port", "tag_from_uri", "raw_traces"]
    }

    pub(super) fn http_input(
        &mut self,
        plugin: &mut Plugin<'_>,
        tag: &str,
        is_tagged: bool,
    ) -> &'static [&'static str] {
        let message = "tidegate receives lines and JSON at the path `/ingest/logs` (`sources.http.path`), Fluent Bit at every path: \
                       change the senders' URL";
        plugin.note(message, &mut self.report);
        if !is_tagged {
            let message = "tags are not made of the URI: all records have one tag";
            plugin.note(message, &mut self.report);
        }
        plugin.lacks(&[("tag_key", "left out: all records have one tag")], &mut self.report);
        self.http_listener(plugin, 9880, "lines", "/ingest/logs", "http");
        self.add_source(plugin, tag, &[Signal::Logs], "http");
        self.has_keys(SourceKeys::Hidden(keys::JSON));
        &["listen", "port", "tag_key", "buffer_max_size", "success_header"]
    }

    pub(super) fn remote_write_input(
        &mut self,
        plugin: &mut Plugin<'_>,
        tag: &str,
    ) -> &'static [&'static str] {
        if let Some(uri) = plugin.text("uri", &self.report).filter(|uri| uri.text != "/api/v1/write") {
            let message =
                "tidegate receives remote write at the path `/api/v1/write`: change the senders' URL";
            plugin.note_value(&uri, message, &mut self.report);
        }
        self.http_listener(plugin, 8080, "remote write", "/api/v1/write", "prometheus_remote_write");
        self.add_origin(tag, &[Signal::Metrics], Mark::Resource(tag.to_owned()), Marker::Never, None);
        &["listen", "port", "uri", "buffer_max_size"]
    }

    pub(super) fn elasticsearch_input(
        &mut self,
        plugin: &mut Plugin<'_>,
        tag: &str,
    ) -> &'static [&'static str] {
        let (address, is_public) = self.address(plugin, 9200);
        let tls = self.server_tls(plugin);
        let mut settings = Map::default();
        settings.set_some("version", plugin.text("version", &self.report).map(|version| version.text));
        if let Some(size) = plugin.size("buffer_max_size", &mut self.report) {
            settings.set("max_body", Bytes::new(size.get().clamp(64 << 10, 1 << 30)).to_string());
        }
        if !settings.is_empty() {
            self.out.group("sources").set("elasticsearch", settings);
        }
        let message = "documents stay documents: steps and conditions of tags do not apply to them, so every sink that takes documents gets them";
        plugin.note(message, &mut self.report);
        plugin.lacks(
            &[
                ("meta_key", "left out: the action of a document is no attribute"),
                ("hostname", "left out: the node that is reported has tidegate's name"),
            ],
            &mut self.report,
        );
        self.allow_cleartext(is_public, &tls);
        let listen = self.out.group("listen");
        if listen.get("elasticsearch").is_some() {
            plugin.note("left out: another input has set `listen.elasticsearch`", &mut self.report);
        } else {
            listen.set("elasticsearch", address);
            self.listen_tls(plugin, &tls);
        }
        self.add_origin(tag, &[Signal::Logs], Mark::Resource(tag.to_owned()), Marker::Never, None);
        &["listen", "port", "version", "hostname", "meta_key", "buffer_max_size"]
    }

    /// Has `listen.http` take what an input took; there is one such address.
    fn http_listener(
        &mut self,
        plugin: &mut Plugin<'_>,
        default_port: u16,
        what: &str,
        path: &str,
        source: &'static str,
    ) {
        let (address, is_public) = self.address(plugin, default_port);
        let tls = self.server_tls(plugin);
        if let Some(size) = plugin.size("buffer_max_size", &mut self.report) {
            let size = Bytes::new(size.get().clamp(64 << 10, 1 << 30)).to_string();
            self.out.group("sources").group(source).set("max_body", size);
        }
        let listen = self.out.group("listen");
        match listen.get("http") {
            None => {
                listen.set("http", address);
                self.allow_cleartext(is_public, &tls);
                self.listen_tls(plugin, &tls);
            }
            Some(other) if *other == Yaml::Text(address.clone()) => {}
            Some(_) => {
                let message = format!(
                    "tidegate receives {what} at `listen.http`, path `{path}`, whose address another input has set: change the senders' URL"
                );
                plugin.note(message, &mut self.report);
            }
        }
    }

    fn listen_tls(&mut self, plugin: &Plugin<'_>, tls: &Map) {
        if tls.is_empty() {
            return;
        }
        let listen = self.out.group("listen");
        match listen.get("tls") {
            None => {
                listen.set("tls", tls.clone());
                let message = "the certificate is that of all addresses of `listen`; `listen.tls.listeners` chooses some";
                plugin.note(message, &mut self.report);
            }
            Some(Yaml::Map(other)) if other == tls => {}
            Some(_) => plugin.note("left out: another input has set `listen.tls`", &mut self.report),
        }
    }
}
