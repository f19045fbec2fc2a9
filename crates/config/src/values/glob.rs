//! Patterns that names of indices have to match.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::Scalar;

/// A pattern that the name of an index has to match: text with `*` for any characters and `{tenant}` for the tenant's
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexGlob(String);

/// The longest name of an index, in bytes.
const LONGEST: usize = 255;

impl IndexGlob {
    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IndexGlob {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<IndexGlob, Invalid> {
        let refuse = |what: String, help: &str| Err(Invalid::new(what, help));
        if text.starts_with('.') {
            return refuse(
                format!(
                    "{} would let every client of the tenant write to indices whose names begin with a dot",
                    quote(text)
                ),
                "grant them on the line of one credential instead: `indices=.name-*`",
            );
        }
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.+@*".contains(&byte);
        let rest = text.replace("{tenant}", "");
        if text.is_empty() || text.len() > LONGEST || !rest.bytes().all(allowed) {
            return refuse(
                format!("{} is not a valid index pattern", quote(text)),
                "use lower case letters, digits, `-_.+@`, `*` for any characters and `{tenant}` for the tenant's name",
            );
        }
        Ok(IndexGlob(text.to_owned()))
    }
}

impl fmt::Display for IndexGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Scalar for IndexGlob {
    const WHAT: &'static str = "a pattern for names of indices";
    const EXAMPLE: &'static str = "logs-*-*";
    const NOTATION: &'static str = "Lower case letters, digits, `-_.+@`, `*` for any characters, and `{tenant}` for the \
         tenant's name, as in `\"{tenant}-*\"`; not beginning with a dot. In quotes if it begins with a brace or a star.";

    fn parse(text: &str) -> Result<IndexGlob, Invalid> {
        text.parse()
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^([a-z0-9_+@*-]|\\{tenant\\})([a-z0-9_.+@*-]|\\{tenant\\})*$", "maxLength": LONGEST })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each refusal says what to do.
    #[test]
    fn patterns_that_match_no_index_are_refused() {
        for good in ["logs-*-*", "{tenant}-*", "*", "a", "x-{tenant}.y", &"a".repeat(255)] {
            assert!(good.parse::<IndexGlob>().is_ok(), "{good}");
        }
        for bad in ["", "Logs-*", "a,b", "a b", "{tenan}-*", "{", "a?", "<a>", "a/b", "é", &"a".repeat(256)]
        {
            let error = bad.parse::<IndexGlob>().unwrap_err().to_string();
            assert!(error.contains("`{tenant}`"), "{bad}: {error}");
        }
        let error = ".security-*".parse::<IndexGlob>().unwrap_err().to_string();
        assert!(error.contains("indices=.name-*"), "{error}");
    }
}
