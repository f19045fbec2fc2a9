//! URLs of HTTP servers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde_json::{Value as Json, json};

use super::name::is_credential;
use crate::error::{Invalid, quote};
use crate::setting::Scalar;
use tidegate_plain::without_url_secrets;

/// The URL of an HTTP server's endpoint: `http` or `https`, a host, perhaps a port, a path, a query.
///
/// No user name and no password (those belong into a header, where they are masked), no fragment, and
/// only ASCII: whatever stands here can be sent as it is.
///
/// `Display` and `Debug` leave out what the query says.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Url {
    text: String,
    https: bool,
    host: String,
    port: Option<u16>,
    path: String,
}

impl Url {
    /// The URL as it was written, to send to; not to be shown: keys stand in queries.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Whether the connection is to be encrypted.
    pub fn is_https(&self) -> bool {
        self.https
    }

    /// The host: a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, or the scheme's own when none is written.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(if self.https { 443 } else { 80 })
    }

    /// Whether it is on this machine, as far as one can tell without resolving names.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_matches(['[', ']']).trim_end_matches('.');
        match host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        }
    }

    /// The name of a parameter in its query that is likely to be a key.
    pub(crate) fn key(&self) -> Option<&str> {
        let (_, query) = self.path.split_once('?')?;
        let mut names = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
        names.find(|name| is_credential(&name.to_ascii_lowercase()))
    }

    /// The path with its query, as far as they are written.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_url_secrets(&self.text))
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Url {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Url, Invalid> {
        const LONGEST: usize = 2048;
        const EXAMPLE: &str = "for example `http://127.0.0.1:9090/api/v1/write`";
        // Not the text itself: somebody's password may be in it.
        let refuse = |what: &str, help: &str| Err(Invalid::new(what, help));
        let Some((scheme, rest)) = text.split_once("://") else {
            return refuse(
                "this is not a URL",
                &format!("write one that starts with http:// or https://, {EXAMPLE}"),
            );
        };
        let https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => {
                return refuse("the scheme of this URL is not supported", "use http or https");
            }
        };
        if text.len() > LONGEST {
            return refuse("this URL is longer than 2048 bytes", "use a shorter one");
        }
        if let Some(c) = text.chars().find(|c| !c.is_ascii_graphic() || r#""<>\^`{|}"#.contains(*c)) {
            let help = "write it percent-encoded (%20 for a blank), a host name in its ASCII form (xn--…)";
            return refuse(&format!("there is a {} in this URL", quote(&c.to_string())), help);
        }
        let split = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        if authority.contains('@') {
            return refuse(
                "there is a user name or password in this URL",
                "put it into `headers`, as `authorization`: there it is masked",
            );
        }
        if path.contains('#') {
            return refuse("there is a fragment (`#…`) in this URL", "remove it: it is never sent");
        }
        let (host, port) = split_port(authority);
        let port = match port {
            None => None,
            Some(port) => match port.parse::<u16>() {
                Ok(number) if number != 0 && !port.starts_with('+') => Some(number),
                _ => return refuse("the port of this URL is not a port", "write a number from 1 to 65535"),
            },
        };
        if !is_host(host) {
            return refuse("the host of this URL is none", &format!("write a name or an address, {EXAMPLE}"));
        }
        let (host, path) = (host.to_ascii_lowercase(), path.to_owned());
        Ok(Url { text: text.to_owned(), https, host, port, path })
    }
}

/// The host and what stands behind the colon after it. The colons inside an IPv6 address are none.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        return inner.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return host.parse::<Ipv4Addr>().is_ok();
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    host.len() <= 253 && host.strip_suffix('.').unwrap_or(host).split('.').all(label)
}

impl Scalar for Url {
    const WHAT: &'static str = "a URL";
    const EXAMPLE: &'static str = "http://127.0.0.1:9090/api/v1/write";
    const NOTATION: &'static str = "`http` or `https`, a host, an optional port, a path. No user name or password: \
         set those in `headers`.";

    // A text that does not parse cannot be masked.
    const SHOWN_WHEN_WRONG: bool = false;

    fn parse(text: &str) -> Result<Url, Invalid> {
        text.parse()
    }

    fn shown(&self) -> String {
        self.to_string()
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+([/?].*)?$" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn splits_a_url_into_its_parts() {
        for (text, https, host, port, path) in [
            ("http://127.0.0.1:9090/api/v1/write", false, "127.0.0.1", 9090, "/api/v1/write"),
            ("https://Metrics.example.com/push?x=1", true, "metrics.example.com", 443, "/push?x=1"),
            ("HTTP://localhost", false, "localhost", 80, ""),
            ("http://[::1]:9090/w", false, "[::1]", 9090, "/w"),
            ("http://[::1]/", false, "[::1]", 80, "/"),
            ("http://my_service.monitoring.svc./w", false, "my_service.monitoring.svc.", 80, "/w"),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(
                (url.is_https(), url.host(), url.port(), url.path()),
                (https, host, port, path),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_invalid_urls() {
        for text in [
            "",
            "localhost:9090",
            "ftp://a/b",
            "http://",
            "http:///x",
            "http://:80/",
            "http://a:0/",
            "http://a:+1/",
            "http://a:65536/",
            "http://a:/x",
            "http://u:p@a/",
            "http://a/#f",
            "http://a b/",
            "http://é/",
            "http://[::1/",
            "http://::1/",
            "http://1.2.3/",
            "http://a..b/",
            "http://-a/",
            "http://a/\r\nX: y",
            "http://a/{b}",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    #[test]
    fn never_repeats_a_password() {
        let error = "http://user:hunter2@host/".parse::<Url>().unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
    }

    #[test]
    fn never_shows_a_query() {
        let url: Url = "https://h:9/push?api_key=hunter2".parse().unwrap();
        assert_eq!(url.to_string(), "https://h:9/push?***");
        assert_eq!(format!("{url:?} {}", url.shown()), "https://h:9/push?*** https://h:9/push?***");
        assert!(url.expose().ends_with("hunter2"));
    }

    proptest! {
        /// No text makes the parser panic.
        #[test]
        fn reads_anything_without_panic(text in "(https?://)?[a-z0-9.:@/?#\\[\\]]{0,20}|\\PC{0,20}") {
            let _ = text.parse::<Url>();
        }
    }
}
