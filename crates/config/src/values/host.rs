//! The name of a host, as it stands in a request's `Host` header.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::Scalar;

/// The name or the address of a host, without a scheme and without a port, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

/// Bytes of a name at most (RFC 1035, section 2.3.4).
const LONGEST: usize = 253;

impl HostName {
    /// The name by which a machine calls itself.
    pub fn localhost() -> HostName {
        HostName("localhost".to_owned())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for HostName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<HostName, Invalid> {
        HostName::parse(text)
    }
}

impl Scalar for HostName {
    const WHAT: &'static str = "a host";
    const EXAMPLE: &'static str = "tidegate.internal";
    const NOTATION: &'static str =
        "The name or the address of a host, without scheme and port: `tidegate.internal`.";

    fn parse(text: &str) -> Result<HostName, Invalid> {
        let name = text.to_ascii_lowercase();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name =
            (1..=LONGEST).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('.');
        if !is_name && name.parse::<IpAddr>().is_err() {
            return Err(Invalid::new(
                format!("{} is not the name of a host", quote(text)),
                "write a name as it stands in an address, without scheme and port: `tidegate.internal`",
            ));
        }
        Ok(HostName(name))
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9_.:-]{1,253}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_neither_scheme_nor_port() {
        for text in ["tidegate", "Tidegate.Internal", "my_host.example.", "192.0.2.1", "2001:db8::1"] {
            assert_eq!(HostName::parse(text).map_err(|_| text).unwrap().as_str(), text.to_ascii_lowercase());
        }
        let long = "x".repeat(254);
        for text in ["", ".", "http://a", "a:4319", "*", "*.example", "a b", "ä", "[::1]", &long] {
            assert!(HostName::parse(text).is_err(), "{text}");
        }
    }
}
