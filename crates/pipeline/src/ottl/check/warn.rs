//! Warnings: what compiles, but may not do what its author expects.

use super::super::diagnostic::Fault;
use super::super::field::Context;
use super::super::paths;
use super::super::program::{Argument, Comparison, Expression, Key, Path, Statement};
use super::super::signature::{Parameter, Signature, Type};
use super::super::syntax::ValueTree;
use super::{Checker, literal};
use crate::value::Kind;
use std::ops::Range;

impl Checker<'_> {
    /// `set` of a path that may be missing stores an empty value. The `where` guards it when it looks at the path: the uses
    /// from `edited` on are its.
    pub(super) fn warn_of_empty_values(&mut self, statement: &Statement, edited: usize) {
        let (editor, condition) = self.uses.split_at(edited);
        let source = match (statement.call.function.name, &*statement.call.arguments) {
            ("set", [_, Argument::Value(Expression::Path(path)), ..]) if !path.keys.is_empty() => path,
            _ => return,
        };
        let key = match source.keys.first() {
            Some(Key::Name(name)) => Some(*name),
            _ => None,
        };
        let same =
            |one: &&super::Use| (one.context, one.field, one.key) == (source.context, source.field, key);
        if condition.iter().any(|one| same(&one)) {
            return;
        }
        // The source is the last path that the arguments read, its keys before it.
        let Some(read) = editor.iter().rev().find(|one| !one.target && same(one)) else { return };
        let fault = Fault::new(read.range.clone(), "`set` stores an empty value when this is missing")
            .help("add `where … != nil` for it, if it can be missing");
        self.warn(fault);
    }

    /// A target that the editor cannot change.
    pub(super) fn warn_of_target(
        &mut self,
        function: &Signature,
        parameter: Parameter,
        path: &Path,
        tree: &ValueTree,
    ) {
        let Some(known) = paths::of(path.context).find(|known| known.field == path.field) else { return };
        let fault = if !known.settable {
            let message = format!("`{}.{}` cannot be changed", path.context.name(), known.name);
            Fault::new(tree.range.clone(), message)
        } else if let (Type::MapTarget, true, Some(kind)) =
            (parameter.accepts, path.keys.is_empty(), known.kind)
            && kind != Kind::Map
        {
            let message =
                format!("`{}` always fails: its {} is {}", function.name, parameter.name, kind.name());
            Fault::new(tree.range.clone(), message)
        } else {
            return;
        };
        self.warn(fault);
    }

    /// A comparison that has the same result for all records.
    pub(super) fn warn_of_comparison(
        &mut self,
        operator: Comparison,
        left: &Expression,
        right: &Expression,
        range: Range<usize>,
    ) {
        let (Some(a), Some(b)) = (literal::kind(left), literal::kind(right)) else { return };
        if literal::is(left) && literal::is(right) {
            return;
        }
        let scalar = |kind| matches!(kind, Kind::Bool | Kind::Int | Kind::Double | Kind::Text);
        let number = |kind| matches!(kind, Kind::Int | Kind::Double);
        let differ = scalar(a) && scalar(b) && a != b && !(number(a) && number(b));
        let never_nil = (a == Kind::Nil && never_nil(right)) || (b == Kind::Nil && never_nil(left));
        if !differ && !never_nil {
            return;
        }
        let result = if operator == Comparison::NotEqual { "true" } else { "false" };
        let (one, other) = (a.name(), b.name());
        let message = format!("this is always {result}: `{}` compares {one} with {other}", operator.symbol());
        let fault = Fault::new(range, message);
        self.warn(match (a, b) {
            (Kind::Int, Kind::Text) => fault.help(match enumerated(left) {
                Some(name) => format!("compare with a number or an enum, such as `{name}`"),
                None => "compare with a number".to_owned(),
            }),
            (Kind::Nil, Kind::Text) | (Kind::Text, Kind::Nil) => fault.help("compare with `\"\"`"),
            (Kind::Nil, _) | (_, Kind::Nil) => fault.help("compare with 0"),
            _ => fault,
        });
    }
}

/// Whether the expression is a path that has a value in every record.
fn never_nil(expression: &Expression) -> bool {
    match expression {
        Expression::Path(path) => {
            let varies = matches!(path.context, Context::Metric | Context::DataPoint);
            !varies && matches!(literal::kind(expression), Some(Kind::Text | Kind::Int))
        }
        _ => false,
    }
}

/// An enum for the values of a path.
fn enumerated(expression: &Expression) -> Option<&'static str> {
    use super::super::field::Field;
    let Expression::Path(path) = expression else { return None };
    match path.field {
        Field::SeverityNumber => Some("SEVERITY_NUMBER_ERROR"),
        Field::Kind => Some("SPAN_KIND_SERVER"),
        Field::StatusCode => Some("STATUS_CODE_ERROR"),
        Field::MetricType => Some("METRIC_DATA_TYPE_SUM"),
        Field::AggregationTemporality => Some("AGGREGATION_TEMPORALITY_DELTA"),
        _ => None,
    }
}
