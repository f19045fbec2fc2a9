//! Texts of pipelines: OTTL, and parts of relabeling rules.

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::Scalar;

/// Any text, also an empty one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(String);

/// An OTTL statement. It is compiled with its pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement(String);

/// An OTTL condition. It is compiled with its pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition(String);

/// A share, from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub struct Ratio(f64);

/// A part of a hundred, from 0 to 100.
#[derive(Debug, Clone, Copy)]
pub struct Percentage(f64);

/// A number, which may be negative and have digits behind its point.
#[derive(Debug, Clone, Copy)]
pub struct Decimal(f64);

/// A whole number, which may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer(i64);

/// A whole number of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modulus(u64);

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.to_owned())
    }
}

macro_rules! text {
    ($name:ident, $what:literal, $example:literal, $notation:literal, $is_empty_allowed:literal) => {
        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Scalar for $name {
            const WHAT: &'static str = $what;
            const EXAMPLE: &'static str = $example;
            const NOTATION: &'static str = $notation;

            fn parse(text: &str) -> Result<$name, Invalid> {
                if text.trim().is_empty() && !$is_empty_allowed {
                    let help = concat!("write ", $what, ", or remove the entry");
                    return Err(Invalid::new("this text is empty", help));
                }
                Ok($name(text.to_owned()))
            }

            fn text(&self) -> String {
                self.0.clone()
            }

            fn schema() -> Json {
                if $is_empty_allowed {
                    json!({ "type": ["string", "number", "boolean"] })
                } else {
                    json!({ "type": "string", "minLength": 1 })
                }
            }
        }
    };
}

text!(Text, "a text", "job", "", true);
text!(
    Statement,
    "an OTTL statement",
    "'delete_key(log.attributes, \"password\")'",
    "An editor of the OpenTelemetry Transformation Language with an optional `where`, for example \
     `set(log.attributes[\"env\"], \"prod\") where resource.attributes[\"env\"] == nil`. See [pipelines.md](pipelines.md).",
    false
);
text!(
    Condition,
    "an OTTL condition",
    "log.severity_number < SEVERITY_NUMBER_WARN",
    "A condition of the OpenTelemetry Transformation Language, for example `IsMatch(span.name, \"^GET /health\")`. See \
     [pipelines.md](pipelines.md).",
    false
);

impl Ratio {
    /// The share.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// It is never NaN.
impl PartialEq for Ratio {
    fn eq(&self, other: &Ratio) -> bool {
        self.0.total_cmp(&other.0).is_eq()
    }
}

impl Eq for Ratio {}

impl Scalar for Ratio {
    const WHAT: &'static str = "a share";
    const EXAMPLE: &'static str = "0.1";
    const NOTATION: &'static str = "A number from 0 to 1, or a percentage: `0.25`, `25%`.";

    fn parse(text: &str) -> Result<Ratio, Invalid> {
        let (number, unit) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text, 1.0),
        };
        let share = number.parse::<f64>().ok().map(|share| share / unit);
        match share.filter(|share| (0.0..=1.0).contains(share)) {
            Some(share) => Ok(Ratio(share)),
            None => {
                let help =
                    "write a number from 0 to 1, for example `0.1`, or a percentage, for example `10%`";
                Err(Invalid::new(format!("{} is not a share", quote(text)), help))
            }
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> Json {
        json!({ "type": ["number", "string"], "minimum": 0, "maximum": 1, "pattern": r"^[0-9.]+ *%$" })
    }
}

impl Percentage {
    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// It is never NaN.
impl PartialEq for Percentage {
    fn eq(&self, other: &Percentage) -> bool {
        self.0.total_cmp(&other.0).is_eq()
    }
}

impl Eq for Percentage {}

impl Scalar for Percentage {
    const WHAT: &'static str = "a percentage";
    const EXAMPLE: &'static str = "10";
    const NOTATION: &'static str = "A number from 0 to 100: `12.5`.";

    fn parse(text: &str) -> Result<Percentage, Invalid> {
        match text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent)) {
            Some(percent) => Ok(Percentage(percent)),
            None => Err(Invalid::new(
                format!("{} is not a percentage", quote(text)),
                "write a number from 0 to 100, for example `12.5`",
            )),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "number", "minimum": 0, "maximum": 100 })
    }
}

impl Decimal {
    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// It is never NaN.
impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.0.total_cmp(&other.0).is_eq()
    }
}

impl Eq for Decimal {}

impl Scalar for Decimal {
    const WHAT: &'static str = "a number";
    const EXAMPLE: &'static str = "0.25";

    fn parse(text: &str) -> Result<Decimal, Invalid> {
        match text.parse::<f64>().ok().filter(|number| number.is_finite()) {
            Some(number) => Ok(Decimal(number)),
            None => Err(Invalid::new(
                format!("{} is not a number", quote(text)),
                "write digits, and a point before those behind it",
            )),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "number" })
    }
}

impl Integer {
    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }
}

impl Scalar for Integer {
    const WHAT: &'static str = "a whole number";
    const EXAMPLE: &'static str = "-5";

    fn parse(text: &str) -> Result<Integer, Invalid> {
        let number = text.parse().map_err(|_| {
            Invalid::new(
                format!("{} is not a whole number", quote(text)),
                "write digits, and `-` before them",
            )
        });
        number.map(Integer)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "integer" })
    }
}

impl Modulus {
    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl Scalar for Modulus {
    const WHAT: &'static str = "a number";
    const EXAMPLE: &'static str = "8";

    fn parse(text: &str) -> Result<Modulus, Invalid> {
        let number = text
            .parse()
            .map_err(|_| Invalid::new(format!("{} is not a whole number", quote(text)), "write digits only"));
        number.map(Modulus)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_or_percentages() {
        for (text, share) in [("0", 0.0), ("1", 1.0), ("0.25", 0.25), ("25%", 0.25), ("100 %", 1.0)] {
            assert_eq!(Ratio::parse(text).map(Ratio::get), Ok(share), "{text}");
        }
        for text in ["", "%", "2", "101%", "-0.1", "NaN", "inf", "half"] {
            assert!(Ratio::parse(text).is_err(), "{text}");
        }
    }
}
