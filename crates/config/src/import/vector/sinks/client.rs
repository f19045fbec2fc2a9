//! Settings that sinks have in common: TLS, authentication, requests, batches, compression.

use crate::import::document::Map;
use crate::import::group::{FileReader, Group, Lacking};
use crate::import::otelcol::{basic_credentials, header_into};
use crate::import::prometheus::is_local;
use crate::import::vector::components::Component;
use crate::values::{Bytes, Duration};

const LACKING: &Lacking = &[
    ("healthcheck", "not needed: `/ready` tells whether sinks deliver"),
    ("buffer", "not needed: the journal is the queue, on disk; `journal.quota` and `when_full` bound it"),
    ("acknowledgements", "not needed: an item is acknowledged when it is in the journal"),
    ("proxy", "left out: set the environment variables `http_proxy`, `https_proxy` and `no_proxy`"),
    ("graph", "not needed"),
    ("distribution", "not needed: requests rotate between endpoints, and leave out those that fail"),
    ("endpoint_health", "not needed: requests rotate between endpoints, and leave out those that fail"),
    ("request_retry_partial", "not needed: documents that are refused for a while are sent again"),
];

const REQUEST_LACKING: &Lacking = &[
    ("rate_limit_num", "left out: the number of concurrent requests adapts to the receiver"),
    ("rate_limit_duration_secs", "left out: the number of concurrent requests adapts to the receiver"),
    ("adaptive_concurrency", "not needed: the number of concurrent requests adapts to the receiver"),
    ("retry_attempts", "not needed: an item is retried until it is delivered or refused for good"),
    ("retry_jitter_mode", "not needed: delays have jitter"),
    ("in_flight_limit", "left out: `max_in_flight` bounds concurrent requests"),
];

/// A destination's settings beside its own.
#[derive(Default)]
pub(super) struct Client {
    pub(super) settings: Map,
    /// A user and a password, where the sink may have settings for them.
    pub(super) user: Option<(String, String)>,
    has_credentials: bool,
}

impl Client {
    /// Takes the common settings. `most` bounds a request.
    pub(super) fn read(
        component: &Component<'_>,
        group: &mut Group<'_>,
        most: Bytes,
        reader: &mut FileReader<'_, '_>,
    ) -> Client {
        let mut client = Client::default();
        client.tls(group, reader);
        client.request(group, reader);
        client.auth(component, group, reader);
        client.batch(group, most, reader);
        group.lacks(LACKING, reader);
        client
    }

    /// A user and a password as a header.
    pub(super) fn user_header(&mut self, component: &Component<'_>, reader: &mut FileReader<'_, '_>) {
        let Some((user, password)) = self.user.take() else { return };
        let value = basic_credentials(&user, &password).unwrap_or_else(|| {
            let message = "`authorization` needs the base64 form of `USER:PASSWORD`: set the variable BASIC_CREDENTIALS to it";
            component.note(message, reader);
            "Basic ${BASIC_CREDENTIALS}".to_owned()
        });
        self.settings.group("headers").set("authorization", value);
        self.has_credentials = true;
    }

    /// Adapts the settings to URLs without TLS.
    pub(super) fn match_urls(&mut self, urls: &[String], has_others: bool) {
        let is_clear = |url: &String| url.starts_with("http://");
        if urls.iter().all(is_clear) && !urls.is_empty() {
            self.settings.remove("tls");
        }
        let is_remote = |url: &String| is_clear(url) && !is_local(url);
        if (self.has_credentials || has_others) && urls.iter().any(is_remote) {
            let comment = "As before: the credentials can be read on the network.";
            self.settings.set_with("insecure", "true", Some(comment));
        }
    }

    fn tls(&mut self, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) {
        let Some(mut tls) = group.group("tls", reader) else { return };
        let mut map = Map::default();
        for (theirs, ours) in [
            ("ca_file", "ca_file"),
            ("crt_file", "cert_file"),
            ("key_file", "key_file"),
            ("server_name", "server_name"),
        ] {
            map.set_some(ours, tls.text(theirs, reader).map(|text| text.value));
        }
        let at = tls.at.clone();
        for setting in ["verify_certificate", "verify_hostname"] {
            let path = tls.path_of(setting);
            if tls.flag(setting, reader) == Some(false) {
                let message = "left out: certificates are always verified; trust the server's authority with `tls.ca_file`, and \
                               name it with `tls.server_name`";
                reader.note(&at, &path, message);
            }
        }
        tls.lacks(
            &[
                ("enabled", "not needed: the URL says whether TLS is used"),
                ("key_pass", "left out: keys are read without a password"),
                ("alpn_protocols", "not needed: the protocol is agreed on"),
            ],
            reader,
        );
        tls.finish(reader);
        self.settings.set_group("tls", map);
    }

    fn request(&mut self, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) {
        let Some(mut request) = group.group("request", reader) else { return };
        if let Some(seconds) = request.number("timeout_secs", reader) {
            self.settings.set("timeout", seconds_of(seconds.clamp(1, 600)));
        }
        if let Some(concurrency) = request.text("concurrency", reader) {
            match concurrency.value.parse::<u64>() {
                Ok(number) => {
                    if !(1..=64).contains(&number) {
                        let path = request.path_of("concurrency");
                        reader.note(&concurrency.at, &path, "requests at a time are 1 to 64");
                    }
                    self.settings.set("max_in_flight", number.clamp(1, 64).to_string());
                }
                // Both adapt it.
                Err(_) if concurrency.value == "adaptive" => {}
                Err(_) if concurrency.value == "none" => self.settings.set("max_in_flight", "1"),
                Err(_) => {
                    let path = request.path_of("concurrency");
                    reader.note(&concurrency.at, &path, "its value is not known here; it was left out");
                }
            }
        }
        let mut backoff = Map::default();
        for (theirs, ours) in [("retry_initial_backoff_secs", "min"), ("retry_max_duration_secs", "max")] {
            if let Some(seconds) = request.number(theirs, reader) {
                backoff.set(ours, seconds_of(seconds.clamp(1, 3600)));
            }
        }
        self.settings.set_group("backoff", backoff);
        self.headers(&mut request, reader);
        request.lacks(REQUEST_LACKING, reader);
        request.finish(reader);
    }

    /// Takes `headers`.
    pub(super) fn headers(&mut self, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) {
        let Some(mut headers) = group.group("headers", reader) else { return };
        for entry in headers.take_all() {
            let path = headers.path_of(&entry.key);
            let Some(value) = reader.text(&entry.node, &path) else { continue };
            if value.value.contains("{{") {
                reader.note(&value.at, &path, "left out: a header is the same for all records");
                continue;
            }
            self.has_credentials |= header_into(&mut self.settings, &entry.key, &value, &path, reader);
        }
    }

    fn auth(&mut self, component: &Component<'_>, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) {
        let Some(mut auth) = group.group("auth", reader) else { return };
        let strategy = auth.text("strategy", reader).map(|strategy| strategy.value);
        let user = auth.text("user", reader);
        let password = auth.text("password", reader);
        let token = auth.text("token", reader);
        match (strategy.as_deref(), user, token) {
            (Some("basic") | None, Some(user), _) => {
                let password = password.map_or_else(String::new, |password| password.value);
                self.user = Some((user.value, password));
            }
            (Some("bearer") | None, _, Some(token)) => {
                self.settings.group("headers").set("authorization", format!("Bearer {}", token.value));
                self.has_credentials = true;
            }
            _ => {
                auth.take_all();
                component.note("`auth` is left out: tidegate cannot fetch tokens or sign requests", reader);
            }
        }
        auth.finish(reader);
    }

    fn batch(&mut self, group: &mut Group<'_>, most: Bytes, reader: &mut FileReader<'_, '_>) {
        let Some(mut batch) = group.group("batch", reader) else { return };
        let path = batch.path_of("max_events");
        let at = batch.at.clone();
        if let Some(bytes) = batch.number("max_bytes", reader) {
            if !(64 << 10..=most.get()).contains(&bytes) {
                let message = format!("requests have 64 KiB to {most}");
                reader.note(&at, &batch.path_of("max_bytes"), message);
            }
            let bytes = Bytes::new(bytes.clamp(64 << 10, most.get()));
            self.settings.set("max_request_bytes", bytes.to_string());
        }
        if batch.number("max_events", reader).is_some() {
            reader.note(
                &at,
                &path,
                "left out: requests are bounded in bytes (`max_request_bytes`), not in items",
            );
        }
        if let Some(text) = batch.text("timeout_secs", reader) {
            match text.value.parse::<f64>() {
                Ok(seconds) if (0.0..1e6).contains(&seconds) => {
                    let milliseconds = (seconds * 1000.0).min(60_000.0) as u64;
                    self.settings.set("linger", Duration::milliseconds(milliseconds).to_string());
                }
                _ => reader.note(
                    &text.at,
                    &batch.path_of("timeout_secs"),
                    "left out: its value is not known here",
                ),
            }
        }
        batch.lacks(&[("max_size", "left out: set `max_request_bytes`")], reader);
        batch.finish(reader);
    }
}

fn seconds_of(seconds: u64) -> String {
    Duration::milliseconds(seconds * 1000).to_string()
}

/// Takes `compression`, a word or a group with `algorithm`. `known` are those of our sink, with the default first; Vector's default
/// is `theirs`.
pub(super) fn compression(
    group: &mut Group<'_>,
    map: &mut Map,
    known: &[&str],
    theirs: &str,
    reader: &mut FileReader<'_, '_>,
) {
    let path = group.path_of("compression");
    let entry = group.take("compression");
    let at = entry.map_or(group.at.clone(), |entry| entry.node.at.clone());
    let name = match entry.map(|entry| (&entry.node.value, entry)) {
        Some((crate::yaml::Value::Mapping(_), entry)) => {
            let Some(mut inner) = reader.group(&entry.node, &path) else { return };
            let name = inner.text("algorithm", reader).map(|text| text.value);
            inner.lacks(&[("level", "left out: the level cannot be chosen")], reader);
            inner.finish(reader);
            name
        }
        Some((_, entry)) => reader.text(&entry.node, &path).map(|text| text.value),
        None => None,
    };
    let is_set = name.is_some();
    let name = name.unwrap_or_else(|| theirs.to_owned());
    let default = known.first().copied().unwrap_or_default();
    if known.contains(&name.as_str()) {
        if name != default && is_set {
            map.set("compression", name);
        }
    } else if is_set {
        reader.note(
            &at,
            &path,
            format!("tidegate compresses with {}: {default} was chosen", known.join(" or ")),
        );
    }
}
