//! Settings of sinks that do not go together. What is about one kind alone is with that kind's settings.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Component, PathBuf};

use super::{Clash, addresses_of, cleartext, path};
use crate::model::{Backoff, Config, Delivery, Durability, Outbound, Signal, Tls};
use crate::values::{HeaderName, Name, Secret, Url};

pub(super) fn check(config: &Config, clashes: &mut Vec<Clash>) {
    folders(config, clashes);
    for (name, sink) in &config.sinks {
        let settings = sink.settings();
        if let Some(outbound) = settings.outbound() {
            sending(config, name, &outbound, clashes);
        }
        settings.check(&mut SinkCheck { config, name, clashes });
        if settings.sample().is_some() {
            sampling(&mut SinkCheck { config, name, clashes }, settings.signals());
        }
    }
}

/// The check of a sink's own settings.
pub(crate) struct SinkCheck<'a> {
    pub(crate) config: &'a Config,
    pub(crate) name: &'a Name,
    clashes: &'a mut Vec<Clash>,
}

impl SinkCheck<'_> {
    /// Points at the setting of this name.
    pub(crate) fn clash(&mut self, setting: &str, message: String, help: &str) {
        let about = vec![path(["sinks", self.name.as_str(), setting])];
        self.clashes.push(Clash { about, message, help: help.to_owned() });
    }

    /// Refuses queries in `endpoints` to which the sink adds paths of its own: they would not be sent.
    pub(crate) fn no_query<'a>(&mut self, endpoints: impl IntoIterator<Item = &'a Url>) {
        if let Some(url) = endpoints.into_iter().find(|url| url.path().contains('?')) {
            let message = format!("`sinks.{}.endpoints` has a query that is not sent: {url}", self.name);
            let help = "take it out; credentials and other constants can be sent in `headers`";
            self.clash("endpoints", message, help);
        }
    }

    /// Refuses credentials that would leave this machine without TLS, to the URLs of this setting.
    pub(crate) fn no_cleartext<'a>(
        &mut self,
        setting: &str,
        urls: impl IntoIterator<Item = &'a Url>,
        delivery: &Delivery,
    ) {
        cleartext::check(self.name, setting, urls, &[], &delivery.headers, delivery.insecure, self.clashes);
    }

    /// Points at the setting of this name, or else at the sink.
    pub(crate) fn clash_or_sink(&mut self, setting: &str, message: String, help: &str) {
        let name = self.name.as_str();
        let about = vec![path(["sinks", name, setting]), path(["sinks", name])];
        self.clashes.push(Clash { about, message, help: help.to_owned() });
    }

    /// Points at another part of the configuration, or else at the sink.
    pub(crate) fn clash_with<const N: usize>(&mut self, other: [&str; N], message: String, help: &str) {
        let about = vec![path(other), path(["sinks", self.name.as_str()])];
        self.clashes.push(Clash { about, message, help: help.to_owned() });
    }
}

/// The needs of a sink that takes a part of the traces.
fn sampling(check: &mut SinkCheck<'_>, signals: &[Signal]) {
    /// The name of the cursor that reads ahead is longer by that.
    const LONGEST_NAME: usize = 59;
    let SinkCheck { config, name, .. } = *check;
    if !signals.contains(&Signal::Traces) {
        let message = format!("`sinks.{name}` samples traces, and takes none");
        check.clash("sample", message, "add `traces` to its `signals`, or take `sample` out");
    }
    if name.as_str().len() > LONGEST_NAME {
        let message = format!("the name of `sinks.{name}` is too long for a sink that samples traces");
        check.clash("sample", message, "give it one of 59 letters at most");
    }
    if config.journal.durability == Durability::Memory {
        let message = format!("`sinks.{name}` samples traces, and the journal is kept in memory");
        let help = "a request would be answered when its traces are decided: set `journal.durability` to `fsync` or `page_cache`";
        check.clash_with(["journal", "durability"], message, help);
    }
}

/// Sinks that write to the same folder.
fn folders(config: &Config, clashes: &mut Vec<Clash>) {
    let mut folders: BTreeMap<PathBuf, &Name> = BTreeMap::new();
    for (name, sink) in &config.sinks {
        let Some(folder) = sink.settings().folder(&config.data) else { continue };
        let folder: PathBuf = folder.components().filter(|part| *part != Component::CurDir).collect();
        if let Some(first) = folders.get(&folder) {
            clashes.push(Clash {
                about: vec![path(["sinks", name.as_str(), "path"]), path(["sinks", name.as_str()])],
                message: format!("sinks `{first}` and `{name}` both write to {}", folder.display()),
                help: "give each lake its own `path`".to_owned(),
            });
        } else {
            folders.insert(folder, name);
        }
    }
}

/// Checks common to all sinks that send over the network.
fn sending(config: &Config, name: &Name, outbound: &Outbound<'_>, clashes: &mut Vec<Clash>) {
    let Outbound { setting, urls, credentials, delivery } = outbound;
    let Delivery { headers, tenant_header, backoff, tls, insecure, .. } = delivery;
    loops(config, name, setting, urls, clashes);
    cleartext::check(name, setting, *urls, credentials, headers, *insecure, clashes);
    waits(name, backoff, clashes);
    keys(name, tls, clashes);
    unused_tls(name, tls, setting, urls, clashes);
    self::tenant_header(name, tenant_header.as_ref(), headers, clashes);
}

/// A sink that would send to this gateway.
fn loops(config: &Config, name: &Name, key: &str, urls: &[Url], clashes: &mut Vec<Clash>) {
    for url in urls {
        for (setting, address) in addresses_of(config) {
            if reaches(url, address) {
                clashes.push(Clash {
                    about: vec![path(["sinks", name.as_str(), key]), path(["listen", &setting])],
                    message: format!(
                        "`sinks.{name}.{key}` is this gateway's own address `listen.{setting}` ({address})"
                    ),
                    help: "it would send everything to itself in a loop; set the address of another system"
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
            help: "the delay grows from `min` to `max`".to_owned(),
        });
    }
}

fn keys(name: &Name, tls: &Tls, clashes: &mut Vec<Clash>) {
    if tls.cert_file.is_some() != tls.key_file.is_some() {
        let (there, missing) = if tls.cert_file.is_some() { ("cert", "key") } else { ("key", "cert") };
        clashes.push(Clash {
            about: vec![vec!["sinks".into(), name.to_string(), "tls".into(), format!("{there}_file")]],
            message: format!("`sinks.{name}.tls` has a `{there}_file` and no `{missing}_file`"),
            help: "a certificate requires its key: set both".to_owned(),
        });
    }
}

/// Settings of TLS that nothing is encrypted with: whoever wrote them expects otherwise.
fn unused_tls(name: &Name, tls: &Tls, setting: &str, urls: &[Url], clashes: &mut Vec<Clash>) {
    if *tls == Tls::default() || urls.is_empty() || urls.iter().any(Url::is_https) {
        return;
    }
    clashes.push(Clash {
        about: vec![path(["sinks", name.as_str(), "tls"])],
        message: format!("`sinks.{name}` has `tls` settings, but `{setting}` has no https:// URL"),
        help: "nothing would be encrypted: write https:// or take `tls` out".to_owned(),
    });
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
        "choose another header, such as `X-Scope-OrgID`: this one has its own meaning in HTTP"
    } else if headers.contains_key(header) {
        "remove it from `headers`, or remove `tenant_header`: then all data goes to that one tenant"
    } else {
        return;
    };
    clashes.push(Clash {
        about: vec![path(["sinks", name.as_str(), "tenant_header"])],
        message: format!("`sinks.{name}.tenant_header` cannot be `{header}`"),
        help: help.to_owned(),
    });
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
