//! The remote writes of a Prometheus server's configuration.

use super::document::Map;
use super::group::{self, FileReader, Group, Text};
use super::notes::{Imported, Notes};
use super::otelcol::{basic_credentials, header_into, set_duration};
use super::references;
use super::relabel::{self, Dialect};
use super::sinks::name_of;
use crate::error::Errors;
use crate::yaml::{Node, Value};

/// The `remote_write` that Prometheus then needs.
const REPLACEMENT: &str = "remote_write: [{ url: http://127.0.0.1:4318/api/v1/write }]";

/// Converts the `remote_write` section of a Prometheus server, and its external labels. `source` is what to call `text` in
/// messages.
///
/// # Errors
/// Every mistake in it, with its place.
pub fn prometheus(source: &str, text: &str) -> Result<Imported, Errors> {
    let mut notes = Notes::default();
    let configuration = group::file(source, text, &mut notes, references::plain, convert)?;
    let tail = [
        "Then replace `remote_write` in the configuration of Prometheus by:".to_owned(),
        REPLACEMENT.to_owned(),
    ];
    let title = format!("Converted from {source}, a configuration of Prometheus.");
    Ok(notes.print(source, &title, &configuration, &tail))
}

fn convert(root: &Node, reader: &mut FileReader<'_, '_>) -> Map {
    let Some(mut top) = reader.group(root, "") else { return Map::default() };
    let labels = external_labels(&mut top, reader);
    let mut sinks = Map::default();
    let writes = top.items("remote_write", reader);
    if writes.is_empty() {
        reader.error(
            &(0..0),
            "there is no `remote_write`",
            "is this the configuration of a Prometheus that sends?",
        );
    }
    for (index, item) in writes.iter().enumerate() {
        let path = format!("remote_write[{index}]");
        let Some(mut write) = reader.group(item, &path) else { continue };
        let name = write.text("name", reader).map_or_else(
            || if writes.len() == 1 { "upstream".to_owned() } else { format!("upstream-{}", index + 1) },
            |name| name_of(&name.value),
        );
        let mut rules = labels.clone();
        if let Some(entry) = write.take("write_relabel_configs") {
            let path = write.path_of("write_relabel_configs");
            rules.extend(relabel::rules(&entry.node, &path, Dialect::Prometheus, reader));
        }
        let mut settings = sink(&mut write, reader);
        relabel::set_rules(&mut settings, rules);
        write.finish(reader);
        sinks.set(&name, settings);
    }
    let stays = "stays in Prometheus, which goes on scraping and sends to tidegate";
    top.lacks(
        &[
            ("scrape_configs", stays),
            ("scrape_config_files", stays),
            ("rule_files", "stays in Prometheus, which goes on evaluating rules"),
            ("alerting", "stays in Prometheus, which goes on sending alerts"),
            ("remote_read", "stays in Prometheus: tidegate does not answer queries"),
            ("storage", "stays in Prometheus: it is about its own storage"),
            ("tracing", "stays in Prometheus; tidegate receives its spans if it sends them there"),
            ("otlp", "stays in Prometheus; for OTLP that tidegate translates see `otlp` in the sink"),
            ("runtime", "stays in Prometheus"),
        ],
        reader,
    );
    top.finish(reader);
    let mut configuration = Map::default();
    configuration.set_group("sinks", sinks);
    configuration
}

/// Rules for the labels that every series gets.
fn external_labels(top: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Vec<Map> {
    let mut rules = Vec::new();
    let Some(mut global) = top.group("global", reader) else { return rules };
    if let Some(mut labels) = global.group("external_labels", reader) {
        for entry in labels.take_all() {
            let path = labels.path_of(&entry.key);
            if let Value::Scalar(text) = &entry.node.value {
                let value = expanded(text);
                // A replacement is a template: a dollar sign in a label's value would begin a group.
                if value.contains("$$") {
                    let message = "a dollar sign in its value begins a group in `replacement`: look at it";
                    reader.note(&entry.key_at, &path, message);
                }
                rules.push(relabel::label_if_absent(&entry.key, &value));
            }
        }
        let message = "became relabeling rules, which do nothing where Prometheus has set the labels already: it may keep \
                       them for its rules and alerts";
        reader.note(&labels.at.clone(), &labels.path.clone(), message);
    }
    let own = "stays in Prometheus, which goes on scraping and sends to tidegate";
    for entry in global.take_all() {
        if entry.key != "external_labels" {
            reader.note(&entry.key_at, &format!("global.{}", entry.key), own);
        }
    }
    rules
}

/// The value of an external label: the only place where Prometheus looks for variables, `${X}` or `$X`.
fn expanded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (plain, from_dollar) = rest.split_at(dollar);
        out.push_str(plain);
        let after = from_dollar.strip_prefix('$').unwrap_or_default();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some(escaped) = after.strip_prefix('$') {
            out.push_str("$$");
            rest = escaped;
            continue;
        }
        let (name, behind) = match after.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            Some(found) => found,
            None => after.split_at(after.find(|c| !is_word(c)).unwrap_or(after.len())),
        };
        if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_word) {
            out.push_str(&format!("${{{name}}}"));
            rest = behind;
        } else {
            out.push_str("$$");
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

fn sink(write: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Map {
    let mut map = Map::default();
    map.set("type", "prometheus_remote_write");
    let url = write.text("url", reader);
    match &url {
        Some(url) => map.set("url", url.value.as_str()),
        None => {
            let at = write.at.clone();
            reader.error(&at, "a remote write has no `url`", "add `url: http://HOST:PORT/api/v1/write`");
        }
    }
    if let Some(message) = write.text("protobuf_message", reader) {
        map.set("protocol", if message.value.contains("v2") { "2.0" } else { "1.0" });
    }
    if let Some(timeout) = write.text("remote_timeout", reader) {
        set_duration(&mut map, "timeout", &timeout, &write.path_of("remote_timeout"), reader);
    }
    queue(write, &mut map, reader);
    let mut has_credentials = headers(write, &mut map, reader);
    has_credentials |= authorization(write, &mut map, reader);
    let tls = tls(write, reader);
    let url = url.map_or_else(String::new, |url| url.value);
    if url.starts_with("http://") {
        if !tls.is_empty() {
            let (at, path) = (write.at.clone(), write.path_of("tls_config"));
            reader.note(&at, &path, "left out: the URL begins with `http://`, so nothing is encrypted");
        }
        if has_credentials && !is_local(&url) {
            map.set_with("insecure", "true", Some("As before: the credentials can be read on the network."));
        }
    } else {
        map.set_group("tls", tls);
    }
    let cloud = "left out: tidegate cannot fetch tokens or sign requests";
    write.lacks(
        &[
            ("oauth2", cloud),
            ("sigv4", cloud),
            ("azuread", cloud),
            ("google_iam", cloud),
            ("proxy_url", "left out: set the environment variable `https_proxy` or `http_proxy`"),
            ("no_proxy", "left out: set the environment variable `no_proxy`"),
            ("proxy_from_environment", "not needed: the proxy is always taken from the environment"),
            ("proxy_connect_header", "left out: the proxy gets no additional headers"),
            ("follow_redirects", "not needed: a redirection on the same host is followed"),
            ("enable_http2", "not needed"),
            ("http_headers", "left out: write them under `headers`"),
            ("send_exemplars", "not needed: exemplars are sent as received"),
            ("send_native_histograms", "not needed: histograms are sent as received"),
            ("metadata_config", "not needed: metadata is sent as received"),
            ("round_robin_dns", "not needed: list the receivers in `endpoints`"),
        ],
        reader,
    );
    map
}

/// Whether a URL is on this machine.
pub(super) fn is_local(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local))
}

fn queue(write: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) {
    let Some(mut queue) = write.group("queue_config", reader) else { return };
    if let Some(shards) = queue.number("max_shards", reader) {
        let path = queue.path_of("max_shards");
        if shards > 64 {
            let at = queue.at.clone();
            reader.note(&at, &path, "64 concurrent requests are the most; each carries more");
        }
        map.set("max_in_flight", shards.clamp(1, 64).to_string());
    }
    if let Some(samples) = queue.number("max_samples_per_send", reader) {
        map.set("max_request_samples", samples.clamp(1, 10_000_000).to_string());
    }
    if let Some(deadline) = queue.text("batch_send_deadline", reader) {
        set_duration(map, "linger", &deadline, &queue.path_of("batch_send_deadline"), reader);
    }
    for (theirs, ours) in [("min_backoff", "min"), ("max_backoff", "max")] {
        if let Some(text) = queue.text(theirs, reader) {
            set_duration(map.group("backoff"), ours, &text, &queue.path_of(theirs), reader);
        }
    }
    queue.lacks(
        &[
            ("capacity", "not needed: the journal on disk is the queue; `journal.quota` bounds it in bytes"),
            ("min_shards", "not needed: the number of requests adapts to the receiver"),
            ("retry_on_http_429", "not needed: 429 is always retried, after the delay that it names"),
            (
                "sample_age_limit",
                "left out: samples are sent however old; `when_full: drop_oldest` bounds the backlog",
            ),
        ],
        reader,
    );
    queue.finish(reader);
}

fn headers(write: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) -> bool {
    let path = write.path_of("headers");
    let Some(mut headers) = write.group("headers", reader) else { return false };
    let mut has_credentials = false;
    for entry in headers.take_all() {
        if let Some(value) = reader.text(&entry.node, &path) {
            has_credentials |= header_into(map, &entry.key, &value, &path, reader);
        }
    }
    has_credentials
}

fn authorization(write: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) -> bool {
    let mut value = None;
    if let Some(mut basic) = write.group("basic_auth", reader) {
        value = basic_auth(&mut basic, reader);
        basic.finish(reader);
    }
    if let Some(mut authorization) = write.group("authorization", reader) {
        let kind = authorization.text("type", reader).map_or_else(|| "Bearer".to_owned(), |kind| kind.value);
        let secret = secret(&mut authorization, "credentials", "credentials_file", reader);
        value = secret.map(|secret| format!("{kind} {secret}"));
        authorization.finish(reader);
    }
    for (theirs, is_file) in [("bearer_token", false), ("bearer_token_file", true)] {
        if let Some(text) = write.text(theirs, reader) {
            value = Some(bearer(&text, is_file));
        }
    }
    let Some(value) = value else { return false };
    map.group("headers").set("authorization", value);
    true
}

fn bearer(text: &Text, is_file: bool) -> String {
    if is_file { format!("Bearer ${{file:{}}}", text.value) } else { format!("Bearer {}", text.value) }
}

/// A secret that stands there or in a file.
fn secret(group: &mut Group<'_>, key: &str, file: &str, reader: &mut FileReader<'_, '_>) -> Option<String> {
    let given = group.text(key, reader).map(|text| text.value);
    let in_file = group.text(file, reader).map(|path| format!("${{file:{}}}", path.value));
    given.or(in_file)
}

fn basic_auth(basic: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Option<String> {
    let (at, path) = (basic.at.clone(), basic.path.clone());
    let user = secret(basic, "username", "username_file", reader)?;
    let password = secret(basic, "password", "password_file", reader)?;
    Some(basic_credentials(&user, &password).unwrap_or_else(|| {
        let message = "`authorization` needs the base64 form of `USER:PASSWORD`: set the variable BASIC_CREDENTIALS to it";
        reader.note(&at, &path, message);
        "Basic ${BASIC_CREDENTIALS}".to_owned()
    }))
}

fn tls(write: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Map {
    let mut map = Map::default();
    let Some(mut tls) = write.group("tls_config", reader) else { return map };
    for key in ["ca_file", "cert_file", "key_file", "server_name"] {
        map.set_some(key, tls.text(key, reader).map(|text| text.value));
    }
    let (at, path) = (tls.at.clone(), tls.path_of("insecure_skip_verify"));
    if tls.flag("insecure_skip_verify", reader) == Some(true) {
        let message =
            "left out: certificates are always verified; trust the server's authority with `tls.ca_file`";
        reader.note(&at, &path, message);
    }
    let inline = "left out: write it to a file";
    tls.lacks(
        &[
            ("ca", inline),
            ("cert", inline),
            ("key", inline),
            ("ca_ref", inline),
            ("cert_ref", inline),
            ("key_ref", inline),
            ("min_version", "not needed: TLS 1.2 is the lowest"),
            ("max_version", "left out: TLS 1.2 and 1.3 are always allowed"),
        ],
        reader,
    );
    tls.finish(reader);
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_external_labels_are_ours() {
        for (theirs, ours) in [
            ("eu", "eu"),
            ("${ZONE}-a", "${ZONE}-a"),
            ("$ZONE-a", "${ZONE}-a"),
            ("$$5", "$$5"),
            ("5$", "5$$"),
        ] {
            assert_eq!(expanded(theirs), ours);
        }
    }
}
