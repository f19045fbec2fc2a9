//! Values that are each valid, but not beside each other.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Component, PathBuf};

use crate::model::{Config, RemoteWriteSink, Sink};
use crate::values::{Name, Url};

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
    journal(config, &mut clashes);
    lakes(config, &mut clashes);
    for (name, sink) in &config.sinks {
        if let Sink::PrometheusRemoteWrite(sink) = sink {
            remote_write(config, name, sink, &mut clashes);
        }
    }
    clashes
}

fn addresses(config: &Config, clashes: &mut Vec<Clash>) {
    let (http, admin) = (config.listen.http, config.listen.admin);
    if http.port() != 0 && http.port() == admin.port() && overlap(http.ip(), admin.ip()) {
        clashes.push(Clash {
            about: vec![path(["listen", "admin"]), path(["listen", "http"])],
            message: format!("`listen.http` ({http}) and `listen.admin` ({admin}) are the same address"),
            help: "give one of them another port".to_owned(),
        });
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
    for (setting, address) in [("http", config.listen.http), ("admin", config.listen.admin)] {
        if reaches(&sink.url, address) {
            clashes.push(Clash {
                about: vec![path(["sinks", name.as_str(), "url"]), path(["listen", setting])],
                message: format!(
                    "`sinks.{name}.url` is this gateway's own address `listen.{setting}` ({address})"
                ),
                help: "it would send everything to itself, for ever; give the address of the next system"
                    .to_owned(),
            });
        }
    }
    let backoff = &sink.backoff;
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
