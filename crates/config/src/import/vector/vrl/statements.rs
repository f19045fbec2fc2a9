//! Statements of VRL as statements of OTTL.

use std::collections::BTreeMap;
use std::ops::Range;

use super::outcomes::Outcomes;
use super::syntax::{Branches, Call, Expression, Statement, StatementKind};
use super::{Segment, Translation};
use crate::import::ottl;
use crate::import::vector::vocabulary::{PlaceKind, Vocabulary};

/// A statement of OTTL, with the place of what it comes from in the program.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::import::vector) struct Line {
    pub(in crate::import::vector) text: String,
    pub(in crate::import::vector) at: Range<usize>,
}

/// A translated program.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::import::vector) struct Translated {
    pub(in crate::import::vector) lines: Vec<Line>,
    /// Whether records are marked, to be dropped behind the statements.
    pub(in crate::import::vector) has_drops: bool,
    /// Whether the program goes on where something fails.
    pub(in crate::import::vector) handles_errors: bool,
    /// The names of fields behind the program.
    pub(in crate::import::vector) vocabulary: Vocabulary,
    /// Notes on parts without an exact counterpart, each with its place.
    pub(in crate::import::vector) notes: Vec<(Range<usize>, String)>,
}

/// The attribute that marks records that the program aborts on; before, an entry of the cache does.
pub(in crate::import::vector) const ABORTED: &str = "vector.aborted";

/// Translates a program for events with these fields.
pub(in crate::import::vector) fn translate(
    text: &str,
    statements: &[Statement],
    vocabulary: &Vocabulary,
) -> Translated {
    let mut translator = Translator::new(text, vocabulary);
    for statement in statements {
        translator.statement(statement);
    }
    if translator.out.has_drops {
        // The last statement, because others may replace all attributes.
        let at = statements.last().map_or(0..0, |last| last.at.clone());
        let text = format!("set(log.attributes[\"{ABORTED}\"], true) where log.cache[\"{ABORTED}\"] == true");
        translator.out.lines.push(Line { text, at });
    }
    translator.out
}

pub(super) struct Translator<'p> {
    program: &'p str,
    pub(super) out: Translated,
    /// The conditions around the statement, and for the rest of it that its parsers found what they look for.
    pub(super) conditions: Vec<String>,
    /// The place of the statement.
    at: Range<usize>,
    /// Values that are absent if the error in a variable is there.
    pub(super) errors: BTreeMap<String, String>,
    /// Paths that must hold a map or a list for the fields that were read.
    pub(super) containers: Vec<String>,
    /// Whether it is a condition of its own, which does not hold where something in it fails.
    pub(super) is_lone: bool,
    /// How many names in the cache are used.
    pub(super) temporaries: usize,
}

impl<'p> Translator<'p> {
    pub(super) fn new(program: &'p str, vocabulary: &Vocabulary) -> Translator<'p> {
        let out = Translated {
            lines: Vec::new(),
            has_drops: false,
            handles_errors: false,
            vocabulary: vocabulary.clone(),
            notes: Vec::new(),
        };
        Translator {
            program,
            out,
            conditions: Vec::new(),
            at: 0..0,
            errors: BTreeMap::new(),
            containers: Vec::new(),
            is_lone: false,
            temporaries: 0,
        }
    }

    /// A condition that needs no statements before it.
    pub(super) fn lone_condition(&mut self, expression: &Expression) -> Translation<String> {
        self.is_lone = true;
        let condition = self.condition(expression)?;
        if self.out.lines.is_empty() {
            Ok(condition)
        } else {
            Err("it computes a value that a condition cannot".to_owned())
        }
    }

    pub(super) fn note(&mut self, message: impl Into<String>) {
        self.out.notes.push((self.at.clone(), message.into()));
    }

    /// Adds a statement, under the conditions around it.
    pub(super) fn emit(&mut self, statement: &str) {
        self.emit_where(statement, None);
    }

    pub(super) fn emit_where(&mut self, statement: &str, own: Option<&str>) {
        let all: Vec<&str> = self.conditions.iter().map(String::as_str).chain(own).collect();
        let text = match all.as_slice() {
            [] => statement.to_owned(),
            [only] => format!("{statement} where {only}"),
            several => {
                let several: Vec<String> = several.iter().map(|one| bracketed(one)).collect();
                format!("{statement} where {}", several.join(" and "))
            }
        };
        self.out.lines.push(Line { text, at: self.at.clone() });
    }

    /// A new name in the cache.
    pub(super) fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("log.cache[\"value_{}\"]", self.temporaries)
    }

    fn statement(&mut self, statement: &Statement) {
        let outer = std::mem::replace(&mut self.at, statement.at.clone());
        let (lines, temporaries) = (self.out.lines.len(), self.temporaries);
        let conditions = self.conditions.len();
        let result = match &statement.kind {
            StatementKind::Assignment { targets, operator, value } => {
                self.assignment(targets, operator, value)
            }
            StatementKind::Expression(expression) => self.expression_statement(expression),
            StatementKind::If(branches) => self.branches(branches),
            StatementKind::Abort if self.out.vocabulary.attributes() != "log.attributes" => {
                Err("records of logs alone can be dropped so".to_owned())
            }
            StatementKind::Abort => {
                self.out.has_drops = true;
                self.emit(&format!("set(log.cache[\"{ABORTED}\"], true)"));
                Ok(())
            }
            StatementKind::Unknown => Err("this is not understood here".to_owned()),
        };
        self.conditions.truncate(conditions);
        if let Err(reason) = result {
            self.out.lines.truncate(lines);
            self.temporaries = temporaries;
            self.untranslated(&reason);
        }
        self.at = outer;
    }

    /// Leaves a statement as it is, for `check` to refuse it.
    fn untranslated(&mut self, reason: &str) {
        let source = self.program.get(self.at.clone()).unwrap_or_default();
        let text: Vec<&str> = source.split_whitespace().collect();
        let text = crate::import::references::vector(&text.join(" ")).0;
        let readable = without_texts(source);
        let shown: String = readable.chars().take(60).collect();
        let more = if shown.len() < readable.len() { "…" } else { "" };
        self.note(format!("`{shown}{more}` stays as it is, so `tidegate check` refuses it: {reason}"));
        let at = self.at.clone();
        // Whatever it is, it must not be taken for OTTL.
        let text = if is_refused(&text) { text } else { format!("VRL {text}") };
        self.out.lines.push(Line { text, at });
    }

    fn expression_statement(&mut self, expression: &Expression) -> Translation<()> {
        match expression {
            // The value of the program, which nobody uses.
            Expression::Path(_) | Expression::Variable(..) | Expression::Null | Expression::Boolean(_) => {
                Ok(())
            }
            Expression::If(branches) => self.branches(branches),
            Expression::Call(call) => self.call_statement(call),
            _ => Err("its value is not used".to_owned()),
        }
    }

    fn call_statement(&mut self, call: &Call) -> Translation<()> {
        match (call.name.as_str(), call.argument(0, "target").or_else(|| call.argument(0, "path"))) {
            ("del", Some(Expression::Path(path))) => self.delete(path),
            ("log" | "assert" | "assert_eq", _) => {
                self.note(format!("`{}` is left out: statements do not write to the log", call.name));
                Ok(())
            }
            (name, _) => Err(format!("as a statement, `{name}` has no counterpart")),
        }
    }

    /// Removes a field.
    pub(super) fn delete(&mut self, path: &[Segment]) -> Translation<()> {
        if !self.out.vocabulary.is_replaced && matches!(path, [Segment::Field(name)] if name == "source_type")
        {
            return Ok(());
        }
        let place = self.out.vocabulary.place(path)?;
        let outer = self.conditions.len();
        if let Some(key) = self.out.vocabulary.merged_key(path) {
            self.emit(&format!("delete_key(log.attributes, {})", self.literal(&key)));
        }
        // Where there is no such map there is nothing to remove, which is no error.
        self.conditions.extend(place.containers);
        let result = self.delete_at(place.kind, place.parent, place.path, outer > 0);
        self.conditions.truncate(outer);
        result
    }

    fn delete_at(
        &mut self,
        kind: PlaceKind,
        parent: Option<(String, Segment)>,
        path: String,
        is_conditional: bool,
    ) -> Translation<()> {
        match (kind, parent) {
            (PlaceKind::Body, _) => self.emit("set(log.body, nil)"),
            (PlaceKind::Time, _) => self.emit("set(log.time_unix_nano, 0)"),
            (PlaceKind::Event, _) => return Err("an event without fields has no counterpart".to_owned()),
            (PlaceKind::Resource, _) if is_conditional => {
                return Err(format!("`{path}` is an attribute of a resource, which other records share"));
            }
            (_, Some((parent, Segment::Field(key)))) => {
                self.emit(&format!("delete_key({parent}, {})", self.literal(&key)));
            }
            (_, Some((parent, Segment::Index(index)))) => {
                self.emit(&format!("delete_index({parent}, {index})"));
            }
            _ => self.emit(&format!("set({path}, nil)")),
        }
        Ok(())
    }

    pub(super) fn branches(&mut self, branches: &Branches) -> Translation<()> {
        let first = branches.conditional.first().ok_or_else(|| "it has no branches".to_owned())?;
        let conditions = self.conditions.len();
        // Each attempt may translate the blocks again, so it is for the outer ones.
        if branches.conditional.len() == 1 && self.conditions.len() < 3 {
            let Outcomes { holds: condition, fails } = self.outcomes(&first.0)?;
            let otherwise = fails.unwrap_or_else(|| format!("not ({condition})"));
            let before = (self.out.clone(), self.errors.clone(), self.temporaries);
            let start = self.out.lines.len();
            self.block(&condition, &first.1);
            let then = self.out.lines.get(start..).unwrap_or_default();
            let is_stable = !then.iter().any(|line| changes(&line.text, &condition));
            let count = then.len();
            if is_stable || (count == 1 && branches.otherwise.is_none()) {
                if let Some(block) = &branches.otherwise {
                    self.block(&otherwise, block);
                }
                let written = self.out.lines.get(start..).unwrap_or_default();
                let (_, last) = written.split_at(count.min(written.len()));
                let is_stable = last.len() < 2 || !last.iter().any(|line| changes(&line.text, &condition));
                if is_stable {
                    return Ok(());
                }
            }
            (self.out, self.errors, self.temporaries) = before;
            self.conditions.truncate(conditions);
        }
        self.numbered_branches(branches)
    }

    /// Remembers which branch it is before any of them changes what the conditions look at.
    fn numbered_branches(&mut self, branches: &Branches) -> Translation<()> {
        let flag = self.temporary();
        for (index, (condition, _)) in branches.conditional.iter().enumerate() {
            let Outcomes { holds, fails } = self.outcomes(condition)?;
            let own = if index == 0 { holds } else { format!("{flag} == nil and {}", bracketed(&holds)) };
            self.emit_where(&format!("set({flag}, {})", index + 1), Some(&own));
            if let Some(fails) = fails {
                // Where the condition has no value, no branch is taken.
                let neither = format!("{flag} == nil and not ({fails})");
                self.emit_where(&format!("set({flag}, 0)"), Some(&neither));
            }
        }
        for (index, (_, block)) in branches.conditional.iter().enumerate() {
            self.block(&format!("{flag} == {}", index + 1), block);
        }
        if let Some(otherwise) = &branches.otherwise {
            self.block(&format!("{flag} == nil"), otherwise);
        }
        Ok(())
    }

    fn block(&mut self, condition: &str, statements: &[Statement]) {
        self.conditions.push(condition.to_owned());
        for statement in statements {
            self.statement(statement);
        }
        self.conditions.pop();
    }

    /// A text of the program as a literal.
    pub(super) fn literal(&self, text: &str) -> String {
        ottl::literal(&crate::import::references::vector(text).0)
    }
}

/// A statement on one line, for people to read. Its texts may be secrets.
fn without_texts(source: &str) -> String {
    let mut shown = String::new();
    let mut at = 0;
    for placed in super::token::tokens(source) {
        if matches!(placed.token, super::token::Token::Text { .. }) {
            shown.push_str(source.get(at..placed.at.start).unwrap_or_default());
            shown.push_str("\"***\"");
            at = placed.at.end;
        }
    }
    shown.push_str(source.get(at..).unwrap_or_default());
    let words: Vec<&str> = shown.split_whitespace().collect();
    crate::import::references::vector(&words.join(" ")).0
}

/// Whether nobody could take a text for OTTL.
fn is_refused(text: &str) -> bool {
    let kind = tidegate_pipeline::StepKind::Edit;
    crate::import::steps::refused(text.replace("${", "{"), kind).is_some()
}

/// A condition as an operand of `and`.
pub(super) fn bracketed(condition: &str) -> String {
    if condition.contains(" or ") && !is_one_bracket(condition) {
        format!("({condition})")
    } else {
        condition.to_owned()
    }
}

/// Whether a text is in one pair of brackets.
fn is_one_bracket(text: &str) -> bool {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && at + c.len_utf8() < text.len() {
            return false;
        }
    }
    text.starts_with('(') && text.ends_with(')')
}

/// Whether a statement changes what a condition looks at.
fn changes(statement: &str, condition: &str) -> bool {
    let Some((function, arguments)) = statement.split_once('(') else { return true };
    let end = arguments.find([',', ')']).unwrap_or(arguments.len());
    let target = arguments.get(..end).unwrap_or_default().trim();
    match function {
        "delete_key" => {
            let key = arguments.get(end + 1..).unwrap_or_default().split(')').next().unwrap_or_default();
            condition.contains(&format!("{target}[{}]", key.trim()))
        }
        _ => {
            // A member that is set makes the map around it.
            let mut outer = target;
            while let Some((around, _)) =
                outer.rsplit_once("[\"").filter(|(around, _)| around.contains("[\""))
            {
                if condition.contains(around) {
                    return true;
                }
                outer = around;
            }
            condition.contains(target)
        }
    }
}
