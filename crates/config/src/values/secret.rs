//! Text that is not to be seen.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use crate::error::Invalid;
use crate::setting::Scalar;

/// The mask for a secret wherever it could be seen.
const MASK: &str = "********";

/// A header's value: it never appears in `Debug`, in messages or in the effective configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for the request that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl FromStr for Secret {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Secret, Invalid> {
        const LONGEST: usize = 8 << 10;
        // RFC 9110, section 5.5, less what is obsolete: visible characters, with blanks between them.
        let visible = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        if !visible || text.len() > LONGEST || text.trim() != text {
            return Err(Invalid::new(
                "this cannot be the value of an HTTP header",
                "use at most 8 KiB of visible ASCII characters on one line, without blanks at either end",
            ));
        }
        Ok(Secret(text.to_owned()))
    }
}

impl Scalar for Secret {
    const SECRET: bool = true;
    const WHAT: &'static str = "a secret text";
    const EXAMPLE: &'static str = "Bearer ${TOKEN}";
    const NOTATION: &'static str = "Text that is masked wherever tidegate shows it. Preferably not in the configuration itself: `${NAME}`, `${file:PATH}`.";

    fn parse(text: &str) -> Result<Secret, Invalid> {
        text.parse()
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn schema() -> Json {
        json!({ "type": ["string", "number", "boolean"] })
    }

    fn shown(&self) -> String {
        MASK.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_seen_and_never_splits_a_request() {
        let secret: Secret = "Bearer hunter2".parse().unwrap();
        assert_eq!(format!("{secret:?} {}", secret.shown()), "******** ********");
        assert_eq!(secret.expose(), "Bearer hunter2");
        for text in ["hunter2\r\nHost: b", "hunter2\nb", " hunter2", "hunter2\0", "hunter2é"] {
            assert!(!text.parse::<Secret>().unwrap_err().to_string().contains("hunter2"), "{text:?}");
        }
    }
}
