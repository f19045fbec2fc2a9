//! Patterns for names of indexes.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::Scalar;
use crate::suggest::nearest;

/// A pattern for names of Elasticsearch's indexes: text with fields in braces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexPattern {
    text: String,
    pieces: Vec<IndexPiece>,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IndexPiece {
    /// This text.
    Text(String),
    /// The kind of data.
    Type,
    /// The dataset.
    Dataset,
    /// The namespace.
    Namespace,
    /// The name of the service.
    Service,
    /// The tenant.
    Tenant,
    /// The year of the time.
    Year,
    /// Its month.
    Month,
    /// Its day.
    Day,
    /// Its hour.
    Hour,
}

/// Fields and parts of dates, as they are written.
const FIELDS: [(&str, IndexPiece); 5] = [
    ("type", IndexPiece::Type),
    ("dataset", IndexPiece::Dataset),
    ("namespace", IndexPiece::Namespace),
    ("service.name", IndexPiece::Service),
    ("tenant", IndexPiece::Tenant),
];
const DATES: [(&str, IndexPiece); 4] = [
    ("yyyy", IndexPiece::Year),
    ("MM", IndexPiece::Month),
    ("dd", IndexPiece::Day),
    ("HH", IndexPiece::Hour),
];
/// The longest pattern, in bytes: what the fields say needs room in a name.
const LONGEST: usize = 100;

impl IndexPattern {
    /// Its parts.
    pub fn pieces(&self) -> &[IndexPiece] {
        &self.pieces
    }
}

impl fmt::Display for IndexPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for IndexPattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<IndexPattern, Invalid> {
        let refuse = |what: String, help: &str| Err(Invalid::new(what, help));
        if text.len() > LONGEST {
            return refuse(
                format!("this pattern is longer than {LONGEST} bytes"),
                "use a shorter one: with the fields' values the name may have at most 255 bytes",
            );
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (plain, field) =
                rest.split_once('{').map_or((rest, None), |(plain, field)| (plain, Some(field)));
            if let Some(letter) = plain.chars().find(|letter| !is_allowed(*letter)) {
                return refuse(
                    format!("there is a {} in this pattern", quote(&letter.to_string())),
                    "write lower case letters, digits, `-`, `_`, `.` and fields in braces",
                );
            }
            if !plain.is_empty() {
                pieces.push(IndexPiece::Text(plain.to_owned()));
            }
            let Some(field) = field else { break };
            let Some((field, behind)) = field.split_once('}') else {
                return refuse(
                    "a brace of this pattern is not closed".to_owned(),
                    "write a field as `{service.name}`",
                );
            };
            match FIELDS.iter().find(|(name, _)| *name == field) {
                Some((_, piece)) => pieces.push(piece.clone()),
                None => date(field, &mut pieces)?,
            }
            rest = behind;
        }
        let begins_well = match pieces.first() {
            Some(IndexPiece::Text(text)) => text.starts_with(|first: char| first.is_ascii_alphanumeric()),
            Some(IndexPiece::Type | IndexPiece::Year) => true,
            _ => false,
        };
        if !begins_well {
            return refuse(
                "this pattern may make names that Elasticsearch does not allow".to_owned(),
                "begin it with a letter, a digit or `{type}`: names must not begin with `-`, `_`, `+` or `.`",
            );
        }
        Ok(IndexPattern { text: text.to_owned(), pieces })
    }
}

fn is_allowed(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '_' | '.')
}

/// Takes apart a date such as `yyyy.MM.dd`.
fn date(field: &str, pieces: &mut Vec<IndexPiece>) -> Result<(), Invalid> {
    let unknown = || {
        let names = FIELDS.iter().map(|(name, _)| *name).chain(["yyyy.MM.dd", "yyyy.MM"]);
        let help = match nearest(field, names) {
            Some(meant) => format!("did you mean `{{{meant}}}`?"),
            None => "there are {type}, {dataset}, {namespace}, {service.name}, {tenant}, and dates such as \
                     {yyyy.MM.dd} of yyyy, MM, dd and HH"
                .to_owned(),
        };
        Invalid::new(format!("there is no field {}", quote(field)), help)
    };
    let mut rest = field;
    loop {
        let found = DATES.iter().find_map(|(name, piece)| Some((piece, rest.strip_prefix(name)?)));
        let (piece, behind) = found.ok_or_else(unknown)?;
        pieces.push(piece.clone());
        let Some(between) = behind.chars().next() else { return Ok(()) };
        if !matches!(between, '.' | '-' | '_') {
            return Err(unknown());
        }
        pieces.push(IndexPiece::Text(between.to_string()));
        rest = behind.get(1..).unwrap_or_default();
    }
}

impl Scalar for IndexPattern {
    const WHAT: &'static str = "a pattern for names of indexes";
    const EXAMPLE: &'static str = "telemetry-{service.name}-{yyyy.MM.dd}";
    const NOTATION: &'static str = "Lower case letters, digits, `-`, `_`, `.`, and fields in braces: `{type}` (`logs`, \
         `metrics` or `traces`), `{dataset}`, `{namespace}`, `{service.name}`, `{tenant}`, and dates in UTC of `yyyy`, \
         `MM`, `dd` and `HH` such as `{yyyy.MM.dd}`. At most 100 bytes; in quotes if it begins with a brace.";

    fn parse(text: &str) -> Result<IndexPattern, Invalid> {
        text.parse()
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^([a-z0-9]|\\{type\\}|\\{yyyy)[-a-zA-Z0-9_.{}]*$", "maxLength": LONGEST })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_are_parsed() {
        use IndexPiece::{Day, Month, Service, Text, Type, Year};
        let text = |text: &str| Text(text.to_owned());
        let pattern: IndexPattern = "{type}-{service.name}-{yyyy.MM.dd}".parse().unwrap();
        let expected = [Type, text("-"), Service, text("-"), Year, text("."), Month, text("."), Day];
        assert_eq!(pattern.pieces(), expected);
        assert_eq!("telemetry".parse::<IndexPattern>().unwrap().pieces(), [text("telemetry")]);
    }

    /// Each refusal says what to do.
    #[test]
    fn patterns_without_valid_index_names_are_refused() {
        for (pattern, help) in [
            ("", "begin it with"),
            ("{tenant}-logs", "begin it with"),
            ("-logs", "begin it with"),
            ("Logs", "lower case"),
            ("logs-*", "lower case"),
            ("logs}", "lower case"),
            ("logs-{tenant", "as `{service.name}`"),
            ("logs-{servicename}", "did you mean `{service.name}`?"),
            ("logs-{yyyy.mm.dd}", "did you mean `{yyyy.MM.dd}`?"),
            ("logs-{}", "there are {type}"),
            ("logs-{yyyy.}", "did you mean"),
            ("logs-{host}", "there are {type}"),
        ] {
            let error = pattern.parse::<IndexPattern>().unwrap_err().to_string();
            assert!(error.contains(help), "{pattern}: {error}");
        }
        assert!("a".repeat(101).parse::<IndexPattern>().is_err());
    }

    proptest! {
        /// No text makes the parser panic, and what it takes is what it was.
        #[test]
        fn reads_anything_without_panic(text in "[a-z.{}-]{0,20}|\\{(yyyy|MM|dd|HH|[.]){0,5}\\}|\\PC{0,20}") {
            if let Ok(pattern) = text.parse::<IndexPattern>() {
                prop_assert_eq!(pattern.to_string(), text);
            }
        }
    }
}
