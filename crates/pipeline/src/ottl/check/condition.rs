//! Conditions.

use super::super::diagnostic::Fault;
use super::super::program::{Comparison, Condition, Expression};
use super::super::signature::Type;
use super::super::syntax::{CallTree, ConditionTree, ValueKind, ValueTree};
use super::Checker;

impl Checker<'_> {
    pub(super) fn condition(&mut self, tree: &ConditionTree) -> Option<Condition> {
        match tree {
            ConditionTree::Any(terms) => self.terms(terms).map(Condition::Any),
            ConditionTree::All(terms) => self.terms(terms).map(Condition::All),
            ConditionTree::Not(inner) => Some(Condition::Not(Box::new(self.condition(inner)?))),
            ConditionTree::Constant(value) => Some(Condition::Constant(*value)),
            ConditionTree::Compare(operator, left, right) => {
                let a = self.compared(left, right);
                let b = self.compared(right, left);
                let (a, b) = (a?, b?);
                self.warn_of_comparison(*operator, &a, &b, left.range.start..right.range.end);
                Some(Condition::Compare(*operator, a, b))
            }
            ConditionTree::Converter(call) => self.holds(call),
        }
    }

    /// One side of a comparison with `other`.
    fn compared(&mut self, tree: &ValueTree, other: &ValueTree) -> Option<Expression> {
        self.counts = matches!((&tree.kind, &other.kind), (ValueKind::Path(_), ValueKind::Nil));
        self.value(tree)
    }

    fn terms(&mut self, terms: &[ConditionTree]) -> Option<Box<[Condition]>> {
        let terms: Vec<_> = terms.iter().map(|term| self.condition(term)).collect();
        terms.into_iter().collect()
    }

    fn holds(&mut self, tree: &CallTree) -> Option<Condition> {
        let expression = self.converter(tree)?;
        if let Expression::Call(call) = &expression
            && !matches!(call.function.returns, Type::Bool | Type::BoolLike | Type::Any)
        {
            let message =
                format!("`{}` returns no boolean, so this condition always fails", call.function.name);
            self.warn(Fault::new(tree.range.clone(), message).help("compare its value"));
        }
        Some(Condition::Holds(expression))
    }
}

impl Comparison {
    /// The operator in statements.
    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}
