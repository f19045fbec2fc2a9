//! Values of VRL.

use super::assignments::{is_time, is_time_call};
use super::statements::Translator;
use super::syntax::{Branches, Expression, Piece, StatementKind};
use super::{Segment, Translation};
use crate::import::references;
use crate::import::vector::vocabulary::{PlaceKind, refuse_negative_index, within};

impl Translator<'_> {
    /// A value in OTTL. What it needs is computed by statements before it.
    pub(super) fn value(&mut self, expression: &Expression) -> Translation<String> {
        match expression {
            Expression::Null => Ok("nil".to_owned()),
            Expression::Boolean(value) => Ok(value.to_string()),
            Expression::Number(number) => Ok(number.clone()),
            Expression::Text(pieces) => Ok(self.text(pieces)),
            Expression::Reference(reference) => Ok(references::vector(reference).0),
            Expression::Regex(_) => Err("a regular expression is no value".to_owned()),
            Expression::Path(path) => self.readable(path),
            Expression::Variable(name, path) => {
                if self.errors.contains_key(name) {
                    return Err("the text of an error has no counterpart".to_owned());
                }
                refuse_negative_index(path)?;
                Ok(self.variable(name, path))
            }
            Expression::Call(call) => self.call(call),
            Expression::Negative(inner) => match &**inner {
                Expression::Number(number) => Ok(format!("-{number}")),
                inner => Ok(format!("(0 - {})", self.value(inner)?)),
            },
            Expression::Binary("??", attempt, fallback) => self.either(attempt, fallback, true),
            Expression::Binary("||", first, fallback) => self.either(first, fallback, false),
            Expression::Binary(operator @ ("+" | "-" | "*" | "/"), left, right) => {
                self.arithmetic(operator, left, right)
            }
            Expression::If(branches) => self.chosen(branches),
            Expression::List(items) => {
                let items: Translation<Vec<String>> = items.iter().map(|item| self.value(item)).collect();
                Ok(format!("[{}]", items?.join(", ")))
            }
            Expression::Map(members) => {
                let mut rendered = Vec::new();
                for (key, value) in members {
                    let value = self.value(value)?;
                    rendered.push(format!("{}: {value}", self.literal(key)));
                }
                Ok(format!("{{{}}}", rendered.join(", ")))
            }
            Expression::Not(_) | Expression::Binary(..) => {
                let condition = self.condition(expression)?;
                let result = self.temporary();
                self.emit(&format!("set({result}, false)"));
                self.emit_where(&format!("set({result}, true)"), Some(&condition));
                Ok(result)
            }
        }
    }

    /// A value that needs no statements before it.
    pub(super) fn probe(&mut self, expression: &Expression) -> Option<String> {
        let before = (self.out.clone(), self.temporaries, self.conditions.len());
        let value = self.value(expression).ok();
        let is_alone = self.out.lines.len() == before.0.lines.len();
        self.conditions.truncate(before.2);
        (self.out, self.temporaries) = (before.0, before.1);
        value.filter(|_| is_alone)
    }

    /// A value whose failure the program handles, so that what comes behind it does not depend on it.
    pub(super) fn attempted(&mut self, expression: &Expression) -> Translation<String> {
        let outer = self.conditions.len();
        let value = self.value(expression);
        self.conditions.truncate(outer);
        value
    }

    /// Where a field is read.
    pub(super) fn readable(&mut self, path: &[Segment]) -> Translation<String> {
        let place = self.out.vocabulary.place(path)?;
        if self.out.vocabulary.merged_key(path).is_some() {
            let found = within("log.attributes", path).path;
            let result = self.temporary();
            self.emit_where(&format!("set({result}, {found})"), Some(&format!("{found} != nil")));
            // The cache has no times: it is the text that Vector writes.
            let own = match place.kind {
                PlaceKind::Time => format!("FormatTime({}, \"%Y-%m-%dT%H:%M:%S.%sZ\")", place.path),
                _ => place.path,
            };
            self.emit_where(&format!("set({result}, {own})"), Some(&format!("{result} == nil")));
            return Ok(result);
        }
        match place.kind {
            PlaceKind::Event => Err("the event as a value has no counterpart".to_owned()),
            _ => {
                self.containers.extend(place.containers);
                Ok(place.path)
            }
        }
    }

    /// Where a field is read, with the condition that it is there.
    pub(super) fn present(&mut self, path: &[Segment]) -> Translation<(String, String)> {
        let containers = self.containers.len();
        let source = self.readable(path)?;
        let present = self.guarded(containers, &format!("{source} != nil"));
        Ok((source, present))
    }

    /// A condition about fields that were read, which cannot fail: it is false where one is in no map.
    pub(super) fn guarded(&mut self, read_before: usize, condition: &str) -> String {
        let mut all: Vec<String> = Vec::new();
        for container in self.containers.drain(read_before.min(self.containers.len())..) {
            if !all.contains(&container) {
                all.push(container);
            }
        }
        all.push(super::statements::bracketed(condition));
        if let [_] = all.as_slice() { condition.to_owned() } else { all.join(" and ") }
    }

    /// A variable is an entry of the cache.
    pub(super) fn variable(&mut self, name: &str, path: &[Segment]) -> String {
        let place = within(&format!("log.cache[\"{name}\"]"), path);
        self.containers.extend(place.containers);
        place.path
    }

    fn text(&mut self, pieces: &[Piece]) -> String {
        match pieces {
            [] => "\"\"".to_owned(),
            [Piece::Text(text)] => self.literal(text),
            several => {
                let mut parts = Vec::new();
                for piece in several {
                    parts.push(match piece {
                        Piece::Text(text) => self.literal(text),
                        Piece::Variable(name) => self.variable(name, &[]),
                    });
                }
                format!("Concat([{}], \"\")", parts.join(", "))
            }
        }
    }

    /// The first value, or another where it fails (`is_error`) or is absent.
    fn either(&mut self, first: &Expression, fallback: &Expression, is_error: bool) -> Translation<String> {
        if let (Expression::Call(call), Some(default)) = (first.bare(), fallback.as_text())
            && call.name == "get_env_var"
        {
            return self.environment(call, Some(&default));
        }
        let result = self.temporary();
        // The cache has no times, but their nanoseconds.
        let is_time = is_time(first) && is_time(fallback);
        if !is_time && (is_time_call(first) || is_time_call(fallback)) {
            return Err("a time and another value have no place that takes both".to_owned());
        }
        let kept = |value: String| if is_time { format!("UnixNano({value})") } else { value };
        let assertion = assertion(first).filter(|_| is_error);
        let mut first = kept(if is_error { self.attempted(first)? } else { self.value(first)? });
        let has_type = assertion.map(|test| type_condition(test, &first));
        if assertion == Some("IsInt") {
            first = format!("Int({first})");
        }
        self.emit_where(&format!("set({result}, {first})"), has_type.as_deref());
        self.out.handles_errors |= is_error;
        let absent = match is_error {
            true => format!("{result} == nil"),
            false => format!("{result} == nil or {result} == false"),
        };
        let outer = self.conditions.len();
        self.conditions.push(absent);
        let fallback = self.value(fallback);
        if let Ok(fallback) = &fallback {
            self.emit(&format!("set({result}, {})", kept(fallback.clone())));
        }
        let may_fail = self.conditions.len() > outer + 1;
        self.conditions.truncate(outer);
        if may_fail {
            self.conditions.push(format!("{result} != nil"));
        }
        fallback.map(|_| if is_time { format!("Unix(0, {result})") } else { result })
    }

    fn arithmetic(&mut self, operator: &str, left: &Expression, right: &Expression) -> Translation<String> {
        let is_text = is_text(left) || is_text(right);
        let is_number = is_number(left) || is_number(right);
        match (operator, is_text, is_number) {
            ("+", true, _) => {
                let mut parts = Vec::new();
                self.concatenated(left, &mut parts)?;
                self.concatenated(right, &mut parts)?;
                Ok(format!("Concat([{}], \"\")", parts.join(", ")))
            }
            ("+", false, false) => {
                Err("whether `+` adds numbers or joins texts is not known here".to_owned())
            }
            _ => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                // VRL never divides as integers.
                let left = if operator == "/" { format!("Double({left})") } else { left };
                Ok(format!("({left} {operator} {right})"))
            }
        }
    }

    /// The parts of texts that `+` joins.
    fn concatenated(&mut self, expression: &Expression, parts: &mut Vec<String>) -> Translation<()> {
        match expression.bare() {
            Expression::Binary("+", left, right) => {
                self.concatenated(left, parts)?;
                self.concatenated(right, parts)
            }
            other => {
                parts.push(self.value(other)?);
                Ok(())
            }
        }
    }

    /// The value of an `if`, whose branches are values.
    fn chosen(&mut self, branches: &Branches) -> Translation<String> {
        let result = self.temporary();
        let mut earlier: Vec<String> = Vec::new();
        for (condition, block) in &branches.conditional {
            let condition = self.condition(condition)?;
            let all: Vec<String> = earlier
                .iter()
                .map(|other| format!("not ({other})"))
                .chain([format!("({condition})")])
                .collect();
            self.choose(&result, block, &all.join(" and "))?;
            earlier.push(condition);
        }
        if let Some(block) = &branches.otherwise {
            let all: Vec<String> = earlier.iter().map(|other| format!("not ({other})")).collect();
            self.choose(&result, block, &all.join(" and "))?;
        }
        Ok(result)
    }

    fn choose(&mut self, result: &str, block: &[super::Statement], condition: &str) -> Translation<()> {
        let [super::Statement { kind: StatementKind::Expression(value), .. }] = block else {
            return Err("a branch with several statements is no value here".to_owned());
        };
        let outer = self.conditions.len();
        self.conditions.push(condition.to_owned());
        let value = self.value(value);
        self.conditions.truncate(outer);
        self.emit_where(&format!("set({result}, {})", value?), Some(condition));
        Ok(())
    }
}

/// The condition of a test about the type of a value. Numbers of JSON are doubles here: those that are whole pass for integers.
pub(super) fn type_condition(test: &str, value: &str) -> String {
    match test {
        "IsInt" => format!("(IsInt({value}) or (IsDouble({value}) and {value} == Double(Int({value}))))"),
        _ => format!("{test}({value})"),
    }
}

/// The test that an assertion about a type makes: `string(.a)`.
fn assertion(expression: &Expression) -> Option<&'static str> {
    let Expression::Call(call) = expression else { return None };
    match call.name.as_str() {
        _ if !call.path.is_empty() => None,
        "string" => Some("IsString"),
        "int" => Some("IsInt"),
        "float" => Some("IsDouble"),
        "bool" => Some("IsBool"),
        "object" => Some("IsMap"),
        "array" => Some("IsList"),
        _ => None,
    }
}

/// Whether a value is known to be a text.
fn is_text(expression: &Expression) -> bool {
    match expression {
        Expression::Text(_) => true,
        Expression::Binary("+" | "??" | "||", left, right) => is_text(left) || is_text(right),
        Expression::Call(call) => matches!(
            call.name.as_str(),
            "string"
                | "to_string"
                | "downcase"
                | "upcase"
                | "replace"
                | "join"
                | "format_timestamp"
                | "get_env_var"
                | "get_hostname"
                | "slice"
                | "strip_whitespace"
                | "encode_json"
        ),
        _ => false,
    }
}

/// Whether a value is known to be a number.
fn is_number(expression: &Expression) -> bool {
    match expression {
        Expression::Number(_) | Expression::Negative(_) => true,
        Expression::Binary("+" | "-" | "*" | "/", left, right) => is_number(left) || is_number(right),
        Expression::Call(call) => matches!(
            call.name.as_str(),
            "int" | "to_int" | "float" | "to_float" | "length" | "strlen" | "to_unix_timestamp"
        ),
        _ => false,
    }
}
