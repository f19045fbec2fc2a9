//! Conditions of VRL.

use super::Translation;
use super::calls::default_of;
use super::statements::Translator;
use super::syntax::{Call, Expression};
use super::values::type_condition;
use std::cmp::Ordering;

impl Translator<'_> {
    /// A condition without operators that join others.
    pub(super) fn simple_condition(&mut self, expression: &Expression) -> Translation<String> {
        match expression.bare() {
            Expression::Boolean(value) => Ok(value.to_string()),
            Expression::Binary(operator @ ("==" | "!=" | "<" | ">" | "<=" | ">="), left, right) => {
                self.comparison(operator, left, right)
            }
            Expression::Path(_) | Expression::Variable(..) => {
                let value = self.value(expression)?;
                Ok(format!("{value} == true"))
            }
            Expression::Call(call) => self.condition_call(call),
            _ => Err("this is no condition that is known here".to_owned()),
        }
    }

    fn comparison(&mut self, operator: &str, left: &Expression, right: &Expression) -> Translation<String> {
        // Whether there was an error.
        if let (Expression::Variable(name, path), Expression::Null) = (left, right)
            && path.is_empty()
            && let Some(value) = self.errors.get(name)
        {
            let opposite = if operator == "==" { "!=" } else { "==" };
            return Ok(format!("{value} {opposite} nil"));
        }
        if self.is_lone && default_fulfils(left, operator, right) {
            return Err(
                "an absent field has a value after this conversion, which fulfils the condition".to_owned()
            );
        }
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        Ok(format!("{left} {operator} {right}"))
    }

    fn operand(&mut self, expression: &Expression) -> Translation<String> {
        match expression.bare() {
            // A comparison of a function that is a condition.
            Expression::Call(call) if is_condition(&call.name) => {
                let Expression::Call(call) = expression.bare() else { return self.value(expression) };
                let condition = self.condition_call(call)?;
                let is_call =
                    condition.ends_with(')') && condition.starts_with(|c: char| c.is_ascii_uppercase());
                if is_call { Ok(condition) } else { Err("conditions are not compared".to_owned()) }
            }
            _ => self.value(expression),
        }
    }

    fn condition_call(&mut self, call: &Call) -> Translation<String> {
        let first = call.argument(0, "value").or_else(|| call.argument(0, "field"));
        let first = first.ok_or_else(|| format!("`{}` has no argument", call.name))?;
        let test = match call.name.as_str() {
            "exists" => return Ok(format!("{} != nil", self.value(first)?)),
            "is_null" => return Ok(format!("{} == nil", self.value(first)?)),
            "is_nullish" => {
                let value = self.value(first)?;
                return Ok(format!(
                    "({value} == nil or {value} == \"-\" or (IsString({value}) and IsMatch({value}, \"^\\\\s*$$\")))"
                ));
            }
            "is_empty" => return Ok(format!("Len({}) == 0", self.value(first)?)),
            "includes" => return self.includes(first, call),
            "contains" | "starts_with" | "ends_with" => return self.substring(first, call),
            "match" => {
                let pattern = call.argument(1, "pattern");
                let Some(Expression::Regex(pattern)) = pattern else {
                    return Err("the pattern of `match` has to be a literal".to_owned());
                };
                let pattern = self.literal(pattern);
                return Ok(format!("IsMatch({}, {pattern})", self.value(first)?));
            }
            "match_any" => {
                let Some(Expression::List(patterns)) = call.argument(1, "patterns") else {
                    return Err("the patterns of `match_any` have to be literals".to_owned());
                };
                let value = self.value(first)?;
                let mut tests = Vec::new();
                for pattern in patterns {
                    let Expression::Regex(pattern) = pattern else {
                        return Err("the patterns of `match_any` have to be literals".to_owned());
                    };
                    tests.push(format!("IsMatch({value}, {})", self.literal(pattern)));
                }
                return Ok(format!("({})", tests.join(" or ")));
            }
            "is_string" => "IsString",
            "is_integer" => "IsInt",
            "is_float" => "IsDouble",
            "is_boolean" => "IsBool",
            "is_object" => "IsMap",
            "is_array" => "IsList",
            name => return Err(format!("`{name}` has no counterpart in conditions")),
        };
        Ok(type_condition(test, &self.value(first)?))
    }

    /// Whether a list has a value.
    fn includes(&mut self, list: &Expression, call: &Call) -> Translation<String> {
        let item = call.argument(1, "item").ok_or_else(|| "`includes` has two arguments".to_owned())?;
        let item = self.value(item)?;
        if let Expression::List(values) = list {
            let mut tests = Vec::new();
            for value in values {
                tests.push(format!("{item} == {}", self.value(value)?));
            }
            return match tests.as_slice() {
                [] => Ok("false".to_owned()),
                _ => Ok(format!("({})", tests.join(" or "))),
            };
        }
        Ok(format!("ContainsValue({}, {item})", self.value(list)?))
    }

    fn substring(&mut self, value: &Expression, call: &Call) -> Translation<String> {
        let part = call.argument(1, "substring").and_then(|part| part.as_text());
        let part = part.ok_or_else(|| format!("the text of `{}` has to be a literal", call.name))?;
        let insensitive = matches!(call.argument(2, "case_sensitive"), Some(Expression::Boolean(false)));
        let value = self.value(value)?;
        let (before, behind) = match call.name.as_str() {
            "starts_with" => ("^", ""),
            "ends_with" => ("", "$"),
            _ => ("", ""),
        };
        let case = if insensitive { "(?i)" } else { "" };
        let pattern = format!("{case}{before}{}{behind}", escaped(&part));
        Ok(format!("IsMatch({value}, {})", self.literal(&pattern)))
    }
}

/// Whether a conversion of an absent field fulfils a comparison, as far as that can be told.
fn default_fulfils(left: &Expression, operator: &str, right: &Expression) -> bool {
    let Expression::Call(call) = left.bare() else { return false };
    let Some(default) = default_of(&call.name) else { return false };
    let ordering = match right.bare() {
        Expression::Number(number) => number.parse().ok().and_then(|number: f64| 0_f64.partial_cmp(&number)),
        Expression::Negative(_) => Some(Ordering::Greater),
        other => other.as_text().map(|text| default.trim_matches('"').cmp(text.as_str())),
    };
    let Some(ordering) = ordering else { return true };
    match operator {
        "==" => ordering.is_eq(),
        "!=" => ordering.is_ne(),
        "<" => ordering.is_lt(),
        "<=" => ordering.is_le(),
        ">" => ordering.is_gt(),
        _ => ordering.is_ge(),
    }
}

/// Whether a function is a condition.
pub(super) fn is_condition(name: &str) -> bool {
    matches!(
        name,
        "exists"
            | "is_null"
            | "is_nullish"
            | "is_empty"
            | "includes"
            | "contains"
            | "starts_with"
            | "ends_with"
            | "match"
            | "match_any"
            | "is_string"
            | "is_integer"
            | "is_float"
            | "is_boolean"
            | "is_object"
            | "is_array"
    )
}

/// A text as a regular expression that matches it alone. Two dollar signs are one in Vector, and `${NAME}` is a variable.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '$' && chars.peek() == Some(&'$') {
            chars.next();
            out.push_str("\\$$");
            continue;
        }
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
