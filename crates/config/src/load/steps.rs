//! Reads steps of a pipeline that stand alone: what somebody pastes to try it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::{bounded, note};
use crate::checks::pipelines::check_steps;
use crate::error::{ErrorCollector, Errors};
use crate::model::{Config, ConfiguredPipeline, Pipeline, RelabelRule};
use crate::reader::Reader;
use crate::setting::{Section, Sequence, Setting};
use crate::substitute::{Substitutions, no_file};
use crate::values::Name;
use crate::yaml::{self, Node, Value};

/// Steps that were read alone.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedSteps {
    /// The steps.
    pub pipeline: ConfiguredPipeline,
    /// A sentence for each thing that compiles but seldom does what is meant, and for each reference that was not replaced.
    pub warnings: Vec<String>,
}

/// The name that the steps have as a pipeline.
const NAME: &str = "trial";

/// Reads what stands under `steps` of a pipeline; a group with `steps`, a step alone and a list of relabeling rules are steps,
/// too. Neither the environment nor a file is read: `${NAME}` stays as it is.
///
/// # Errors
/// Everything that is wrong, as [`parse`](super::parse) has it.
pub fn parse_steps(source: &str, text: &str) -> Result<ParsedSteps, Errors> {
    let text = bounded(source, text)?;
    let mut errors = ErrorCollector::new(text);
    let references = RefCell::new(BTreeSet::new());
    let environment = |name: &str| {
        references.borrow_mut().insert(name.to_owned());
        Some(format!("${{{name}}}"))
    };
    let outside = Substitutions { environment: &environment, files: &no_file };
    let root = yaml::read(text, outside, &mut errors);
    let parsed = root.and_then(|root| interpret(&root, &mut errors));
    if let Some(errors) = errors.into_errors(source) {
        return Err(errors);
    }
    let empty =
        || Errors::of_file(source, "there are no steps".to_owned(), "write some, such as `- edit: …`");
    let mut parsed = parsed.ok_or_else(empty)?;
    parsed.warnings.extend(
        references
            .into_inner()
            .into_iter()
            .map(|name| format!("the environment is not read here: `${{{name}}}` stands as it is")),
    );
    Ok(parsed)
}

fn interpret(root: &Node, errors: &mut ErrorCollector<'_>) -> Option<ParsedSteps> {
    let mut reader = Reader::new(errors, Config::fields);
    let steps = member(root, "steps").unwrap_or(root);
    let is_rules = is_relabeling(steps);
    let pipeline = if is_rules {
        Pipeline::relabeling(Sequence::<RelabelRule>::read(steps, &mut reader)?)
    } else {
        Pipeline { steps: Setting::read(steps, &mut reader)? }
    };
    if pipeline.steps.is_empty() {
        return None;
    }
    let mut findings = Vec::new();
    check_steps(&[], &pipeline, &mut findings);
    let mut warnings = Vec::new();
    for mut finding in findings {
        if is_rules {
            // The list of rules is what the first step would have under `relabel`.
            finding.path.drain(..finding.path.len().min(2));
        }
        warnings.extend(note(finding, steps, errors));
    }
    let mut config = Config::default();
    let name: Name = NAME.parse().ok()?;
    config.pipelines.insert(name.clone(), pipeline);
    Some(ParsedSteps { pipeline: config.pipeline(&name)?, warnings })
}

fn member<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let Value::Mapping(entries) = &node.value else { return None };
    entries.iter().find(|entry| entry.key == name).map(|entry| &*entry.node)
}

/// Whether this is what stands under `write_relabel_configs` of Prometheus, and not a list of steps.
fn is_relabeling(node: &Node) -> bool {
    const MEMBERS: [&str; 5] = ["source_labels", "regex", "action", "target_label", "replacement"];
    let first = match &node.value {
        Value::Sequence(entries) => entries.first().map(|first| &**first),
        _ => Some(node),
    };
    first.is_some_and(|first| MEMBERS.iter().any(|name| member(first, name).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_pipeline::StepKind;

    fn kinds(text: &str) -> Vec<&'static str> {
        let parsed = parse_steps("steps", text).unwrap();
        let name = |step: &tidegate_pipeline::StepDefinition| match &step.kind {
            StepKind::Relabel(rules) => ["", "one rule", "two rules"][rules.len()],
            StepKind::Edit(_) => "edit",
            StepKind::Drop(_) => "drop",
            _ => "other",
        };
        parsed.pipeline.definition.steps.iter().map(name).collect()
    }

    #[test]
    fn steps_are_read_in_every_form_in_which_they_are_pasted() {
        assert_eq!(kinds("- drop: log.body == \"x\"\n- edit: set(log.body, \"y\")"), ["drop", "edit"]);
        assert_eq!(kinds("steps:\n  - drop: log.body == \"x\""), ["drop"]);
        assert_eq!(kinds("edit:\n  - set(log.body, \"y\")"), ["edit"]);
        assert_eq!(kinds("- {regex: a, action: labeldrop}\n- {regex: b, action: labeldrop}"), ["two rules"]);
        assert_eq!(kinds("write_relabel_configs:\n- {regex: a, action: labeldrop}"), ["one rule"]);
    }

    #[test]
    fn problems_have_their_place_in_the_text() {
        let places = |text: &str| -> Vec<(usize, usize)> {
            let errors = parse_steps("steps", text).unwrap_err();
            let places = errors.problems().iter().filter_map(|problem| problem.place.as_ref());
            places.map(|place| (place.line, place.column)).collect()
        };
        assert_eq!(places("- edit:\n    - set(log.bdy, 1)\n    - sett(log.body, 1)"), [(2, 15), (3, 7)]);
        assert_eq!(places("- drop: 'log.body == \"a\"'\n- edti: x"), [(2, 3)]);
        assert_eq!(places("- {regex: a, action: labeldrop}\n- {regex: '(', action: labeldrop}").len(), 1);
        assert_eq!(places("- {regex: a, action: labeldrop}\n- {regex: '(', action: labeldrop}")[0].0, 2);
        for text in ["", "  \n", "[]", "steps: []", "# none"] {
            assert!(parse_steps("steps", text).is_err(), "{text:?}");
        }
    }

    /// Somebody who may try a pipeline may not read the gateway's environment or files with it.
    #[test]
    fn neither_the_environment_nor_files_are_read() {
        let parsed = parse_steps("steps", "edit: set(log.body, \"${PATH}\")").unwrap();
        let StepKind::Edit(statements) = &parsed.pipeline.definition.steps[0].kind else { panic!() };
        assert_eq!(statements, &["set(log.body, \"${PATH}\")"]);
        assert!(parsed.warnings[0].contains("`${PATH}`"), "{:?}", parsed.warnings);
        assert!(parse_steps("steps", "edit: set(log.body, \"${file:/etc/hostname}\")").is_err());
    }
}
