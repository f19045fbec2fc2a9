//! URLs whose host stands for several.

use std::fmt;

use serde_json::{Value as Json, json};
use tidegate_members::Entry;

use super::url::Url;
use crate::error::Invalid;
use crate::setting::Scalar;

/// A URL behind `dns+` or `dnssrv+`: it stands for the same URL with each host that DNS has.
///
/// `Display` and `Debug` leave out what the query says.
#[derive(Clone, PartialEq, Eq)]
pub struct DnsUrl {
    text: String,
    /// With an address in place of the name.
    example: Url,
}

impl DnsUrl {
    /// As it was written; not to be shown: keys stand in queries.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// One of the URLs that it may stand for.
    pub fn example(&self) -> &Url {
        &self.example
    }
}

impl fmt::Display for DnsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&tidegate_plain::without_url_secrets(&self.text))
    }
}

impl fmt::Debug for DnsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Scalar for DnsUrl {
    const WHAT: &'static str = "a URL to look up";
    const EXAMPLE: &'static str = "dns+http://receivers.internal:9090/api/v1/write";
    const NOTATION: &'static str = "`dns+` and a URL: each address of the host is an endpoint. `dnssrv+` and a URL whose host is \
         an SRV name, such as `dnssrv+http://_http._tcp.receivers.internal/api/v1/write`: each of its hosts, with its port.";
    const SHOWN_WHEN_WRONG: bool = false;

    fn parse(text: &str) -> Result<DnsUrl, Invalid> {
        let help = format!("write `dns+` or `dnssrv+` and a URL, for example `{}`", Self::EXAMPLE);
        let entry = Entry::parse(text).map_err(|error| Invalid::new(error.to_string(), help.clone()))?;
        if !entry.is_looked_up() {
            return Err(Invalid::new("this has no name to look up", help));
        }
        let example = entry.example().parse::<Url>()?;
        Ok(DnsUrl { text: text.to_owned(), example })
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^dns(srv)?\\+https?://" })
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_its_hosts() {
        for (text, example) in [
            ("dns+http://vm.internal:8480/insert", "http://192.0.2.1:8480/insert"),
            ("dnssrv+https://_http._tcp.vm/api/v1/write", "https://host.example:1/api/v1/write"),
        ] {
            assert_eq!(DnsUrl::parse(text).unwrap().example().expose(), example);
        }
        let shown = DnsUrl::parse("dns+http://vm/w?token=hunter2").unwrap().to_string();
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_stands_for_one_endpoint_is_refused() {
        for text in [
            "http://vm/w",
            "dns+http://10.0.0.1/w",
            "dns+vm:1",
            "dns+ftp://vm/",
            "dnssrv+http://_a._tcp.b:1/w",
        ] {
            assert!(DnsUrl::parse(text).is_err(), "{text}");
        }
    }
}
