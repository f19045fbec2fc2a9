//! TOML as the tree that YAML becomes.

use std::ops::Range;
use std::rc::Rc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::ErrorCollector;
use crate::yaml::{Entry, Node, Value};

/// The deepest nesting; Vector's settings need six levels.
const DEEPEST: usize = 32;
/// The most values in a file.
const MOST_NODES: usize = 20_000;

/// Reads a file whose first byte is at `base` of the whole text. None if it is not TOML, which is noted.
pub(super) fn read(text: &str, base: usize, errors: &mut ErrorCollector<'_>) -> Option<Rc<Node>> {
    let (table, found) = DeTable::parse_recoverable(text);
    for error in &found {
        let span = error.span().unwrap_or(0..0);
        let message = format!("this is not valid TOML: {}", error.message().replace('\n', " "));
        let help = "look for unclosed quotes and brackets here or above, and for keys that are set twice";
        errors.note(&(span.start + base..span.end + base), message, help);
    }
    if !found.is_empty() {
        return None;
    }
    let mut reader = TomlReader { base, nodes: 0, errors };
    let at = 0..text.len();
    reader.table(table.get_ref(), &at, 0)
}

struct TomlReader<'e, 'a> {
    base: usize,
    nodes: usize,
    errors: &'e mut ErrorCollector<'a>,
}

impl TomlReader<'_, '_> {
    fn place(&self, span: &Range<usize>) -> Range<usize> {
        span.start + self.base..span.end + self.base
    }

    fn table(&mut self, table: &DeTable<'_>, span: &Range<usize>, depth: usize) -> Option<Rc<Node>> {
        let mut entries = Vec::new();
        for (key, value) in table {
            let key_at = self.place(&key.span());
            let node = self.value(value, depth + 1)?;
            entries.push(Entry { key: key.get_ref().to_string(), key_at, node });
        }
        // The table is sorted by its keys.
        entries.sort_by_key(|entry: &Entry| entry.key_at.start);
        Some(Node::new(self.place(span), Value::Mapping(entries)))
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, depth: usize) -> Option<Rc<Node>> {
        let at = self.place(&value.span());
        self.nodes += 1;
        if depth > DEEPEST || self.nodes > MOST_NODES {
            let message = format!("there are more than {DEEPEST} levels or {MOST_NODES} values up to here");
            self.errors.note(&at, message, "a configuration is not that large");
            return None;
        }
        let plain = |text: String| Node::new(at.clone(), Value::Scalar(text));
        Some(match value.get_ref() {
            DeValue::String(text) => Node::quoted(at, Value::Scalar(text.to_string())),
            DeValue::Integer(number) => {
                let decimal = i64::from_str_radix(number.as_str(), number.radix());
                plain(decimal.map_or_else(|_| number.as_str().to_owned(), |number| number.to_string()))
            }
            DeValue::Float(number) => plain(number.as_str().to_owned()),
            DeValue::Boolean(value) => plain(value.to_string()),
            DeValue::Datetime(time) => plain(time.to_string()),
            DeValue::Array(items) => {
                let items: Option<Vec<Rc<Node>>> =
                    items.iter().map(|item| self.value(item, depth + 1)).collect();
                Node::new(at, Value::Sequence(items?))
            }
            DeValue::Table(table) => return self.table(table, &value.span(), depth),
        })
    }
}
