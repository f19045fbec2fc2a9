//! Settings that exporters have in common: TLS, headers, authentication, queue, retries.

mod auth;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::Collector;
use crate::import::document::Map;
use crate::import::group::{FileReader, Group, Lacking, Text};
use crate::values::{Bytes, HeaderName};
use crate::yaml::Value;

/// Settings of TLS without a counterpart, of servers and clients.
pub(super) const TLS_LACKING: [(&str, &str); 9] = [
    ("min_version", "not needed: TLS 1.2 is the lowest"),
    ("max_version", "left out: TLS 1.2 and 1.3 are always allowed"),
    ("cipher_suites", "left out: the suites cannot be chosen"),
    ("curve_preferences", "left out: the curves cannot be chosen"),
    ("ca_pem", "left out: write it to a file and set `ca_file`"),
    ("cert_pem", "left out: write it to a file and set `cert_file`"),
    ("key_pem", "left out: write it to a file and set `key_file`"),
    ("tpm", "left out: keys are read from files"),
    ("include_system_ca_certs_pool", "left out: `ca_file` replaces the system's authorities"),
];

/// Settings of clients without a counterpart.
const CLIENT_LACKING: &Lacking = &[
    ("balancer_name", "not needed: requests rotate between all `endpoints`"),
    ("wait_for_ready", "not needed: requests wait in the journal"),
    ("authority", "left out: set `tls.server_name` for the certificate"),
    ("keepalive", "not needed: idle connections are checked"),
    ("read_buffer_size", "not needed: buffers are part of the memory plan"),
    ("write_buffer_size", "not needed: buffers are part of the memory plan"),
    ("max_idle_conns", "not needed: there is one connection per concurrent request at most"),
    ("max_idle_conns_per_host", "not needed: there is one connection per concurrent request at most"),
    ("max_conns_per_host", "not needed: there is one connection per concurrent request at most"),
    ("idle_conn_timeout", "not needed: idle connections are checked"),
    ("disable_keep_alives", "left out: connections are reused"),
    ("http2_read_idle_timeout", "not needed: idle connections are checked"),
    ("http2_ping_timeout", "not needed: idle connections are checked"),
    ("force_attempt_http2", "not needed"),
    ("compression_params", "left out: the level cannot be chosen"),
    ("cookies", "left out: cookies are not kept"),
    ("proxy_url", "left out: set the environment variable `https_proxy` or `http_proxy`"),
    ("middlewares", "left out: there are no middlewares"),
];

/// A destination's URL and what goes with it.
#[derive(Debug, Default)]
pub(super) struct Client {
    /// `tls`, `headers`, `timeout`, `max_in_flight`, `linger`, `backoff` and others that sinks have in common.
    pub(super) settings: Map,
    /// Whether TLS is switched off.
    pub(super) is_cleartext: bool,
    pub(super) user: Option<(String, String)>,
    has_credentials: bool,
}

impl Client {
    /// Takes out the settings of TLS if no URL uses it.
    pub(super) fn match_tls<'u>(
        &mut self,
        urls: impl IntoIterator<Item = &'u str>,
        group: &Group<'_>,
        reader: &mut FileReader<'_, '_>,
    ) {
        let is_used = urls.into_iter().any(|url| !url.starts_with("http://"));
        if !is_used && self.settings.get("tls").is_some() {
            self.settings.remove("tls");
            reader.note(
                &group.at,
                &group.path_of("tls"),
                "left out: the URL begins with `http://`, so nothing is encrypted",
            );
        }
    }

    /// Allows to send credentials without TLS if this is done.
    pub(super) fn allow_cleartext<'u>(&mut self, urls: impl IntoIterator<Item = &'u str>, has_others: bool) {
        let is_remote = |url: &str| {
            url.strip_prefix("http://")
                .is_some_and(|rest| !["127.", "localhost", "[::1]"].iter().any(|host| rest.starts_with(host)))
        };
        if (self.has_credentials || has_others) && urls.into_iter().any(is_remote) {
            let comment = "As before: the credentials can be read on the network.";
            self.settings.set_with("insecure", "true", Some(comment));
        }
    }
}

impl Collector<'_> {
    /// Takes the common settings of an exporter.
    pub(super) fn client(&mut self, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Client {
        let mut client = Client::default();
        if let Some(timeout) = group.text("timeout", reader) {
            set_duration(&mut client.settings, "timeout", &timeout, &group.path_of("timeout"), reader);
        }
        self.tls(group, &mut client, reader);
        self.headers(group, &mut client, reader);
        self.auth(group, &mut client, reader);
        queue(group, &mut client, reader);
        retries(group, &mut client, reader);
        group.lacks(CLIENT_LACKING, reader);
        client
    }

    fn tls(&mut self, group: &mut Group<'_>, client: &mut Client, reader: &mut FileReader<'_, '_>) {
        let Some(mut tls) = group.group("tls", reader) else { return };
        client.is_cleartext = tls.flag("insecure", reader).unwrap_or(false);
        let mut map = Map::default();
        for (theirs, ours) in [
            ("ca_file", "ca_file"),
            ("cert_file", "cert_file"),
            ("key_file", "key_file"),
            ("server_name_override", "server_name"),
        ] {
            map.set_some(ours, tls.text(theirs, reader).map(|text| text.value));
        }
        let path = tls.path_of("insecure_skip_verify");
        let at = tls.at.clone();
        if tls.flag("insecure_skip_verify", reader) == Some(true) {
            let message = "left out: certificates are always verified; trust the server's authority with `tls.ca_file`, \
                           and name it with `tls.server_name`";
            reader.note(&at, &path, message);
        }
        tls.lacks(&TLS_LACKING, reader);
        tls.lacks(
            &[("reload_interval", "not needed: certificates are reloaded when their files change")],
            reader,
        );
        tls.finish(reader);
        if !client.is_cleartext {
            client.settings.set_group("tls", map);
        }
    }

    fn headers(&mut self, group: &mut Group<'_>, client: &mut Client, reader: &mut FileReader<'_, '_>) {
        let Some(entry) = group.take("headers") else { return };
        let path = group.path_of("headers");
        // Newer Collectors write them as a list of names and values.
        if let Value::Sequence(items) = &entry.node.value {
            for item in items {
                let Some(mut pair) = reader.group(item, &path) else { continue };
                let name = pair.text("name", reader);
                let value = pair.text("value", reader);
                pair.finish(reader);
                if let (Some(name), Some(value)) = (name, value) {
                    header(client, &name.value, &value, &path, reader);
                }
            }
            return;
        }
        let Some(mut headers) = reader.group(&entry.node, &path) else { return };
        for entry in headers.take_all() {
            if let Some(value) = reader.text(&entry.node, &path) {
                header(client, &entry.key, &value, &path, reader);
            }
        }
    }
}

/// The value of `authorization` for a user and a password; none if they depend on the environment.
pub(in crate::import) fn basic_credentials(user: &str, password: &str) -> Option<String> {
    use crate::import::references::has_reference;
    if has_reference(user) || has_reference(password) {
        return None;
    }
    let pair = format!("{user}:{password}").replace("$$", "$");
    Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
}

/// Adds a header.
pub(in crate::import) fn header_into(
    settings: &mut Map,
    name: &str,
    value: &Text,
    path: &str,
    reader: &mut FileReader<'_, '_>,
) -> bool {
    match name.parse::<HeaderName>() {
        Ok(known) => {
            settings.group("headers").set(known.as_str(), value.value.as_str());
            known.is_credential()
        }
        Err(error) => {
            reader.note(&value.at, path, format!("left out: {}", error.message));
            false
        }
    }
}

fn header(client: &mut Client, name: &str, value: &Text, path: &str, reader: &mut FileReader<'_, '_>) {
    client.has_credentials |= header_into(&mut client.settings, name, value, path, reader);
}

fn queue(group: &mut Group<'_>, client: &mut Client, reader: &mut FileReader<'_, '_>) {
    let Some(mut queue) = group.group("sending_queue", reader) else { return };
    if let Some(consumers) = queue.number("num_consumers", reader) {
        client.settings.set("max_in_flight", consumers.clamp(1, 64).to_string());
    }
    if let Some(mut batch) = queue.group("batch", reader) {
        if let Some(timeout) = batch.text("flush_timeout", reader) {
            set_duration(&mut client.settings, "linger", &timeout, &batch.path_of("flush_timeout"), reader);
        }
        let is_bytes = batch.text("sizer", reader).is_some_and(|sizer| sizer.value == "bytes");
        let size = batch.number("max_size", reader);
        match size.filter(|_| is_bytes) {
            Some(bytes) => {
                let size = Bytes::new(bytes.clamp(64 << 10, 100 << 20)).to_string();
                client.settings.set("max_request_bytes", size);
            }
            None => {
                if size.is_some() {
                    let message =
                        "left out: requests are bounded in bytes (`max_request_bytes`), not in items";
                    reader.note(&batch.at.clone(), &batch.path_of("max_size"), message);
                }
            }
        }
        batch.lacks(&[("min_size", "not needed: a batch is sent when it is full or after `linger`")], reader);
        batch.finish(reader);
    }
    queue.lacks(
        &[
            ("enabled", "not needed: the journal is the queue, and always on"),
            ("queue_size", "not needed: the journal is the queue; `journal.quota` bounds it in bytes"),
            ("sizer", "not needed: the journal is the queue; `journal.quota` bounds it in bytes"),
            ("storage", "not needed: the journal is on disk, in the folder `data`"),
            (
                "block_on_overflow",
                "`journal.when_full` says what happens: by default clients are refused and retry",
            ),
            ("wait_for_result", "not needed: an item is acknowledged when it is in the journal"),
        ],
        reader,
    );
    queue.finish(reader);
}

fn retries(group: &mut Group<'_>, client: &mut Client, reader: &mut FileReader<'_, '_>) {
    let Some(mut retry) = group.group("retry_on_failure", reader) else { return };
    let mut backoff = Map::default();
    for (theirs, ours) in [("initial_interval", "min"), ("max_interval", "max")] {
        if let Some(text) = retry.text(theirs, reader) {
            set_duration(&mut backoff, ours, &text, &retry.path_of(theirs), reader);
        }
    }
    client.settings.set_group("backoff", backoff);
    retry.lacks(
        &[
            ("enabled", "not needed: an item is retried until it is delivered or refused for good"),
            ("max_elapsed_time", "not needed: an item is retried until it is delivered or refused for good"),
            ("multiplier", "left out: the delay doubles"),
            ("randomization_factor", "left out: the delay has jitter"),
        ],
        reader,
    );
    retry.finish(reader);
}

/// Sets a duration, which the Collector may have written as a fraction.
pub(in crate::import) fn set_duration(
    map: &mut Map,
    key: &str,
    text: &Text,
    path: &str,
    reader: &mut FileReader<'_, '_>,
) {
    match duration(&text.value) {
        Some(duration) => map.set(key, duration),
        None if text.is_open() => map.set(key, text.value.as_str()),
        None => reader.note(&text.at, path, "left out: not a duration that is known here"),
    }
}

/// A duration of Go in our notation: `1m30s`, `0.5s`, `1.5h`; none if it is none.
pub(in crate::import) fn duration(text: &str) -> Option<String> {
    let mut milliseconds = 0.0_f64;
    let mut rest = text.trim();
    if rest.is_empty() || rest == "0" {
        return (rest == "0").then(|| "0s".to_owned());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(digits);
        let letters = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        let size = match unit {
            "ns" => 1e-6,
            "us" | "µs" => 1e-3,
            "ms" => 1.0,
            "s" => 1e3,
            "m" => 6e4,
            "h" => 3.6e6,
            "d" => 8.64e7,
            "w" => 6.048e8,
            "y" => 3.1536e10,
            _ => return None,
        };
        milliseconds += number.parse::<f64>().ok()? * size;
        rest = behind;
    }
    if !milliseconds.is_finite() || milliseconds > 1e13 {
        return None;
    }
    // A time that is shorter than what can be written is rounded up.
    Some(crate::values::Duration::milliseconds(milliseconds.ceil() as u64).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_are_ours() {
        for (theirs, ours) in [
            ("5s", Some("5s")),
            ("0.5s", Some("500ms")),
            ("1m30s", Some("1m30s")),
            ("1.5h", Some("1h30m")),
            ("200ms", Some("200ms")),
            ("10us", Some("1ms")),
            ("1w", Some("7d")),
            ("0", Some("0s")),
            ("5", None),
            ("", None),
            ("s", None),
            ("soon", None),
        ] {
            assert_eq!(duration(theirs).as_deref(), ours, "{theirs}");
        }
    }

    #[test]
    fn credentials_are_encoded_unless_they_are_unknown() {
        assert_eq!(basic_credentials("a", "p$$w"), Some("Basic YTpwJHc=".to_owned()));
        assert_eq!(basic_credentials("a", "${PASSWORD}"), None);
    }
}
