//! The steps of pipelines, as an import makes and prints them.

use super::document::{Map, Yaml};
use super::ottl;
use super::references::has_reference;
use crate::model::Signal;
use tidegate_pipeline as engine;

/// One step.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// The component that it comes from.
    pub(super) name: String,
    pub(super) when: Option<String>,
    pub(super) on_error: Option<&'static str>,
    pub(super) kind: StepKind,
}

/// The operation of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StepKind {
    Drop(Vec<String>),
    Keep(Vec<String>),
    Edit(Vec<String>),
    Sample(Map),
}

impl Step {
    pub(super) fn new(name: &str, kind: StepKind) -> Step {
        Step { name: name.to_owned(), when: None, on_error: None, kind }
    }

    /// A step for the items that a condition holds for; where it fails it does not hold.
    pub(super) fn keep(name: &str, condition: String) -> Step {
        Step { on_error: Some("drop"), ..Step::new(name, StepKind::Keep(vec![condition])) }
    }

    /// Whether it does the same, whatever it is called.
    pub(super) fn equals(&self, other: &Step) -> bool {
        self.kind == other.kind && self.when == other.when && self.on_error == other.on_error
    }

    /// The only signal that it can do anything to; none if it may apply to several.
    pub(super) fn signal(&self) -> Option<Signal> {
        match &self.kind {
            // Each condition has a context of its own.
            StepKind::Drop(conditions) | StepKind::Keep(conditions) => {
                let mut signals = conditions.iter().map(|condition| ottl::signal_of(condition));
                let first = signals.next().flatten()?;
                signals.all(|signal| signal == Some(first)).then_some(first)
            }
            // A list of statements has one: the lowest.
            StepKind::Edit(statements) => {
                let own = statements.iter().find_map(|statement| ottl::signal_of(statement));
                own.or_else(|| self.when.as_deref().and_then(ottl::signal_of))
            }
            StepKind::Sample(_) => None,
        }
    }

    /// The step as a group of settings, named `name`.
    pub(super) fn settings(&self, name: &str) -> Map {
        let mut map = Map::default();
        map.set("name", name);
        map.set_some("when", self.when.as_deref());
        let list = |texts: &[String]| Yaml::List(texts.iter().map(|text| text.as_str().into()).collect());
        match &self.kind {
            StepKind::Drop(conditions) => map.set("drop", list(conditions)),
            StepKind::Keep(conditions) => map.set("keep", list(conditions)),
            StepKind::Edit(statements) => map.set("edit", list(statements)),
            StepKind::Sample(settings) => map.set("sample", settings.clone()),
        }
        map.set_some("on_error", self.on_error);
        map
    }
}

impl Step {
    /// Texts that the engine refuses, each with the reason.
    pub(super) fn refused(&self) -> Vec<(String, String)> {
        let texts = match &self.kind {
            StepKind::Drop(texts) | StepKind::Keep(texts) | StepKind::Edit(texts) => texts.clone(),
            StepKind::Sample(_) => Vec::new(),
        };
        let kind = match self.kind {
            StepKind::Edit(_) => engine::StepKind::Edit,
            _ => engine::StepKind::Drop,
        };
        let each = texts.into_iter().map(|text| (text, kind));
        let when = self.when.clone().map(|text| (text, engine::StepKind::Drop as fn(Vec<String>) -> _));
        each.chain(when).filter_map(|(text, kind)| refused(text, kind)).collect()
    }
}

/// Why the engine does not accept a condition or statement; none if it does, or if the environment decides.
pub(super) fn refused(text: String, kind: fn(Vec<String>) -> engine::StepKind) -> Option<(String, String)> {
    if has_reference(&text) {
        return None;
    }
    let kind = kind(vec![text.replace("$$", "$")]);
    let step = engine::StepDefinition { when: None, on_error: engine::ErrorMode::Ignore, kind };
    let problems = engine::Pipeline::compile(&engine::Definition { steps: vec![step] }).err()?;
    let problem = problems.into_iter().find(|problem| problem.severity == engine::Severity::Error)?;
    let help = problem.help.map_or_else(String::new, |help| format!(" ({help})"));
    Some((text, format!("{}{help}", problem.message)))
}

/// One list of steps that does to each signal what its own list does, or none if there is no such list. A step that only
/// applies to one signal may stand in the others' lists, and a step that all lists have is there once.
pub(super) fn merge(lists: &[(Signal, Vec<Step>)]) -> Option<Vec<Step>> {
    if let [(_, only)] = lists {
        return Some(only.clone());
    }
    let mut rests: Vec<(Signal, &[Step])> =
        lists.iter().map(|(signal, steps)| (*signal, steps.as_slice())).collect();
    let mut merged = Vec::new();
    while rests.iter().any(|(_, rest)| !rest.is_empty()) {
        let own = rests.iter_mut().find_map(|(signal, rest)| match rest.split_first() {
            Some((step, behind)) if step.signal() == Some(*signal) => {
                *rest = behind;
                Some(step.clone())
            }
            _ => None,
        });
        if let Some(step) = own {
            merged.push(step);
            continue;
        }
        let (_, first) = rests.first()?;
        let common = first.first()?.clone();
        for (_, rest) in &mut rests {
            let (step, behind) = rest.split_first()?;
            if !step.equals(&common) {
                return None;
            }
            *rest = behind;
        }
        merged.push(common);
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drop(condition: &str) -> Step {
        Step::new("filter", StepKind::Drop(vec![condition.to_owned()]))
    }

    fn conditions(steps: &[Step]) -> Vec<String> {
        let conditions = steps.iter().map(|step| match &step.kind {
            StepKind::Drop(conditions) => conditions.join("|"),
            _ => String::new(),
        });
        conditions.collect()
    }

    #[test]
    fn steps_of_different_signals_share_a_list() {
        let everywhere = drop(r#"resource.attributes["env"] == "dev""#);
        let traces = vec![everywhere.clone(), drop(r#"span.name == "a""#)];
        let logs = vec![drop(r#"log.body == "x""#), everywhere];
        let merged = merge(&[(Signal::Traces, traces), (Signal::Logs, logs)]).unwrap();
        let expected =
            [r#"log.body == "x""#, r#"resource.attributes["env"] == "dev""#, r#"span.name == "a""#];
        assert_eq!(conditions(&merged), expected);
    }

    /// A resource's step that only one of the signals has would apply to the others too.
    #[test]
    fn a_step_for_resources_of_one_signal_prevents_a_shared_list() {
        let traces = vec![drop(r#"resource.attributes["env"] == "dev""#)];
        assert!(merge(&[(Signal::Traces, traces.clone()), (Signal::Logs, Vec::new())]).is_none());
        assert_eq!(merge(&[(Signal::Traces, traces)]).map(|steps| steps.len()), Some(1));
    }

    #[test]
    fn crossed_orders_prevent_a_shared_list() {
        let (a, b) = (drop(r#"scope.name == "a""#), drop(r#"scope.name == "b""#));
        let lists = [(Signal::Traces, vec![a.clone(), b.clone()]), (Signal::Logs, vec![b, a])];
        assert!(merge(&lists).is_none());
    }
}
