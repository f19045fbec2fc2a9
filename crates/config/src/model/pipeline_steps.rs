//! The steps of a pipeline, and the text that they were read from.

use std::ops::Deref;
use std::sync::Arc;

use super::pipeline::{RelabelRule, Step};
use crate::reader::Reader;
use crate::setting::{PlainValue, Sequence, Setting, Shape};
use crate::yaml::{Node, Value};

/// The longest text that is kept, in bytes.
const LONGEST: usize = 32 << 10;

/// The steps of a pipeline, in order.
#[derive(Debug, Clone)]
pub struct Steps {
    steps: Sequence<Step>,
    /// The text in the file. It has no part in comparisons: a comment changes nothing.
    written: Option<Arc<str>>,
}

impl Steps {
    /// A step that relabels.
    pub(super) fn relabeling(rules: Sequence<RelabelRule>) -> Steps {
        let step = Step { relabel: Some(rules), ..Step::default() };
        Steps { steps: vec![step].into(), written: None }
    }

    pub(super) fn as_written(&self) -> Option<&str> {
        self.written.as_deref()
    }
}

impl Deref for Steps {
    type Target = [Step];

    fn deref(&self) -> &[Step] {
        &self.steps
    }
}

impl PartialEq for Steps {
    fn eq(&self, other: &Steps) -> bool {
        self.steps == other.steps
    }
}

impl Eq for Steps {}

impl Setting for Steps {
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Steps> {
        let steps = Sequence::read(node, reader)?;
        let before = reader.text().get(..node.at.start).unwrap_or_default();
        // A list that is indented as its name begins behind its first dash.
        let dash = before.trim_end_matches(' ').strip_suffix('-').map(str::len);
        let dash = dash.filter(|_| matches!(node.value, Value::Sequence(_)));
        let start = dash.unwrap_or(node.at.start);
        let written = reader.text().get(start..node.at.end).filter(|written| written.len() <= LONGEST);
        let indent = start - before.rfind('\n').map_or(0, |newline| newline + 1);
        Some(Steps { steps, written: written.map(|written| outdented(written, indent).into()) })
    }

    fn shape() -> Shape {
        Sequence::<Step>::shape()
    }

    fn plain(&self) -> PlainValue {
        self.steps.plain()
    }

    fn secrets(&self, out: &mut Vec<String>) {
        self.steps.secrets(out);
    }
}

/// A block whose first line is indented by `indent`, moved to the margin, without the comments that follow it.
fn outdented(block: &str, indent: usize) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for (position, line) in block.lines().enumerate() {
        let own = line.len() - line.trim_start_matches(' ').len();
        // A comment further out is about what comes next.
        if position > 0 && own < indent && line.trim_start().starts_with('#') {
            lines.push("");
            continue;
        }
        lines.push(if position == 0 { line } else { line.get(own.min(indent)..).unwrap_or_default() });
    }
    let mut text = lines.join("\n");
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use crate::{Config, Name, parse};

    fn written(text: &str) -> Option<String> {
        let config: Config = parse("test", text, &|_| Some("s3cret".to_owned())).unwrap();
        config.steps_as_written(&"a".parse::<Name>().unwrap()).map(str::to_owned)
    }

    /// Shows what the operator wrote, without what the environment filled in.
    #[test]
    fn steps_are_kept_as_they_were_written() {
        let text = "pipelines:\n  a:\n    steps:\n      # first\n      - edit:   # inner\n          - set(log.body, \"${SALT}\")\n\n      - drop: log.body == \"x\"\n    # about what follows\n  b: { steps: [{ drop: 'log.body == \"y\"' }] }\n";
        let expected = "- edit:   # inner\n    - set(log.body, \"${SALT}\")\n\n- drop: log.body == \"x\"";
        assert_eq!(written(text).as_deref(), Some(expected));
        assert_eq!(
            written("pipelines: {a: {steps: {drop: 'log.body == \"y\"'}}}").as_deref(),
            Some("{drop: 'log.body == \"y\"'}")
        );
        assert_eq!(
            written(
                "pipelines:\n  a:\n    steps:\n    - drop: log.body == \"x\"\n    - drop: log.body == \"y\"\n"
            )
            .as_deref(),
            Some("- drop: log.body == \"x\"\n- drop: log.body == \"y\"")
        );
    }

    #[test]
    fn a_long_text_is_not_kept_and_a_comment_is_no_difference() {
        let steps = "pipelines:\n  a:\n    steps:\n      - drop: log.body == \"x\"\n";
        let long = format!("{steps}{}", "      - drop: log.body == \"abcdefgh\"\n".repeat(999));
        assert_eq!(written(&long), None);
        let config = |text: &str| parse("test", text, &|_| None).unwrap();
        assert_eq!(config(steps), config(&steps.replace("\"x\"", "\"x\" # why")));
    }
}
