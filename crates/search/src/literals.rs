//! Bytes that every record with wanted rows has: one without them is passed over before anything is made of it.

use memchr::memmem::Finder;
use tidegate_journal::Protocol;
use tidegate_lake::{Query, Table};

/// The literals of a query.
pub(crate) struct Literals<'q> {
    /// Of records in OTLP, where texts and ids are as they are.
    otlp: Vec<Finder<'q>>,
    /// Of records of remote write.
    remote_write: Vec<Finder<'q>>,
}

impl<'q> Literals<'q> {
    /// Those of the conditions of `query`. Conditions on attributes have none: a number is not in a record as text.
    pub(crate) fn of(query: &'q Query) -> Literals<'q> {
        let body = query.contains.as_deref().and_then(within_a_text);
        // Rows without an id have zeros.
        let id = query.trace_id.as_ref().filter(|id| **id != [0; 16]).map(<[u8; 16]>::as_slice);
        let name = literal(&query.name).filter(|_| query.table == Table::Spans);
        Literals {
            otlp: finders([id, body, name, literal(&query.service), literal(&query.metric)]),
            remote_write: finders([literal(&query.metric)]),
        }
    }

    /// Whether a record with this decoded body may have wanted rows.
    pub(crate) fn may_be_in(&self, protocol: Protocol, raw: &[u8]) -> bool {
        let finders = match protocol {
            Protocol::Otlp => &self.otlp,
            Protocol::RemoteWrite1 | Protocol::RemoteWrite2 => &self.remote_write,
            // Texts in JSON may have escapes.
            Protocol::Bulk | Protocol::Intake | Protocol::OtlpJson | Protocol::Cri => return true,
        };
        finders.iter().all(|finder| finder.find(raw).is_some())
    }
}

fn finders<'q, const N: usize>(literals: [Option<&'q [u8]>; N]) -> Vec<Finder<'q>> {
    literals.into_iter().flatten().map(Finder::new).collect()
}

/// The bytes of a name, which are in a record as they are. A name with U+FFFD has none: that may stand for bytes that are no UTF-8.
fn literal(text: &Option<String>) -> Option<&[u8]> {
    let text = text.as_deref().filter(|text| !text.is_empty() && !text.contains('\u{fffd}'));
    text.map(str::as_bytes)
}

/// The bytes of a search text that any body with that text has. JSON is made of bodies that are lists or maps: its numbers, quotes, escapes and
/// punctuation are not in the record as they are, and outside of strings it has no space. So the text counts from its first space on; the
/// characters before may be the end of an escape.
fn within_a_text(text: &str) -> Option<&[u8]> {
    let is_as_written = |char: char| char != '"' && char != '\\' && char != '\u{fffd}' && !char.is_control();
    let from_space = text.find(' ').and_then(|space| text.get(space..))?;
    text.chars().all(is_as_written).then_some(from_space.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_be_in(query: &Query, protocol: Protocol, raw: &[u8]) -> bool {
        Literals::of(query).may_be_in(protocol, raw)
    }

    #[test]
    fn a_record_without_a_literal_is_passed_over() {
        let query =
            Query { trace_id: Some([7; 16]), service: Some("shop".to_owned()), ..Query::new(Table::Spans) };
        let raw = [&[7; 16][..], b"shop"].concat();
        assert!(may_be_in(&query, Protocol::Otlp, &raw));
        assert!(!may_be_in(&query, Protocol::Otlp, b"shop"));
        assert!(!may_be_in(&query, Protocol::Otlp, &[7; 16]));
        assert!(may_be_in(&query, Protocol::Intake, b"{}"), "an id is in hexadecimal there");
    }

    #[test]
    fn a_text_counts_where_it_can_only_be_in_a_text() {
        let of = |text: &str| Query { contains: Some(text.to_owned()), ..Query::new(Table::Logs) };
        assert!(!may_be_in(&of("in 77 ms"), Protocol::Otlp, b"done"));
        assert!(may_be_in(&of("in 77 ms"), Protocol::Otlp, b"paid in 77 ms"));
        assert!(
            may_be_in(&of("nout of memory"), Protocol::Otlp, b"m\nout of memory"),
            "of an escape in JSON"
        );
        for text in ["77", "true", "\":7,\"", "a \"b\"", "a\\nb c", "a \u{fffd}", "a\tb c", ""] {
            assert!(may_be_in(&of(text), Protocol::Otlp, b"done"), "{text}");
        }
    }

    #[test]
    fn the_name_of_a_metric_is_in_remote_write_too() {
        let query = Query {
            metric: Some("up".to_owned()),
            service: Some("api".to_owned()),
            ..Query::new(Table::MetricPoints)
        };
        assert!(may_be_in(&query, Protocol::RemoteWrite1, b"__name__ up"), "its service is made of labels");
        assert!(!may_be_in(&query, Protocol::RemoteWrite2, b"down"));
        assert!(!may_be_in(&query, Protocol::Otlp, b"up"));
    }
}
