//! Rates as people write them: `200k samples/s`, `30MB/s logs`.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// A kind of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// Samples of Prometheus Remote-Write.
    Samples,
    /// Metric points of OTLP.
    Points,
    /// Spans.
    Spans,
    /// Log records.
    Logs,
}

/// So much a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Amount {
    /// Items.
    Items(f64),
    /// Bytes of bodies, as they are sent.
    Bytes(f64),
}

/// A rate of one kind of items.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// The kind of the items.
    pub kind: ItemKind,
    /// How much a second.
    pub amount: Amount,
}

/// A text is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "--rate {text}: {why}; write a number, a unit and a time, as in `200k samples/s`, `5k spans/s`, `1M points/min` or `30MB/s logs`"
)]
pub struct BadRate {
    text: String,
    why: String,
}

/// The most of anything in a second: beyond it somebody mistyped.
const MOST: f64 = 1e15;
const OF_WHAT: &str = "it does not say of what: samples, points, spans or logs";
/// The longest text that is quoted in an error.
const QUOTED: usize = 60;

impl ItemKind {
    /// All of them.
    pub const ALL: [ItemKind; 4] = [ItemKind::Samples, ItemKind::Points, ItemKind::Spans, ItemKind::Logs];

    /// The word for several.
    pub const fn word(self) -> &'static str {
        match self {
            ItemKind::Samples => "samples",
            ItemKind::Points => "points",
            ItemKind::Spans => "spans",
            ItemKind::Logs => "logs",
        }
    }

    fn named(word: &str) -> Option<ItemKind> {
        Some(match word {
            "sample" | "samples" => ItemKind::Samples,
            "point" | "points" => ItemKind::Points,
            "span" | "spans" => ItemKind::Spans,
            "log" | "logs" | "record" | "records" | "line" | "lines" => ItemKind::Logs,
            _ => return None,
        })
    }
}

impl FromStr for Rate {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Rate, BadRate> {
        let bad = |why: String| BadRate {
            text: text.chars().take(QUOTED).filter(|c| !c.is_control()).collect(),
            why,
        };
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, rest) = trimmed.split_at(end);
        let number: f64 = number.parse().map_err(|_| bad("it does not begin with a number".to_owned()))?;
        let (what, per) = rest
            .split_once('/')
            .filter(|(_, per)| !per.trim().is_empty())
            .ok_or_else(|| bad("it does not say in what time: `/s`, `/min` or `/h`".to_owned()))?;
        let mut after = per.split_whitespace();
        let seconds = match after.next() {
            Some("s" | "sec" | "second") => 1.0,
            Some("m" | "min" | "minute") => 60.0,
            Some("h" | "hour") => 3600.0,
            other => return Err(bad(format!("`{}` is no time", other.unwrap_or_default()))),
        };
        let kind = after.next();
        if let Some(more) = after.next() {
            return Err(bad(format!("`{more}` is too much")));
        }
        let what = what.trim();
        let kind_of = |word: &str| {
            let known = ItemKind::named(&word.to_ascii_lowercase());
            known.ok_or_else(|| bad(format!("`{word}` are no items: samples, points, spans or logs are")))
        };
        let (factor, kind, is_bytes) = match (byte_unit(what), kind) {
            (Some(unit), Some(kind)) => (unit, kind_of(kind)?, true),
            (Some(_), None) => return Err(bad(OF_WHAT.to_owned())),
            (None, kind) => {
                let (factor, before) = scale(what);
                match (before, kind) {
                    ("", None) => return Err(bad(OF_WHAT.to_owned())),
                    (word, None) | ("", Some(word)) => (factor, kind_of(word)?, false),
                    (_, Some(kind)) => return Err(bad(format!("`{kind}` is too much"))),
                }
            }
        };
        let amount = number * factor / seconds;
        if !(amount > 0.0 && amount <= MOST) {
            return Err(bad("the number must be more than 0 and no more than there is".to_owned()));
        }
        let amount = if is_bytes { Amount::Bytes(amount) } else { Amount::Items(amount) };
        Ok(Rate { kind, amount })
    }
}

/// The bytes in a unit.
fn byte_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

/// The factor before a word: `k samples`.
fn scale(what: &str) -> (f64, &str) {
    for (letters, factor) in [(["k", "K"], 1e3), (["M", "m"], 1e6), (["G", "g"], 1e9)] {
        for letter in letters {
            if let Some(word) = what.strip_prefix(letter)
                && (word.is_empty() || word.starts_with(' ') || ItemKind::named(word).is_some())
            {
                return (factor, word.trim_start());
            }
        }
    }
    (1.0, what)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.kind.word();
        match self.amount {
            Amount::Items(items) => write!(f, "{} {word}/s", crate::items(items)),
            Amount::Bytes(bytes) => write!(f, "{}/s of {word}", crate::bytes(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Promise: a rate means what it says, and a mistake is told with what to write.

    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> (ItemKind, Amount) {
        let rate: Rate = text.parse().unwrap();
        (rate.kind, rate.amount)
    }

    #[test]
    fn rates_mean_what_they_say() {
        for (text, kind, amount) in [
            ("200k samples/s", ItemKind::Samples, Amount::Items(200_000.0)),
            ("5K spans/s", ItemKind::Spans, Amount::Items(5_000.0)),
            ("1.5M points/min", ItemKind::Points, Amount::Items(25_000.0)),
            ("90 logs/s", ItemKind::Logs, Amount::Items(90.0)),
            ("3600 lines/h", ItemKind::Logs, Amount::Items(1.0)),
            ("7ksamples/s", ItemKind::Samples, Amount::Items(7_000.0)),
            ("30MB/s logs", ItemKind::Logs, Amount::Bytes(3e7)),
            ("100k/s spans", ItemKind::Spans, Amount::Items(100_000.0)),
            ("100 /s spans", ItemKind::Spans, Amount::Items(100.0)),
            (" 2 MiB/s spans ", ItemKind::Spans, Amount::Bytes(2_097_152.0)),
            ("1 sample/s", ItemKind::Samples, Amount::Items(1.0)),
        ] {
            assert_eq!(parsed(text), (kind, amount), "{text}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, why) in [
            ("", "it does not begin with a number"),
            ("samples/s", "it does not begin with a number"),
            ("-3 samples/s", "it does not begin with a number"),
            ("1.2.3 samples/s", "it does not begin with a number"),
            ("200k samples", "it does not say in what time"),
            ("200k samples/fortnight", "`fortnight` is no time"),
            ("200k samples/", "it does not say in what time"),
            ("200k apples/s", "`apples` are no items"),
            ("30MB/s", "it does not say of what"),
            ("100000/s", "it does not say of what"),
            ("5k /s", "it does not say of what"),
            ("30MB/s apples", "`apples` are no items"),
            ("5 spans/s logs", "`logs` is too much"),
            ("5MB/s logs please", "`please` is too much"),
            ("0 spans/s", "more than 0"),
            ("9999999999999999999 spans/s", "no more than there is"),
        ] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("as in `200k samples/s`"), "{text}: {error}");
        }
    }

    proptest! {
        /// No text panics, and no error is long or holds what a terminal obeys.
        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            if let Err(error) = text.parse::<Rate>() {
                prop_assert!(error.text.chars().count() <= QUOTED && !error.text.contains(char::is_control));
            }
        }

        #[test]
        fn whole_numbers_are_kept(number in 1_u32.., kind in 0_usize..4) {
            let kind = ItemKind::ALL[kind];
            let rate: Rate = format!("{number} {}/s", kind.word()).parse().unwrap();
            prop_assert_eq!(rate, Rate { kind, amount: Amount::Items(f64::from(number)) });
        }
    }
}
