//! A setting: reads itself from the file, describes itself, and writes itself.

mod sequence;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::Value as Json;

use crate::error::{Invalid, quote};
use crate::reader::{Entries, Reader};
use crate::yaml::{Node, Value};

pub use sequence::Sequence;

/// The most entries in a list, and in a map whose keys do not say otherwise, such as `sinks`.
pub(crate) const MOST_ENTRIES: usize = 64;

/// Anything that can stand behind a key.
pub(crate) trait Setting: Sized {
    /// Reads the value; notes what is wrong with it and returns none when it cannot.
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Self>;
    /// The valid values: for the reference, the schema and the messages.
    fn shape() -> Shape;
    /// The value as one would write it.
    fn plain(&self) -> PlainValue;
    /// Appends its secrets, as they are written.
    fn secrets(&self, _out: &mut Vec<String>) {}
    /// Whether it is secret, or holds secrets and nothing else.
    const IS_SECRET: bool = false;
}

/// A setting written as one word.
pub(crate) trait Scalar: Sized {
    /// The type in a sentence, with its article: "a size".
    const WHAT: &'static str;
    /// A value to show.
    const EXAMPLE: &'static str;
    /// The notation, for the reference; empty where `WHAT` says it all.
    const NOTATION: &'static str = "";
    fn parse(text: &str) -> Result<Self, Invalid>;
    fn text(&self) -> String;
    /// The JSON Schema of the notation.
    fn schema() -> Json;
    /// Whether no message may show it.
    const SECRET: bool = false;
    /// Whether a message may show a text that cannot be read as such a value.
    const SHOWN_WHEN_WRONG: bool = !Self::SECRET;
    /// The most entries of a map with these as its keys.
    const MOST_ENTRIES: usize = MOST_ENTRIES;
    /// The words to choose from and what each means, if it is a choice.
    fn choices() -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// The value as the effective configuration shows it.
    fn shown(&self) -> String {
        self.text()
    }
}

/// A group of settings.
pub(crate) trait Section: Sized {
    fn fields() -> Vec<Field>;

    /// Reads its settings among `entries`; others may be there, too.
    fn read_fields(entries: &Entries<'_>, reader: &mut Reader<'_, '_>) -> Option<Self>;

    /// Reads `entries`, which should be its settings and no others.
    fn read_entries(entries: &Entries<'_>, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let section = Self::read_fields(entries, reader);
        reader.no_others(entries, &Self::fields());
        section
    }

    fn plain_entries(&self) -> Vec<(String, PlainValue)>;

    /// Appends the secrets of its settings.
    fn section_secrets(&self, out: &mut Vec<String>);
}

/// The settings of a group and those that it shares with others.
pub(crate) fn joined<T>(mut own: Vec<T>, common: Vec<T>) -> Vec<T> {
    own.extend(common);
    own
}

/// A setting that a range can be declared for.
pub(crate) trait Ranged {
    type Bound: PartialOrd + Display;
    fn bound(&self) -> Option<&Self::Bound>;
}

pub(crate) enum Shape {
    Scalar(ScalarShape),
    Section(Vec<Field>),
    /// Several words, each once.
    List(ScalarShape),
    /// Entries that may repeat.
    Sequence(Box<Shape>),
    Map {
        key: ScalarShape,
        value: Box<Shape>,
    },
    /// Groups told apart by their `type`.
    Kinds(Vec<Kind>),
}

pub(crate) struct ScalarShape {
    pub(crate) what: &'static str,
    pub(crate) example: &'static str,
    pub(crate) notation: &'static str,
    pub(crate) choices: Vec<(&'static str, String)>,
    /// Makes the JSON Schema of the notation: only who writes a schema needs it, and all of them together take megabytes.
    pub(crate) schema: fn() -> Json,
}

/// One declared setting.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    pub(crate) shape: Shape,
    /// None when the setting must be given.
    pub(crate) default: Option<PlainValue>,
    /// The lowest and the highest value, as they are written.
    pub(crate) range: Option<(String, String)>,
}

pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    pub(crate) fields: Vec<Field>,
}

/// A value as it is written, without its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PlainValue {
    Unset,
    Text(String),
    List(Vec<String>),
    Sequence(Vec<PlainValue>),
    Map(Vec<(String, PlainValue)>),
}

/// A doc comment as text: what rustdoc makes of its lines.
pub(crate) fn doc(lines: &[&str]) -> String {
    let trimmed: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    trimmed.join("\n").trim().to_owned()
}

/// The name of a setting whose field is `field`: `if` is no name for a field.
pub(crate) fn name(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// The two ends of a declared range, as they are written.
pub(crate) fn ends<T: Display>(range: &RangeInclusive<T>) -> (String, String) {
    (range.start().to_string(), range.end().to_string())
}

/// Whether a value is inside its declared range.
pub(crate) fn within<T: Ranged>(value: &T, range: &RangeInclusive<T::Bound>) -> Result<(), Invalid> {
    match value.bound() {
        Some(bound) if !range.contains(bound) => {
            let (low, high) = ends(range);
            Err(Invalid::new(
                format!("{} is out of range", quote(&bound.to_string())),
                format!("write a value from {low} to {high}"),
            ))
        }
        _ => Ok(()),
    }
}

pub(crate) fn scalar_shape<T: Scalar>() -> ScalarShape {
    let (what, example, notation) = (T::WHAT, T::EXAMPLE, T::NOTATION);
    ScalarShape { what, example, notation, choices: T::choices(), schema: T::schema }
}

impl<T: Scalar> Setting for T {
    const IS_SECRET: bool = T::SECRET;

    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<T> {
        if T::SECRET {
            reader.conceal(&node.at);
        }
        let expected = || format!("write {}, for example `{}`", T::WHAT, T::EXAMPLE);
        match &node.value {
            Value::Scalar(text) => match T::parse(text) {
                Ok(value) => return Some(value),
                Err(Invalid { message, help }) if T::SHOWN_WHEN_WRONG => {
                    reader.refuse_shown(&node.at, &message, help);
                }
                Err(Invalid { message, help }) => reader.refuse(&node.at, &message, help),
            },
            Value::Null => reader.refuse(&node.at, "a value is missing", expected()),
            Value::Sequence(_) => reader.refuse(&node.at, "a list is not allowed here", expected()),
            Value::Mapping(_) => {
                reader.refuse(&node.at, "a group of settings is not allowed here", expected())
            }
            Value::Broken => {}
        }
        None
    }

    fn shape() -> Shape {
        Shape::Scalar(scalar_shape::<T>())
    }

    fn plain(&self) -> PlainValue {
        PlainValue::Text(self.shown())
    }

    fn secrets(&self, out: &mut Vec<String>) {
        let text = self.text();
        if text != self.shown() {
            out.push(text);
        }
    }
}

impl<T: Setting> Setting for Option<T> {
    const IS_SECRET: bool = T::IS_SECRET;

    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Option<T>> {
        T::read(node, reader).map(Some)
    }

    fn shape() -> Shape {
        T::shape()
    }

    fn plain(&self) -> PlainValue {
        self.as_ref().map_or(PlainValue::Unset, Setting::plain)
    }

    fn secrets(&self, out: &mut Vec<String>) {
        self.iter().for_each(|value| value.secrets(out));
    }
}

impl<T: Scalar + PartialEq> Setting for Vec<T> {
    /// One word alone is a list of one.
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Vec<T>> {
        let Value::Sequence(items) = &node.value else {
            return T::read(node, reader).map(|one| vec![one]);
        };
        if items.is_empty() || items.len() > MOST_ENTRIES {
            let what = format!("a list of {} entries cannot stand here", items.len());
            reader.refuse(&node.at, &what, format!("write from 1 to {MOST_ENTRIES} of them"));
            return None;
        }
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            let Some(value) = T::read(item, reader) else { continue };
            if list.contains(&value) {
                reader.refuse_shown(
                    &item.at,
                    &format!("{} is there twice", quote(&value.shown())),
                    "remove one",
                );
            } else {
                list.push(value);
            }
        }
        Some(list)
    }

    fn shape() -> Shape {
        Shape::List(scalar_shape::<T>())
    }

    fn plain(&self) -> PlainValue {
        PlainValue::List(self.iter().map(Scalar::shown).collect())
    }

    fn secrets(&self, out: &mut Vec<String>) {
        self.iter().for_each(|value| value.secrets(out));
    }
}

impl<K: Scalar + Ord, V: Setting> Setting for BTreeMap<K, V> {
    /// Entries that cannot be read are left out, so that the others are still looked at.
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<BTreeMap<K, V>> {
        let mut map = BTreeMap::new();
        for entry in reader.entries(node)? {
            if map.len() >= K::MOST_ENTRIES {
                reader.refuse(
                    &entry.key_at,
                    &format!("there are more than {} entries", K::MOST_ENTRIES),
                    "remove some",
                );
                break;
            }
            let key = match K::parse(&entry.key) {
                Ok(key) => Some(key),
                // Somebody forgot the key or its colon, and this is the secret.
                Err(Invalid { help, .. }) if V::IS_SECRET => {
                    reader.refuse(&entry.key_at, &format!("this is not {}", K::WHAT), help);
                    None
                }
                Err(Invalid { message, help }) => {
                    reader.refuse_shown(&entry.key_at, &message, help);
                    None
                }
            };
            let is_pair = key.is_some() && matches!(entry.node.value, Value::Scalar(_));
            let name = if V::IS_SECRET && !is_pair { "…" } else { &entry.key };
            let value = reader.under_as(name, entry, |reader| V::read(&entry.node, reader));
            map.extend(key.zip(value));
        }
        Some(map)
    }

    fn shape() -> Shape {
        Shape::Map { key: scalar_shape::<K>(), value: Box::new(V::shape()) }
    }

    fn plain(&self) -> PlainValue {
        PlainValue::Map(self.iter().map(|(key, value)| (key.text(), value.plain())).collect())
    }

    fn secrets(&self, out: &mut Vec<String>) {
        self.values().for_each(|value| value.secrets(out));
    }
}

impl<T: Ranged> Ranged for Option<T> {
    type Bound = T::Bound;
    fn bound(&self) -> Option<&T::Bound> {
        self.as_ref().and_then(Ranged::bound)
    }
}
