//! Visits the calls of compiled programs.

use super::program::{Argument, Call, Condition, Expression, Key, Statement};

/// All calls of a statement, from outside to inside.
pub(crate) fn of_statement<'p>(statement: &'p Statement, each: &mut dyn FnMut(&'p Call)) {
    of_call(&statement.call, each);
    if let Some(condition) = &statement.condition {
        of_condition(condition, each);
    }
}

/// All calls of a condition, from outside to inside.
pub(crate) fn of_condition<'p>(condition: &'p Condition, each: &mut dyn FnMut(&'p Call)) {
    match condition {
        Condition::All(all) | Condition::Any(all) => all.iter().for_each(|one| of_condition(one, each)),
        Condition::Not(one) => of_condition(one, each),
        Condition::Constant(_) => {}
        Condition::Compare(_, left, right) => {
            of_expression(left, each);
            of_expression(right, each);
        }
        Condition::Holds(expression) => of_expression(expression, each),
    }
}

fn of_call<'p>(call: &'p Call, each: &mut dyn FnMut(&'p Call)) {
    each(call);
    for argument in &call.arguments {
        match argument {
            Argument::Value(expression) => of_expression(expression, each),
            Argument::Target(path) => of_keys(&path.keys, each),
            Argument::Values(all) => all.iter().for_each(|one| of_expression(one, each)),
            Argument::Absent | Argument::Function(_) | Argument::Prepared(_) => {}
        }
    }
}

/// All calls of an expression, from outside to inside.
pub(crate) fn of_expression<'p>(expression: &'p Expression, each: &mut dyn FnMut(&'p Call)) {
    match expression {
        Expression::Literal(_) => {}
        Expression::Path(path) => of_keys(&path.keys, each),
        Expression::Call(call) => of_call(call, each),
        Expression::Index(inner, keys) => {
            of_expression(inner, each);
            of_keys(keys, each);
        }
        Expression::Math(_, sides) => {
            of_expression(&sides.0, each);
            of_expression(&sides.1, each);
        }
        Expression::Negative(inner) => of_expression(inner, each),
        Expression::List(all) => all.iter().for_each(|one| of_expression(one, each)),
        Expression::Map(all) => all.iter().for_each(|(_, one)| of_expression(one, each)),
    }
}

fn of_keys<'p>(keys: &'p [Key], each: &mut dyn FnMut(&'p Call)) {
    for key in keys {
        if let Key::Dynamic(expression) = key {
            of_expression(expression, each);
        }
    }
}
