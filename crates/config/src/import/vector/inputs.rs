//! `inputs`: names and patterns of outputs of components.

use super::Vector;
use super::components::{Component, Section};
use super::transforms::Action;
use crate::error::quote;
use crate::import::group::{FileReader, Text};
use crate::suggest::nearest;

/// An output of a component.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OutputId {
    /// The component's place among all.
    pub(super) component: usize,
    /// Its name behind the component's and a dot; empty for the only one.
    pub(super) output: String,
}

/// The most inputs that are patterns, and how long one may be.
const MOST_PATTERNS: usize = 200;
const LONGEST_PATTERN: usize = 256;
/// The most inputs for which a name is looked for that may be meant.
const MOST_SUGGESTIONS: usize = 100;

/// Counts of what has bounds among inputs.
#[derive(Default)]
pub(super) struct InputBudget {
    patterns: usize,
    unknown: usize,
}

impl Vector<'_> {
    /// All outputs with their names.
    pub(super) fn outputs(&self, actions: &[Option<Action>]) -> Vec<(String, OutputId)> {
        let mut all = Vec::new();
        for (index, component) in self.all.iter().enumerate() {
            for output in outputs_of(component, actions.get(index).and_then(Option::as_ref)) {
                let name = match output.as_str() {
                    "" => component.name.to_owned(),
                    output => format!("{}.{output}", component.name),
                };
                all.push((name, OutputId { component: index, output }));
            }
        }
        all
    }

    /// The outputs that a component's inputs name.
    pub(super) fn inputs_of(
        &mut self,
        index: usize,
        all: &[(String, OutputId)],
        reader: &mut FileReader<'_, '_>,
    ) -> Vec<OutputId> {
        let mut found: Vec<OutputId> = Vec::new();
        let Some(component) = self.all.get(index) else { return found };
        for input in &component.inputs {
            let own = |id: &OutputId| id.component == index;
            let is_pattern = input.value.contains(['*', '?']);
            self.budget.patterns += usize::from(is_pattern);
            if self.budget.patterns > MOST_PATTERNS || input.value.len() > LONGEST_PATTERN {
                let message = format!(
                    "there are more than {MOST_PATTERNS} inputs with `*`, or this one is longer than {LONGEST_PATTERN} bytes"
                );
                reader.error(&input.at, message, "name the inputs");
                break;
            }
            let named = all.iter().filter(|(name, id)| {
                if is_pattern { !own(id) && matches(&input.value, name) } else { *name == input.value }
            });
            let before = found.len();
            let mut has_any = false;
            for (_, id) in named {
                has_any = true;
                if !found.contains(id) {
                    found.push(id.clone());
                }
            }
            if !has_any && found.len() == before {
                self.budget.unknown += 1;
                let known = if self.budget.unknown > MOST_SUGGESTIONS { &[] } else { all };
                unknown(component, input, known, reader);
            }
        }
        found
    }
}

fn unknown(
    component: &Component<'_>,
    input: &Text,
    all: &[(String, OutputId)],
    reader: &mut FileReader<'_, '_>,
) {
    if input.is_open() {
        let message = "the input depends on the environment; it was left out";
        return reader.note(&input.at, &format!("{}.inputs", component.path()), message);
    }
    let names = all.iter().map(|(name, _)| name.as_str());
    let help = match nearest(&input.value, names) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            "write the name of a source or a transform, with the output behind a dot where it has several"
                .to_owned()
        }
    };
    reader.error(&input.at, format!("there is no output {}", quote(&input.value)), help);
}

fn outputs_of(component: &Component<'_>, action: Option<&Action>) -> Vec<String> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match (component.section, component.kind.as_str(), action) {
        (Section::Sinks, ..) => Vec::new(),
        (_, "opentelemetry", _) => names(&["logs", "metrics", "traces"]),
        (_, "datadog_agent", _) => names(&["", "logs", "metrics", "traces"]),
        (_, _, Some(Action::Route(route))) => {
            route.conditions.iter().map(|(name, _)| name.clone()).chain(["_unmatched".to_owned()]).collect()
        }
        (_, "remap", _) => names(&["", "dropped"]),
        _ => names(&[""]),
    }
}

/// Whether a name fits a pattern with `*` and `?`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // Which beginnings of the name the pattern so far fits.
    let mut fits = vec![false; name.len() + 1];
    if let Some(empty) = fits.first_mut() {
        *empty = true;
    }
    for c in pattern.chars() {
        let mut next = vec![false; name.len() + 1];
        let mut any_before = false;
        for (len, fit) in fits.iter().enumerate() {
            any_before |= *fit;
            if c == '*' {
                next[len] = any_before;
            } else if *fit && name.get(len).is_some_and(|own| c == '?' || c == *own) {
                next[len + 1] = true;
            }
        }
        fits = next;
    }
    fits.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_of_inputs_match_names() {
        for (pattern, name, expected) in [
            ("*", "a.b", true),
            ("app_*", "app_1", true),
            ("app_*", "web", false),
            ("*.errors", "route.errors", true),
            ("a?c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("", "", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
