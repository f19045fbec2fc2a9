//! Names of tenants.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::Scalar;

/// The name of a tenant: 1 to 128 characters that mean nothing anywhere further on, be it in a path, a header or a
/// query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

const LONGEST: usize = 128;

impl TenantName {
    /// A name that the program knows.
    pub(crate) fn known(name: &'static str) -> TenantName {
        TenantName(name.to_owned())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TenantName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<TenantName, Invalid> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!*'():@+=~ ".contains(&byte);
        let edges = text.starts_with(['.', ' ']) || text.ends_with(' ');
        if text.is_empty() || text.len() > LONGEST || edges || !text.bytes().all(allowed) {
            return Err(Invalid::new(
                format!("{} cannot be a tenant's name", quote(text)),
                "use 1 to 128 letters, digits, blanks and `-_.!*'():@+=~`, with no dot or blank at the beginning",
            ));
        }
        Ok(TenantName(text.to_owned()))
    }
}

impl Scalar for TenantName {
    const WHAT: &'static str = "a tenant's name";
    const EXAMPLE: &'static str = "team-1";
    // As many as are told apart.
    const MOST_ENTRIES: usize = 1000;
    const NOTATION: &'static str =
        "1 to 128 letters, digits, blanks and `-_.!*'():@+=~`, with no dot or blank at the beginning.";

    fn parse(text: &str) -> Result<TenantName, Invalid> {
        text.parse()
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9_!*'():@+=~-][A-Za-z0-9_.!*'():@+=~ -]{0,127}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_name_means_nothing_elsewhere() {
        for name in ["a", "Team 1", "x_y.z", "a@b", &"a".repeat(128)] {
            assert!(name.parse::<TenantName>().is_ok(), "{name}");
        }
        for name in
            ["", ".", "..", ".a", " a", "a ", "a/b", "a\\b", "a|b", "a%b", "a\"b", "é", &"a".repeat(129)]
        {
            assert!(name.parse::<TenantName>().is_err(), "{name}");
        }
    }
}
