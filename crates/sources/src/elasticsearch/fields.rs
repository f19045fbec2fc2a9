//! Which fields of an answer are wanted: the parameter `filter_path`.
//!
//! Reference: <https://www.elastic.co/docs/reference/elasticsearch/rest-apis/common-options#common-options-response-filtering>.
//! A filter that names a part of an error selects the whole error.

use super::request::parameter;
use tidegate_wire::bulk::Kind;

/// A set of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fields(u16);

/// A field of an answer to `_bulk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Took,
    Errors,
    Index,
    Id,
    Version,
    Result,
    Shards,
    SeqNo,
    PrimaryTerm,
    Status,
    Error,
}

/// Each with its path; `*` stands for the action's name.
const PATHS: [(Field, &[&str]); 11] = [
    (Field::Took, &["took"]),
    (Field::Errors, &["errors"]),
    (Field::Index, &["items", "*", "_index"]),
    (Field::Id, &["items", "*", "_id"]),
    (Field::Version, &["items", "*", "_version"]),
    (Field::Result, &["items", "*", "result"]),
    (Field::Shards, &["items", "*", "_shards"]),
    (Field::SeqNo, &["items", "*", "_seq_no"]),
    (Field::PrimaryTerm, &["items", "*", "_primary_term"]),
    (Field::Status, &["items", "*", "status"]),
    (Field::Error, &["items", "*", "error"]),
];

impl Fields {
    /// All of them.
    pub(super) const ALL: Fields = Fields(u16::MAX);

    /// Those that `query` asks for.
    pub(super) fn of(query: &str) -> Fields {
        let Some(filter) = parameter(query, "filter_path").filter(|filter| !filter.is_empty()) else {
            return Fields::ALL;
        };
        let (unwanted, wanted): (Vec<&str>, Vec<&str>) =
            filter.split(',').filter(|one| !one.is_empty()).partition(|one| one.starts_with('-'));
        let of = |path: &[&str]| {
            let named = |one: &&str| covers(one.trim_start_matches('-'), path);
            (wanted.is_empty() || wanted.iter().any(named)) && !unwanted.iter().any(named)
        };
        let bits = PATHS.iter().filter(|(_, path)| of(path)).map(|(field, _)| field.bit());
        Fields(bits.fold(0, |all, bit| all | bit))
    }

    pub(super) const fn has(self, field: Field) -> bool {
        self.0 & field.bit() != 0
    }
}

impl Field {
    /// The field of an item that has this name.
    pub(super) fn named(name: &[u8]) -> Option<Field> {
        let of_items = PATHS.iter().filter_map(|(field, path)| Some((*field, path.get(2)?)));
        of_items.into_iter().find(|(_, known)| known.as_bytes() == name).map(|(field, _)| field)
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Whether a filter names a path, something above it, or something below it.
fn covers(filter: &str, path: &[&str]) -> bool {
    let parts: Vec<&str> = filter.split('.').take(8).collect();
    matches(&parts, path)
}

fn matches(parts: &[&str], path: &[&str]) -> bool {
    match (parts, path) {
        ([], _) | (_, []) => true,
        (["**", rest @ ..], _) => {
            rest.is_empty()
                || (0..path.len()).any(|from| path.get(from..).is_some_and(|path| matches(rest, path)))
        }
        ([part, rest @ ..], [name, behind @ ..]) => is_named(part, name) && matches(rest, behind),
    }
}

/// Whether a part stands for a name, of which `*` is that of any action.
fn is_named(part: &str, name: &str) -> bool {
    match name {
        "*" => Kind::ALL.iter().any(|kind| is_like(part, kind.name())),
        name => is_like(part, name),
    }
}

/// Whether a name is one that a part with `*` in it stands for.
fn is_like(part: &str, name: &str) -> bool {
    match part.split_once('*') {
        None => part == name,
        Some((before, behind)) => {
            let Some(rest) = name.strip_prefix(before) else { return false };
            (0..=rest.len()).any(|from| rest.get(from..).is_some_and(|rest| is_like(behind, rest)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(query: &str) -> Vec<Field> {
        let fields = Fields::of(query);
        PATHS.iter().map(|(field, _)| *field).filter(|field| fields.has(*field)).collect()
    }

    /// The filters that Logstash, Beats and others send leave in the answer what they read.
    #[test]
    fn filters_keep_the_named_fields() {
        use Field::*;
        assert_eq!(Fields::of(""), Fields::ALL);
        assert_eq!(Fields::of("refresh=true"), Fields::ALL);
        let logstash = "filter_path=errors,items.*.error,items.*.status";
        assert_eq!(named(logstash), [Errors, Status, Error]);
        assert_eq!(named("filter_path=errors%2Citems.*.error.type"), [Errors, Error]);
        assert_eq!(named("filter_path=took"), [Took]);
        assert_eq!(named("filter_path=items.index._i*"), [Index, Id]);
        assert_eq!(named("filter_path=**.status"), [Status]);
        assert_eq!(named("filter_path=-items"), [Took, Errors]);
        assert_eq!(named("filter_path=items,-items.*._shards").len(), 8);
        assert_eq!(named("filter_path=nothing"), []);
    }
}
