use serde_json::{Value as Json, json};
use std::str::FromStr;

use crate::error::{Invalid, quote};
use crate::setting::Scalar;

/// The value of a header `Content-Type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentType(String);

impl ContentType {
    /// The value as it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ContentType {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<ContentType, Invalid> {
        let is_one = text.contains('/') && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !is_one || text.len() > 256 {
            let message = format!("{} cannot be a content type", quote(text));
            return Err(Invalid::new(message, "write a media type, for example `application/json`"));
        }
        Ok(ContentType(text.to_owned()))
    }
}

impl Scalar for ContentType {
    const WHAT: &'static str = "a content type";
    const EXAMPLE: &'static str = "application/json";

    fn parse(text: &str) -> Result<ContentType, Invalid> {
        text.parse()
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[ -~]{0,254}/[ -~]{0,254}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_can_stand_in_a_header() {
        assert_eq!(
            "text/plain; charset=utf-8".parse::<ContentType>().unwrap().as_str(),
            "text/plain; charset=utf-8"
        );
        for text in ["", "json", "a/b\r\nc: d", "ä/b"] {
            assert!(text.parse::<ContentType>().is_err(), "{text}");
        }
    }
}
