//! The proxies that the environment names, and the endpoints that it exempts from them.
//!
//! The variables are those of curl: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, each before its name in capitals.
//! `no_proxy` is read as Go programs read it (`golang.org/x/net/http/httpproxy`).

use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::net::IpAddr;

/// The proxies of the environment.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct ProxyRules {
    http: Option<NamedProxy>,
    https: Option<NamedProxy>,
    exceptions: Vec<Exception>,
}

/// A variable and its value.
#[derive(Clone)]
struct NamedProxy {
    variable: &'static str,
    url: String,
}

/// A proxy for an endpoint.
#[derive(Debug)]
pub(super) struct Proxy {
    /// The variable that names it.
    pub(super) variable: &'static str,
    /// Its URL and its credentials; `None` if it is not a proxy over plain HTTP.
    pub(super) intercept: Option<Intercept>,
}

/// An entry of `no_proxy`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exception {
    All,
    Network(IpAddr, u32),
    Address(IpAddr, Option<u16>),
    /// A dot and a domain. `apex`: the domain itself as well as those below it.
    Domain {
        suffix: String,
        apex: bool,
        port: Option<u16>,
    },
}

impl ProxyRules {
    /// Those of this process.
    pub(in super::super) fn of_process() -> ProxyRules {
        ProxyRules::of(|name| std::env::var(name).ok())
    }

    /// Those of an environment.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> ProxyRules {
        let first = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| {
                let url = variable(name)?.trim().to_owned();
                (!url.is_empty()).then_some(NamedProxy { variable: name, url })
            })
        };
        let all = first(["all_proxy", "ALL_PROXY"]);
        let exceptions = first(["no_proxy", "NO_PROXY"]).map_or(String::new(), |named| named.url);
        ProxyRules {
            http: first(["http_proxy", "HTTP_PROXY"]).or_else(|| all.clone()),
            https: first(["https_proxy", "HTTPS_PROXY"]).or(all),
            exceptions: exceptions
                .split(|c: char| c == ',' || c.is_whitespace())
                .filter_map(Exception::of)
                .collect(),
        }
    }

    /// The proxy for the endpoint at `uri`; none for an endpoint on this machine.
    pub(super) fn proxy_for(&self, uri: &Uri) -> Option<Proxy> {
        let (named, default_port) = match uri.scheme_str()? {
            "http" => (self.http.as_ref()?, 80),
            "https" => (self.https.as_ref()?, 443),
            _ => return None,
        };
        let host = uri.host()?.trim_matches(['[', ']']).to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return None;
        }
        let port = uri.port_u16().unwrap_or(default_port);
        if self.exceptions.iter().any(|exception| exception.covers(&host, address, port)) {
            return None;
        }
        Some(Proxy { variable: named.variable, intercept: named.intercept() })
    }
}

impl NamedProxy {
    fn intercept(&self) -> Option<Intercept> {
        let any = Uri::from_static("http://endpoint.invalid");
        let proxy = Matcher::builder().http(&self.url).build().intercept(&any)?;
        (proxy.uri().scheme_str() == Some("http")).then_some(proxy)
    }
}

/// Without its URL, which may have a password.
impl std::fmt::Debug for NamedProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NamedProxy").field(&self.variable).finish()
    }
}

impl Exception {
    /// Reads an entry; `None` if it is malformed.
    fn of(entry: &str) -> Option<Exception> {
        let entry = entry.to_ascii_lowercase();
        if entry == "*" {
            return Some(Exception::All);
        }
        if let Some((address, bits)) = entry.split_once('/') {
            let (address, bits): (IpAddr, u32) = (address.parse().ok()?, bits.parse().ok()?);
            let most = if address.is_ipv4() { 32 } else { 128 };
            return (bits <= most).then_some(Exception::Network(address, bits));
        }
        let (host, port) = split_port(&entry)?;
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some(Exception::Address(address.to_canonical(), port));
        }
        let host = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let (suffix, apex) = match host.strip_prefix('.') {
            Some(domain) => (domain, false),
            None => (host, true),
        };
        (!suffix.is_empty()).then(|| Exception::Domain { suffix: format!(".{suffix}"), apex, port })
    }

    fn covers(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        let is_port = |wanted: &Option<u16>| wanted.is_none_or(|wanted| wanted == port);
        match self {
            Exception::All => true,
            Exception::Network(network, bits) => {
                address.is_some_and(|address| is_within(*network, *bits, address))
            }
            Exception::Address(wanted, wanted_port) => address == Some(*wanted) && is_port(wanted_port),
            Exception::Domain { suffix, apex, port: wanted_port } => {
                let is_it =
                    host.ends_with(suffix.as_str()) || (*apex && suffix.strip_prefix('.') == Some(host));
                is_it && is_port(wanted_port)
            }
        }
    }
}

/// A host, without brackets, and the port behind it, if there is one. `None` if that is no port, or there is no host.
fn split_port(entry: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':')?)),
        // More than one colon: an IPv6 address.
        None => match entry.split_once(':').filter(|(_, rest)| !rest.contains(':')) {
            Some((host, port)) => (host, Some(port)),
            None => (entry, None),
        },
    };
    if host.is_empty() {
        return None;
    }
    match port {
        None => Some((host, None)),
        Some(port) => Some((host, Some(port.parse().ok()?))),
    }
}

/// Whether `address` and `network` agree in the first `bits` bits.
fn is_within(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let difference = network.to_bits() ^ address.to_bits();
            difference.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let difference = network.to_bits() ^ address.to_bits();
            difference.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(variables: &[(&str, &str)]) -> ProxyRules {
        ProxyRules::of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    /// The variable that sends this endpoint through a proxy.
    fn variable_for(rules: &ProxyRules, uri: &str) -> Option<&'static str> {
        rules.proxy_for(&uri.parse().unwrap()).map(|proxy| proxy.variable)
    }

    #[test]
    fn lower_case_outranks_capitals_and_a_scheme_outranks_all_proxy() {
        let every = [
            ("http_proxy", "http://a:1"),
            ("HTTP_PROXY", "http://b:1"),
            ("HTTPS_PROXY", "http://c:1"),
            ("ALL_PROXY", "http://d:1"),
        ];
        let (http, https) = ("http://api.example", "https://api.example");
        assert_eq!(variable_for(&rules(&every), http), Some("http_proxy"));
        assert_eq!(variable_for(&rules(&every), https), Some("HTTPS_PROXY"));
        assert_eq!(variable_for(&rules(&every[1..]), http), Some("HTTP_PROXY"));
        assert_eq!(variable_for(&rules(&every[3..]), http), Some("ALL_PROXY"));
        assert_eq!(variable_for(&rules(&every[2..3]), http), None);
        let empty = [("http_proxy", " "), ("HTTP_PROXY", "http://b:1")];
        assert_eq!(variable_for(&rules(&empty), http), Some("HTTP_PROXY"));
        assert_eq!(variable_for(&rules(&[]), http), None);
    }

    #[test]
    fn loopback_is_never_proxied() {
        let rules = rules(&[("all_proxy", "http://proxy.example:3128")]);
        for uri in [
            "http://localhost:4317",
            "https://LocalHost",
            "http://127.0.0.1:9090",
            "http://127.8.9.10",
            "https://[::1]:4317",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert_eq!(variable_for(&rules, uri), None, "{uri}");
        }
        assert!(variable_for(&rules, "http://localhost.example").is_some());
    }

    /// The cases are those of Go's `httpproxy`.
    #[test]
    fn no_proxy_is_read_as_go_reads_it() {
        for (exceptions, uri, is_exempt) in [
            ("inside.example", "https://inside.example", true),
            ("inside.example", "https://es.inside.example:9200", true),
            ("inside.example", "http://outinside.example", false),
            (".inside.example", "http://es.inside.example", true),
            (".inside.example", "http://inside.example", false),
            ("*.inside.example", "http://es.inside.example", true),
            ("*.inside.example", "http://inside.example", false),
            ("INSIDE.example", "http://Inside.Example", true),
            ("inside.example:80", "http://inside.example", true),
            ("inside.example:80", "http://inside.example:80", true),
            ("inside.example:80", "https://inside.example", false),
            ("inside.example:443", "https://a.inside.example", true),
            ("inside.example:9200", "http://inside.example", false),
            ("10.0.0.0/8", "http://10.1.2.3", true),
            ("10.0.0.0/8", "http://11.1.2.3", false),
            ("10.9.9.9/8", "https://10.1.2.3:9200", true),
            ("0.0.0.0/0", "http://8.8.8.8", true),
            ("0.0.0.0/0", "http://[2001:db8::1]", false),
            ("192.168.1.4/31", "http://192.168.1.5", true),
            ("192.168.1.4/31", "http://192.168.1.6", false),
            ("10.1.2.3/32", "http://10.1.2.3", true),
            ("2001:db8::/32", "http://[2001:db8:1::1]", true),
            ("2001:db8::/32", "http://[2001:db9::1]", false),
            ("::/0", "http://[2001:db9::1]", true),
            ("10.1.2.3", "http://10.1.2.3:9200", true),
            ("10.1.2.3:9200", "http://10.1.2.3:9200", true),
            ("10.1.2.3:9200", "http://10.1.2.3", false),
            ("[2001:db8::1]:9200", "http://[2001:db8::1]:9200", true),
            ("[2001:db8::1]:9200", "http://[2001:db8::1]", false),
            ("2001:db8::1", "http://[2001:db8::1]:9200", true),
            ("*", "https://api.example", true),
            ("a.example, inside.example ,", "http://inside.example", true),
            ("a.example inside.example", "http://inside.example", true),
            // Malformed entries exempt nothing.
            (":80", "http://api.example", false),
            ("api.example:http", "http://api.example", false),
            ("10.0.0.0/33", "http://10.1.2.3", false),
            (".", "http://api.example", false),
            ("", "http://api.example", false),
        ] {
            let rules = rules(&[("all_proxy", "http://proxy.example:3128"), ("no_proxy", exceptions)]);
            assert_eq!(variable_for(&rules, uri).is_none(), is_exempt, "{exceptions:?} for {uri}");
        }
    }

    #[test]
    fn only_proxies_over_plain_http_are_usable() {
        for (url, usable) in [
            ("http://proxy.example:3128", true),
            ("proxy.example:3128", true),
            ("http://user:hunter2@proxy.example", true),
            ("https://proxy.example:3129", false),
            ("socks5://proxy.example:1080", false),
            ("not a URL", false),
        ] {
            let rules = rules(&[("http_proxy", url)]);
            let proxy = rules.proxy_for(&"http://api.example".parse().unwrap()).unwrap();
            assert_eq!(proxy.intercept.is_some(), usable, "{url}");
            assert!(!format!("{rules:?} {proxy:?}").contains("hunter2"));
        }
    }
}
