//! Names: of sinks, and of HTTP headers.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::Scalar;

/// The name that a user gives to a sink: 1 to 64 of `a-z`, `0-9`, `_` and `-`, so that it can stand in
/// metrics, file names and URLs as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// The name of an HTTP header that a user may add to requests, in lower case.
///
/// Not those that belong to the request itself: the protocol says what stands in them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderName(String);

const LONGEST: usize = 64;

/// Headers that no configuration may set.
const RESERVED: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-prometheus-remote-write-version",
];

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Name, Invalid> {
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        if text.is_empty() || text.len() > LONGEST || !text.bytes().all(allowed) {
            return Err(Invalid::new(
                format!("{} cannot be a name", quote(text)),
                "use 1 to 64 lower-case letters, digits, `_` and `-`",
            ));
        }
        Ok(Name(text.to_owned()))
    }
}

impl Scalar for Name {
    const WHAT: &'static str = "a name";
    const EXAMPLE: &'static str = "upstream";
    const NOTATION: &'static str = "1 to 64 lower-case letters, digits, `_` and `-`.";

    fn parse(text: &str) -> Result<Name, Invalid> {
        text.parse()
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[a-z0-9_-]{1,64}$" })
    }
}

impl HeaderName {
    /// A name that the program knows, in lower case.
    pub(crate) fn known(name: &'static str) -> HeaderName {
        HeaderName(name.to_owned())
    }

    /// Whether what stands in such a header lets somebody in: `authorization`, `x-api-key` and their like.
    pub fn is_credential(&self) -> bool {
        is_credential(&self.0)
    }

    /// The name in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a name, in lower case, is that of a key, a password or a token.
pub(crate) fn is_credential(name: &str) -> bool {
    const PARTS: [&str; 9] =
        ["auth", "token", "secret", "password", "passwd", "cookie", "signature", "credential", "license"];
    let joined: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    PARTS.iter().any(|part| joined.contains(part))
        || joined == "key"
        || joined.ends_with("apikey")
        || joined.ends_with("accesskey")
}

impl fmt::Display for HeaderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HeaderName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<HeaderName, Invalid> {
        // RFC 9110, section 5.6.2: a token.
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if text.is_empty() || text.len() > LONGEST || !text.bytes().all(allowed) {
            return Err(Invalid::new(
                format!("{} cannot be the name of an HTTP header", quote(text)),
                "use 1 to 64 letters, digits and `-`, for example `Authorization`",
            ));
        }
        let name = text.to_ascii_lowercase();
        if RESERVED.contains(&name.as_str()) {
            return Err(Invalid::new(
                format!("the header {} cannot be set", quote(text)),
                "remove it: the protocol sets this header",
            ));
        }
        Ok(HeaderName(name))
    }
}

impl Scalar for HeaderName {
    const WHAT: &'static str = "a header name";
    const EXAMPLE: &'static str = "x-scope-orgid";

    fn parse(text: &str) -> Result<HeaderName, Invalid> {
        text.parse()
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_stand_anywhere_as_it_is() {
        assert!("a-b_9".parse::<Name>().is_ok());
        assert!("x".repeat(64).parse::<Name>().is_ok());
        for text in ["", "A", "a.b", "a b", "é", "../x", &"x".repeat(65)] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }

    #[test]
    fn headers_that_the_protocol_needs_cannot_be_set() {
        assert_eq!("X-Scope-OrgID".parse::<HeaderName>().unwrap().as_str(), "x-scope-orgid");
        for text in ["", "a b", "a:", "Content-Type", "HOST", "é"] {
            assert!(text.parse::<HeaderName>().is_err(), "{text}");
        }
    }
}
