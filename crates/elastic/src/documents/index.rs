//! Names of indexes by a pattern, where documents do not go to data streams.

use super::stream::letters;
use crate::json;
use tidegate_wire::output::{Full, Output};

/// The longest name of an index that Elasticsearch takes, in bytes.
const LONGEST: usize = 255;
/// The most bytes of what one field says.
const MOST_EACH: usize = 100;

/// A pattern for names of indexes.
///
/// Field values become lower case, and characters that Elasticsearch forbids become `_`; each is cut so that the name
/// has at most 255 bytes. The pattern's own text stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    pieces: Vec<Piece>,
    most_each: usize,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
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

impl Piece {
    /// How long it is, where that is known.
    fn fixed(&self) -> Option<usize> {
        match self {
            Piece::Text(text) => Some(text.len()),
            Piece::Year => Some(4),
            Piece::Month | Piece::Day | Piece::Hour => Some(2),
            Piece::Type => Some("metrics".len()),
            Piece::Dataset | Piece::Namespace | Piece::Service | Piece::Tenant => None,
        }
    }
}

/// A part of a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) kind: &'static str,
    pub(super) dataset: &'a [u8],
    pub(super) namespace: &'a [u8],
    pub(super) service: &'a [u8],
    pub(super) tenant: &'a [u8],
    /// In nanoseconds since the Unix epoch.
    pub(super) time: u64,
}

impl Index {
    /// The pattern of these parts. Their texts together should leave room for what the fields say.
    #[must_use]
    pub fn new(pieces: Vec<Piece>) -> Index {
        let fixed: usize = pieces.iter().filter_map(Piece::fixed).sum();
        let fields = pieces.iter().filter(|piece| piece.fixed().is_none()).count();
        let most_each = (LONGEST.saturating_sub(fixed) / fields.max(1)).min(MOST_EACH);
        Index { pieces, most_each }
    }

    /// Writes a name as the inside of a string of JSON.
    pub(super) fn write(&self, of: Of<'_>, out: &mut impl Output) -> Result<(), Full> {
        let mut digits = [0; 4];
        let (year, month, day, hour) = json::hour(of.time);
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => json::inner(text.as_bytes(), out)?,
                Piece::Type => out.put(of.kind.as_bytes())?,
                Piece::Dataset => self.field(of.dataset, "generic", out)?,
                Piece::Namespace => self.field(of.namespace, "default", out)?,
                Piece::Service => self.field(of.service, "unknown", out)?,
                Piece::Tenant => self.field(of.tenant, "default", out)?,
                Piece::Year => out.put(json::decimal(year, &mut digits))?,
                Piece::Month => out.put(json::decimal(month, digits.get_mut(..2).unwrap_or_default()))?,
                Piece::Day => out.put(json::decimal(day, digits.get_mut(..2).unwrap_or_default()))?,
                Piece::Hour => out.put(json::decimal(hour, digits.get_mut(..2).unwrap_or_default()))?,
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

    fn name(pieces: Vec<Piece>, of: Of<'_>) -> String {
        let mut space = [0; 4096];
        let mut out = SliceOutput::new(&mut space);
        Index::new(pieces).write(of, &mut out).unwrap();
        let len = out.len();
        String::from_utf8(space[..len].to_vec()).unwrap()
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    const OF: Of<'static> = Of {
        kind: "logs",
        dataset: b"apm.app.shop",
        namespace: b"eu",
        service: b"Shop / Front",
        tenant: b"",
        time: 1_709_210_096_789_000_000,
    };

    /// Fields are said as names of indexes may have them, and times by UTC.
    #[test]
    fn fields_and_times_are_said() {
        let date =
            || vec![Piece::Year, text("."), Piece::Month, text("."), Piece::Day, text("-"), Piece::Hour];
        let pieces = vec![Piece::Type, text("-"), Piece::Service, text("-")].into_iter().chain(date());
        assert_eq!(name(pieces.collect(), OF), "logs-shop___front-2024.02.29-12");
        let all = vec![Piece::Tenant, text("-"), Piece::Dataset, text("-"), Piece::Namespace];
        assert_eq!(name(all, OF), "default-apm.app.shop-eu");
        let nobody = Of { service: b"", ..OF };
        assert_eq!(name(vec![text("a-"), Piece::Service], nobody), "a-unknown");
    }

    proptest! {
        /// Whatever fields say, a name has at most 255 bytes, all of its own text, and only what is allowed.
        #[test]
        fn names_are_what_elasticsearch_allows(service in "\\PC{0,300}", tenant in any::<Vec<u8>>(), prefix in "[a-z]{1,80}") {
            let pieces =
                vec![text(&prefix), Piece::Service, Piece::Tenant, Piece::Dataset, Piece::Namespace, text("-"), Piece::Year];
            let name = name(pieces, Of { service: service.as_bytes(), tenant: &tenant, ..OF });
            prop_assert!(name.len() <= 255, "{}", name);
            prop_assert!(name.starts_with(&prefix) && name.ends_with("-2024"), "{}", name);
            prop_assert!(!name.contains(|letter: char| "\\/*?\"<>| ,#:".contains(letter) || letter.is_control()), "{}", name);
            prop_assert_eq!(name.to_lowercase(), name);
        }
    }
}
