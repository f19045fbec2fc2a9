//! Names of indexes by a pattern, where documents do not go to data streams.

use super::data_stream::letters;
use crate::json;
use tidegate_wire::output::{Full, Output};

/// The longest name of an index that Elasticsearch takes, in bytes.
const MAX_INDEX_NAME: usize = 255;
/// The most bytes of what one field says.
const MAX_FIELD_BYTES: usize = 100;

/// A pattern for names of indexes.
///
/// Field values become lower case, and characters that Elasticsearch forbids become `_`; each is cut so that the name
/// has at most 255 bytes. The pattern's own text stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexTemplate {
    pieces: Vec<PatternPart>,
    most_each: usize,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternPart {
    /// This text.
    Text(String),
    /// `logs`, `metrics` or `traces`.
    Type,
    /// The dataset, as data streams have it.
    Dataset,
    /// The namespace.
    Namespace,
    /// The name of the service; `unknown` where there is none.
    Service,
    /// The tenant; `default` where there is none.
    Tenant,
    /// The year of the document's time in UTC, in four digits.
    Year,
    /// Its month, in two.
    Month,
    /// Its day, in two.
    Day,
    /// Its hour, in two.
    Hour,
}

impl PatternPart {
    /// How long it is, where that is known.
    fn fixed(&self) -> Option<usize> {
        match self {
            PatternPart::Text(text) => Some(text.len()),
            PatternPart::Year => Some(4),
            PatternPart::Month | PatternPart::Day | PatternPart::Hour => Some(2),
            PatternPart::Type => Some("metrics".len()),
            PatternPart::Dataset | PatternPart::Namespace | PatternPart::Service | PatternPart::Tenant => {
                None
            }
        }
    }
}

/// A part of a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexFields<'a> {
    pub(super) kind: &'static str,
    pub(super) dataset: &'a [u8],
    pub(super) namespace: &'a [u8],
    pub(super) service: &'a [u8],
    pub(super) tenant: &'a [u8],
    /// In nanoseconds since the Unix epoch.
    pub(super) time: u64,
}

impl IndexTemplate {
    /// The pattern of these parts. Their texts together should leave room for what the fields say.
    #[must_use]
    pub fn new(pieces: Vec<PatternPart>) -> IndexTemplate {
        let fixed: usize = pieces.iter().filter_map(PatternPart::fixed).sum();
        let fields = pieces.iter().filter(|piece| piece.fixed().is_none()).count();
        let most_each = (MAX_INDEX_NAME.saturating_sub(fixed) / fields.max(1)).min(MAX_FIELD_BYTES);
        IndexTemplate { pieces, most_each }
    }

    /// Writes a name as the inside of a string of JSON.
    pub(super) fn write(&self, of: IndexFields<'_>, out: &mut impl Output) -> Result<(), Full> {
        let mut digits = [0; 4];
        let (year, month, day, hour) = json::date_and_hour(of.time);
        for piece in &self.pieces {
            match piece {
                PatternPart::Text(text) => json::escaped(text.as_bytes(), out)?,
                PatternPart::Type => out.put(of.kind.as_bytes())?,
                PatternPart::Dataset => self.field(of.dataset, "generic", out)?,
                PatternPart::Namespace => self.field(of.namespace, "default", out)?,
                PatternPart::Service => self.field(of.service, "unknown", out)?,
                PatternPart::Tenant => self.field(of.tenant, "default", out)?,
                PatternPart::Year => out.put(json::decimal(year, &mut digits))?,
                PatternPart::Month => {
                    out.put(json::decimal(month, digits.get_mut(..2).unwrap_or_default()))?
                }
                PatternPart::Day => out.put(json::decimal(day, digits.get_mut(..2).unwrap_or_default()))?,
                PatternPart::Hour => out.put(json::decimal(hour, digits.get_mut(..2).unwrap_or_default()))?,
            }
        }
        Ok(())
    }

    fn field(&self, text: &[u8], fallback: &str, out: &mut impl Output) -> Result<(), Full> {
        let text = if text.is_empty() { fallback.as_bytes() } else { text };
        let mut left = self.most_each;
        for letter in letters(text) {
            let Some(rest) = left.checked_sub(letter.len_utf8()) else { break };
            left = rest;
            out.put(letter.encode_utf8(&mut [0; 4]).as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_wire::output::SliceOutput;

    fn name(pieces: Vec<PatternPart>, of: IndexFields<'_>) -> String {
        let mut space = [0; 4096];
        let mut out = SliceOutput::new(&mut space);
        IndexTemplate::new(pieces).write(of, &mut out).unwrap();
        let len = out.len();
        String::from_utf8(space[..len].to_vec()).unwrap()
    }

    fn text(text: &str) -> PatternPart {
        PatternPart::Text(text.to_owned())
    }

    const OF: IndexFields<'static> = IndexFields {
        kind: "logs",
        dataset: b"apm.app.shop",
        namespace: b"eu",
        service: b"Shop / Front",
        tenant: b"",
        time: 1_709_210_096_789_000_000,
    };

    /// Fields are said as names of indexes may have them, and times by UTC.
    #[test]
    fn patterns_expand_fields_and_times() {
        let date = || {
            vec![
                PatternPart::Year,
                text("."),
                PatternPart::Month,
                text("."),
                PatternPart::Day,
                text("-"),
                PatternPart::Hour,
            ]
        };
        let pieces =
            vec![PatternPart::Type, text("-"), PatternPart::Service, text("-")].into_iter().chain(date());
        assert_eq!(name(pieces.collect(), OF), "logs-shop___front-2024.02.29-12");
        let all =
            vec![PatternPart::Tenant, text("-"), PatternPart::Dataset, text("-"), PatternPart::Namespace];
        assert_eq!(name(all, OF), "default-apm.app.shop-eu");
        let nobody = IndexFields { service: b"", ..OF };
        assert_eq!(name(vec![text("a-"), PatternPart::Service], nobody), "a-unknown");
    }

    proptest! {
        /// Whatever fields say, a name has at most 255 bytes, all of its own text, and only what is allowed.
        #[test]
        fn names_are_what_elasticsearch_allows(service in "\\PC{0,300}", tenant in any::<Vec<u8>>(), prefix in "[a-z]{1,80}") {
            let pieces =
                vec![text(&prefix), PatternPart::Service, PatternPart::Tenant, PatternPart::Dataset, PatternPart::Namespace, text("-"), PatternPart::Year];
            let name = name(pieces, IndexFields { service: service.as_bytes(), tenant: &tenant, ..OF });
            prop_assert!(name.len() <= 255, "{}", name);
            prop_assert!(name.starts_with(&prefix) && name.ends_with("-2024"), "{}", name);
            prop_assert!(!name.contains(|letter: char| "\\/*?\"<>| ,#:".contains(letter) || letter.is_control()), "{}", name);
            prop_assert_eq!(name.to_lowercase(), name);
        }
    }
}
