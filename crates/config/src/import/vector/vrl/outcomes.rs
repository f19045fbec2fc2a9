//! Conditions of VRL with what they are where something in them fails: neither true nor false.
//!
//! In Vector a filter whose condition fails drops the event, and `not` does not turn that around.

use super::Translation;
use super::statements::{Translator, bracketed};
use super::syntax::{Call, Expression};
use super::values::type_condition;

/// When a condition holds, and when it does not.
pub(super) struct Outcomes {
    pub(super) holds: String,
    /// None if that is the opposite of `holds`, because the condition cannot fail.
    pub(super) fails: Option<String>,
}

impl Outcomes {
    fn fails(&self) -> String {
        self.fails.clone().unwrap_or_else(|| format!("not ({})", self.holds))
    }
}

impl Translator<'_> {
    /// A condition, which is what OTTL calls a boolean expression.
    pub(super) fn condition(&mut self, expression: &Expression) -> Translation<String> {
        self.outcomes(expression).map(|outcomes| outcomes.holds)
    }

    pub(super) fn outcomes(&mut self, expression: &Expression) -> Translation<Outcomes> {
        match expression.bare() {
            Expression::Not(inner) => {
                let inner = self.outcomes(inner)?;
                let is_total = inner.fails.is_none();
                Ok(Outcomes { holds: inner.fails(), fails: (!is_total).then_some(inner.holds) })
            }
            Expression::Binary("&&", left, right) => {
                let (left, right) = (self.outcomes(left)?, self.outcomes(right)?);
                let holds = and(&left.holds, &right.holds);
                let fails = match (&left.fails, &right.fails) {
                    (None, None) => None,
                    (None, Some(fails)) => Some(format!("not ({}) or {fails}", left.holds)),
                    (Some(fails), _) => Some(format!("{fails} or {}", and(&left.holds, &right.fails()))),
                };
                Ok(Outcomes { holds, fails })
            }
            Expression::Binary("||", left, right) => {
                let (left, right) = (self.outcomes(left)?, self.outcomes(right)?);
                let holds = match &left.fails {
                    None => format!("{} or {}", left.holds, right.holds),
                    Some(fails) => format!("{} or {}", left.holds, and(fails, &right.holds)),
                };
                let is_total = left.fails.is_none() && right.fails.is_none();
                let fails = (!is_total).then(|| and(&left.fails(), &right.fails()));
                Ok(Outcomes { holds, fails })
            }
            // A condition that fails does not hold.
            Expression::Binary("??", attempt, fallback) if **fallback == Expression::Boolean(false) => {
                self.out.handles_errors = true;
                self.condition(attempt).map(|holds| Outcomes { holds, fails: None })
            }
            _ => self.simple_outcomes(expression),
        }
    }

    fn simple_outcomes(&mut self, expression: &Expression) -> Translation<Outcomes> {
        let start = self.containers.len();
        let mut required = Vec::new();
        self.required(expression, &mut required)?;
        self.containers.truncate(start);
        let condition = self.simple_condition(expression)?;
        let has_containers = self.containers.len() > start;
        if required.is_empty() {
            if !has_containers {
                return Ok(Outcomes { holds: condition, fails: None });
            }
            // A field in what is no map is null.
            let holds = if holds_for_null(expression) {
                let inside = self.guarded(start, &format!("not ({condition})"));
                format!("not ({inside})")
            } else {
                self.guarded(start, &condition)
            };
            return Ok(Outcomes { holds, fails: None });
        }
        let required = required.join(" and ");
        let holds =
            if is_text_comparison(expression) { condition.clone() } else { and(&required, &condition) };
        let containers = self.containers.get(start..).unwrap_or_default().to_vec();
        let holds = self.guarded(start, &holds);
        self.containers.extend(containers);
        let fails = self.guarded(start, &format!("{required} and not ({condition})"));
        Ok(Outcomes { holds, fails: Some(fails) })
    }

    /// Collects conditions on the arguments of functions, without which these fail.
    fn required(&mut self, expression: &Expression, out: &mut Vec<String>) -> Translation<()> {
        match expression {
            Expression::Not(inner) | Expression::Negative(inner) => self.required(inner, out),
            Expression::Binary("??", ..) => Ok(()),
            Expression::Binary(_, left, right) => {
                self.required(left, out)?;
                self.required(right, out)
            }
            Expression::Call(call) => {
                for (_, argument) in &call.arguments {
                    self.required(argument, out)?;
                }
                self.required_by(call, out)
            }
            _ => Ok(()),
        }
    }

    fn required_by(&mut self, call: &Call, out: &mut Vec<String>) -> Translation<()> {
        let Some(argument @ (Expression::Path(_) | Expression::Variable(..))) =
            call.argument(0, "value").map(Expression::bare)
        else {
            return Ok(());
        };
        let value = self.value(argument)?;
        let test = match call.name.as_str() {
            "string" | "contains" | "starts_with" | "ends_with" | "match" | "match_any" => {
                format!("IsString({value})")
            }
            // In a program these fail by themselves, for `on_error`.
            _ if !self.is_lone => return Ok(()),
            "downcase" | "upcase" | "strip_whitespace" | "strlen" | "split" | "parse_int" => {
                format!("IsString({value})")
            }
            "to_string" => format!("not (IsMap({value}) or IsList({value}))"),
            "object" | "keys" => format!("IsMap({value})"),
            "array" | "includes" => format!("IsList({value})"),
            "int" => type_condition("IsInt", &value),
            "float" => format!("IsDouble({value})"),
            "bool" => format!("IsBool({value})"),
            "length" | "is_empty" => {
                format!("(IsString({value}) or IsList({value}) or IsMap({value}))")
            }
            "to_int" => format!("(IsDouble({value}) or IsMatch({value}, \"^[+-]?[0-9]+$$\"))"),
            _ => return Ok(()),
        };
        // An assertion says more than the function around it.
        let is_known = out.iter().any(|other| other.contains(&format!("({value})")));
        if !is_known {
            out.push(test);
        }
        Ok(())
    }
}

fn and(left: &str, right: &str) -> String {
    format!("{} and {}", bracketed(left), bracketed(right))
}

/// Whether a simple condition holds for a field that is absent.
fn holds_for_null(expression: &Expression) -> bool {
    match expression.bare() {
        Expression::Binary("==", left, right) => **left == Expression::Null || **right == Expression::Null,
        Expression::Binary("!=", left, right) => **left != Expression::Null && **right != Expression::Null,
        Expression::Call(call) => matches!(call.name.as_str(), "is_null" | "is_nullish"),
        _ => false,
    }
}

/// Whether only a text can fulfil a condition.
fn is_text_comparison(expression: &Expression) -> bool {
    matches!(expression.bare(), Expression::Binary("==", left, right)
        if left.as_text().is_some() || right.as_text().is_some())
}
