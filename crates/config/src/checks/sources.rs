//! Paths under which sources are served.

mod kubernetes_logs;

use super::{Clash, path};
use crate::model::{Config, INPUT_ATTRIBUTE};
use crate::values::SyslogAddress;
use tidegate_pipeline::LinePattern;

/// Where the other sources are served, and below: requests there never come to the source `http`.
const TAKEN: [&str; 10] = [
    "/api/v1/write",
    "/api/v1/receive",
    "/v1/traces",
    "/v1/metrics",
    "/v1/logs",
    "/v1development/profiles",
    "/intake",
    "/loki/api/v1/push",
    "/api/prom/push",
    "/config",
];

pub(super) fn check(config: &Config, clashes: &mut Vec<Clash>) {
    check_journald(config, clashes);
    kubernetes_logs::check(config, clashes);
    syslog(config, clashes);
    check_fluent_forward(config, clashes);
    check_file(config, clashes);
    let sources = &config.sources;
    let given = &sources.http.path;
    let served = whole(given);
    let mut clash = |about: Vec<Vec<String>>, message: String, help: &str| {
        clashes.push(Clash { about, message, help: help.to_owned() });
    };
    let own = path(["sources", "http", "path"]);
    let is_plain = served.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\"<>\\^`{|}".contains(&byte));
    if !is_plain || served == "/" {
        let message = format!("`sources.http.path` ({given:?}) is not a valid path for requests");
        return clash(
            vec![own],
            message,
            "write a path such as `/ingest/logs`, percent-encoded where needed",
        );
    }
    let is_under =
        |other: &str| served.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if let Some(taken) = TAKEN.into_iter().find(|taken| is_under(taken)) {
        let message = format!("`sources.http.path` ({given}) is served by another source (`{taken}`)");
        return clash(vec![own], message, "choose another path");
    }
    let prefix = whole(&sources.elasticsearch.prefix);
    if prefix != "/" && is_under(&prefix) {
        let message =
            format!("`sources.http.path` ({given}) is under `sources.elasticsearch.prefix` ({prefix})");
        clash(vec![own, path(["sources", "elasticsearch", "prefix"])], message, "choose another path");
    }
}

/// Addresses that everybody on the network can read, and TLS without a certificate.
fn syslog(config: &Config, clashes: &mut Vec<Clash>) {
    for (name, listener) in &config.sources.syslog.listeners {
        let setting = format!("sources.syslog.listeners.{name}");
        let mut clash = |message: String, help: String| {
            let about = vec![path(["sources", "syslog", "listeners", name.as_str(), "address"])];
            clashes.push(Clash { about, message, help });
        };
        let address = &listener.address;
        match address {
            SyslogAddress::Tls(_) if config.listen.tls.effective_of(&listener.tls).is_none() => clash(
                format!("`{setting}` uses TLS, but there is no certificate"),
                format!("set `cert_file` and `key_file` in `{setting}.tls`, or in `listen.tls`"),
            ),
            SyslogAddress::Tcp(at) | SyslogAddress::Udp(at)
                if !at.ip().is_loopback() && !config.listen.insecure =>
            {
                clash(
                    format!(
                        "`{setting}.address` ({address}) is reachable from other machines and does not use TLS"
                    ),
                    "use `tls://`; or, on a trusted network, set `listen.insecure: true`".to_owned(),
                );
            }
            _ => {}
        }
    }
}

fn check_fluent_forward(config: &Config, clashes: &mut Vec<Clash>) {
    let source = &config.sources.fluent_forward;
    let own = |setting: &str| path(["sources", "fluent_forward", setting]);
    let mut clash = |setting: &str, message: String, help: &str| {
        clashes.push(Clash { about: vec![own(setting)], message, help: help.to_owned() });
    };
    if let Some(address) = source.address
        && source.tls.is_none()
        && !address.ip().is_loopback()
        && !config.listen.insecure
    {
        let message =
            format!("`sources.fluent_forward.address` is {address}, which other machines reach without TLS");
        clash(
            "address",
            message,
            "set `sources.fluent_forward.tls`; or, where the network is trusted, set `listen.insecure: true`",
        );
    }
    if let Some(tls) = &source.tls
        && config.listen.tls.effective_of(tls).is_none()
    {
        let message = "`sources.fluent_forward.tls` has no certificate".to_owned();
        clash("tls", message, "set `cert_file` and `key_file` there or in `listen.tls`");
    }
    if source.tls.is_some() && source.address.is_none() {
        let message = "`sources.fluent_forward.tls` has no effect without an `address`".to_owned();
        clash("tls", message, "set `address`, or remove `tls`: a Unix socket has no TLS");
    }
    if !source.users.is_empty() && source.shared_key.is_none() {
        let message = "`sources.fluent_forward` has `users` but no `shared_key`".to_owned();
        clash("users", message, "set `shared_key`: the protocol checks users only with one");
    }
}

fn check_file(config: &Config, clashes: &mut Vec<Clash>) {
    for (name, input) in &config.sources.file.inputs {
        let name = name.as_str();
        let mut clash = |setting: &[&str], message: String, help: &str| {
            let own = ["sources", "file", "inputs", name].into_iter().chain(setting.iter().copied());
            clashes.push(Clash {
                about: vec![own.map(str::to_owned).collect()],
                message,
                help: help.to_owned(),
            });
        };
        if input.include.is_empty() {
            let message = format!("`sources.file.inputs.{name}.include` names no files");
            clash(&["include"], message, "write the paths of the files, with `*` for any characters");
        }
        if input.attributes.contains_key(INPUT_ATTRIBUTE) {
            let message = format!("`sources.file.inputs.{name}.attributes` sets `{INPUT_ATTRIBUTE}`");
            clash(&["attributes"], message, "choose another name: tidegate sets that one");
        }
        let Some(multiline) = &input.multiline else { continue };
        let patterns = [("start_pattern", &multiline.start_pattern), ("end_pattern", &multiline.end_pattern)];
        if patterns.iter().filter(|(_, pattern)| pattern.is_some()).count() != 1 {
            let message = format!(
                "`sources.file.inputs.{name}.multiline` needs either `start_pattern` or `end_pattern`"
            );
            clash(&["multiline"], message, "set one of them");
        }
        for (setting, pattern) in patterns {
            if let Some(Err(error)) = pattern.as_ref().map(|pattern| LinePattern::compile(pattern)) {
                let message = format!("`sources.file.inputs.{name}.multiline.{setting}`: {error}");
                clash(&["multiline", setting], message, "write a regular expression, such as `^\\d{4}-`");
            }
        }
    }
}

/// The longest name of an input: the key of a checkpoint has 32 bytes.
const LONGEST_INPUT: usize = 31;

fn check_journald(config: &Config, clashes: &mut Vec<Clash>) {
    for (name, input) in &config.sources.journald.inputs {
        let name = name.as_str();
        let mut clash = |setting: Option<&str>, message: String, help: &str| {
            let own = ["sources", "journald", "inputs", name].into_iter().chain(setting);
            let about = vec![own.map(str::to_owned).collect()];
            clashes.push(Clash { about, message, help: help.to_owned() });
        };
        if name.len() > LONGEST_INPUT {
            let message =
                format!("the name of a journal, `{name}`, has more than {LONGEST_INPUT} characters");
            clash(None, message, "choose a shorter one");
        }
        if input.directory.is_some() && input.namespace.is_some() {
            let message = "a journal has both a `directory` and a `namespace`".to_owned();
            clash(Some("namespace"), message, "remove one of them: a namespace is one of this machine");
        }
        let is_match = |text: &String| {
            let field = text.split_once('=').map_or("", |(field, _)| field);
            let is_name = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
            text == "+" || (!field.is_empty() && field.bytes().all(is_name))
        };
        if let Some(other) = input.matches.iter().find(|text| !is_match(text)) {
            let message = format!("`{other}` is no match of a journal");
            clash(
                Some("matches"),
                message,
                "write `FIELD=value`, such as `_TRANSPORT=kernel`, or `+` between alternatives",
            );
        }
    }
}

/// With one slash at its beginning and none at its end, but for the root.
fn whole(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}
