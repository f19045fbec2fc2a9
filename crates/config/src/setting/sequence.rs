//! Lists whose entries may repeat, and may be groups of settings.

use std::ops::Deref;

use super::{PlainValue, Setting, Shape};
use crate::reader::Reader;
use crate::yaml::{Node, Value};

/// The most entries of such a list.
const MOST_ENTRIES: usize = 1000;

/// Entries in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence<T>(Vec<T>);

/// Without entries.
impl<T> Default for Sequence<T> {
    fn default() -> Sequence<T> {
        Sequence(Vec::new())
    }
}

impl<T> From<Vec<T>> for Sequence<T> {
    fn from(entries: Vec<T>) -> Sequence<T> {
        Sequence(entries)
    }
}

impl<T> Deref for Sequence<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T> IntoIterator for &'a Sequence<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: Setting> Setting for Sequence<T> {
    /// One entry alone is a list of one. Entries that cannot be read are left out, so that the others are still looked at.
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Sequence<T>> {
        let Value::Sequence(entries) = &node.value else {
            return T::read(node, reader).map(|one| Sequence(vec![one]));
        };
        if entries.len() > MOST_ENTRIES {
            let what = format!("a list of {} entries cannot stand here", entries.len());
            reader.refuse(&node.at, &what, format!("write at most {MOST_ENTRIES} of them"));
            return None;
        }
        Some(Sequence(entries.iter().filter_map(|entry| T::read(entry, reader)).collect()))
    }

    fn shape() -> Shape {
        Shape::Sequence(Box::new(T::shape()))
    }

    fn plain(&self) -> PlainValue {
        PlainValue::Sequence(self.0.iter().map(Setting::plain).collect())
    }

    fn secrets(&self, out: &mut Vec<String>) {
        self.0.iter().for_each(|entry| entry.secrets(out));
    }
}
