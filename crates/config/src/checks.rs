//! Values that are each valid, but not beside each other.

mod access;
mod in_the_clear;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Component, PathBuf};

use crate::model::{
    Backoff, Config, Durability, ElasticsearchSink, LakeSink, Listener, OtlpSink, RemoteWriteSink, Signal,
    Sink, Tls,
};
use crate::values::{HeaderName, Name, Secret, Url};

/// Two or more settings that cannot be together.
pub(crate) struct Clash {
    /// The paths of the settings in question; the first that is written in the file is pointed at.
    pub(crate) about: Vec<Vec<String>>,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// Everything that does not go together.
pub(crate) fn check(config: &Config) -> Vec<Clash> {
    let mut clashes = Vec::new();
    addresses(config, &mut clashes);
    access::check(config, &mut clashes);
    journal(config, &mut clashes);
    lakes(config, &mut clashes);
    for (name, sink) in &config.sinks {
        match sink {
            Sink::PrometheusRemoteWrite(sink) => remote_write(config, name, sink, &mut clashes),
            Sink::Otlp(sink) => otlp(config, name, sink, &mut clashes),
            Sink::Elasticsearch(sink) => elasticsearch(config, name, sink, &mut clashes),
            Sink::Lake(_) | Sink::Blackhole(_) => {}
        }
    }
    clashes
}

/// The addresses that are listened on, each with its setting in `listen`.
fn addresses_of(config: &Config) -> Vec<(String, SocketAddr)> {
    let listen = &config.listen;
    let address = |listener: Listener| Some((listener.to_string(), listener.address(listen)?));
    let admin = ("admin".to_owned(), listen.admin);
    Listener::ALL.into_iter().filter_map(address).chain([admin]).collect()
}

fn addresses(config: &Config, clashes: &mut Vec<Clash>) {
    let all = addresses_of(config);
    for (at, (name, address)) in all.iter().enumerate() {
        for (other, before) in all.iter().take(at) {
            // Both take the same protocols: the same address stands for one listener.
            let one = name == "grpc" && other == "http" && address == before;
            if one || address.port() == 0 || address.port() != before.port() {
                continue;
            }
            if overlap(address.ip(), before.ip()) {
                clashes.push(Clash {
                    about: vec![path(["listen", name]), path(["listen", other])],
                    message: format!(
                        "`listen.{other}` ({before}) and `listen.{name}` ({address}) are the same address"
                    ),
                    help: "give one of them another port".to_owned(),
                });
            }
        }
    }
}

fn journal(config: &Config, clashes: &mut Vec<Clash>) {
    let (quota, segment) = (config.journal.quota, config.journal.segment);
    if quota.get() / 2 < segment.get() {
        clashes.push(Clash {
            about: vec![path(["journal", "quota"]), path(["journal", "segment"])],
            message: format!("`journal.quota` ({quota}) does not hold two segments of {segment}"),
            help: "raise `journal.quota` or lower `journal.segment`: the oldest segment can only be removed \
                   whole, while the newest is being written"
                .to_owned(),
        });
    }
}

fn lakes(config: &Config, clashes: &mut Vec<Clash>) {
    let mut folders: BTreeMap<PathBuf, &Name> = BTreeMap::new();
    for (name, sink) in &config.sinks {
        let Sink::Lake(lake) = sink else { continue };
        if config.journal.durability == Durability::Memory {
            clashes.push(Clash {
                about: vec![path(["journal", "durability"]), path(["sinks", name.as_str()])],
                message: format!(
                    "`journal.durability: memory` and the lake `{name}` cannot be together: a request would be \
                     answered when the lake has finished a file, which takes minutes"
                ),
                help: "set `durability: page_cache` or `fsync`, or configure `sinks` without a lake".to_owned(),
            });
        }
        let about =
            |setting: &str| vec![path(["sinks", name.as_str(), setting]), path(["sinks", name.as_str()])];
        let folder = lake.folder(&config.data);
        let folder: PathBuf = folder.components().filter(|part| *part != Component::CurDir).collect();
        if let Some(first) = folders.get(&folder) {
            clashes.push(Clash {
                about: about("path"),
                message: format!("sinks `{first}` and `{name}` both write to {}", folder.display()),
                help: "give each lake a `path` of its own".to_owned(),
            });
        } else {
            folders.insert(folder, name);
        }
        profiles(name, lake, clashes);
        if lake.group_readable && lake.folder(&config.data).starts_with(&config.data) {
            clashes.push(Clash {
                about: about("group_readable"),
                message: format!(
                    "the lake `{name}` is in the folder `data` ({}), which nobody but the gateway can enter",
                    config.data.display()
                ),
                help: "give the lake a `path` of its own outside of `data`".to_owned(),
            });
        }
        if lake.retention.bytes < lake.file_bytes {
            clashes.push(Clash {
                about: about("retention"),
                message: format!(
                    "`sinks.{name}.retention.bytes` ({}) is less than one file ({})",
                    lake.retention.bytes, lake.file_bytes
                ),
                help: "raise it, or lower `file_bytes`".to_owned(),
            });
        }
    }
}

fn remote_write(config: &Config, name: &Name, sink: &RemoteWriteSink, clashes: &mut Vec<Clash>) {
    let about = |setting: &str| vec![path(["sinks", name.as_str(), setting])];
    if !sink.url.path().starts_with('/') {
        clashes.push(Clash {
            about: about("url"),
            message: format!("`sinks.{name}.url` has no path"),
            help: "add it; Prometheus takes remote write at `/api/v1/write`".to_owned(),
        });
    }
    loops(config, name, "url", [&sink.url], clashes);
    waits(name, &sink.backoff, clashes);
    in_the_clear::check(name, "url", [&sink.url], &[], &sink.headers, sink.insecure, clashes);
    tenant_header(name, sink.tenant_header.as_ref(), &sink.headers, clashes);
}

fn otlp(config: &Config, name: &Name, sink: &OtlpSink, clashes: &mut Vec<Clash>) {
    loops(config, name, "endpoints", &sink.endpoints, clashes);
    in_the_clear::check(name, "endpoints", &sink.endpoints, &[], &sink.headers, sink.insecure, clashes);
    waits(name, &sink.backoff, clashes);
    keys(name, &sink.tls, clashes);
    tenant_header(name, sink.tenant_header.as_ref(), &sink.headers, clashes);
}

fn elasticsearch(config: &Config, name: &Name, sink: &ElasticsearchSink, clashes: &mut Vec<Clash>) {
    loops(config, name, "endpoints", &sink.endpoints, clashes);
    let shown = [("api_key", sink.api_key.is_some()), ("password", sink.password.is_some())];
    let shown: Vec<&str> =
        shown.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect();
    in_the_clear::check(name, "endpoints", &sink.endpoints, &shown, &sink.headers, sink.insecure, clashes);
    waits(name, &sink.backoff, clashes);
    keys(name, &sink.tls, clashes);
    tenant_header(name, sink.tenant_header.as_ref(), &sink.headers, clashes);
    let mut clash = |about: &str, message: String, help: &str| {
        let about = vec![path(["sinks", name.as_str(), about])];
        clashes.push(Clash { about, message, help: help.to_owned() });
    };
    if sink.user.is_some() != sink.password.is_some() {
        let there = if sink.user.is_some() { "user" } else { "password" };
        let message = format!("`sinks.{name}` has a `{there}` alone");
        clash(there, message, "give `user` and `password` together, or an `api_key`");
    }
    if sink.user.is_some() && sink.api_key.is_some() {
        let message = format!("`sinks.{name}` has an `api_key` and a `user`");
        clash("user", message, "one of them is enough: take the other out");
    }
    if sink.signals.contains(&Signal::Profiles) {
        let message = format!("`sinks.{name}.signals` has profiles, of which there are no documents");
        clash("signals", message, "leave them out; a sink of type `otlp` takes them");
    }
    if let Some((setting, _)) = [("dataset", &sink.dataset), ("namespace", &sink.namespace)]
        .into_iter()
        .find(|(_, part)| !is_stream_part(part))
    {
        let message = format!("`sinks.{name}.{setting}` cannot be a part of a data stream's name");
        clash(setting, message, "at most 100 bytes of lower case letters, digits, `_` and `.`");
    }
}

/// Whether a text can be the dataset or the namespace of a data stream.
fn is_stream_part(text: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'.';
    !text.is_empty() && text.len() <= 100 && text.bytes().all(allowed)
}

/// A header that two settings want to write.
fn tenant_header(
    name: &Name,
    header: Option<&HeaderName>,
    headers: &BTreeMap<HeaderName, Secret>,
    clashes: &mut Vec<Clash>,
) {
    let Some(header) = header else { return };
    let help = if header.as_str() == "authorization" || header.as_str().starts_with("grpc-") {
        "name another header, such as `X-Scope-OrgID`: this one has another meaning"
    } else if headers.contains_key(header) {
        "take it out of `headers`, or take `tenant_header` out: then all data goes to that one tenant"
    } else {
        return;
    };
    clashes.push(Clash {
        about: vec![path(["sinks", name.as_str(), "tenant_header"])],
        message: format!("`sinks.{name}.tenant_header` cannot be `{header}`"),
        help: help.to_owned(),
    });
}

fn keys(name: &Name, tls: &Tls, clashes: &mut Vec<Clash>) {
    if tls.cert_file.is_some() != tls.key_file.is_some() {
        let (there, missing) = if tls.cert_file.is_some() { ("cert", "key") } else { ("key", "cert") };
        clashes.push(Clash {
            about: vec![vec!["sinks".into(), name.to_string(), "tls".into(), format!("{there}_file")]],
            message: format!("`sinks.{name}.tls` has a `{there}_file` and no `{missing}_file`"),
            help: "a certificate is shown only together with its key: give both".to_owned(),
        });
    }
}

fn profiles(name: &Name, lake: &LakeSink, clashes: &mut Vec<Clash>) {
    if lake.signals.contains(&Signal::Profiles) {
        clashes.push(Clash {
            about: vec![path(["sinks", name.as_str(), "signals"])],
            message: format!("`sinks.{name}.signals` has profiles, which a lake has no table for"),
            help: "leave them out; a sink of type `otlp` takes them".to_owned(),
        });
    }
}

/// A sink that would send to this gateway.
fn loops<'a>(
    config: &Config,
    name: &Name,
    key: &str,
    urls: impl IntoIterator<Item = &'a Url>,
    clashes: &mut Vec<Clash>,
) {
    for url in urls {
        for (setting, address) in addresses_of(config) {
            if reaches(url, address) {
                clashes.push(Clash {
                    about: vec![path(["sinks", name.as_str(), key]), path(["listen", &setting])],
                    message: format!(
                        "`sinks.{name}.{key}` is this gateway's own address `listen.{setting}` ({address})"
                    ),
                    help: "it would send everything to itself, for ever; give the address of the next system"
                        .to_owned(),
                });
                break;
            }
        }
    }
}

fn waits(name: &Name, backoff: &Backoff, clashes: &mut Vec<Clash>) {
    if backoff.min > backoff.max {
        clashes.push(Clash {
            about: vec![path(["sinks", name.as_str(), "backoff"])],
            message: format!(
                "`sinks.{name}.backoff.min` ({}) is above its `max` ({})",
                backoff.min, backoff.max
            ),
            help: "the wait grows from `min` to `max`".to_owned(),
        });
    }
}

/// Whether sockets bound to these two would get in each other's way on the same port.
fn overlap(a: IpAddr, b: IpAddr) -> bool {
    // On Linux the unspecified IPv6 address takes IPv4 connections too.
    let covers = |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
    a == b || covers(a, b) || covers(b, a)
}

/// Whether a request to this URL arrives at this listening address, as far as one can tell without
/// resolving names.
fn reaches(url: &Url, listen: SocketAddr) -> bool {
    if url.is_https() || url.port() != listen.port() {
        return false;
    }
    let host = match url.host().trim_matches(['[', ']']) {
        name if name.eq_ignore_ascii_case("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
        host => match host.parse() {
            Ok(address) => address,
            Err(_) => return false,
        },
    };
    let local = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    host == listen.ip() || (local(host) && local(listen.ip()))
}

fn path<const N: usize>(steps: [&str; N]) -> Vec<String> {
    steps.map(str::to_owned).to_vec()
}
