//! Settings that outputs share: the address, TLS, credentials and headers.

use crate::import::document::Map;
use crate::import::fluent_bit::plugin::{Lacking, Plugin, Value, seconds, words};
use crate::import::fluent_bit::report::Report;
use crate::import::otelcol::basic_credentials;
use crate::import::prometheus::is_local;
use crate::values::HeaderName;

/// Names of properties, for spelling.
pub(super) const KNOWN: &[&str] = &[
    "host",
    "port",
    "uri",
    "path",
    "match",
    "match_regex",
    "tls",
    "tls.verify",
    "tls.ca_file",
    "tls.crt_file",
    "tls.key_file",
    "tls.vhost",
    "http_user",
    "http_passwd",
    "header",
    "compress",
    "workers",
    "index",
    "format",
    "labels",
    "label_keys",
    "tenant_id",
    "logstash_format",
    "logstash_prefix",
    "splunk_token",
    "retry_limit",
];

const LACKING: &Lacking = &[
    ("tls.verify_hostname", "not needed: certificates are always verified"),
    ("tls.debug", "not needed"),
    ("tls.ca_path", "left out: name one file in `tls.ca_file`"),
    ("tls.key_passwd", "left out: keys are read without a password"),
    ("tls.min_version", "not needed: TLS 1.2 is the lowest"),
    ("tls.max_version", "left out: TLS 1.2 and 1.3 are always allowed"),
    ("tls.ciphers", "left out: the suites cannot be chosen"),
    ("tls.windows.certstore_name", "left out: authorities are read from `tls.ca_file`"),
    ("tls.windows.use_enterprise_store", "left out: authorities are read from `tls.ca_file`"),
    ("proxy", "left out: set the environment variable `https_proxy` or `http_proxy`"),
    ("buffer_size", "not needed: buffers are part of the memory plan"),
    ("http_buffer_max_size", "not needed: buffers are part of the memory plan"),
    ("log_response_payload", "not needed: dead letters keep the reason of every refused item"),
    ("allow_duplicated_headers", "not needed: each header is sent once"),
    ("response_timeout", "left out: set `timeout`"),
    ("ipv6", "not needed: both kinds of addresses are used"),
    ("oauth2.enable", "left out: tidegate cannot fetch tokens"),
    (
        "aws_auth",
        "left out: tidegate does not sign requests; use a user and a password, or a proxy that signs",
    ),
];

/// The common settings of a sink.
pub(super) struct Client {
    /// The scheme, host and port.
    pub(super) url: String,
    pub(super) settings: Map,
    tls: Map,
    has_credentials: bool,
}

impl Client {
    /// Takes the common properties.
    pub(super) fn read(
        plugin: &mut Plugin<'_>,
        default_host: Option<&str>,
        default_port: u16,
        report: &mut Report,
    ) -> Client {
        let host = plugin.text("host", report).map(|host| host.text);
        let port = plugin.text("port", report).map_or_else(|| default_port.to_string(), |port| port.text);
        if port.parse::<u16>().is_err() && !port.contains("${") {
            let message = format!("the port of an output `{}` is not a number", plugin.name);
            report.error(plugin.file(), plugin.at(), message, "write a number up to 65535");
        }
        let host = host.or_else(|| default_host.map(str::to_owned)).unwrap_or_else(|| {
            let message = format!("an output `{}` has no `host`", plugin.name);
            report.error(plugin.file(), plugin.at(), message, "add `Host NAME`");
            "localhost".to_owned()
        });
        let is_tls = plugin.flag("tls", report) == Some(true);
        let host = host.trim_start_matches("http://").trim_start_matches("https://").trim_end_matches('/');
        let is_ipv6 = host.contains(':') && !host.starts_with('[') && !host.contains("${");
        let host = if is_ipv6 { format!("[{host}]") } else { host.to_owned() };
        let url = format!("{}://{host}:{port}", if is_tls { "https" } else { "http" });
        let mut client =
            Client { url, settings: Map::default(), tls: Map::default(), has_credentials: false };
        client.take_tls(plugin, is_tls, report);
        if let Some(workers) = plugin.number("workers", report).filter(|workers| *workers > 0) {
            client.settings.set("max_in_flight", workers.clamp(1, 64).to_string());
        }
        if let Some(timeout) =
            plugin.text("net.io_timeout", report).filter(|timeout| !timeout.text.starts_with('0'))
        {
            match seconds(&timeout.text) {
                Some(timeout) => client.settings.set("timeout", timeout),
                None => plugin.note_value(&timeout, "left out: not a time that is known here", report),
            }
        }
        plugin.lacks_prefix("net.", "not needed: connections are kept, checked and bounded", report);
        plugin.lacks_prefix("aws_", "left out: tidegate does not sign requests", report);
        plugin.lacks(LACKING, report);
        client
    }

    fn take_tls(&mut self, plugin: &mut Plugin<'_>, is_tls: bool, report: &mut Report) {
        for (theirs, ours) in [
            ("tls.ca_file", "ca_file"),
            ("tls.crt_file", "cert_file"),
            ("tls.key_file", "key_file"),
            ("tls.vhost", "server_name"),
        ] {
            let Some(value) = plugin.text(theirs, report) else { continue };
            if is_tls {
                self.tls.set(ours, value.text);
            } else {
                plugin.note_value(&value, "left out: `tls` is off, so nothing is encrypted", report);
            }
        }
        if plugin.flag("tls.verify", report) == Some(false) && is_tls {
            let message = "`tls.verify off` is left out: certificates are always verified; trust the server's authority with `tls.ca_file`";
            plugin.note(message, report);
        }
    }

    /// Takes the user and the password.
    pub(super) fn user(plugin: &mut Plugin<'_>, report: &mut Report) -> Option<(String, String)> {
        let user = plugin.text("http_user", report).map(|user| user.text);
        let password = plugin.text("http_passwd", report).map(|password| password.text);
        user.map(|user| (user, password.unwrap_or_default()))
    }

    /// Takes the user and the password as a header.
    pub(super) fn user_header(&mut self, plugin: &mut Plugin<'_>, report: &mut Report) {
        let Some((user, password)) = Client::user(plugin, report) else { return };
        let value = basic_credentials(&user, &password).unwrap_or_else(|| {
            let message = "`authorization` needs the base64 form of `USER:PASSWORD`: set the variable BASIC_CREDENTIALS to it";
            plugin.note(message, report);
            "Basic ${BASIC_CREDENTIALS}".to_owned()
        });
        self.settings.group("headers").set("authorization", value);
        self.has_credentials = true;
    }

    /// Takes the headers.
    pub(super) fn headers(&mut self, plugin: &mut Plugin<'_>, report: &mut Report) {
        for value in plugin.all("header", report) {
            match words(&value.text, 2).as_slice() {
                [name, text] => self.header(plugin, &value, name, text, report),
                _ => plugin.error(
                    &value,
                    "a header has a name and a value",
                    "write `Header NAME VALUE`",
                    report,
                ),
            }
        }
    }

    /// Adds a header.
    pub(super) fn header(
        &mut self,
        plugin: &Plugin<'_>,
        at: &Value,
        name: &str,
        text: &str,
        report: &mut Report,
    ) {
        match name.parse::<HeaderName>() {
            Ok(known) => {
                self.has_credentials |= known.is_credential();
                self.settings.group("headers").set(known.as_str(), text);
            }
            Err(error) => plugin.note_value(at, format!("left out: {}", error.message), report),
        }
    }

    /// Takes how requests are compressed, where `allowed` has the ways that the sink knows, and `default` the sink's.
    pub(super) fn compression(
        &mut self,
        plugin: &mut Plugin<'_>,
        allowed: &[&str],
        default: &str,
        report: &mut Report,
    ) {
        let value = plugin.text("compress", report);
        let wanted = value.as_ref().map_or("none", |value| value.text.as_str()).to_ascii_lowercase();
        if allowed.contains(&wanted.as_str()) {
            if wanted != default {
                self.settings.set("compression", wanted);
            }
        } else if let Some(value) = value {
            let message =
                format!("requests are compressed with {} here: {default} was chosen", allowed.join(" or "));
            plugin.note_value(&value, message, report);
        }
    }

    /// The settings, complete. `has_others` says whether there are credentials besides those in headers.
    pub(super) fn finish(mut self, has_others: bool) -> Map {
        if self.url.starts_with("http://") {
            if (self.has_credentials || has_others) && !is_local(&self.url) {
                let comment = "As before: the credentials can be read on the network.";
                self.settings.set_with("insecure", "true", Some(comment));
            }
        } else {
            self.settings.set_group("tls", self.tls);
        }
        self.settings
    }
}

/// A path of a URL, which begins with a slash unless it is empty.
pub(super) fn url_path(path: &str) -> String {
    let path = path.trim_matches('/');
    if path.is_empty() { String::new() } else { format!("/{path}") }
}
