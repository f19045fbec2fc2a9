//! Visits the parts of a tree that decide its context.

use super::syntax::{CallTree, ConditionTree, KeyTree, PathTree, StatementTree, ValueKind, ValueTree};

/// A part of a tree.
pub(crate) enum Part<'t> {
    Path(&'t PathTree),
    Call(&'t CallTree),
    /// `argument`: directly as an argument, where it may be a function.
    Enum {
        name: &'t str,
        argument: bool,
    },
    /// The name of a function as an argument.
    Function(&'t str),
}

pub(crate) fn statement<'t>(tree: &'t StatementTree, each: &mut dyn FnMut(Part<'t>)) {
    call(&tree.editor, each);
    if let Some(tree) = &tree.condition {
        condition(tree, each);
    }
}

pub(crate) fn condition<'t>(tree: &'t ConditionTree, each: &mut dyn FnMut(Part<'t>)) {
    match tree {
        ConditionTree::Any(terms) | ConditionTree::All(terms) => {
            terms.iter().for_each(|term| condition(term, each))
        }
        ConditionTree::Not(inner) => condition(inner, each),
        ConditionTree::Constant(_) => {}
        ConditionTree::Compare(_, left, right) => {
            value(left, each);
            value(right, each);
        }
        ConditionTree::Converter(converter) => call(converter, each),
    }
}

fn call<'t>(tree: &'t CallTree, each: &mut dyn FnMut(Part<'t>)) {
    each(Part::Call(tree));
    for argument in &tree.arguments {
        match &argument.value {
            ValueTree { kind: ValueKind::Enum(name), .. } => each(Part::Enum { name, argument: true }),
            other => value(other, each),
        }
    }
    keys(&tree.keys, each);
}

fn keys<'t>(keys: &'t [KeyTree], each: &mut dyn FnMut(Part<'t>)) {
    for key in keys {
        if let KeyTree::Dynamic(tree) = key {
            value(tree, each);
        }
    }
}

pub(crate) fn value<'t>(tree: &'t ValueTree, each: &mut dyn FnMut(Part<'t>)) {
    match &tree.kind {
        ValueKind::Nil
        | ValueKind::Bool(_)
        | ValueKind::Int(_)
        | ValueKind::Double(_)
        | ValueKind::Text(_)
        | ValueKind::Bytes(_) => {}
        ValueKind::Enum(name) => each(Part::Enum { name, argument: false }),
        ValueKind::Function(name) => each(Part::Function(name)),
        ValueKind::Path(path) => {
            each(Part::Path(path));
            path.fields.iter().for_each(|field| keys(&field.keys, each));
        }
        ValueKind::Call(tree) => call(tree, each),
        ValueKind::List(values) => values.iter().for_each(|tree| value(tree, each)),
        ValueKind::Map(entries) => entries.iter().for_each(|(_, tree)| value(tree, each)),
        ValueKind::Group(inner) | ValueKind::Negative(inner) => value(inner, each),
        ValueKind::Math(first, rest) => {
            value(first, each);
            rest.iter().for_each(|(_, tree)| value(tree, each));
        }
    }
}
