//! The file as a tree in which everything knows its place.
//!
//! Bounded by construction: nesting and the count of nodes have limits, and an alias shares its
//! anchor's node instead of copying it, so a document cannot expand into more than it is.

mod builder;
mod source_range;

use std::ops::Range;
use std::rc::Rc;

pub(crate) use builder::{read, read_verbatim};
pub(crate) use source_range::source_range;

/// A node and the bytes that it spans.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: Range<usize>,
    pub(crate) value: Value,
    /// A scalar in quotes, or a block scalar: a text, whatever it looks like.
    pub(crate) is_quoted: bool,
    /// How many levels there are below, those behind aliases included.
    pub(crate) depth: usize,
}

#[derive(Debug)]
pub(crate) enum Value {
    /// Nothing, `null` or `~`: as if it had not been written.
    Null,
    /// Already reported; not to be looked at again.
    Broken,
    /// Any scalar as text: what it means is decided by the setting that reads it.
    Scalar(String),
    Sequence(Vec<Rc<Node>>),
    /// In the order of the file; no key twice.
    Mapping(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: Range<usize>,
    pub(crate) node: Rc<Node>,
}

impl Node {
    pub(crate) fn new(at: Range<usize>, value: Value) -> Rc<Node> {
        let depth = match &value {
            Value::Null | Value::Broken | Value::Scalar(_) => 0,
            Value::Sequence(items) => 1 + items.iter().map(|item| item.depth).max().unwrap_or(0),
            Value::Mapping(entries) => 1 + entries.iter().map(|entry| entry.node.depth).max().unwrap_or(0),
        };
        Rc::new(Node { at, value, is_quoted: false, depth })
    }

    /// A scalar in quotes, or a block scalar.
    pub(crate) fn quoted(at: Range<usize>, value: Value) -> Rc<Node> {
        Rc::new(Node { at, value, is_quoted: true, depth: 0 })
    }

    /// The node at the end of a path of keys.
    pub(crate) fn find<'a>(&'a self, path: &[String]) -> Option<&'a Node> {
        path.iter().try_fold(self, |node, step| node.entry(step).map(|entry| &*entry.node))
    }

    /// The nearest node to a path of keys and positions, and whether it is the one. A word alone is the only entry of a list.
    pub(crate) fn nearest<'a>(&'a self, path: &[String]) -> (&'a Node, bool) {
        let mut node = self;
        for step in path {
            let next = match &node.value {
                Value::Sequence(entries) => {
                    step.parse().ok().and_then(|at: usize| entries.get(at)).map(|it| &**it)
                }
                Value::Mapping(_) => node.entry(step).map(|entry| &*entry.node),
                Value::Scalar(_) if step == "0" => Some(node),
                _ => None,
            };
            // A group alone is the only entry of a list, too.
            let next =
                next.or_else(|| (step == "0" && matches!(node.value, Value::Mapping(_))).then_some(node));
            let Some(next) = next else { return (node, false) };
            node = next;
        }
        (node, true)
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }
}
