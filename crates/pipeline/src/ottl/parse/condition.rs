//! Conditions: `or` of `and` of comparisons, constants, converters and parentheses.

use super::super::program::Comparison;
use super::super::syntax::{ConditionTree, ValueKind};
use super::super::token::TokenKind;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn condition(&mut self) -> Parsed<ConditionTree> {
        let first = self.all()?;
        let mut any = vec![first];
        while self.take(TokenKind::Or) {
            any.push(self.all()?);
        }
        self.note("`or`");
        Ok(one_or(any, ConditionTree::Any))
    }

    fn all(&mut self) -> Parsed<ConditionTree> {
        let first = self.term()?;
        let mut all = vec![first];
        while self.take(TokenKind::And) {
            all.push(self.term()?);
        }
        self.note("`and`");
        Ok(one_or(all, ConditionTree::All))
    }

    fn term(&mut self) -> Parsed<ConditionTree> {
        let not = self.take(TokenKind::Not);
        let term = self.comparison_or_other()?;
        Ok(if not { ConditionTree::Not(Box::new(term)) } else { term })
    }

    /// A comparison, if a value with an operator is here; a constant, a converter or a condition in parentheses otherwise.
    fn comparison_or_other(&mut self) -> Parsed<ConditionTree> {
        let start = self.at;
        let parenthesis = self.kind() == Some(TokenKind::LeftParen);
        match self.value() {
            Ok(left) => {
                if self.kind() == Some(TokenKind::Comparison) {
                    let operator = self.comparison();
                    let right = self.value()?;
                    return Ok(ConditionTree::Compare(operator, Box::new(left), Box::new(right)));
                }
                match left.kind {
                    ValueKind::Bool(value) => return Ok(ConditionTree::Constant(value)),
                    ValueKind::Call(call) => return Ok(ConditionTree::Converter(call)),
                    _ if !parenthesis => return Err(self.expect("a comparison")),
                    _ => self.note("a comparison"),
                }
            }
            Err(mismatch) if !parenthesis || self.fatal.is_some() => return Err(mismatch),
            Err(_) => {}
        }
        self.at = start + 1;
        let inner = self.deeper(Self::condition)?;
        self.need(TokenKind::RightParen, "`)`")?;
        Ok(inner)
    }

    fn comparison(&mut self) -> Comparison {
        let operator = match self.slice(self.at) {
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => Comparison::Equal,
        };
        self.at += 1;
        operator
    }
}

fn one_or(
    mut terms: Vec<ConditionTree>,
    many: impl FnOnce(Vec<ConditionTree>) -> ConditionTree,
) -> ConditionTree {
    match terms.pop() {
        Some(only) if terms.is_empty() => only,
        Some(last) => {
            terms.push(last);
            many(terms)
        }
        None => ConditionTree::Constant(true),
    }
}
