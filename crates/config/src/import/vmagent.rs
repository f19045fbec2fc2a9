//! The command line of vmagent.

mod flags;
mod sharding;

use super::document::{Map, Yaml};
use super::group;
use super::notes::{ARGUMENTS, Imported, Notes};
use super::otelcol::{basic_credentials, duration, set_listen_http};
use super::prometheus::is_local;
use super::references;
use super::relabel::{self, Dialect};
use crate::error::Errors;
use crate::values::{Bytes, HeaderName};
use flags::Flags;
use sharding::Sharding;

/// Reads a file that the command line names.
type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Converts the command line of vmagent: its remote writes with their relabeling. `read` reads the files that it names.
///
/// # Errors
/// Every mistake in a file, with its place, or a problem of the command line.
pub fn vmagent(arguments: &[String], read: ReadFile<'_>) -> Result<Imported, Errors> {
    let mut notes = Notes::default();
    let mut flags = Flags::parse(arguments)?;
    let mut configuration = Map::default();
    server(&mut flags, &mut configuration, &mut notes);
    storage(&mut flags, &mut configuration, &mut notes);
    let urls = flags.all("remoteWrite.url");
    if urls.is_empty() {
        let help = "write the flags of vmagent behind `--`: tidegate import vmagent -- -remoteWrite.url=…";
        return Err(Errors::of_file(ARGUMENTS, "there is no `-remoteWrite.url`".to_owned(), help));
    }
    let (common, labels) = (common_rules(&mut flags, read, &mut notes)?, labels(&mut flags, &mut notes));
    let sharding = Sharding::read(&mut flags, &urls, &mut notes)?;
    // Unlike values of other flags, a single one is for the first URL alone.
    let url_rules = flags.all("remoteWrite.urlRelabelConfig");
    let mut each = Vec::new();
    for (index, url) in urls.iter().enumerate() {
        let mut rules = common.clone();
        if let Some(file) = url_rules.get(index) {
            rules.extend(rules_in(file, read, &mut notes)?);
        }
        rules.extend(labels.iter().cloned());
        let mut settings = sink(&mut flags, index, url, &mut notes);
        relabel::set_rules(&mut settings, rules);
        each.push(settings);
    }
    let mut sinks = Map::default();
    match (sharding, each.as_slice()) {
        (Some(sharding), each) => sinks.set("upstream", sharding.sink(&urls, each, &flags, &mut notes)),
        (None, [only]) => sinks.set("upstream", only.clone()),
        (None, each) => {
            for (number, settings) in (1..).zip(each) {
                sinks.set(&format!("upstream-{number}"), settings.clone());
            }
        }
    }
    configuration.set_group("sinks", sinks);
    flags.note_rest(&mut notes);
    Ok(notes.print(ARGUMENTS, "Converted from the command line of vmagent.", &configuration, &[]))
}

/// The relabeling of all remote writes.
fn common_rules(flags: &mut Flags, read: ReadFile<'_>, notes: &mut Notes) -> Result<Vec<Map>, Errors> {
    let mut rules = Vec::new();
    for file in flags.all("remoteWrite.relabelConfig") {
        rules.extend(rules_in(&file, read, notes)?);
    }
    Ok(rules)
}

/// The labels of all remote writes, as rules after all others: vmagent adds them last. Unlike external labels, they replace what is there.
fn labels(flags: &mut Flags, notes: &mut Notes) -> Vec<Map> {
    let mut rules = Vec::new();
    for label in flags.all("remoteWrite.label") {
        match label.split_once('=') {
            Some((name, value)) => {
                let mut rule = Map::default();
                rule.set("target_label", name);
                // It is no replacement with groups.
                rule.set("replacement", references::plain(&value.replace('$', "$$")).0);
                rules.push(rule);
            }
            None => notes.argument(
                flags.place("remoteWrite.label"),
                "-remoteWrite.label",
                "left out: it is not NAME=VALUE",
            ),
        }
    }
    rules
}

/// The rules in a file.
fn rules_in(file: &str, read: ReadFile<'_>, notes: &mut Notes) -> Result<Vec<Map>, Errors> {
    if file.is_empty() {
        return Ok(Vec::new());
    }
    let text = read(file).map_err(|error| {
        let message = format!("cannot read the relabeling rules in {file}: {error}");
        Errors::of_file(file, message, "check the path; it is relative to the working directory")
    })?;
    let mut rules = group::file(file, &text, notes, references::vmagent, |root, reader| {
        relabel::rules(root, "rules", Dialect::Vmagent, reader)
    })?;
    if !rules.is_empty() {
        rules.push(without_hidden_labels());
    }
    Ok(rules)
}

/// A rule that drops the labels whose names begin with `__`, but for the metric's name: vmagent drops them after each file.
fn without_hidden_labels() -> Map {
    let mut rule = Map::default();
    let comment = "As vmagent does after its rules: labels that begin with `__` are dropped.";
    rule.set_with("regex", "__name__|_?[^_].*|_", Some(comment));
    rule.set("action", "labelkeep");
    rule
}

/// The addresses and limits of the server.
fn server(flags: &mut Flags, configuration: &mut Map, notes: &mut Notes) {
    let address = flags.one("httpListenAddr");
    let place = flags.place("httpListenAddr");
    match address.as_deref() {
        Some(address) => {
            let address = match address.rsplit_once(':') {
                Some(("", port)) => format!("0.0.0.0:{port}"),
                Some(("localhost", port)) => format!("127.0.0.1:{port}"),
                _ => address.to_owned(),
            };
            set_listen_http(configuration, &address);
        }
        None => {
            let message = "tidegate listens on 127.0.0.1:4318, and vmagent on port 8429 of every interface: set \
                           `listen.http`, or change the senders";
            notes.argument(place, "-httpListenAddr", message);
        }
    }
    let mut tls = Map::default();
    for (flag, setting) in [("tlsCertFile", "cert_file"), ("tlsKeyFile", "key_file")] {
        tls.set_some(setting, flags.one(flag));
    }
    if flags.one("tls").is_some_and(|on| on != "false") {
        let listen = configuration.group("listen");
        listen.set_group("tls", tls);
        listen.remove("insecure");
    }
    if let Some(bytes) = flags.one("maxInsertRequestSize").as_deref().and_then(bytes) {
        let size = Bytes::new(bytes.clamp(64 << 10, 1 << 30)).to_string();
        configuration.group("sources").group("prometheus_remote_write").set("max_body", size);
    }
    if let Some(bytes) = flags.one("memory.allowedBytes").as_deref().and_then(bytes) {
        configuration.set("memory", Bytes::new(bytes).to_string());
    }
}

/// The folder and the size of the queue.
fn storage(flags: &mut Flags, configuration: &mut Map, notes: &mut Notes) {
    if let Some(path) = flags.one("remoteWrite.tmpDataPath") {
        let comment = "A folder of tidegate's own: what vmagent has left in it is not read.";
        configuration.set_with("data", format!("{}/tidegate", path.trim_end_matches('/')), Some(comment));
    }
    let limits: Vec<u64> = flags
        .all("remoteWrite.maxDiskUsagePerURL")
        .iter()
        .filter_map(|text| bytes(text))
        .filter(|bytes| *bytes > 0)
        .collect();
    if let Some(most) = limits.iter().max() {
        let place = flags.place("remoteWrite.maxDiskUsagePerURL");
        let message = "one journal serves all sinks: `journal.quota` bounds it, and the oldest data is dropped when it is \
                       full, as vmagent does";
        notes.argument(place, "-remoteWrite.maxDiskUsagePerURL", message);
        let quota = Bytes::new((*most).clamp(2 << 20, 1024 << 40)).to_string();
        let journal = configuration.group("journal");
        journal.set("quota", quota);
        journal.set("when_full", "drop_oldest");
    }
}

fn sink(flags: &mut Flags, index: usize, url: &str, notes: &mut Notes) -> Map {
    let mut map = Map::default();
    map.set("type", "prometheus_remote_write");
    map.set("url", references::plain(url).0);
    for (flag, setting) in [("remoteWrite.sendTimeout", "timeout"), ("remoteWrite.flushInterval", "linger")] {
        map.set_some(setting, flags.at(flag, index).as_deref().and_then(duration));
    }
    for (flag, setting) in [("remoteWrite.retryMinInterval", "min"), ("remoteWrite.retryMaxTime", "max")] {
        if let Some(delay) = flags.at(flag, index).as_deref().and_then(duration) {
            map.group("backoff").set(setting, delay);
        }
    }
    if let Some(queues) = flags.at("remoteWrite.queues", index).and_then(|text| text.parse::<u64>().ok()) {
        map.set("max_in_flight", queues.clamp(1, 64).to_string());
    }
    if let Some(rows) = flags.one("remoteWrite.maxRowsPerBlock").and_then(|text| text.parse::<u64>().ok()) {
        map.set("max_request_samples", rows.clamp(1, 10_000_000).to_string());
    }
    if let Some(bytes) = flags.one("remoteWrite.maxBlockSize").as_deref().and_then(bytes) {
        map.set("max_request_bytes", Bytes::new(bytes.clamp(64 << 10, 1 << 30)).to_string());
    }
    if flags.at("remoteWrite.forcePromProto", index).is_some_and(|on| on == "true") {
        map.set("protocol", "1.0");
    }
    let has_credentials = credentials(flags, index, &mut map, notes);
    let mut tls = Map::default();
    for (flag, setting) in [
        ("remoteWrite.tlsCAFile", "ca_file"),
        ("remoteWrite.tlsCertFile", "cert_file"),
        ("remoteWrite.tlsKeyFile", "key_file"),
        ("remoteWrite.tlsServerName", "server_name"),
    ] {
        map_some(&mut tls, setting, flags.at(flag, index));
    }
    if flags.at("remoteWrite.tlsInsecureSkipVerify", index).is_some_and(|on| on == "true") {
        let message =
            "left out: certificates are always verified; trust the server's authority with `tls.ca_file`";
        notes.argument(
            flags.place("remoteWrite.tlsInsecureSkipVerify"),
            "-remoteWrite.tlsInsecureSkipVerify",
            message,
        );
    }
    if !url.starts_with("http://") {
        map.set_group("tls", tls);
        return map;
    }
    if !tls.is_empty() {
        let message = format!("left out for {url}, which begins with `http://`, so nothing is encrypted");
        notes.argument(flags.place("remoteWrite.url"), "-remoteWrite.tls…", message);
    }
    if has_credentials && !is_local(url) {
        map.set_with("insecure", "true", Some("As before: the credentials can be read on the network."));
    }
    map
}

fn map_some(map: &mut Map, key: &str, value: Option<String>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        map.set(key, Yaml::Text(references::plain(&value).0));
    }
}

/// Headers, tokens and passwords; whether there are credentials among them.
fn credentials(flags: &mut Flags, index: usize, map: &mut Map, notes: &mut Notes) -> bool {
    let mut has_credentials = false;
    let headers = flags.at("remoteWrite.headers", index).unwrap_or_default();
    for header in headers.split("^^").filter(|header| !header.is_empty()) {
        let known = header.split_once(':').and_then(|(name, value)| {
            name.trim().parse::<HeaderName>().ok().map(|name| (name, value.trim()))
        });
        match known {
            Some((name, value)) => {
                has_credentials |= name.is_credential();
                map.group("headers").set(name.as_str(), references::plain(value).0);
            }
            None => {
                let place = flags.place("remoteWrite.headers");
                notes.argument(place, "-remoteWrite.headers", "left out: a header that cannot be set");
            }
        }
    }
    let token = flags.at("remoteWrite.bearerToken", index).filter(|token| !token.is_empty());
    let token_file = flags.at("remoteWrite.bearerTokenFile", index).filter(|file| !file.is_empty());
    let user = flags.at("remoteWrite.basicAuth.username", index).filter(|user| !user.is_empty());
    let password = flags.at("remoteWrite.basicAuth.password", index);
    let password_file = flags.at("remoteWrite.basicAuth.passwordFile", index);
    let value = match (token_file, token, user) {
        (Some(file), ..) => format!("Bearer ${{file:{file}}}"),
        (None, Some(token), _) => format!("Bearer {}", references::plain(&token).0),
        (None, None, Some(user)) => {
            let literal = password.filter(|_| password_file.is_none());
            match literal.and_then(|password| basic_credentials(&user, &password)) {
                Some(value) => value,
                None => {
                    let message = "`authorization` needs the base64 form of `USER:PASSWORD`: set the variable \
                                   BASIC_CREDENTIALS to it";
                    notes.argument(
                        flags.place("remoteWrite.basicAuth.username"),
                        "-remoteWrite.basicAuth",
                        message,
                    );
                    "Basic ${BASIC_CREDENTIALS}".to_owned()
                }
            }
        }
        (None, None, None) => return has_credentials,
    };
    map.group("headers").set("authorization", value);
    true
}

/// A size as vmagent writes it: `10MB`, `1GiB`, `1048576`.
fn bytes(text: &str) -> Option<u64> {
    text.parse::<Bytes>().or_else(|_| format!("{text}B").parse()).ok().map(Bytes::get)
}

#[cfg(test)]
mod tests;
