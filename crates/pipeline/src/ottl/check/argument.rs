//! Arguments: what a parameter accepts.

use super::super::diagnostic::Fault;
use super::super::program::{Argument, Expression};
use super::super::signature::{Parameter, Signature, Type};
use super::super::syntax::{Name, ValueKind, ValueTree};
use super::{Checker, literal};
use crate::value::Kind;

impl Checker<'_> {
    pub(super) fn argument(
        &mut self,
        function: &'static Signature,
        parameter: Parameter,
        tree: &ValueTree,
    ) -> Option<Argument> {
        let wanted = |what: &str| {
            let message = format!("the {} of `{}` has to be {what}", parameter.name, function.name);
            Fault::new(tree.range.clone(), message)
        };
        let literal = match (parameter.accepts, &tree.kind) {
            (Type::Target | Type::MapTarget, ValueKind::Path(path)) => {
                let path = self.path(path, true)?;
                self.warn_of_target(function, parameter, &path, tree);
                return Some(Argument::Target(path));
            }
            (Type::Target | Type::MapTarget, _) => {
                let help = "only a path can be changed, such as `log.attributes[\"key\"]`";
                self.error(wanted("a path").help(help));
                return None;
            }
            (Type::Function, ValueKind::Enum(name) | ValueKind::Function(name)) => {
                let name = Name { text: name.clone(), range: tree.range.clone() };
                return self.function(&name).map(Argument::Function);
            }
            (Type::Function, _) => {
                self.error(wanted("the name of a function").help("write it alone, as in `SHA256`"));
                return None;
            }
            (Type::Values | Type::Texts | Type::Elements | Type::TextElements, ValueKind::List(values)) => {
                return self.values(function, parameter, values);
            }
            (Type::Values | Type::Texts, _) => {
                self.error(wanted("a list").help("write it in brackets: `[a, b]`"));
                return None;
            }
            (Type::LiteralTexts, ValueKind::List(values)) => return self.literals(values, &wanted),
            (Type::LiteralText, ValueKind::Text(_))
            | (Type::LiteralInt, ValueKind::Int(_))
            | (Type::LiteralDouble, ValueKind::Double(_))
            | (Type::LiteralBool, ValueKind::Bool(_)) => true,
            (Type::LiteralText, _) => self.refuse(wanted("a string literal"))?,
            (Type::LiteralInt, _) => self.refuse(wanted("an integer literal"))?,
            (Type::LiteralDouble, _) => self.refuse(wanted("a number with a decimal point"))?,
            (Type::LiteralBool, _) => self.refuse(wanted("`true` or `false`"))?,
            (Type::LiteralTexts, _) => self.refuse(wanted("a list of string literals"))?,
            _ => false,
        };
        self.counts = function.name == "Len" && matches!(tree.kind, ValueKind::Path(_));
        let expression = self.value(tree)?;
        if !literal {
            self.check_type(function, parameter, parameter.accepts, &expression, tree)?;
        }
        Some(Argument::Value(expression))
    }

    fn refuse(&mut self, fault: Fault) -> Option<bool> {
        self.error(fault);
        None
    }

    /// The elements of a list, which are evaluated one by one.
    fn values(
        &mut self,
        function: &'static Signature,
        parameter: Parameter,
        values: &[ValueTree],
    ) -> Option<Argument> {
        let texts = matches!(parameter.accepts, Type::Texts | Type::TextElements);
        let element = if texts { Type::Text } else { Type::Any };
        let mut compiled = Vec::new();
        for tree in values {
            let Some(expression) = self.value(tree) else { continue };
            if self.check_type(function, parameter, element, &expression, tree).is_some() {
                compiled.push(expression);
            }
        }
        (compiled.len() == values.len()).then(|| Argument::Values(compiled.into()))
    }

    fn literals(&mut self, values: &[ValueTree], wanted: &dyn Fn(&str) -> Fault) -> Option<Argument> {
        let mut compiled = Vec::new();
        for tree in values {
            match &tree.kind {
                ValueKind::Text(_) => compiled.extend(self.value(tree)),
                _ => self.error(Fault { range: tree.range.clone(), ..wanted("a list of string literals") }),
            }
        }
        (compiled.len() == values.len()).then(|| Argument::Values(compiled.into()))
    }

    /// Refuses a literal that does not fit, and warns of other expressions that never do.
    fn check_type(
        &mut self,
        function: &'static Signature,
        parameter: Parameter,
        accepts: Type,
        expression: &Expression,
        tree: &ValueTree,
    ) -> Option<()> {
        if literal::is(expression) {
            return match literal::fits(accepts, expression, self.literals) {
                Ok(()) => Some(()),
                Err(reason) => {
                    let message = format!("the {} of `{}` {reason}", parameter.name, function.name);
                    self.error(Fault::new(tree.range.clone(), message));
                    None
                }
            };
        }
        // `IsString(…)` and its like ask for the kind: they take any.
        let asks = function.name.starts_with("Is") && function.returns == Type::Bool;
        if let (Some(kind), false) = (literal::kind(expression), asks)
            && !takes(accepts, kind)
        {
            let message =
                format!("`{}` always fails: its {} is {}", function.name, parameter.name, kind.name());
            let help = match (kind, accepts) {
                (Kind::Id, Type::Text) => Some("use `.string` behind the path"),
                (Kind::Int | Kind::Double | Kind::Bool, Type::Text) => Some("convert it with `String(…)`"),
                (Kind::Text, Type::Int) => Some("convert it with `Int(…)`"),
                _ => None,
            };
            self.warn(Fault { range: tree.range.clone(), message, help: help.map(str::to_owned) });
        }
        Some(())
    }
}

/// Whether a getter of this type takes a value of `kind`.
fn takes(accepts: Type, kind: Kind) -> bool {
    match accepts {
        Type::Text => kind == Kind::Text,
        Type::Int => kind == Kind::Int,
        Type::Double => kind == Kind::Double,
        Type::Bool => kind == Kind::Bool,
        Type::Map | Type::MapTarget => kind == Kind::Map,
        Type::List | Type::Elements | Type::TextElements => kind == Kind::List,
        Type::Time => kind == Kind::Time,
        Type::Duration => kind == Kind::Duration,
        Type::IntLike | Type::DoubleLike | Type::BoolLike => {
            matches!(kind, Kind::Nil | Kind::Bool | Kind::Int | Kind::Double | Kind::Text)
        }
        _ => true,
    }
}
