//! The transform `remap`: a program in VRL.

use std::ops::Range;

use super::{Action, Transformed};
use crate::import::group::{FileReader, Group};
use crate::import::steps::{Step, StepKind};
use crate::import::vector::components::Component;
use crate::import::vector::vocabulary::Vocabulary;
use crate::import::vector::vrl;
use crate::yaml::{Node, Value, source_range};
use tidegate_pipeline as engine;

/// A program.
pub(in crate::import::vector) struct Remap {
    program: Program,
    statements: Vec<vrl::Statement>,
    drop_on_error: bool,
    drop_on_abort: bool,
}

/// A text in VRL, with its place in the file.
#[derive(Clone)]
pub(in crate::import::vector) struct Program {
    pub(super) text: String,
    pub(super) at: Range<usize>,
    pub(super) path: String,
}

/// Reads a remap.
pub(super) fn remap(
    component: &Component<'_>,
    group: &mut Group<'_>,
    reader: &mut FileReader<'_, '_>,
) -> Action {
    let program = program(group, "source", reader);
    let drop_on_error = group.flag("drop_on_error", reader).unwrap_or(false);
    let drop_on_abort = group.flag("drop_on_abort", reader).unwrap_or(true);
    if group.flag("reroute_dropped", reader) == Some(true) {
        let message = "left out: records that fail have no output of their own; `/metrics` counts them";
        reader.note(&group.at.clone(), &group.path_of("reroute_dropped"), message);
    }
    for key in ["file", "files"] {
        if let Some(entry) = group.take(key) {
            let message = "the program is not read from there: copy it into `source` and convert again; until then `tidegate \
                           check` refuses the result";
            reader.note(&entry.key_at, &group.path_of(key), message);
            return Action::Refuse;
        }
    }
    group.lacks(
        &[
            ("timezone", "left out: times without a zone are UTC"),
            ("runtime", "not needed"),
            ("metric_tag_values", "left out: a label has one value"),
            ("graph", "not needed"),
        ],
        reader,
    );
    let Some(program) = program else {
        let message = format!("`{}` has no `source`", component.path());
        reader.error(&component.entry.key_at, message, "add `source`, a program in VRL");
        return Action::Pass;
    };
    let statements = vrl::parse(&program.text);
    Action::Remap(Remap { program, statements, drop_on_error, drop_on_abort })
}

/// Takes a program.
pub(super) fn program(group: &mut Group<'_>, key: &str, reader: &mut FileReader<'_, '_>) -> Option<Program> {
    let path = group.path_of(key);
    let entry = group.take(key)?;
    // Its variables are looked at later, in the texts of the program.
    reader.text(&entry.node, &path)?;
    program_of(&entry.node, path)
}

/// A program, if it is a text.
pub(super) fn program_of(node: &Node, path: String) -> Option<Program> {
    match &node.value {
        Value::Scalar(text) => Some(Program { text: text.clone(), at: node.at.clone(), path }),
        _ => None,
    }
}

impl Remap {
    /// Its steps for events with these fields.
    pub(super) fn transformed(
        &self,
        name: &str,
        vocabulary: &Vocabulary,
        reader: &mut FileReader<'_, '_>,
    ) -> Transformed {
        let program = &self.program;
        let translated = vrl::translate(&program.text, &self.statements, vocabulary);
        for (at, message) in &translated.notes {
            let place = program.place(at, reader);
            reader.note(&place, &program.path, message.as_str());
        }
        let mut refused: Vec<&vrl::Line> = Vec::new();
        for line in &translated.lines {
            let is_noted = translated.notes.iter().any(|(at, _)| *at == line.at);
            let refusal = crate::import::steps::refused(line.text.clone(), engine::StepKind::Edit);
            if let Some((text, reason)) = refusal.filter(|_| !is_noted)
                && !refused.iter().any(|other| other.at == line.at)
            {
                refused.push(line);
                let place = program.place(&line.at, reader);
                let message = format!("`{text}` is refused by `tidegate check`: {reason}");
                reader.note(&place, &program.path, message);
            }
        }
        let mut steps = Vec::new();
        if !translated.lines.is_empty() {
            let lines = translated.lines.iter().map(|line| line.text.clone()).collect();
            let mut step = Step::new(name, StepKind::Edit(lines));
            step.on_error = self.on_error(&translated, reader);
            steps.push(step);
        }
        if translated.has_drops {
            if self.drop_on_abort {
                let condition = format!("log.attributes[\"{}\"] == true", vrl::ABORTED);
                steps.push(Step::new(name, StepKind::Drop(vec![condition])));
            } else {
                let message = format!(
                    "`abort` leaves the event as it was in Vector; here records keep what was changed, and the attribute `{}`",
                    vrl::ABORTED
                );
                reader.note(&program.at, &program.path, message);
            }
        }
        Transformed { steps, condition: None, vocabulary: translated.vocabulary }
    }

    /// How a record is treated on which a statement fails.
    fn on_error(
        &self,
        translated: &vrl::Translated,
        reader: &mut FileReader<'_, '_>,
    ) -> Option<&'static str> {
        match (self.drop_on_error, translated.handles_errors) {
            (true, false) => Some("drop"),
            (true, true) => {
                let message = "`drop_on_error` is left out: the program handles some errors, and `on_error: drop` would drop on those, too";
                reader.note(&self.program.at, &self.program.path, message);
                None
            }
            (false, true) => Some("silent"),
            (false, false) => None,
        }
    }
}

impl Program {
    /// The place of a part of the program in the file.
    fn place(&self, part: &Range<usize>, reader: &FileReader<'_, '_>) -> Range<usize> {
        let source = reader.source_text().get(self.at.clone()).unwrap_or_default();
        let start = match source.strip_prefix("'''").or_else(|| source.strip_prefix("\"\"\"")) {
            // A line end directly behind the quotes is none of the value.
            Some(inside) => {
                Some(part.start + 3 + (inside.len() - inside.trim_start_matches(['\r', '\n']).len()).min(1))
            }
            None => source_range(source, &self.text, part).map(|place| place.start),
        };
        // Where the two differ, the line of the program is a good guess.
        let start = start.or_else(|| {
            let line = self.text.get(..part.start)?.matches('\n').count();
            let line = line + usize::from(source.starts_with(['|', '>']));
            source.match_indices('\n').nth(line.checked_sub(1)?).map(|(at, _)| at + 1)
        });
        let at = self.at.start + start.unwrap_or(0).min(source.len());
        at..at
    }
}
