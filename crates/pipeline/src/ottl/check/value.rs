//! Values: literals, paths, calls with keys, lists, maps, arithmetic.

use super::super::diagnostic::Fault;
use super::super::enums;
use super::super::program::{Expression, Key, Operator};
use super::super::suggest;
use super::super::syntax::{CallTree, KeyTree, Name, ValueKind, ValueTree};
use super::{Checker, literal};
use crate::memory::Slice;
use crate::value::Value;

impl Checker<'_> {
    pub(super) fn value(&mut self, tree: &ValueTree) -> Option<Expression> {
        Some(match &tree.kind {
            ValueKind::Nil => Expression::Literal(Value::Nil),
            ValueKind::Bool(value) => Expression::Literal(Value::Bool(*value)),
            ValueKind::Int(value) => Expression::Literal(Value::Int(*value)),
            ValueKind::Double(value) => Expression::Literal(Value::Double(*value)),
            ValueKind::Text(text) => Expression::Literal(Value::Text(self.literals.store(text.as_bytes()))),
            ValueKind::Bytes(bytes) => Expression::Literal(Value::Bytes(self.literals.store(bytes))),
            ValueKind::Enum(name) => {
                return self.enumeration(name, tree).map(|value| Expression::Literal(Value::Int(value)));
            }
            ValueKind::Function(name) => {
                let message = format!("the function `{name}` has no arguments");
                let help = format!("write `{name}(…)`");
                self.error(Fault::new(tree.range.clone(), message).help(help));
                return None;
            }
            ValueKind::Path(path) => Expression::Path(self.path(path, false)?),
            ValueKind::Call(call) => return self.converter(call),
            ValueKind::List(values) => {
                let compiled: Vec<_> = values.iter().map(|tree| self.value(tree)).collect();
                Expression::List(compiled.into_iter().collect::<Option<_>>()?)
            }
            ValueKind::Map(entries) => return self.map(entries, tree),
            ValueKind::Group(inner) => return self.value(inner),
            ValueKind::Negative(inner) => match (&inner.kind, self.value(inner)?) {
                // The sign belongs to the literal.
                (ValueKind::Int(value), _) => Expression::Literal(Value::Int(value.wrapping_neg())),
                (ValueKind::Double(value), _) => Expression::Literal(Value::Double(-value)),
                (_, expression) => Expression::Negative(Box::new(expression)),
            },
            ValueKind::Math(first, rest) => return self.math(first, rest),
        })
    }

    /// The value of an enum of this context.
    fn enumeration(&mut self, name: &str, tree: &ValueTree) -> Option<i64> {
        let found = enums::find(self.context, name);
        if found.is_none() {
            let context = self.context.name();
            let message = format!("there is no enum `{name}` in the context `{context}`");
            let fault = Fault::new(tree.range.clone(), message);
            let elsewhere: Vec<_> =
                enums::contexts(name).map(|context| format!("`{}`", context.name())).collect();
            let fault = match suggest::nearest(name, enums::names(self.context)) {
                _ if !elsewhere.is_empty() => {
                    fault.help(format!("it belongs to {}", elsewhere.join(" and ")))
                }
                Some(near) => fault.help(format!("did you mean `{near}`?")),
                None if crate::functions::find(name).is_some() => {
                    fault.help(format!("write `{name}(…)` for the function"))
                }
                None => fault.help("write strings in double quotes"),
            };
            self.error(fault);
        }
        found
    }

    /// A converter with the keys behind it.
    pub(super) fn converter(&mut self, tree: &CallTree) -> Option<Expression> {
        let call = self.call(tree);
        let keys = self.keys(&tree.keys);
        let call = Expression::Call(Box::new(call?));
        let keys = keys?;
        Some(if keys.is_empty() { call } else { Expression::Index(Box::new(call), keys) })
    }

    pub(super) fn keys(&mut self, trees: &[KeyTree]) -> Option<Box<[Key]>> {
        let keys: Vec<_> = trees.iter().map(|tree| self.key(tree)).collect();
        keys.into_iter().collect()
    }

    fn key(&mut self, tree: &KeyTree) -> Option<Key> {
        Some(match tree {
            KeyTree::Name(name) => Key::Name(self.literals.store(name.text.as_bytes())),
            KeyTree::Index(index, _) => Key::Index(*index),
            KeyTree::Dynamic(value) => match self.value(value)? {
                Expression::Literal(Value::Int(index)) => Key::Index(index),
                expression => Key::Dynamic(Box::new(expression)),
            },
        })
    }

    /// Of equal keys, the last counts.
    fn map(&mut self, entries: &[(Name, ValueTree)], tree: &ValueTree) -> Option<Expression> {
        let mut compiled: Vec<(Slice, Expression)> = Vec::new();
        let mut whole = true;
        for (key, value) in entries {
            let slice = self.literals.store(key.text.as_bytes());
            let Some(value) = self.value(value) else {
                whole = false;
                continue;
            };
            match compiled.iter_mut().find(|(known, _)| *known == slice) {
                Some((_, old)) => {
                    *old = value;
                    let message = format!("the key {:?} occurs twice; its last value counts", key.text);
                    self.warn(Fault::new(key.range.clone(), message));
                }
                None => compiled.push((slice, value)),
            }
        }
        let map = Expression::Map(compiled.into());
        if let (true, Expression::Map(entries)) = (literal::is(&map), &map)
            && entries.iter().any(|(_, value)| nests_map_in_lists(value))
        {
            let message = "a literal map cannot have a map within a list within a list";
            self.error(Fault::new(tree.range.clone(), message));
            return None;
        }
        whole.then_some(map)
    }

    fn math(&mut self, first: &ValueTree, rest: &[(Operator, ValueTree)]) -> Option<Expression> {
        let first = self.value(first);
        let operands: Vec<_> = rest.iter().map(|(operator, tree)| (*operator, self.value(tree))).collect();
        let mut expression = first?;
        for (operator, operand) in operands {
            expression = Expression::Math(operator, Box::new((expression, operand?)));
        }
        Some(expression)
    }

    /// Looks for errors within an argument of a function that does not exist.
    pub(super) fn argument_of_unknown(&mut self, tree: &ValueTree) {
        // The meaning of a capital name depends on the function.
        if !matches!(tree.kind, ValueKind::Enum(_) | ValueKind::Function(_)) {
            self.value(tree);
        }
    }
}

/// The Collector converts the lists of a literal map one level deep.
fn nests_map_in_lists(value: &Expression) -> bool {
    match value {
        Expression::List(values) => {
            values.iter().any(|value| matches!(value, Expression::List(_)) && literal::has_map(value))
        }
        _ => false,
    }
}
